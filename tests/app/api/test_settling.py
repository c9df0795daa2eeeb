"""Every verb settles what a dead process left half done: also one that only reads, reports, or is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.app.api.test_verb_of_method import OPEN_METHODS

import mam
from mam.adapters.store.rows_and_log import CHANGED_BY, new_session_id
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.app.api.boards import Boards
from mam.app.api.verb_group import Access
from mam.core import caller as callers
from mam.core.errors import MamError, NotAllowed

DEAD = {"pid": 1, "start": 1, "boot": "another boot"}
# Each method that only reads, with a call of it; what it has to say in an empty root does not matter.
READS = {
    "Sessions.get": lambda fleet: fleet.sessions.get("one"),
    "Sessions.list": lambda fleet: fleet.sessions.list(),
    "Sessions.ls": lambda fleet: fleet.sessions.ls(),
    "Sessions.watch": lambda fleet: fleet.sessions.watch(),
    "Sessions.status": lambda fleet: fleet.sessions.status("one"),
    "Sessions.explain": lambda fleet: fleet.sessions.explain("one"),
    "Sessions.read": lambda fleet: fleet.sessions.read("one"),
    "Sessions.transcript": lambda fleet: fleet.sessions.transcript("one"),
    "Sessions.wait": lambda fleet: fleet.sessions.wait("one", "exited"),
    "Sessions.log": lambda fleet: fleet.sessions.log(),
    "Sessions.find_unregistered": lambda fleet: fleet.sessions.find_unregistered("two"),
    "Sessions.forgettable": lambda fleet: fleet.sessions.forgettable(),
    "Sessions.attach": lambda fleet: fleet.sessions.attach("one"),
    "Sessions.drill": lambda fleet: fleet.sessions.drill(),
    "Messages.inbox": lambda fleet: fleet.messages.inbox("one"),
    "Messages.dialog": lambda fleet: fleet.messages.dialog("one"),
    "Jobs.preview": lambda fleet: fleet.jobs.preview("work"),
    "Jobs.instructions": lambda fleet: fleet.jobs.instructions("1f00ab42"),
    "Jobs.status": lambda fleet: fleet.jobs.status("1f00ab42"),
    "Jobs.list": lambda fleet: fleet.jobs.list(),
    "Jobs.wait_remote": lambda fleet: fleet.jobs.wait_remote({}),
    "Jobs.logs": lambda fleet: fleet.jobs.logs("1f00ab42"),
    "Jobs.output": lambda fleet: fleet.jobs.output("1f00ab42"),
    "Jobs.audits": lambda fleet: fleet.jobs.audits(),
    "Teams.list": lambda fleet: fleet.teams.list(),
    "Tasks.list": lambda fleet: fleet.tasks.list(),
    "Boards.list": lambda fleet: fleet.boards.list(board="ours"),
    "Boards.show": lambda fleet: fleet.boards.show("1", board="ours"),
    "Monitor.doctor": lambda fleet: fleet.monitor.doctor(),
    "Monitor.backups": lambda fleet: fleet.monitor.backups(),
    "Agents.list": lambda fleet: fleet.agents.list(),
    "Agents.get": lambda fleet: fleet.agents.get("one"),
    "Agents.wait": lambda fleet: fleet.agents.wait(ids=["one"], timeout=0),
    "Agents.panes": lambda fleet: fleet.agents.panes(),
    "Agents.in_pane": lambda fleet: fleet.agents.in_pane("%1"),
}
# Parts of other verbs; what the shell asks while a person types; what reads nothing of the registry.
PARTS = {
    "Sessions.names",
    "Sessions.kinds",
    "Jobs.folder",
    "Teams.is_member",
    "Monitor.run",
    "Agents.authorize",
    "Agents.authorize_child",
    "Agents.reachable",
    "Skills.list",
    *(method for method in OPEN_METHODS if method.startswith("Mcp.")),
}
REPORTS = {
    "a report on a job": lambda fleet: fleet.jobs.event("1f00ab42", "completed"),
    "the end of a job": lambda fleet: fleet.jobs.cancel("1f00ab42"),
    "a task": lambda fleet: fleet.tasks.finish("t_00000001"),
    "a backup": lambda fleet: fleet.monitor.backup(),
}
DYING = """
import os, signal, sys
import mam
from mam.adapters.tmux.client import Tmux
from mam.app.sessions.stop import Stop
def die(*_given, **_options):
    os.kill(os.getpid(), signal.SIGKILL)
Tmux.rename_session = Stop._commit = die
with mam.open(sys.argv[1]) as fleet:
    getattr(fleet.sessions, sys.argv[2])("one", *sys.argv[3:])
"""


def execute(fleet, query: str, *values: object) -> list[tuple]:
    connection = sqlite3.connect(fleet._access.context.paths.db)
    try:
        with connection:
            return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def leave_half_done(fleet, owner: dict[str, object]) -> None:
    """Leave a change that the file does not show, and a claim, as a process that is killed in between."""
    fleet.init()
    row = {
        "id": new_session_id(),
        "name": "one",
        "agent": "practice",
        "status": "stopped",
        "workspace": fleet.root,
        "tmux_server": "none",
        "start_command": ["practice"],
    }
    fleet._access.context.registry.commit(lambda transaction: transaction.add(row))
    execute(fleet, "UPDATE meta SET value=? WHERE key=?", json.dumps(owner), CHANGED_BY)
    execute(
        fleet,
        "INSERT INTO intents VALUES('s_0000abcd', 'planted', 'archive', ?, 1.0, '{}')",
        json.dumps(owner),
    )


def is_settled(fleet) -> bool:
    shown = "name: one\n" in Path(fleet.registry_file).read_text(encoding="utf-8")
    return shown and not execute(fleet, "SELECT * FROM intents")


def content(fleet) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(fleet.root).rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def test_every_method_that_only_reads_is_tried_here() -> None:
    assert READS.keys() | PARTS == OPEN_METHODS
    assert READS.keys().isdisjoint(PARTS)


@pytest.mark.promise("P1")
@pytest.mark.promise("P2")
@pytest.mark.parametrize("call", READS.values(), ids=READS)
def test_a_verb_that_only_reads_settles(fleet, call) -> None:
    leave_half_done(fleet, DEAD)
    assert not is_settled(fleet)
    with suppress(MamError):
        call(fleet)
    assert is_settled(fleet)
    before = content(fleet)
    with suppress(MamError):
        call(fleet)
    assert content(fleet) == before


@pytest.mark.parametrize("call", REPORTS.values(), ids=REPORTS)
def test_a_verb_that_reports_or_is_refused_settles(fleet, call) -> None:
    leave_half_done(fleet, DEAD)
    with suppress(MamError):
        call(fleet)
    assert is_settled(fleet)


def test_a_verb_that_the_caller_may_not_use_settles(fleet) -> None:
    leave_half_done(fleet, DEAD)
    fleet._access._caller = callers.unknown(reason="nobody knows", hint="…")
    with pytest.raises(NotAllowed):
        fleet.sessions.forget("one")
    assert is_settled(fleet)


@pytest.mark.promise("P5")
@pytest.mark.parametrize("call", READS.values(), ids=READS)
def test_what_a_live_process_does_is_left_to_it(fleet, call) -> None:
    leave_half_done(fleet, process.identify(os.getppid()).as_json())
    before = content(fleet)
    with suppress(MamError):
        call(fleet)
    assert content(fleet) == before


def test_a_later_process_with_the_same_pid_is_another_one(fleet) -> None:
    owner = process.identify(os.getppid()).as_json()
    leave_half_done(fleet, {**owner, "start": owner["start"] - 1})
    fleet.sessions.log()
    assert is_settled(fleet)


def test_where_nothing_was_left_one_query_is_made(fleet, monkeypatch) -> None:
    fleet.init()
    fleet.sessions.log()
    queries: list[str] = []
    fleet._access.context.registry.reader().set_trace_callback(queries.append)
    monkeypatch.setattr(Access, "caller", property(lambda _self: pytest.fail("looked for the caller")))
    assert not fleet._access.settle()
    assert len(queries) == 1


def test_an_edit_that_mam_refuses_is_said_and_the_verb_reads(fleet) -> None:
    leave_half_done(fleet, DEAD)
    Path(fleet.registry_file).write_text("tmux_sessions: [", encoding="utf-8")
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    assert [row["name"] for row in fleet.sessions.ls()["sessions"]] == ["one"]
    assert [text for text in warnings if "what another command left half done stays so" in text]
    assert Path(fleet.registry_file).read_text(encoding="utf-8") == "tmux_sessions: ["


def test_a_mistake_in_the_recovery_hides_nothing(fleet, monkeypatch) -> None:
    leave_half_done(fleet, DEAD)

    def fail(_context):
        raise LookupError("a mistake")

    monkeypatch.setattr("mam.app.context.claims.show_unshown", fail)
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    assert [row["name"] for row in fleet.sessions.ls()["sessions"]] == ["one"]
    assert ["a mistake" in text for text in warnings] == [True]


def test_nothing_is_settled_in_a_root_of_somebody_else(fleet) -> None:
    leave_half_done(fleet, DEAD)
    fleet.close()
    shutil.rmtree(os.environ["MAM_STATE_HOME"])
    with mam.open(fleet.root) as other:
        before = content(other)
        other.sessions.ls()
        other.sessions.log()
        assert content(other) == before


def test_nothing_is_migrated_by_a_verb_that_only_reads(fleet) -> None:
    leave_half_done(fleet, DEAD)
    execute(fleet, "PRAGMA user_version=1")
    fleet.close()
    with mam.open(fleet.root) as later, suppress(MamError):
        later.sessions.log()
    assert execute(fleet, "PRAGMA user_version") == [(1,)]


def test_a_board_of_its_own_needs_no_registry(tmp_path) -> None:
    with mam.open(str(tmp_path)) as fleet, suppress(MamError):
        Boards(fleet._access).list(board="ours")
    assert list(tmp_path.iterdir()) == []


def test_a_listing_finishes_a_rename_and_shows_what_is_there_then(fleet) -> None:
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    assert _die_in(fleet, "rename", "two") == -9
    server = Tmux(session.row["tmux_server"])
    assert [pane.session_name for pane in server.panes().panes] == ["one"]
    (row,) = fleet.sessions.ls()["sessions"]
    assert (row["name"], row["status"], row["tmux_alive"]) == ("two", "running", True)
    assert [pane.session_name for pane in server.panes().panes] == ["two"]


def test_a_listing_finishes_a_stop_and_shows_no_pane_that_is_gone(fleet) -> None:
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    assert _die_in(fleet, "stop") == -9
    (row,) = fleet.sessions.ls()["sessions"]
    assert (row["name"], row["status"], row["tmux_alive"]) == ("one", "stopped", False)
    assert not Tmux(session.row["tmux_server"]).panes().panes


def _die_in(fleet, *words: str) -> int:
    return subprocess.run([sys.executable, "-c", DYING, fleet.root, *words], check=False).returncode


@pytest.mark.parametrize("verb", ["Monitor.uninstall", "Jobs.event"])
def test_after_ctrl_c_nobody_waits_for_a_recovery(fleet, monkeypatch, verb) -> None:
    """One verb without preparation, and one that publishes."""
    leave_half_done(fleet, DEAD)
    module, name = {
        "Monitor.uninstall": ("mam.app.monitor.login_service", "uninstall"),
        "Jobs.event": ("mam.app.jobs.event", "event"),
    }[verb]

    def interrupted(*_given: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{module}.{name}", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.monitor.uninstall() if verb == "Monitor.uninstall" else fleet.jobs.event(
            "1f00ab42", "completed"
        )
    assert not is_settled(fleet)
