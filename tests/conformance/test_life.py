"""What every real agent program goes through with mam, against a model on loopback.

One set of scenarios for all kinds; what only one of them has is in its own file. Most go on in one session,
one after the other, and each can be run alone. `./dev conformance KIND VERSION` runs these for any version
and prints them as a table.
"""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest
from tests.app.killed_senders import kill_senders
from tests.conformance.desk import WORD, Desk, version_under_test, wait_for
from tests.conformance.program import PROGRAMS
from tests.conformance.replies import Question, Say, Shell

from mam.core.activity import FRESH_SECONDS
from mam.core.errors import DialogOpen, Refused

pytestmark = [pytest.mark.slow, pytest.mark.starts]


@pytest.fixture(
    scope="module",
    params=list(PROGRAMS),
)
def kind(request):
    return request.param


@pytest.fixture
def desk(shared):
    return shared


def test_turn(desk: Desk) -> None:
    """The first prompt arrives, the answer is seen, the conversation's id is captured."""
    session = desk.worker(fresh=True)
    assert desk.model.saw(WORD)
    status = session.status()
    assert status["version_tested"] is True, status["agent_version"]
    own = desk.own(session)
    assert own and own == session.status()["resume"]["id"]
    found = session.transcript()
    assert [turn["role"] for turn in found["turns"]] == ["user", "assistant"]
    assert WORD in found["turns"][0]["text"]
    assert found["model"], found
    assert found["tokens_in"] is not None, found
    assert session.status()["usage"]["model"] == found["model"]


def test_trust(kind: str, request: pytest.FixtureRequest) -> None:
    """The dialog is reported and not answered; with --trust it is."""
    if not PROGRAMS[kind].asks_about_folders:
        shared: Desk = request.getfixturevalue("shared")
        shared.becomes(shared.worker(), "idle")
        return
    desk: Desk = request.getfixturevalue("fresh_desk")
    desk.program.distrust(desk.home, desk.workspace)
    with pytest.raises(DialogOpen, match="trust"):
        desk.create("worker")
    session = desk.fleet.sessions.get("worker")
    desk.becomes(session, "waiting", "trust")
    # Long enough for a key that somebody pressed by mistake to have had its effect.
    time.sleep(0.5)
    assert session.status()["waiting_for"] == "trust", "nobody answered it"
    assert session.stop().row["status"] == "stopped"
    desk.create("worker", trust=True)
    desk.becomes(session, "idle")


def see_kills(desk: Desk, kills: int, seed: int) -> Counter[str]:
    """Kill senders between the text and Enter; return how many messages ended in which state.

    Each message arrives once or ends visibly, and the next one arrives.
    """
    session = desk.worker()

    def heard() -> list[str]:
        desk.rests(session)
        return [turn["text"] for turn in session.transcript(turns=1000)["turns"] if turn["role"] == "user"]

    return kill_senders(desk.fleet, session, kills, seed, heard)


@pytest.mark.promise("P26")
def test_killed_senders(desk: Desk) -> None:
    """Two here; `tests/torture` kills ten."""
    assert sum(see_kills(desk, 2, 1).values()) == 2


def test_busy_and_interrupted(desk: Desk) -> None:
    session = desk.worker()
    held = desk.model.gate()
    desk.model.answer(Say("one\ntwo\nthree\nfour\n", midway=held))
    desk.say(session, "count slowly")
    desk.becomes(session, "working")
    # A program that has only begun to ask the model may not take the key.
    wait_for(lambda: "two" in session.read(), session.read)
    done = session.interrupt()
    assert done["was"] == "working", done
    desk.becomes(session, "idle", after=FRESH_SECONDS)
    held.set()
    desk.say(session, "say something else")
    desk.rests(session)


def test_question(desk: Desk) -> None:
    if not desk.program.asks_questions:
        pytest.skip(f"{desk.kind} asks questions in a mode of its own; see its own file")
    session = desk.worker()
    desk.model.answer(Question())
    desk.say(session, "ask me something")
    desk.becomes(session, "waiting", "question")
    assert session.answer("deny")["next"] is None
    desk.becomes(session, "idle", after=FRESH_SECONDS)
    for words in ("Green", "violet, if it has to be"):
        desk.model.answer(Question())
        desk.say(session, f"ask me again for {len(words)}")
        desk.becomes(session, "waiting", "question")
        before = len(desk.model.turns())
        assert session.answer(words)["answer"] == words
        wait_for(lambda before=before: len(desk.model.turns()) > before, session.read)
        # The first thing that the model hears: words that became a prompt would follow another answer.
        assert words in json.dumps(desk.model.turns()[before].body)
        desk.rests(session)


def test_retry_and_error(desk: Desk) -> None:
    session = desk.worker()
    held = desk.model.gate()
    desk.model.fail(500, 2)
    desk.model.answer(Say("it went well in the end", before=held))
    desk.say(session, "provoke retries")
    desk.becomes(session, "working")
    held.set()
    wait_for(lambda: "it went well in the end" in session.read(), "an answer after the retries", 60)
    desk.rests(session)
    desk.model.fail(400, desk.program.error_requests)
    desk.say(session, "provoke an error")
    wait_for(lambda: desk.program.error in session.read(), session.read, 30)
    # An error may come at once and leave no record: the last word that is there counts while it is fresh.
    desk.becomes(session, "idle", after=FRESH_SECONDS)


def test_permission(desk: Desk) -> None:
    session = desk.worker()
    desk.model.answer(Shell("touch made; while [ ! -e go ]; do sleep .1; done; touch made-later"))
    desk.say(session, "make a file")
    desk.becomes(session, "waiting", "permission")
    desk.settles(session)
    assert not (desk.workspace / "made").exists()
    shown = desk.fleet.messages.dialog(session.id)
    assert "touch made" in shown["text"]
    session.answer("allow", expect=shown["fingerprint"])
    wait_for((desk.workspace / "made").exists, session.read)
    desk.becomes(session, "working")
    (desk.workspace / "go").touch()
    wait_for((desk.workspace / "made-later").exists, "the end of the tool")
    desk.rests(session)


@pytest.mark.promise("P29")
def test_words_are_not_typed_into_a_dialog(desk: Desk) -> None:
    """The tool must not run, and the words arrive once the dialog is gone."""
    session = desk.worker()
    desk.model.answer(Shell("touch trapped"))
    assert session.send("make a file once more", timeout=30)["state"] == "submitted"
    desk.becomes(session, "waiting", "permission")
    held = session.send("hello from behind")
    assert held["state"] == "held", held
    session.answer("deny")
    desk.becomes(session, "idle", after=FRESH_SECONDS)
    assert session.send("and this", timeout=30)["state"] in ("submitted", "queued")
    wait_for(lambda: desk.model.saw("and this"), session.read)
    states = {one["state"] for one in desk.fleet.messages.inbox(session.id)[-2:]}
    assert states <= {"submitted", "queued"}
    assert desk.model.saw("hello from behind")
    assert not (desk.workspace / "trapped").exists()
    desk.rests(session)


def test_words_for_an_agent_that_works(desk: Desk) -> None:
    """It queues them where it can; else they are held, and its answer is not cut."""
    session = desk.worker()
    held = desk.model.gate()
    desk.model.answer(Say("one\n\ntwo\n\nthree\n\nfour is the last\n", midway=held))
    desk.say(session, "count slowly once more")
    desk.becomes(session, "working")
    # The turn may begin before the program has cleared its box, and then a draft is in the way first.
    wait_for(lambda: desk.box(session) != "draft", session.read)
    done = session.send("and then this")
    if desk.fleet._access.context.kind(desk.kind).queues:
        assert done["state"] == "queued", done
    else:
        assert (done["state"], done["reason"]) == ("held", "it is working"), done
    held.set()
    wait_for(lambda: "four is the last" in session.read(), session.read)
    assert session.send("at the end", when="idle", timeout=60)["state"] in ("submitted", "queued")
    wait_for(lambda: desk.model.saw("at the end"), session.read)
    assert desk.model.saw("and then this")
    desk.rests(session)


@pytest.mark.promise("P31")
def test_the_draft_of_a_person(desk: Desk) -> None:
    """It is kept, nothing is put before or behind it, and what was held follows it."""
    session = desk.worker()
    pane = desk.fleet.sessions.get(session.id).row["pane"]["id"]
    desk.tmux.paste(pane, "I was about to say this", mark=session.id, enter=False)
    wait_for(lambda: "I was about to say this" in session.read(), session.read)
    held = session.send("words of another")
    assert (held["state"], held["reason"]) == ("held", "a draft is in its box"), held
    # A look may fall between two parts of one drawing: Hermes clears its lower part before it draws it anew.
    wait_for(lambda: "I was about to say this" in session.read(), session.read)
    time.sleep(desk.program.pause)
    desk.press(session, "Enter")
    wait_for(lambda: desk.model.saw("I was about to say this"), session.read)
    assert session.send("and one more", when="idle", timeout=60)["state"] in ("submitted", "queued")
    wait_for(lambda: desk.model.saw("and one more"), session.read)
    said = desk.model.turns()[-1].texts()
    assert any(one.strip() == "I was about to say this" for one in said), said
    assert any(one.strip() == "words of another" for one in said), said
    desk.rests(session)


def test_stop_in_a_permission_dialog(desk: Desk) -> None:
    """The tool must not run."""
    session = desk.worker()
    desk.model.answer(Shell("touch must-not-be"))
    desk.say(session, "make another")
    desk.becomes(session, "waiting", "permission")
    desk.sees(session, "screen", "waiting")
    stopped = session.stop()
    assert stopped.row["status"] == "stopped"
    session.resume()
    desk.becomes(session, "idle")
    assert not (desk.workspace / "must-not-be").exists()


def test_stop_and_resume(desk: Desk) -> None:
    """The server sees the earlier messages again, also after a crash."""
    session = desk.worker()
    desk.say(session, "remember the word kettledrum")
    desk.rests(session)
    known = [one["id"] for one in desk.capture(session)["conversations"]]
    stopped = session.stop().row
    assert (stopped["status"], stopped["termination_mode"], stopped["exit_status"]) == (
        "stopped",
        "graceful",
        0,
    )
    own = desk.own(session)
    session.resume()
    before = len(desk.model.saw("kettledrum"))
    desk.say(session, "which word was it")
    assert len(desk.model.saw("kettledrum")) > before
    desk.rests(session)
    before = len(desk.model.saw("kettledrum"))
    desk.kill(session)
    session.resume()
    desk.becomes(session, "idle")
    desk.say(session, "and again")
    assert len(desk.model.saw("kettledrum")) > before
    assert own and desk.own(session) == own
    assert [one["id"] for one in session.status()["conversations"]] == known
    desk.rests(session)


def test_clear(desk: Desk) -> None:
    """A new conversation begins in the same session, and it is the one that is resumed."""
    session = desk.worker()
    desk.say(session, "remember the word glockenspiel")
    desk.rests(session)
    first = desk.own(session)
    done = desk.fleet.messages.send(session.id, desk.program.clear, command=True, timeout=30)
    assert (done["state"], done["evidence"]) == ("submitted", "screen")
    if desk.program.confirm_clear is not None:
        desk.becomes(session, "waiting", "confirm")
        session.answer("allow")
    wait_for(lambda: "glockenspiel" not in session.read(), session.read)
    desk.becomes(session, "idle")
    held = desk.model.gate()
    desk.model.answer(Say("one\ntwo\nthree\nfour\n", midway=held))
    # Proven by the record of the new conversation, also where a hook speaks at the end of a turn alone.
    done = session.send("remember the word walrus", timeout=30)
    held.set()
    assert done["state"] == "submitted", done
    desk.rests(session)
    wait_for(lambda: desk.own(session) != first, session.read)
    second = desk.own(session)
    assert [one["id"] for one in session.status()["conversations"]][-2:] == [first, second]
    before = {word: len(desk.model.saw(word)) for word in ("walrus", "glockenspiel")}
    desk.kill(session)
    session.resume()
    desk.say(session, "which word was it")
    assert len(desk.model.saw("walrus")) > before["walrus"]
    assert len(desk.model.saw("glockenspiel")) == before["glockenspiel"]
    assert desk.own(session) == second
    desk.rests(session)


def test_neighbours_and_purge(desk: Desk) -> None:
    """Two sessions in one directory keep apart, and a purge removes just one conversation."""
    two = desk.worker()
    desk.say(two, "remember the word harpsichord")
    one = desk.create("one", prompt=WORD)
    for session in (one, two):
        desk.rests(session)
    own = {"one": desk.own(one), "two": desk.own(two)}
    assert None not in own.values() and len(set(own.values())) == 2
    two.stop()
    assert one.stop(purge_conversation=True).row["status"] == "terminated"
    kind, stores = desk.fleet._access.context.kind(desk.kind), one.row["stores"]
    assert kind.on_disk(own["one"], str(desk.workspace), stores) is False
    assert kind.on_disk(own["two"], str(desk.workspace), stores) is True
    assert own["one"] not in kind.conversations(str(desk.workspace), stores)
    two.resume()
    before = len(desk.model.saw("harpsichord"))
    desk.say(two, "which word was it")
    assert len(desk.model.saw("harpsichord")) > before
    desk.rests(two)


def test_fork(desk: Desk) -> None:
    session = desk.worker()
    if not desk.fleet._access.context.kind(desk.kind).can_fork:
        with pytest.raises(Refused, match="fork"):
            session.fork(name="fork")
        return
    desk.say(session, "remember the word bassoon")
    desk.rests(session)
    fork = session.fork(name="fork")
    before = len(desk.model.saw("bassoon"))
    desk.say(fork, "which word was it")
    assert len(desk.model.saw("bassoon")) > before
    desk.rests(fork)
    assert desk.own(fork) not in (None, desk.own(session))
    assert session.status()["activity"] == "idle"
    fork.stop()


def test_drill(desk: Desk) -> None:
    """A fork of the running session shows the history, hears nothing, and leaves nothing."""
    session = desk.worker()
    desk.rests(session)
    kind, stores, own = desk.fleet._access.context.kind(desk.kind), session.row["stores"], desk.own(session)

    def left() -> object:
        conversations = kind.conversations(str(desk.workspace), stores)
        panes = [(pane.id, pane.pid) for pane in desk.tmux.panes().panes]
        rows = [(one.id, one.row["pane"]) for one in desk.fleet.sessions.list()]
        record = kind.transcript_size(own or "", stores), session.transcript(turns=1000)["turns"]
        return conversations, panes, rows, record, len(desk.model.turns())

    before = left()
    (result,) = desk.fleet.sessions.drill([session.id], run=True)["results"]
    assert result["outcome"] == "ok", result
    assert result["run"]["outcome"] == ("proven" if kind.can_fork else "n/a"), result
    assert left() == before


def test_the_version_that_is_asked_for(desk: Desk) -> None:
    """The name of a version gets past all that is taken away from a test."""
    found = desk.worker().status()["agent_version"]
    assert version_under_test(desk.kind) in found, found
