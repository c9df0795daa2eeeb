"""A session never takes a conversation of another session, or one that another process has open."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

import mam
from mam.adapters.agents.kind import Launch
from mam.adapters.agents.practice import Practice
from mam.adapters.system import process
from mam.app.observation import conversations
from mam.app.sessions import launch
from mam.core.errors import ConversationBusy
from mam.core.session_row import own_id

QUICK = ["--speed", "0"]


@pytest.fixture
def two(fleet):
    sessions = [
        fleet.sessions.create("practice", name=name, args=QUICK, prompt="hello") for name in ("one", "two")
    ]
    for session in sessions:
        session.wait("idle", timeout=10)
    return sessions


def test_an_agent_that_names_another_sessions_conversation_does_not_get_it(fleet, two, monkeypatch) -> None:
    row, other = (fleet.sessions.get(session.id).row for session in two)
    theirs = own_id(other)
    monkeypatch.setattr(
        conversations, "reported_conversation", lambda context, row, reports=None: (theirs, "state-file")
    )
    with pytest.raises(ConversationBusy):
        conversations.record_conversation(fleet._access.context, row)
    assert own_id(fleet.sessions.get("one").row) == own_id(row)
    two[1].stop()
    unchanged = conversations.record_conversation(fleet._access.context, fleet.sessions.get("one").row)
    assert own_id(unchanged) == own_id(row), (
        "another row owns the conversation, even if no process has it open"
    )
    stopped = two[0].stop(purge_conversation=True)
    assert stopped.row["status"] == "terminated"
    monkeypatch.undo()
    assert two[1].status()["resume"]["on_disk"], "the other session's conversation is still there"


@pytest.fixture
def open_by_person(monkeypatch):
    """A context manager in which a process that mam did not start has a conversation open."""

    @contextmanager
    def open_by_person(own):
        person = subprocess.Popen(["sleep", "1000"])
        try:
            identity = process.identify(person.pid)
            assert identity is not None
            monkeypatch.setattr(
                Practice,
                "holders",
                lambda self, conversation, stores: (
                    [(identity.pid, identity.start)] if conversation == own else []
                ),
            )
            yield person.pid
        finally:
            person.kill()
            person.wait()

    return open_by_person


def test_a_purge_leaves_a_conversation_that_a_person_has_open(two, open_by_person) -> None:
    with open_by_person(own_id(two[0].stop().row)) as pid:
        with pytest.raises(ConversationBusy, match=f"process {pid}"):
            two[0].stop(purge_conversation=True)
        assert two[0].status()["resume"]["on_disk"]
    assert two[0].stop(purge_conversation=True).row["status"] == "terminated"


def test_a_conversation_that_a_person_has_open_and_is_being_written_anew(
    two, open_by_person, monkeypatch
) -> None:
    """Gemini does so: for a tenth of a second its chat file has no history."""
    with open_by_person(own_id(two[0].stop().row)) as pid, monkeypatch.context() as patch:
        patch.setattr(Practice, "on_disk", lambda self, conversation, workspace, stores: False)
        with pytest.raises(ConversationBusy, match=f"process {pid}"):
            two[0].resume()
    two[0].resume()


def test_a_program_that_deletes_gets_the_sessions_stores_and_not_the_callers(fleet, two, monkeypatch) -> None:
    monkeypatch.setattr(
        Practice, "launch", lambda self, request: Launch([request.program], unset=("THEIR_HOME",))
    )
    more = {"THEIR_HOME": "/elsewhere", "CLAUDECODE": "1", "MAM_ROOT": "/x"}
    before = fleet._access.context
    context = before.replace(environ={**before.environ, **more}, resources=before.resources)
    row = {**fleet.sessions.get("one").row, "stores": {"STORE": "/of/the/session"}}
    _, environ = launch._purge_environment(context, row, context.kind("practice"))
    assert environ["STORE"] == "/of/the/session"
    assert not {"THEIR_HOME", "CLAUDECODE"} & environ.keys()


def test_what_agents_set_for_their_children_is_not_handed_on(
    home, tmux_server, workspace, monkeypatch
) -> None:
    for name in (
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "HERMES_SESSION_SOURCE",
        "GEMINI_CLI",
        "OPENCODE_PID",
    ):
        monkeypatch.setenv(name, "of another")
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    with mam.open(str(workspace)) as fleet:
        session = fleet.sessions.create("practice", args=QUICK)
        server = session.row["pane"]["server_pid"]
        for pid in (session.row["pane"]["pid"], server):
            variables = Path(f"/proc/{pid}/environ").read_bytes()
            assert b"of another" not in variables
        agent = Path(f"/proc/{session.row['pane']['pid']}/environ").read_bytes()
        assert b"CLAUDE_CODE_USE_BEDROCK=1" in agent
        assert os.environ["CLAUDECODE"] == "of another"


def test_permissions_of_the_settings_that_a_kind_cannot_take(fleet, home, workspace) -> None:
    config = home / ".config" / "mam" / "config.toml"
    config.write_text('resident = "off"\npermissions = "ask"\n', encoding="utf-8")
    warnings: list[str] = []
    with mam.open(str(workspace)) as own:
        own.on_warning(warnings.append)
        session = own.sessions.create("sleep", args=["1000"])
        assert session.row["permissions"] == "default"
        assert own.sessions.create("practice", args=QUICK).row["permissions"] == "ask"
    assert warnings == ["mam does not know how sleep takes permissions; sleep uses its own, not 'ask'"]


def test_a_session_without_evidence_for_long_is_not_booting(fleet, monkeypatch) -> None:
    session = fleet.sessions.create("practice", args=["--slow-start", "60"], wait=False)
    assert session.explain()["evidence"][0]["state"] == "booting"
    now = fleet._access.context.now
    fleet._access.context = fleet._access.context.replace(clock=lambda: now() + 130)
    assert session.explain()["evidence"][0]["state"] == "unknown"


def test_a_purge_leaves_a_conversation_that_another_row_names(fleet, two) -> None:
    theirs = own_id(fleet.sessions.get("two").row)
    for session in two:
        session.stop()
    fleet._access.context.registry.change(
        lambda transaction: transaction.put({**transaction.named("one"), "practice_session_id_own": theirs})
    )
    with pytest.raises(ConversationBusy, match="another session"):
        two[0].stop(purge_conversation=True)
    assert two[1].status()["resume"]["on_disk"]


def test_a_strange_file_in_the_spool_stops_nothing(fleet, two) -> None:
    spool = Path(fleet._access.context.paths.spool)
    for name in (f"{two[0].id}.²³.1.json", f"{two[0].id}.{'9' * 200}.1.json", f"{two[0].id}.-1.1.json"):
        (spool / name).write_text("{}", encoding="utf-8")
    assert len(fleet.sessions.ls()["sessions"]) == 2
    assert two[0].stop().row["status"] == "stopped"
