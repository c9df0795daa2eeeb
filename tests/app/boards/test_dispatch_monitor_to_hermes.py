"""Handing the monitor to Hermes, where Hermes is not there or does not do it; the rest is in conformance."""

import json
import os
import subprocess
import sys

import pytest
from tests.adapters.kanban.conftest import make_hermes
from tests.app.environment import use_environment

import mam
from mam.core import caller as callers
from mam.core.errors import AgentMissing, NoRegistry, Unavailable

# It takes the words of the real one, and writes the card as little as needed.
STAND_IN = """#!{python}
import json, os, sqlite3, sys
shown = {{key: os.environ.get(key) for key in ("HERMES_BIN", "MAM_SESSION", "TMUX")}}
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], shown]) + "\\n")
board = sqlite3.connect(os.environ["HERMES_KANBAN_DB"])
if sys.argv[2] == "create" and not {refuses}:
    key = sys.argv[sys.argv.index("--idempotency-key") + 1]
    columns = "id, title, status, created_at, idempotency_key"
    board.execute(f"INSERT INTO tasks({{columns}}) VALUES('t_1', 'x', 'ready', 1, ?)", (key,))
    board.commit()
print("kanban: something")
"""


@pytest.fixture
def hermes(fleet, tmp_path, monkeypatch):
    """A board, and a program that is found as hermes."""
    path = make_hermes(tmp_path)
    (tmp_path / "bin").mkdir()

    def install(*, refuses=False):
        program = tmp_path / "bin" / "hermes"
        text = STAND_IN.format(python=sys.executable, log=str(tmp_path / "log"), refuses=refuses)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        script = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HERMES_KANBAN_DB": str(path)}
        use_environment(fleet, {**os.environ, **script, "MAM_SESSION": "s_1", "TMUX": "x,1,0"})
        # The claim alone would make the caller unknown.
        fleet._access._caller = callers.user(os.getpid())

    return install


def calls(tmp_path):
    return [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]


def test_nothing_to_watch(fleet, hermes) -> None:
    hermes()
    with pytest.raises(NoRegistry):
        fleet.monitor.dispatch_to_hermes()


def test_no_hermes(fleet, monkeypatch) -> None:
    fleet.init()
    use_environment(fleet, {**os.environ, "PATH": "/nonexistent"})
    with pytest.raises(AgentMissing):
        fleet.monitor.dispatch_to_hermes()


def test_hermes_makes_no_card_and_says_success(fleet, hermes, tmp_path) -> None:
    fleet.init()
    hermes(refuses=True)
    with pytest.raises(Unavailable, match="no card: kanban: something"):
        fleet.monitor.dispatch_to_hermes()
    assert [arguments[1] for arguments, _ in calls(tmp_path)] == ["create"]


def test_a_card_that_nobody_took_waits_for_the_dispatcher(fleet, hermes, tmp_path) -> None:
    fleet.init()
    hermes()
    result = fleet.monitor.dispatch_to_hermes()
    assert (result["created"], result["spawned"], result["note"]) == (True, False, "kanban: something")
    assert fleet.monitor.dispatch_to_hermes()["created"] is False
    assert [arguments[1] for arguments, _ in calls(tmp_path)] == ["create", "dispatch", "dispatch"]
    (create, _), (_, environ), _ = calls(tmp_path)
    assert create[2:4] == ["agent-sessions monitor (live reconcile)", "--body"]
    assert create[create.index("--workspace") + 1] == f"dir:{fleet.root}"
    assert "--goal" in create
    assert create[create.index("--skill") + 1] == "tmux-agent-orchestrate-monitor", "row S001-23"
    assert environ == {"HERMES_BIN": result["worker"], "MAM_SESSION": None, "TMUX": None}


def test_s001_23_a_skill_that_hermes_does_not_have_is_named(fleet, hermes, home) -> None:
    fleet.init()
    hermes()
    place = str(home / ".hermes" / "skills")
    assert fleet.monitor.dispatch_to_hermes()["missing_skill"] == {
        "name": "tmux-agent-orchestrate-monitor",
        "directory": place,
    }
    fleet.skills.install(folder=place)
    assert fleet.monitor.dispatch_to_hermes()["missing_skill"] is None


def test_the_worker_of_a_root_with_a_strange_name(home, tmux_server, tmp_path, hermes, fleet) -> None:
    root = tmp_path / "it's $(touch marker) here"
    root.mkdir()
    hermes()
    with mam.open(str(root), environ=fleet._access.context.environ) as odd_root:
        odd_root._access._caller = callers.user(os.getpid())
        odd_root.init()
        result = odd_root.monitor.dispatch_to_hermes()
        card = result["card"]["id"]
        script = result["worker"]
        environ = {
            **fleet._access.context.environ,
            "HERMES_KANBAN_TASK": card,
            "HERMES_KANBAN_DB": "/nonexistent",
        }
        # The dispatcher has no session's variables.
        del environ["MAM_SESSION"]
        ran = subprocess.run(
            [script, "chat"], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 2, ran.stderr
        assert "no Hermes board at /nonexistent" in ran.stderr
        other_root = subprocess.run(
            [script, "-p", "default", "a b"],
            env={**fleet._access.context.environ, "HERMES_KANBAN_TASK": "t_other", "HERMES_BIN": script},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert other_root.stdout == "kanban: something\n"
    assert calls(tmp_path)[-1] == [
        ["-p", "default", "a b"],
        {"HERMES_BIN": None, "MAM_SESSION": "s_1", "TMUX": "x,1,0"},
    ]
    assert not list(tmp_path.glob("marker"))


def test_s001_42_the_text_of_the_card_has_the_sections_of_the_document(fleet, hermes, tmp_path) -> None:
    fleet.init()
    hermes()
    fleet.monitor.dispatch_to_hermes()
    create, _ = calls(tmp_path)[0]
    body = create[create.index("--body") + 1]
    sections = ("## Loop (every 30 s", "## What it does about a difference", "## Stop", "## Never")
    for words in (*sections, "mam monitor --once --emit-diff", "kanban_heartbeat(", "kanban_block("):
        assert words in body, words
