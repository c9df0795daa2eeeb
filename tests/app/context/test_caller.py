"""Who calls: the session whose process is an ancestor of the calling one, and nobody else."""

import os
from types import SimpleNamespace

from mam.adapters.system import process
from mam.app.context.caller import find_caller


def row(name, pid, start=1, boot="x"):
    pane = {"id": "%1", "pid": pid, "pid_start": start, "boot_id": boot}
    return {"id": f"s_{name}", "name": name, "status": "running", "pane": pane}


def context(rows, **environ):
    view = SimpleNamespace(rows=rows)
    return SimpleNamespace(registry=SimpleNamespace(view_to_show=lambda: view), environ=environ)


def find(rows, **environ):
    """Return the session that calls by this process."""
    return find_caller(context(rows, **environ), os.getpid()).session_id


def test_a_pane_of_another_server_with_the_same_id() -> None:
    me = process.ancestors(os.getpid())[0]
    rows = [row("other", 1), row("mine", me.pid, start=me.start, boot=me.boot)]
    for order in (rows, rows[::-1]):
        assert find(order, TMUX_PANE="%1") == "s_mine"
    assert find(rows, TMUX_PANE="%2") is None


def test_what_the_environment_claims_is_checked() -> None:
    me = process.ancestors(os.getpid())[0]
    rows = [row("other", 1), row("mine", me.pid, start=me.start, boot=me.boot)]
    assert find(rows, MAM_SESSION="s_other") is None
    assert find(rows, MAM_SESSION="s_mine") == "s_mine"
    assert find(rows) is None
