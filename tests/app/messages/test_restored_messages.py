"""What `mam restore` makes of held messages: only what the agent surely does not have is typed later."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.adapters.agents.claude.test_files import Store, user
from tests.app.roots.test_restore import ENDED, Draft, a_message, copy_now, reopened, states
from tests.app.team_desk import QUICK, said

from mam.adapters.agents.box_contents import BoxContents
from mam.adapters.agents.kind import ScreenState
from mam.adapters.store.tables import messages
from mam.adapters.tmux.client import Tmux
from mam.app.messages import delivery, restored_messages, unrecorded_text
from mam.app.roots import restore as restoring
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.message_rules import MessageState

# They start agents.
pytestmark = [pytest.mark.starts, pytest.mark.slow]

__all__ = ["reopened"]


def lose(fleet, workspace) -> None:
    fleet.close()
    shutil.rmtree(workspace / ".mam")


def shows(fleet, name, words):
    return lambda: words in fleet.sessions.read(name)


def keys(draft, *words) -> None:
    """Press keys in the pane, as a person does."""
    subprocess.run([*draft.name, *words], check=True)


def deliver(fleet) -> None:
    delivery.deliver_all(fleet._access.context)


def hold_with_draft(fleet, until, name="z", text="queued text ZZ"):
    """Have a message held by a draft; return the draft and the id of the message."""
    fleet.sessions.create("practice", name=name, args=QUICK)
    draft = Draft(fleet, name)
    draft.type()
    until(shows(fleet, name, "half a thought"))
    receipt = fleet.messages.send(name, text)
    assert receipt["state"] == "held"
    return draft, receipt["message_id"]


def test_what_a_working_agent_has_queued_since_the_copy_is_not_typed_again(
    fleet, workspace, reopened, until
) -> None:
    """Its record does not show it yet: the practice agent records a text when its turn begins."""
    draft, held = hold_with_draft(fleet, until)
    copy_now(fleet)
    draft.delete()
    keys(draft, "-l", "/slow 5")
    keys(draft, "Enter")
    until(shows(fleet, "z", "esc to interrupt"))
    deliver(fleet)
    until(shows(fleet, "z", "queued: queued text ZZ"))
    lose(fleet, workspace)
    again = reopened()
    assert again.restore()["messages"] == {"unconfirmed": [held]}
    assert states(again, held) == [(MessageState.UNCONFIRMED, "restored")]
    until(lambda: "queued text ZZ" in said(again, "z"))
    assert again.messages.send("z", "last", when="idle", timeout=60)["state"] == "submitted"
    assert said(again, "z").count("queued text ZZ") == 1
    again.sessions.stop("z", force=True)


@pytest.mark.parametrize(
    ("typed", "state"),
    [
        (["queued text ZZ"], "unconfirmed"),
        (["well, ", "queued text ZZ", ", and more"], "unconfirmed"),
        (["a thought of mine"], "held"),
    ],
    ids=["as it is", "with more around it", "another text"],
)
def test_what_stands_in_the_input_box_without_enter_is_not_typed_again(
    fleet, workspace, reopened, until, typed, state
) -> None:
    draft, held = hold_with_draft(fleet, until)
    copy_now(fleet)
    draft.delete()
    keys(draft, "-l", "".join(typed))
    until(shows(fleet, "z", typed[-1]))
    lose(fleet, workspace)
    assert reopened().restore()["messages"] == {state: [held]}
    reopened().sessions.stop("z", force=True)


def hold_with_dialog(fleet, until):
    """Have a message held by a dialog; return its id, and something that presses keys."""
    fleet.sessions.create("practice", name="z", args=QUICK)
    fleet.messages.send("z", "/question", command=True)
    until(shows(fleet, "z", "Enter to select"))
    receipt = fleet.messages.send("z", "the text")
    assert receipt["state"] == "held"
    return Draft(fleet, "z"), receipt["message_id"]


def test_a_dialog_that_is_open_since_before_the_copy_keeps_its_message(
    fleet, workspace, reopened, until
) -> None:
    """Nothing was drawn since, so nothing was typed, although nobody sees the input box."""
    _, held = hold_with_dialog(fleet, until)
    command = fleet.messages.send("z", "/slow 1", command=True)["message_id"]
    drawn = fleet._access.context.now()
    until(lambda: fleet._access.context.now() > drawn + 4)
    copy_now(fleet)
    lose(fleet, workspace)
    again = reopened()
    assert again.restore()["messages"] == {"held": [held, command]}
    assert said(again, "z") == ["/question"]
    again.messages.answer("z", "1")
    assert again.messages.send("z", "last", when="idle", timeout=60)["state"] == "submitted"
    assert said(again, "z") == ["/question", "the text", "/slow 1", "last"]
    again.sessions.stop("z", force=True)


def test_what_waits_for_a_dialog_stays_held_by_a_copy_of_the_next_moment(
    fleet, workspace, reopened, until
) -> None:
    _, held = hold_with_dialog(fleet, until)
    copy_now(fleet)
    lose(fleet, workspace)
    again = reopened()
    assert again.restore()["messages"] == {"held": [held]}
    again.messages.answer("z", "1")
    assert again.messages.send("z", "last", when="idle", timeout=60)["state"] == "submitted"
    assert said(again, "z") == ["/question", "the text", "last"]
    again.sessions.stop("z", force=True)


def test_what_waits_for_an_idle_agent_stays_held_while_the_agent_works(
    fleet, workspace, reopened, until
) -> None:
    """mam types it only when the agent is idle, and then the record of the agent shows it at once."""
    fleet.sessions.create("practice", name="z", args=QUICK)
    fleet.messages.send("z", "/slow 600", command=True)
    until(shows(fleet, "z", "esc to interrupt"))
    held = [fleet.messages.send("z", text, when="idle")["message_id"] for text in ("one", "two")]
    copy_now(fleet)
    lose(fleet, workspace)
    again = reopened()
    assert again.restore()["messages"] == {"held": held}
    again.messages.interrupt("z")
    assert again.messages.send("z", "last", when="idle", timeout=60)["state"] == "submitted"
    assert said(again, "z")[-3:] == ["one", "two", "last"]
    again.sessions.stop("z", force=True)


def test_a_dialog_that_was_drawn_since_the_copy_proves_nothing(fleet, workspace, reopened, until) -> None:
    draft, held = hold_with_dialog(fleet, until)
    copy_now(fleet)
    # tmux dates what is drawn to the second.
    second = int(fleet._access.context.now())
    until(lambda: fleet._access.context.now() >= second + 1)
    keys(draft, "Down")
    until(lambda: "❯ 2" in fleet.sessions.read("z"))
    lose(fleet, workspace)
    assert reopened().restore()["messages"] == {"unconfirmed": [held]}
    reopened().sessions.stop("z", force=True)


def test_what_the_replaced_state_still_holds_was_not_typed(fleet, workspace, reopened, until) -> None:
    """The agent works, and its record does not show what it has queued."""
    fleet.sessions.create("practice", name="z", args=QUICK)
    fleet.messages.send("z", "/question", command=True)
    until(shows(fleet, "z", "Enter to select"))
    held = [fleet.messages.send("z", "the text")["message_id"]]
    held += [fleet.messages.send("z", "/slow 1", command=True)["message_id"]]
    copy = copy_now(fleet)
    fleet.close()
    assert reopened().restore(str(copy), is_confirmed=True)["messages"] == {"held": held}
    reopened().sessions.stop("z", force=True)


def test_an_agent_without_its_pane_may_still_work_on_its_queue(
    fleet, workspace, reopened, until, monkeypatch
) -> None:
    _, held = hold_with_draft(fleet, until)
    copy_now(fleet)
    lose(fleet, workspace)
    monkeypatch.setattr(restoring.take_back, "marked_panes", lambda *_given: {})
    again = reopened()
    assert again.restore(dry_run=True)["messages"] == {"unconfirmed": [held]}
    monkeypatch.undo()
    again.restore()
    again.sessions.stop("z", force=True)


def test_the_panes_of_all_sessions_are_looked_at_in_one_call(
    fleet, workspace, reopened, until, monkeypatch
) -> None:
    for name in "ab":
        hold_with_draft(fleet, until, name)
    copy_now(fleet)
    lose(fleet, workspace)
    looked = []
    screens = Tmux.screens

    def look(tmux, pane_ids, **options):
        looked.append(len(list(pane_ids)))
        return screens(tmux, pane_ids, **options)

    monkeypatch.setattr(Tmux, "screens", look)
    again = reopened()
    again.restore(dry_run=True)
    assert looked[0] == 2
    assert all(count == 1 for count in looked[1:]), "only what was being drawn is looked at again"
    monkeypatch.undo()
    again.restore()
    for name in "ab":
        again.sessions.stop(name, force=True)


CLAUDE_IDLE = ScreenState(IDLE, contents=BoxContents())
CLAUDE_WORKS = ScreenState(WORKING, contents=BoxContents())


@pytest.mark.parametrize(
    ("screen", "queued", "state"),
    [
        (CLAUDE_WORKS, [], "held"),
        (CLAUDE_WORKS, ["the text"], "unconfirmed"),
        (CLAUDE_WORKS, ["another text"], "held"),
        (CLAUDE_IDLE, [], "held"),
        (ScreenState(WAITING, dialog="permission"), [], "unconfirmed"),
    ],
    ids=["works", "has queued it", "has queued another", "idle", "asks"],
)
def test_a_record_with_the_queue_tells_what_a_working_agent_has(
    fleet, workspace, tmp_path, monkeypatch, screen, queued, state
) -> None:
    """Claude Code records at once what it queues."""
    fleet.init()
    store = Store(tmp_path / "claude")
    operations = [{"type": "queue-operation", "operation": "enqueue", "content": text} for text in queued]
    conversation = store.write(str(workspace), user("the first words"), *operations)
    row = {
        **ENDED,
        "agent": "claude",
        "workspace": str(workspace),
        "stores": store.stores,
        "conversations": [{"id": conversation, "source": "create"}],
    }
    seen = {row["id"]: unrecorded_text.SeenPane(screen, 0)}
    monkeypatch.setattr(unrecorded_text, "look_at_panes", lambda *_given: seen)
    context, settled = fleet._access.context, []

    def work(transaction):
        transaction.add(row)
        messages.add(transaction, a_message("m_held", text="the text"))
        panes = {row["id"]: ("server", "%0")}
        settled.append(
            restored_messages.settle(
                context, transaction, context.root_id, panes, made_at=context.now(), is_replaced=False
            )
        )

    context.registry.change(work)
    assert settled == [{state: ["m_held"]}]
