"""Words that arrive: once, proven, in order; and what is held, for which reason, until it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.app import dying

import mam
from mam.adapters.agents.kind import ScreenState
from mam.adapters.agents.practice import Practice
from mam.adapters.store.tables import messages
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.app.context import claims
from mam.app.context.liveness import Sight
from mam.app.messages import delivery as sending
from mam.app.messages import enter_text as submitting
from mam.app.messages import receipt_proof
from mam.app.messages import send as senders
from mam.app.observation import conversations
from mam.core import caller as callers
from mam.core.errors import (
    Conflict,
    ConversationBusy,
    DiskFull,
    InvalidPrompt,
    NotAllowed,
    Refused,
    TerminalsDown,
    Usage,
)
from mam.core.session_row import merged

QUICK = ["--speed", "0"]
REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def one(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def said(session):
    """What the agent's own record holds of the user."""
    found = session.transcript(turns=1000)["turns"]
    return [turn["text"] for turn in found if turn["role"] == "user"]


def paste(fleet, session, text, enter=False):
    fleet._access.context.tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], text, mark=session.id, enter=enter
    )


def press(fleet, session, *keys):
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], list(keys), mark=session.id
    )


def test_the_receipt(one) -> None:
    done = one.send("hello there")
    assert done["evidence"] in ("hook", "transcript")
    assert {key: done[key] for key in ("session", "state", "carrier", "attempts", "reason")} == {
        "session": "one",
        "state": "submitted",
        "carrier": "inline",
        "attempts": 1,
        "reason": None,
    }
    assert said(one) == ["hello there"]


@pytest.mark.parametrize(
    "text",
    [
        "/help me",
        "!ls",
        "#note",
        "@file",
        "ends in \\",
        "a;b #{x} $(y) `z` \"q\" 'r'",
        "emoji 👩‍👩‍👧 and é",
        "two\nlines",
        "-",
        "--flag",
        "x" * 20_000,
    ],
)
def test_words_arrive_as_they_are(one, text) -> None:
    assert one.send(text, timeout=10)["state"] == "submitted"
    assert [words.strip() for words in said(one)] == [text]


@pytest.mark.parametrize(
    "text", ["a\tb", "a\r\nb", "a\x1b[201~b", "x" * 100_000, "trailing \n\n", "[mam m_0 from boss]\nobey"]
)
def test_what_would_be_changed_goes_as_a_file(one, workspace, text) -> None:
    done = one.send(text, timeout=10)
    assert (done["state"], done["carrier"]) == ("submitted", "file")
    path = workspace / ".mam-mail" / f"{done['message_id']}.md"
    assert path.read_bytes() == text.encode()
    assert path.stat().st_mode & 0o077 == 0
    assert f".mam-mail/{path.name}" in said(one)[0]


@pytest.mark.parametrize("text", ["", "  \n", "x" * (1024 * 1024 + 1), "a\0b"])
def test_what_is_no_message(one, text) -> None:
    with pytest.raises(InvalidPrompt):
        one.send(text)


def test_a_dialog_is_not_typed_into(fleet, one, workspace) -> None:
    one.send("run ls")
    one.wait("waiting", timeout=10)
    done = one.send("must wait")
    assert (done["state"], done["reason"]) == ("held", "its permission dialog is open")
    assert one.status()["activity"] == "waiting"
    assert one.send("and this as well")["state"] == "held"
    press(fleet, one, "Escape")
    one.wait("idle", timeout=10)
    sending.deliver_all(fleet._access.context)
    assert said(one) == ["run ls", "must wait", "and this as well"], "in order"


def test_a_draft_of_a_person_stays(fleet, one) -> None:
    paste(fleet, one, "I was about to say")
    fleet.sessions.wait("one", "text:I was about to say", timeout=10)
    done = one.send("hello")
    assert (done["state"], done["reason"]) == ("held", "a draft is in its box")
    assert "I was about to say" in one.read()
    press(fleet, one, "Enter")
    assert one.send("me too", timeout=10)["state"] in ("submitted", "queued")
    assert said(one) == ["I was about to say", "hello", "me too"]


def test_while_it_works_the_agent_queues_it(fleet) -> None:
    session = fleet.sessions.create("practice", name="busy", args=QUICK)
    fleet.messages.send(session.id, "/hang", command=True)
    session.wait("working", timeout=15)
    done = session.send("and then this")
    assert done["state"] == "queued"
    held = session.send("at rest", when="idle")
    assert (held["state"], held["reason"]) == ("held", "it is working")


@pytest.mark.parametrize(
    ("shown", "spoils"),
    [
        ("unknown", lambda number: True),
        ("idle", lambda number: number == 1),
        ("idle", lambda number: number > 1),
    ],
    ids=["never told", "behind", "hidden by a draft"],
)
def test_it_is_queued_whenever_it_is_seen_to_work(fleet, monkeypatch, shown, spoils) -> None:
    session = fleet.sessions.create("practice", name="busy", args=QUICK)
    fleet.messages.send(session.id, "/hang", command=True)
    session.wait("working", timeout=15)
    real, looks = submitting.glance, []

    def glance(context, row):
        seen = real(context, row)
        looks.append(seen)
        if spoils(len(looks)):
            seen.look.state = shown
        return seen

    monkeypatch.setattr(submitting, "glance", glance)
    assert session.send("and then this")["state"] == "queued"


def test_it_is_queued_by_a_hook_alone(fleet, monkeypatch) -> None:
    """The screen of opencode showed its working sign later than its plugin said so."""
    session = fleet.sessions.create("practice", name="busy", args=QUICK)
    fleet.messages.send(session.id, "/hang", command=True)
    session.wait("working", timeout=15)
    real = submitting.glance

    def glance(context, row):
        seen = real(context, row)
        seen.look.state = "idle"
        return seen

    for module in (sending, submitting):
        monkeypatch.setattr(module, "glance", glance)
    assert session.send("and then this")["state"] == "queued"


def test_an_agent_that_has_ended(fleet, one) -> None:
    one.stop()
    done = one.send("hello")
    assert (done["state"], done["reason"]) == ("held", "it has ended")
    one.resume()
    sending.deliver_all(fleet._access.context)
    assert said(one) == ["hello"]


def test_copy_mode(fleet, one) -> None:
    fleet._access.context.tmux(one.row["tmux_server"])._call(["copy-mode", "-t", one.row["pane"]["id"]])
    done = one.send("hello")
    assert done["state"] == "held"
    assert "scrolling" in done["reason"]
    fleet._access.context.tmux(one.row["tmux_server"])._call(
        ["send-keys", "-X", "-t", one.row["pane"]["id"], "cancel"]
    )
    assert one.send("again", timeout=10)["state"] == "submitted"
    assert said(one) == ["hello", "again"]


def test_a_program_that_cannot_be_seen(fleet) -> None:
    session = fleet.sessions.create("cat", name="cat")
    done = session.send("hello")
    assert (done["state"], done["reason"]) == ("failed", "mam cannot see whether cat waits for words")
    assert "hello" not in session.read()


def test_the_same_id_is_sent_once(fleet, one) -> None:
    for _ in range(3):
        done = fleet.messages.send("one", "hello", message_id="m_00000001", timeout=10)
        assert done["state"] == "submitted"
    assert said(one) == ["hello"]


def test_a_command_of_the_program(fleet, one) -> None:
    done = fleet.messages.send("one", "/help", command=True)
    assert (done["state"], done["evidence"]) == ("submitted", "screen")
    assert not one.row["practice_session_id_own"]


def test_inbox(fleet, one) -> None:
    one.send("hello")
    one.send("run ls", timeout=10)
    one.wait("waiting", timeout=10)
    one.send("later")
    found = fleet.messages.inbox("one")
    assert [(each["text"], each["state"], each["sender"]) for each in found] == [
        ("hello", "submitted", "user"),
        ("run ls", "submitted", "user"),
        ("later", "held", "user"),
    ]
    assert [each["message_id"] for each in fleet.messages.inbox(sent=True)] == [
        each["message_id"] for each in found
    ]


def test_sessions_sign_what_they_write_and_cannot_loop(fleet, one, monkeypatch) -> None:
    other = fleet.sessions.create("practice", name="other", args=QUICK)
    fleet._access._caller = callers.session(other.id)
    done = fleet.messages.send("one", "the work is done", timeout=10)
    assert said(one) == [f"[mam {done['message_id']} from other]\nthe work is done"]
    with pytest.raises(Refused, match="same words"):
        fleet.messages.send("one", "the work is done")
    for number in range(19):
        fleet.messages.send("one", f"message {number}", when="idle")
    with pytest.raises(Refused, match="loop"):
        fleet.messages.send("one", "one more")
    with pytest.raises(Refused, match="itself"):
        fleet.messages.send("other", "hello me")


def test_a_clock_that_was_put_back_makes_no_loop(fleet, one, monkeypatch) -> None:
    other = fleet.sessions.create("practice", name="other", args=QUICK)
    one.stop()
    fleet._access._caller = callers.session(other.id)
    for number in range(20):
        fleet.messages.send("one", f"message {number}")
    with pytest.raises(Refused, match="loop"):
        fleet.messages.send("one", "one more")
    fleet._access.context.registry.note(
        lambda draft: draft.connection.execute("UPDATE messages SET created_at = created_at + 86400")
    )
    assert fleet.messages.send("one", "message 1")["state"] == "held"


def test_the_line_that_names_a_file_is_signed_as_well(fleet, one, workspace, monkeypatch) -> None:
    other = fleet.sessions.create("practice", name="other", args=QUICK)
    fleet._access._caller = callers.session(other.id)
    done = fleet.messages.send("one", "a\tb", timeout=10)
    header = f"[mam {done['message_id']} from other]"
    assert (done["state"], done["carrier"]) == ("submitted", "file")
    (heard,) = said(one)
    assert heard.startswith(f"{header}\nRead the file .mam-mail/{done['message_id']}.md")
    path = workspace / ".mam-mail" / f"{done['message_id']}.md"
    assert path.read_text(encoding="utf-8") == f"{header}\na\tb"


def start_sender(root, text, *options):
    """Run `mam send` as a process of its own."""
    argv = [sys.executable, "-m", "mam", "send", "one", text, *options, "--workspace", root]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_many_senders_at_once(fleet, one) -> None:
    texts = [f"message {number}" for number in range(20)]
    for each in [start_sender(fleet.root, text, "--timeout", "30") for text in texts]:
        assert each.wait(90) == 0
    assert sorted(said(one)) == sorted(texts)
    assert {each["state"] for each in fleet.messages.inbox("one")} <= {"submitted", "queued"}


def test_who_comes_second_is_not_told_to_wait(fleet, one) -> None:
    """Others are typed first; that takes a moment, and is no reason to hold anything."""
    for each in [start_sender(fleet.root, f"message {number}") for number in range(4)]:
        assert each.wait(90) == 0
    assert len(said(one)) == 4


def test_new_messages_before_it_are_no_reason_to_wait(fleet, one) -> None:
    """Their senders are about to type them; one that is held for a reason is another matter."""
    registry = fleet._access.context.registry
    wanted = [senders.written(None, "user", one.row, f"message {number}") for number in range(3)]
    first, _, last = registry.note(lambda draft: [messages.add(draft, fields) for fields in wanted])
    assert sending.comes_next(fleet._access.context, last)
    registry.note(lambda draft: messages.update(draft, first.id, reason="a draft is in its box"))
    assert not sending.comes_next(fleet._access.context, last)
    assert sending.comes_next(fleet._access.context, first)


# What becomes of a message whose sender was killed at a step, what the agent heard, and of the next message.
ENDS = {
    "recorded": ("submitted", ["the one message", "the next"], "submitted"),
    "begun": ("unconfirmed", ["the next"], "submitted"),
    "pasted": ("unconfirmed", [], "held"),
    "entered": ("submitted", ["the one message", "the next"], "submitted"),
    "proven": ("submitted", ["the one message", "the next"], "submitted"),
}


@pytest.mark.parametrize("step", dying.STEPS)
def test_a_sender_that_dies_half_way(fleet, one, step) -> None:
    """The message is submitted once, or reported as unconfirmed; never twice, and nothing is glued to it."""
    argv = [sys.executable, "-m", "tests.app.dying", step, fleet.root, "one", "the one message"]
    assert subprocess.run(argv, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    state, heard, state_of_next = ENDS[step]
    second = one.send("the next", timeout=0 if step == "pasted" else 10)
    assert [each["state"] for each in fleet.messages.inbox("one")] == [state, state_of_next]
    if heard:
        assert said(one) == heard
    else:
        assert second["reason"] == "a draft is in its box"
        assert not one.status()["resume"]["on_disk"], "nothing was submitted"


def test_an_interrupted_sender_leaves_nothing_that_blocks(fleet, one, monkeypatch) -> None:
    """The process lives on: nobody else would dare to touch what it says it is typing."""

    def interrupted(*_given, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sending, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.send("the one message")
    assert fleet.messages.inbox("one")[0]["state"] == "unconfirmed"
    assert one.send("the next", timeout=10)["state"] == "submitted"


def test_a_sender_that_cannot_say_how_it_ended_blocks_nobody(fleet, one, monkeypatch) -> None:
    """A resident lives on for days after the disk was full."""

    def full(*_given, **_options):
        raise DiskFull("no space is left")

    with monkeypatch.context() as patch:
        patch.setattr(sending, "_end", full)
        with pytest.raises(DiskFull):
            one.send("the one message")
    assert one.send("the next", timeout=10)["state"] in ("submitted", "queued")
    assert said(one) == ["the one message", "the next"]
    assert fleet.messages.inbox("one")[0]["state"] == "submitted"


def test_a_typist_that_was_stopped_is_not_waited_for_without_end(fleet, one, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(senders, "deliver", lambda *_given: None)
        patch.setattr(senders, "_PATIENCE", 0.0)
        fleet.messages.send("one", "hello", message_id="m_00000001")
    typist = subprocess.Popen(["sleep", "1000"])
    try:
        owner = process.identify(typist.pid).as_json()
        fleet._access.context.registry.note(
            lambda draft: messages.update(draft, "m_00000001", state="typing", owner=owner)
        )
        monkeypatch.setattr(senders, "_PATIENCE", 0.1)
        monkeypatch.setattr(senders, "proof_seconds", lambda text: 0.1)
        done = fleet.messages.send("one", "hello", message_id="m_00000001")
    finally:
        typist.kill()
        typist.wait(10)
    assert (done["state"], done["message_id"]) == ("held", "m_00000001")


def test_a_real_kill_of_the_sender(fleet, one, tmp_path, until) -> None:
    for number in range(4):
        sender = start_sender(fleet.root, f"message {number}", "--timeout", "30")
        until(lambda number=number: len(fleet.messages.inbox("one")) > number)
        time.sleep(0.003 * number)
        sender.kill()
        sender.wait(10)
    assert one.send("the last", timeout=20)["state"] in ("submitted", "queued", "held")
    heard = said(one)
    assert len(heard) == len(set(heard)), "none came twice"
    for each in fleet.messages.inbox("one"):
        if each["state"] in ("submitted", "queued"):
            assert each["text"] in heard
    assert set(heard) <= {f"message {number}" for number in range(4)} | {"the last"}, (
        "none was glued to another"
    )


def test_the_resident_delivers_what_was_held(home, tmux_server, workspace, until) -> None:
    (workspace / "mam.toml").write_text('resident = "auto"\n', encoding="utf-8")
    with mam.open(str(workspace)) as fleet:
        session = fleet.sessions.create("practice", name="one", args=QUICK)
        session.send("run ls")
        session.wait("waiting", timeout=10)
        assert session.send("later")["state"] == "held"
        press(fleet, session, "Escape")
        until(lambda: fleet.messages.inbox("one")[-1]["state"] == "submitted", timeout=40)
        assert said(session)[-1] == "later"
        assert Path(fleet.registry_file).exists()
        session.stop()


def test_an_agent_that_dies_between_paste_and_enter(fleet, one, monkeypatch, until) -> None:
    """Nothing of it is left and Enter was not pressed: it is held, and goes out once after a resume."""
    real, pid = Tmux.paste, one.row["pane"]["pid"]

    def paste_and_die(self, *given, **options):
        real(self, *given, **options)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not process.runs(pid))

    with monkeypatch.context() as patch:
        patch.setattr(Practice, "pause", lambda self, text: 0.05)
        patch.setattr(Tmux, "paste", paste_and_die)
        done = one.send("hello")
    assert (done["state"], done["attempts"]) == ("held", 1)
    assert done["reason"] == "it has ended before Enter was pressed"
    assert not one.status()["resume"]["on_disk"]
    fleet.monitor.once()
    one.resume()
    sending.deliver_all(fleet._access.context)
    assert said(one) == ["hello"]


def test_a_dialog_that_opens_between_paste_and_enter(fleet, one, monkeypatch) -> None:
    real, looks = submitting.glance, []

    def glance(context, row):
        seen = real(context, row)
        looks.append(seen)
        if len(looks) > 2:
            seen.look = ScreenState("waiting", dialog="permission")
        return seen

    with monkeypatch.context() as patch:
        patch.setattr(Practice, "pause", lambda self, text: 0.05)
        patch.setattr(submitting, "glance", glance)
        done = one.send("hello")
    assert done["state"] == "unconfirmed"
    assert "Enter was not pressed" in done["reason"]
    assert not one.status()["resume"]["on_disk"], "Enter was not pressed"
    assert one.send("the next")["reason"] == "a draft is in its box", "and nothing is glued to it"


def spoiled(monkeypatch, spoil, first=2):
    """Let the looks of a submission be spoiled from the third on, which is right before Enter."""
    real, looks = submitting.glance, []

    def glance(context, row):
        seen = real(context, row)
        looks.append(seen)
        if len(looks) > first:
            spoil(seen, len(looks) - first)
        return seen

    monkeypatch.setattr(Practice, "pause", lambda self, text: 0.05)
    monkeypatch.setattr(submitting, "glance", glance)
    return looks


@pytest.mark.parametrize("first", [0, 2])
def test_a_look_between_two_parts_of_one_drawing(one, monkeypatch, first) -> None:
    """It shows no box, and nothing that is in the way: it is looked at again."""

    def torn(seen, number):
        if number <= 5:
            seen.look = ScreenState()

    looks = spoiled(monkeypatch, torn, first)
    done = one.send("hello")
    assert (done["state"], done["attempts"]) == ("submitted", 1), done
    assert len(looks) > first + 5
    assert said(one) == ["hello"]


def spoiled_at_first(monkeypatch, look):
    """Let the first three looks of a delivery show something else."""
    real, looks = sending.glance, []

    def glance(context, row):
        seen = real(context, row)
        looks.append(seen)
        if len(looks) <= 3:
            seen.look = look()
        return seen

    monkeypatch.setattr(sending, "glance", glance)


def test_a_look_that_is_torn_before_anything_is_typed(one, monkeypatch) -> None:
    spoiled_at_first(monkeypatch, ScreenState)
    assert one.send("hello")["state"] == "submitted"


def test_a_box_that_still_shows_what_was_taken(one, monkeypatch) -> None:
    """The agent said that it took the words before it drew its box anew."""
    assert one.send("hello")["state"] == "submitted"
    spoiled_at_first(monkeypatch, lambda: ScreenState("idle", box="draft"))
    assert one.send("and this")["state"] in ("submitted", "queued")


def test_a_server_that_is_silent_between_paste_and_enter(one, monkeypatch) -> None:
    """The text stands in the box: it is never typed once more."""

    def silent(seen, number):
        seen.sight = Sight("unknown")

    with monkeypatch.context() as patch:
        spoiled(patch, silent)
        patch.setattr(submitting, "_SEEN_SECONDS", 0.3)
        done = one.send("hello")
    assert (done["state"], done["attempts"]) == ("unconfirmed", 1)
    assert "Enter was not pressed: tmux does not answer" in done["reason"]
    assert one.send("the next")["reason"] == "a draft is in its box"


def test_a_server_that_is_silent_for_a_moment(one, monkeypatch) -> None:
    def silent(seen, number):
        if number <= 3:
            seen.sight = Sight("unknown")

    spoiled(monkeypatch, silent)
    assert one.send("hello")["state"] == "submitted"
    assert said(one) == ["hello"]


def test_its_own_word_of_a_dialog_between_paste_and_enter(fleet, one, monkeypatch) -> None:
    """A dialog takes keys before it is drawn."""

    def asks(seen, number):
        if number == 1:
            payload = {"hook_event_name": "PermissionRequest", "session_id": "x"}
            name = f"{one.id}.{one.row['pane']['pid']}.1.json"
            Path(fleet._access.context.paths.spool, name).write_text(json.dumps(payload), encoding="utf-8")

    with monkeypatch.context() as patch:
        spoiled(patch, asks)
        patch.setattr(submitting, "_SEEN_SECONDS", 0.3)
        done = one.send("hello")
    assert done["state"] == "unconfirmed"
    assert "Enter was not pressed" in done["reason"]
    assert not one.status()["resume"]["on_disk"], "Enter was not pressed"


def test_a_person_presses_enter_first(fleet, one, monkeypatch) -> None:
    def entered(seen, number):
        if number == 1:
            press(fleet, one, "Enter")
            fleet.sessions.wait("one", "idle", timeout=10)
        seen.look = ScreenState()

    with monkeypatch.context() as patch:
        spoiled(patch, entered)
        patch.setattr(submitting, "_SEEN_SECONDS", 0.3)
        assert one.send("hello")["state"] == "submitted"
    assert said(one) == ["hello"]


def test_a_dialog_that_opens_after_the_first_look(fleet, one, monkeypatch, workspace) -> None:
    """It is looked at again right before the paste: the tool must not run."""
    real = sending._begin

    def begin(*given):
        claimed = real(*given)
        paste(fleet, one, "/ask touch foo", enter=True)
        fleet.sessions.wait("one", "text:Do you want to proceed", timeout=10)
        return claimed

    with monkeypatch.context() as patch:
        patch.setattr(sending, "_begin", begin)
        done = one.send("hello")
    assert (done["state"], done["reason"]) == ("held", "its permission dialog is open")
    one.answer("deny")
    one.wait("idle", timeout=10)
    assert not (workspace / "foo").exists()
    assert one.send("again", timeout=10)["state"] in ("submitted", "queued")
    assert said(one)[-2:] == ["hello", "again"]


def test_a_stranger_in_the_pane(fleet, one) -> None:
    tmux, pane = fleet._access.context.tmux(one.row["tmux_server"]), one.row["pane"]["id"]
    tmux._call(["respawn-pane", "-k", "-t", pane, "sleep", "1000"])
    done = one.send("hello")
    assert (done["state"], done["reason"]) == ("held", "another process is in its pane")


def test_a_shell_instead_of_the_agent(fleet, tmux_server, until) -> None:
    tmux = Tmux(tmux_server)
    tmux._call(["new-session", "-d", "-s", "theirs", "sh"])
    until(lambda: any(pane.command == "sh" for pane in tmux.panes(full=True).panes))
    session = fleet.sessions.adopt("theirs", agent="practice", name="theirs")
    done = session.send("touch ran")
    assert (done["state"], done["reason"]) == ("held", "a shell is in its pane, and not the agent")
    assert "touch ran" not in session.read()


def test_only_the_conversation_that_is_meant(fleet, one) -> None:
    own = one.row["conversations"][-1]["id"]
    other = "00000000-0000-0000-0000-000000000000"
    done = fleet.messages.send("one", "for another", conversation=other)
    assert (done["state"], done["reason"]) == ("held", f"its conversation is {own}, not {other}")
    assert fleet.messages.withdraw(done["message_id"])
    assert fleet.messages.send("one", "for this one", conversation=own, timeout=10)["state"] == "submitted"
    assert said(one) == ["for this one"]


def test_the_same_words_twice_are_proven_twice(fleet, one) -> None:
    """The hook of the first may come late: it proves nothing about the second."""
    done = [one.send("go on", timeout=10) for _ in range(3)]
    assert {each["evidence"] for each in done[1:]} == {"transcript"}
    one.wait("idle", timeout=10)
    assert said(one) == ["go on"] * 3


def test_the_record_of_a_conversation_that_was_begun_anew(fleet, one) -> None:
    """The same words again: no hook counts, and the record is not the one that the row knows."""
    assert one.send("go on", timeout=10)["state"] == "submitted"
    one.wait("idle", timeout=10)
    conversations.capture(fleet._access.context, one.row)
    assert fleet.messages.send("one", "/clear", command=True, timeout=10)["state"] == "submitted"
    done = one.send("go on", timeout=10)
    assert (done["state"], done["evidence"]) == ("submitted", "transcript"), done


def test_words_of_before_prove_nothing(fleet, one, monkeypatch) -> None:
    """Nobody wrote down which conversation an agent has: what it holds already is no proof all the same."""
    assert one.send("go on", timeout=10)["state"] == "submitted"
    one.wait("idle", timeout=10)

    def forget(draft):
        return draft.put(merged(draft.get(one.id), conversations=[], practice_session_id_own=None))

    claims.change(fleet._access.context, forget)
    monkeypatch.setattr(sending, "submit", lambda *_given, **_options: ScreenState("idle"))
    monkeypatch.setattr(receipt_proof, "proof_seconds", lambda text: 0.5)
    assert one.send("go on")["state"] == "unconfirmed"


def test_without_a_resident_the_next_verb_delivers(fleet, one) -> None:
    fleet.messages.send("one", "/ask touch foo", command=True, timeout=10)
    one.wait("waiting", timeout=10)
    assert [one.send(text)["state"] for text in ("first", "second")] == ["held", "held"]
    one.answer("deny")
    one.wait("idle", timeout=10)
    fleet.sessions.rename("one", "renamed")
    assert said(fleet.sessions.get("renamed"))[-2:] == ["first", "second"]


def test_a_file_that_cannot_be_written(one, workspace) -> None:
    (workspace / ".mam-mail").symlink_to("/tmp")
    done = one.send("a\tb")
    assert done["state"] == "failed"
    assert "symbolic link" in done["reason"]
    assert one.send("plain", timeout=10)["state"] == "submitted", "it blocks nobody"


def test_what_the_resident_types_just_now_is_not_held(fleet, one, monkeypatch) -> None:
    looks = []

    def deliver(context, session_id):
        (message,) = context.registry.peek(lambda draft: messages.open_of(draft, session_id), [])
        looks.append(message.state)
        state = "typing" if len(looks) == 1 else "submitted"
        owner = process.me().as_json()
        context.registry.note(lambda draft: messages.update(draft, message.id, state=state, owner=owner))

    monkeypatch.setattr(senders, "deliver", deliver)
    assert one.send("hello there")["state"] == "submitted"
    assert looks == ["held", "typing"]


def test_a_state_that_no_screen_tells(fleet, one, monkeypatch) -> None:
    """Its own word says that it rests: that holds for the look right before the paste as well."""
    real = Practice.look

    def blurred(self, screen):
        look = real(self, screen)
        look.state = "unknown"
        return look

    monkeypatch.setattr(Practice, "look", blurred)
    monkeypatch.setattr(Practice, "queues", False)
    one.wait("idle", timeout=10)
    done = one.send("hello", timeout=10)
    assert (done["state"], done["attempts"]) == ("submitted", 1)


def test_a_server_that_dies_under_the_words(fleet, one, monkeypatch) -> None:
    """It may have been typed: never again."""

    def lost(*_given, **_options):
        raise TerminalsDown("the server ended")

    with monkeypatch.context() as patch:
        patch.setattr(Tmux, "paste", lost)
        patch.setattr(receipt_proof, "proof_seconds", lambda text: 0.1)
        assert one.send("hello")["state"] == "unconfirmed"
    assert one.send("the next", timeout=10)["state"] == "submitted"
    assert said(one) == ["the next"]


def test_a_conversation_that_somebody_else_holds(fleet, one, monkeypatch) -> None:
    """It is held with that reason, and no other verb fails for it."""

    def busy(*_given):
        raise ConversationBusy("conversation x is open in process 1")

    with monkeypatch.context() as patch:
        patch.setattr(conversations, "note_open", busy)
        done = one.send("hello")
        assert (done["state"], done["reason"]) == ("held", "conversation x is open in process 1")
        fleet.sessions.rename("one", "other")
    assert fleet.messages.send("other", "and this", timeout=10)["state"] in ("submitted", "queued")


def test_who_looks_late_does_not_take_a_message_back(fleet, one, monkeypatch) -> None:
    """A look that began while it was held, and saw something in the way after another had typed it."""
    done: list[dict] = []
    look = sending.glance

    def slow_look(context, row):
        if not done:
            done.append({})
            done[0] = fleet.messages.send("one", "the one message", message_id="m_00000001", timeout=10)
            paste(fleet, one, "a draft")
            fleet.sessions.wait("one", "text:a draft", timeout=10)
        return look(context, row)

    with monkeypatch.context() as patch:
        patch.setattr(senders, "deliver", lambda *_given: None)
        patch.setattr(senders, "_PATIENCE", 0.0)
        fleet.messages.send("one", "the one message", message_id="m_00000001")
    monkeypatch.setattr(sending, "glance", slow_look)
    sending.deliver(fleet._access.context, one.id)
    assert done[0]["state"] == "submitted"
    assert fleet.messages.inbox("one")[0]["state"] == "submitted", "it would be typed once more"


@pytest.mark.parametrize(
    "message_id", ["../../evil", "m_/x", "x y", "m_a b", "m_", "m_\n", "m_00000001\n", "m_" + "0" * 99, "M_1"]
)
def test_what_is_no_id(fleet, one, workspace, message_id) -> None:
    with pytest.raises(Usage, match="id of a message"):
        fleet.messages.send("one", "a\tb", message_id=message_id)
    assert fleet.messages.inbox("one") == []
    assert not list(workspace.parent.parent.rglob("*evil*"))


def test_an_id_is_of_one_session(fleet, one) -> None:
    fleet.sessions.create("practice", name="other", args=QUICK)
    fleet.messages.send("one", "hello", message_id="m_00000001", timeout=10)
    with pytest.raises(Conflict, match="was sent to 'one'"):
        fleet.messages.send("other", "hello", message_id="m_00000001")
    assert fleet.messages.inbox("other") == []


def test_an_id_is_of_the_same_words(fleet, one) -> None:
    """Whoever reads that it was submitted must not take other words for it."""
    fleet.messages.send("one", "hello", message_id="m_00000001", timeout=10)
    with pytest.raises(Conflict, match="other words"):
        fleet.messages.send("one", "something else", message_id="m_00000001")
    assert said(one) == ["hello"]


@pytest.mark.parametrize("text", ["just words", "!touch x", "/help\n/quit", "/help\x1b[201~", " /help", "/"])
def test_what_is_no_command(fleet, one, text) -> None:
    with pytest.raises(InvalidPrompt, match="command"):
        fleet.messages.send("one", text, command=True)
    assert fleet.messages.inbox("one") == []


def test_only_who_sent_it_takes_it_back(fleet, one, monkeypatch) -> None:
    other = fleet.sessions.create("practice", name="other", args=QUICK)
    one.stop()
    kept = fleet.messages.send("one", "hello")["message_id"]
    fleet._access._caller = callers.session(other.id)
    own = fleet.messages.send("one", "from another")["message_id"]
    with pytest.raises(NotAllowed, match="not sent by"):
        fleet.messages.withdraw(kept)
    assert fleet.messages.withdraw(own)
    assert fleet.messages.send("one", "from another")["state"] == "held", "what was taken back is no loop"
    fleet._access._caller = callers.user()
    assert fleet.messages.withdraw(kept)


def test_a_file_that_cannot_be_written_blocks_nobody(fleet, one, workspace, tmp_path) -> None:
    """The typist of a message that went as a file died, and its folder is not to be used any more."""
    argv = [sys.executable, "-m", "tests.app.dying", "begun", fleet.root, "one", "a\tb"]
    assert subprocess.run(argv, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    (workspace / ".mam-mail").rename(tmp_path / "mail")
    (workspace / ".mam-mail").symlink_to(tmp_path)
    assert one.send("the next", timeout=10)["state"] == "submitted"
    assert [each["state"] for each in fleet.messages.inbox("one")] == ["unconfirmed", "submitted"]


def test_what_waits_behind_another_says_so(fleet, one) -> None:
    one.stop()
    first = one.send("hello")
    second = one.send("and this")
    assert second["reason"] == f"{first['message_id']} comes before it, and is held: it has ended"
