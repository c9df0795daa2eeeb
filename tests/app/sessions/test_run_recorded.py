"""What runs was seen before: a row that mam never launched as it is needs `run_recorded`."""

from __future__ import annotations

import json
import sqlite3

import pytest

from mam.app.sessions import create, fork, restart, resume, row_trust, stop
from mam.core import caller
from mam.core.errors import NotAllowed, Refused

QUICK = ["--speed", "0"]


@pytest.fixture
def ended(fleet):
    """Return a function that makes an ended session with a conversation."""

    def end(**options):
        session = fleet.sessions.create("practice", name="one", prompt="hello", **{"args": QUICK, **options})
        return session.stop()

    return end


@pytest.fixture
def forgotten(fleet):
    """Return a function that makes the user state know of no launch, as for a row that came along."""

    def forget() -> None:
        with sqlite3.connect(fleet._access.context.user_state.path) as database:
            database.execute("DELETE FROM launches")

    return forget


def edit(workspace, old, new) -> None:
    path = workspace / ".hermes" / "agent-sessions.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def change_row(fleet, field, value) -> None:
    """Change a field in the database alone, as it comes with somebody else's root."""
    with sqlite3.connect(fleet._access.context.paths.db) as database:
        database.execute(
            f"UPDATE sessions SET data=json_set(data, '$.{field}', json(?)),"
            f" written=json_set(written, '$.{field}', json(?))",
            [json.dumps(value)] * 2,
        )


def verbs(fleet):
    """Every verb that would start the program of the row."""
    return {
        "resume": lambda: fleet.sessions.resume("one"),
        "create": lambda: fleet.sessions.create(None, name="one"),
        "create with a job": lambda: fleet.sessions.create(None, name="one", submit_job="work"),
        "restart": lambda: fleet.sessions.restart("one"),
        "fork": lambda: fleet.sessions.fork("one"),
        "job": lambda: fleet.jobs.submit("work", agent="practice", agent_session="one"),
    }


@pytest.mark.promise("P39")
def test_d7_an_edited_command_runs_only_if_a_person_says_so(ended, fleet, workspace, tmp_path) -> None:
    ended()
    marker = tmp_path / "ran"
    edit(workspace, "start_command: [practice, --speed, '0']", f"start_command: [sh, -c, touch {marker}]")
    for name, verb in verbs(fleet).items():
        with pytest.raises(NotAllowed, match="was changed since mam last started it") as caught:
            verb()
        assert f"touch {marker}" in caught.value.message, name
        assert "mam resume one --run-recorded" in (caught.value.hint or "")
    assert not marker.exists()
    assert fleet.sessions.get("one").row["status"] == "stopped"
    assert fleet._access.context.registry.view().intents == []
    assert {job["status"] for job in fleet.jobs.list()} == {"error"}


def test_d7_an_edit_of_a_person_is_launched_and_then_known(ended, fleet, workspace) -> None:
    ended()
    edit(workspace, "[practice, --speed, '0']", "[practice, --speed, '1']")
    with pytest.raises(NotAllowed):
        fleet.sessions.resume("one")
    fleet.sessions.resume("one", run_recorded=True).session.stop()
    assert fleet.sessions.resume("one").session.row["start_command"] == ["practice", "--speed", "1"]


def test_d7_a_restart_is_refused_before_the_agent_ends(fleet, workspace) -> None:
    session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
    edit(workspace, "[practice, --speed, '0']", "[practice, --speed, '1']")
    with pytest.raises(NotAllowed):
        session.restart()
    assert session.status()["activity"] != "exited"
    assert session.restart(run_recorded=True).row["status"] == "running"
    assert session.fork().row["start_command"] == ["practice", "--speed", "1"]


def test_d7_a_session_may_not_run_what_it_wrote(ended, fleet, workspace) -> None:
    session = ended()
    edit(workspace, "[practice, --speed, '0']", "[practice, --speed, '1']")
    context, other = fleet._access.context, caller.session("s_00000001")
    for verb in (
        lambda: resume.resume(context, other, session.id, run_recorded=True),
        lambda: restart.restart(context, other, session.id, run_recorded=True),
        lambda: fork.fork(context, other, session.id, run_recorded=True),
        lambda: create.create(context, other, None, name="one", run_recorded=True),
        lambda: create.create(context, other, "practice", name="two", run_recorded=True),
        lambda: stop.stop(context, other, session.id, purge=True, run_recorded=True),
    ):
        with pytest.raises(NotAllowed, match="only a person"):
            verb()
    assert context.registry.view().intents == []


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("permissions", "skip", "permissions skip"),
        ("model", "other", "model other"),
        ("stores", {"LD_PRELOAD": "/evil.so"}, "LD_PRELOAD=/evil.so practice"),
        ("stores", {"XDG_DATA_HOME": "/elsewhere"}, "XDG_DATA_HOME=/elsewhere practice"),
        ("pane.mcp_attachments", ["mam"], "mam's tools"),
    ],
)
def test_d7_whatever_reaches_a_launch_counts(ended, fleet, field, value, shown) -> None:
    ended()
    change_row(fleet, field, value)
    with pytest.raises(NotAllowed) as caught:
        fleet.sessions.resume("one")
    assert shown in caught.value.message


@pytest.mark.promise("P39")
def test_d5_a_row_that_came_along_is_refused(ended, forgotten, fleet) -> None:
    ended()
    forgotten()
    for verb in verbs(fleet).values():
        with pytest.raises(NotAllowed, match="was never started by mam on this machine"):
            verb()
    assert fleet.sessions.resume("one", run_recorded=True).session.row["status"] == "running"


def test_d5_a_plain_row_that_came_along_runs(ended, forgotten, fleet) -> None:
    ended(args=[])
    forgotten()
    assert fleet.sessions.resume("one").session.row["status"] == "running"


def test_d5_a_program_on_path_is_not_plain(fleet) -> None:
    """`make` as the kind of a row would run what the repository says."""
    row = {"id": "s_00000001", "name": "one", "agent": "make", "start_command": ["make"]}
    fleet.init()
    with pytest.raises(NotAllowed, match="never started"):
        row_trust.refuse(fleet._access.context, fleet.caller, row, run_recorded=False)


def test_a_failed_start_keeps_the_former_command(ended, fleet, monkeypatch) -> None:
    ended()
    with monkeypatch.context() as broken:
        broken.setattr(create.launch, "start_program", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            fleet.sessions.create(None, name="one", args=["--speed", "1"])
    assert fleet.sessions.get("one").row["start_command"] == ["practice", *QUICK]
    fleet.sessions.resume("one").session.stop()
    launched = fleet._access.context.user_state.launch_of(
        fleet._access.context.root_id, fleet.sessions.get("one").id
    )
    assert launched["start_command"] == ["practice", *QUICK]
    assert "former" not in launched


def test_d5_a_purge_does_not_run_the_program_of_a_row_that_came_along(fleet, workspace, tmp_path) -> None:
    """Codex deletes its conversations itself."""
    marker = tmp_path / "ran"
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
    program.chmod(0o755)
    own = "0199a213-81c0-7800-8aa1-bbab2a035a53"
    (workspace / ".hermes").mkdir()
    (workspace / ".hermes" / "agent-sessions.yaml").write_text(
        "tmux_sessions:\n"
        f"- name: one\n  agent: codex\n  status: stopped\n  workspace: {workspace}\n"
        f"  start_command: [{program}]\n  codex_session_id_own: {own}\n",
        encoding="utf-8",
    )
    with pytest.raises(NotAllowed, match="never started"):
        fleet.sessions.stop("one", purge_conversation=True)
    assert not marker.exists()
    assert fleet.sessions.get("one").row["status"] == "stopped"
    fleet.sessions.stop("one", purge_conversation=True, run_recorded=True)
    assert marker.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "--yolo"),
        ("model", ["--yolo"]),
        ("model", "a\u001bb"),
        ("model", " a"),
        ("model", "x" * 300),
        ("permissions", "--yolo"),
        ("start_command", ["--yolo"]),
        ("start_command", ["practice", 1]),
        ("stores", {"A=B": "c"}),
        ("workspace", "-relative"),
        ("practice_session_id_own", "--yolo"),
        ("conversations", [{"id": "--yolo"}]),
    ],
)
def test_d5_no_value_of_a_row_becomes_an_option(ended, fleet, field, value) -> None:
    ended()
    change_row(fleet, field, value)
    with pytest.raises(Refused):
        fleet.sessions.resume("one", run_recorded=True)
    # Other verbs, and other sessions, are not concerned.
    assert fleet.sessions.names() == ["one"]
    assert fleet.sessions.create("practice", name="two", args=QUICK).row["status"] == "running"


def test_d5_a_wrong_model_is_replaced_by_a_new_start(ended, fleet) -> None:
    ended()
    change_row(fleet, "model", "--yolo")
    with pytest.raises(Refused, match="'model' must be") as caught:
        fleet.sessions.resume("one", run_recorded=True)
    assert "--model MODEL" in (caught.value.hint or "")
    session = fleet.sessions.create(None, name="one", model="practice-2", run_recorded=True)
    assert session.row["model"] == "practice-2"
