"""What only Codex has; what it shares with the others is in `test_life.py`."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path

import pytest
from tests.conformance.desk import WORD, said, wait_for
from tests.conformance.dialects import Responses
from tests.conformance.replies import Question, Say, Shell

import mam
from mam.app.observation.conversations import reported_conversation
from mam.app.observation.newest_hook_reports import pending_events
from mam.core.errors import ConversationBusy, DialogOpen, InvalidPrompt, NotReady, Unconfirmed

pytestmark = [pytest.mark.slow]


@pytest.fixture
def kind():
    return "codex"


@pytest.fixture
def desk(fresh_desk):
    return fresh_desk


def listed(desk, session):
    return next(one for one in desk.fleet.sessions.ls()["sessions"] if one["id"] == session.id)


def test_a_menu(desk) -> None:
    # Until its start is complete it opens none; a turn is proof of that.
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    desk.say(session, "/model", is_command=True)
    desk.becomes(session, "waiting", "menu")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")


def test_a_question_in_plan_mode(desk) -> None:
    session = desk.create("worker")
    desk.say(session, "/plan", is_command=True)
    wait_for(lambda: "Plan mode" in session.read(), session.read)
    desk.becomes(session, "idle")
    desk.model.answer(Question())
    desk.say(session, "ask me something")
    desk.sees(session, "screen", "waiting")
    desk.becomes(session, "waiting", "question")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")


def test_an_answer_that_streams_looks_like_rest_and_is_none(desk) -> None:
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    held = desk.model.gate()
    desk.model.answer(Say("one\n\ntwo\n\nthree\n\nfour\n", midway=held))
    desk.say(session, "count slowly")
    wait_for(lambda: "two" in session.read() and said(session, "screen") == "unknown", session.read)

    # Long enough for nothing to count as fresh any more.
    def age():
        return next(one["age_s"] for one in session.explain()["evidence"] if one["source"] == "transcript")

    wait_for(lambda: age() > 2.5, session.explain)
    assert (listed(desk, session)["activity"], session.status()["activity"]) == ("working", "working")
    held.set()
    desk.rests(session)


def test_a_turn_that_a_crash_cut_is_not_going_on(desk) -> None:
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    held = desk.model.gate()
    desk.model.answer(Say("one\n\ntwo\n\nthree\n\nfour\n", midway=held))
    desk.say(session, "count slowly")
    desk.becomes(session, "working")
    desk.kill(session)
    session.resume()
    desk.becomes(session, "idle")
    held.set()


def test_it_leaves_at_its_word_while_an_answer_streams(desk) -> None:
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    held = desk.model.gate()
    desk.model.answer(Say("one\n\ntwo\n\nthree\n\nfour\n", midway=held))
    desk.say(session, "count slowly")
    wait_for(lambda: "two" in session.read() and said(session, "screen") == "unknown", session.read)
    stopped = session.stop().row
    assert (stopped["termination_mode"], stopped["exit_status"]) == ("graceful", 0)
    held.set()
    session.resume()
    desk.becomes(session, "idle")


def test_a_reached_limit(desk, monkeypatch) -> None:
    body = {"error": {"type": "usage_limit_reached", "message": "x", "resets_at": int(time.time()) + 5400}}
    monkeypatch.setattr(Responses, "refuse", lambda self, reply: body)
    session = desk.create("worker")
    desk.model.fail(429)
    desk.say(session, "reach the limit")
    desk.sees(session, "screen", "waiting")
    why = session.status()["waiting_for"]
    assert re.fullmatch(r"limit, resets .*\d:\d\d [AP]M", why), why
    desk.becomes(session, "waiting", why)
    monkeypatch.undo()


def test_the_id_is_known_before_the_first_message(desk) -> None:
    one, two = desk.create("one"), desk.create("two")
    context = desk.fleet._access.context
    ids = {session.name: reported_conversation(context, session.row)[0] for session in (one, two)}
    assert len(set(ids.values())) == 2
    # Nothing was said, so there is nothing to resume, and above all not the other's.
    assert [desk.own(session) for session in (one, two)] == [None, None]
    desk.say(two, "remember the word walrus")
    desk.say(one, WORD)
    for session in (one, two):
        desk.rests(session)
        assert desk.own(session) == ids[session.name]
    assert "walrus" in json.dumps(two.transcript()["turns"])
    assert "xylophone" in json.dumps(one.transcript()["turns"])


def test_a_finished_turn_is_heard_from_the_program_behind_the_wrapper(desk) -> None:
    session = desk.create("worker", prompt=WORD)
    own = None

    def is_heard():
        heard = list(pending_events(desk.fleet._access.context, session.row))
        return any(one.event == "agent-turn-complete" and one.conversation == own for one in heard)

    # Whoever listens takes the payload away, so nothing else is asked before it was seen.
    own = reported_conversation(desk.fleet._access.context, session.row)[0]
    wait_for(is_heard, session.read)
    desk.rests(session)


def test_a_notify_of_the_persons_own_is_left_alone(desk, tmp_path) -> None:
    config = desk.home / ".codex" / "config.toml"
    config.parent.mkdir()
    theirs = f'notify = ["/bin/sh", "-c", "touch {tmp_path}/notified"]\n'
    config.write_text(theirs, encoding="utf-8")
    session = desk.create("worker", prompt=WORD)
    wait_for((tmp_path / "notified").exists, session.read)
    desk.rests(session)
    assert theirs.strip() in config.read_text(encoding="utf-8")


@pytest.mark.long
def test_what_reaches_the_model(desk) -> None:
    (desk.workspace / "README.md").touch()
    for text in ("!touch ran", "  !touch ran"):
        with pytest.raises(InvalidPrompt):
            desk.create("worker", prompt=text)
    for number, text in enumerate(("/quit", "see @README", "@README", "use $imagegen", "ends in \\", "#x")):
        session = desk.create(f"worker-{number}", prompt=text)
        wait_for(lambda text=text: any(text in turn.texts() for turn in desk.model.turns()), session.read)
        session.stop(force=True)
    assert not (desk.workspace / "ran").exists()


@pytest.mark.long
def test_permissions(desk) -> None:
    session = desk.create("unasked", permissions="skip")
    desk.model.answer(Shell("touch unasked", asks=False))
    desk.say(session, "make a file")
    wait_for((desk.workspace / "unasked").exists, session.read)
    session.stop()
    session = desk.create("auto", permissions="auto")
    desk.model.answer(Shell("touch inside; touch ../outside", asks=False))
    desk.say(session, "make a file")
    wait_for((desk.workspace / "inside").exists, session.read)
    desk.rests(session)
    session.stop()
    # A model that does not ask for leave cannot write at all.
    session = desk.create("asked", permissions="ask")
    desk.model.answer(Shell("touch must-not-be", asks=False))
    desk.say(session, "make a file")
    desk.rests(session)
    assert not (desk.workspace / "must-not-be").exists()


def test_a_conversation_that_a_person_has_open_is_not_resumed(desk) -> None:
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    own = session.stop().row["codex_session_id_own"]
    words = ["codex", "resume", own, "--no-daemon", *desk.arguments()]
    person = desk.fleet.sessions.create("bash", args=["-c", f"{shlex.join(words)}; sleep 60"])
    kind, stores = desk.fleet._access.context.kind("codex"), session.row["stores"]
    wait_for(lambda: kind.holders(own, stores), person.read)
    with pytest.raises(ConversationBusy, match="process"):
        session.resume()
    person.stop(force=True)
    session.resume()
    desk.becomes(session, "idle")


@pytest.mark.long
def test_a_fork_lives_on_what_it_was_made_of(desk) -> None:
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    fork = session.fork(name="fork")
    # It is written at its start.
    wait_for(lambda: desk.own(fork), fork.read)
    fork.stop()
    with pytest.raises(Unconfirmed, match="did not delete"):
        session.stop(purge_conversation=True)
    fork.resume()
    before = len(desk.model.saw("xylophone"))
    desk.say(fork, "which word was it")
    assert len(desk.model.saw("xylophone")) > before
    fork.stop(purge_conversation=True)
    session.stop(purge_conversation=True)
    assert not list((desk.home / ".codex").rglob("rollout-*"))


def test_without_a_login(desk) -> None:
    with pytest.raises(DialogOpen, match="login"):
        desk.fleet.sessions.create("codex", name="worker")
    desk.becomes(desk.fleet.sessions.get("worker"), "waiting", "login")


def test_an_option_that_it_does_not_know(desk) -> None:
    with pytest.raises(NotReady, match="ended at once"):
        desk.create("worker", args=["--no-such-option"])
    assert desk.fleet.sessions.get("worker").row["status"] == "terminated"


def test_what_the_child_inherits(desk, monkeypatch) -> None:
    monkeypatch.setenv("CODEX_THREAD_ID", "of another")
    monkeypatch.setenv("CODEX_HOME", "")
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    environ = Path(f"/proc/{session.row['pane']['pid']}/environ").read_bytes()
    assert b"CODEX_THREAD_ID=" not in environ
    config = desk.home / ".codex" / "config.toml"
    written = config.read_text(encoding="utf-8") if config.exists() else ""
    assert "notify" not in written and "fake-model" not in written, "nothing of the user's is configured"


@pytest.mark.long
def test_two_that_crashed_before_anybody_looked_get_their_own_back(desk) -> None:
    one, two = desk.create("one"), desk.create("two")
    desk.say(one, WORD)
    desk.say(two, "remember the word walrus")
    for session in (one, two):
        desk.rests(session)
        desk.kill(session)
    one.resume()
    two.resume()
    for session, word, other in ((one, "xylophone", "walrus"), (two, "walrus", "xylophone")):
        desk.say(session, "which word was it")
        asked = " ".join(desk.model.turns()[-1].texts())
        assert word in asked and other not in asked


def test_hooks_of_an_operator_who_trusts_the_repositorys_too(desk, home, workspace) -> None:
    config = Path(home) / ".config" / "mam" / "config.toml"
    with config.open("a", encoding="utf-8") as file:
        file.write("[codex]\nbypass_hook_trust = true\n")
    with mam.open(str(workspace)) as fleet:
        desk.fleet = fleet
        session = desk.create("worker", prompt=WORD)
        wait_for(lambda: said(session, "hook") == "idle", session.explain)
        held = desk.model.gate()
        desk.model.answer(Say("one\ntwo\nthree\n", midway=held))
        desk.say(session, "count slowly")
        wait_for(lambda: said(session, "hook") == "working", session.explain)
        desk.press(session, "Escape")
        wait_for(lambda: said(session, "hook") == "idle", session.explain)
        held.set()
        desk.model.answer(Shell("touch made"))
        desk.say(session, "make a file")
        wait_for(lambda: said(session, "hook") == "waiting", session.explain)
        desk.becomes(session, "waiting", "permission")
