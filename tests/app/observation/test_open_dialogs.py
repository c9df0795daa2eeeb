"""What waiting sessions ask, as it is recorded: by whoever sees the dialog first, once for each opening."""

from __future__ import annotations

import time

import pytest

import mam
from mam.adapters.store.tables import evidence
from mam.app.monitor import notify
from mam.app.observation import open_dialogs
from mam.app.sessions import reconcile
from mam.core.errors import Conflict, NoDialog, Unavailable, Usage

QUICK = ["--speed", "0"]


@pytest.fixture
def session(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def open_dialog(fleet, session, command="/ask touch foo") -> None:
    """Have the practice agent open a dialog."""
    assert fleet.messages.send(session.id, command, command=True, timeout=10)["state"] == "submitted"
    session.wait("waiting", timeout=10)


@pytest.fixture
def pass_on(fleet):
    """Make a pass as a resident does; return in how many seconds it wants the next one."""

    def pass_on() -> float | None:
        with mam.open(fleet.root) as new:
            context = new._access.context
            result = reconcile.reconcile(context, new.caller)
            return notify.new_notices(context, context.registry.view(), result.snapshot.listings)[1]

    return pass_on


def listed(fleet):
    (entry,) = fleet.sessions.ls()["sessions"]
    return entry


def recorded(fleet):
    return open_dialogs.recorded(fleet._access.context)


def test_a_session_that_asks_nothing(fleet, session) -> None:
    entry = listed(fleet)
    assert (entry["needs_you"], entry["asks"]) == (False, None)


def test_before_anybody_looked_the_hook_says_what_is_asked(fleet, session) -> None:
    open_dialog(fleet, session)
    assert recorded(fleet) == {}
    entry = listed(fleet)
    assert entry["needs_you"] is True
    assert entry["asks"]["dialog"] == "permission"
    assert (entry["asks"]["command"], entry["asks"]["fingerprint"]) == ("touch foo", None)


def test_a_pass_records_what_is_asked(fleet, session, pass_on, until) -> None:
    open_dialog(fleet, session)
    # The dialog may be drawn a moment after its hook.
    until(lambda: pass_on() is not None and session.id in recorded(fleet))
    asks = listed(fleet)["asks"]
    assert (asks["title"], asks["command"]) == ("Bash command", "touch foo")
    assert asks["question"] == "Do you want to proceed?"
    assert asks["options"][0] == "Yes"
    assert len(asks["fingerprint"]) == 64
    # The same document, whoever asks for it, and however often.
    assert fleet.messages.dialog("one") == asks
    before = recorded(fleet)
    pass_on()
    assert recorded(fleet) == before, "an unchanged dialog is recorded again only now and then"
    assert session.answer("deny", expect=asks["fingerprint"][:8])["fingerprint"] == asks["fingerprint"]
    assert recorded(fleet) == {}


def test_who_shows_a_dialog_records_it(fleet, session) -> None:
    open_dialog(fleet, session)
    shown = fleet.messages.dialog("one")
    assert listed(fleet)["asks"] == shown
    assert fleet.sessions.status("one")["asks"] == shown


def test_the_same_question_again_is_another_one(fleet, session, workspace) -> None:
    open_dialog(fleet, session)
    first = fleet.messages.dialog("one")
    session.answer("deny")
    session.wait("idle", timeout=10)
    open_dialog(fleet, session)
    second = fleet.messages.dialog("one")
    assert (first["text"], first["options"]) == (second["text"], second["options"])
    assert first["fingerprint"] != second["fingerprint"]
    with pytest.raises(Conflict, match="not the expected one"):
        session.answer("allow", expect=first["fingerprint"])
    assert fleet.messages.dialog("one") == second, "nothing was pressed"


def test_the_same_question_again_after_a_person_answered_it(fleet, session, pass_on, until) -> None:
    """A pass sees in between that no dialog is open."""
    open_dialog(fleet, session)
    first = fleet.messages.dialog("one")
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], ["Escape"], mark=session.id
    )
    session.wait("idle", timeout=10)
    pass_on()
    assert recorded(fleet) == {}
    open_dialog(fleet, session)
    assert fleet.messages.dialog("one")["fingerprint"] != first["fingerprint"]


def test_a_hook_that_reports_anything_else_ends_the_record(fleet, session) -> None:
    """Then the same question again is another one, although no look saw that the first was closed."""
    open_dialog(fleet, session)
    first = fleet.messages.dialog("one")
    session.answer("allow")
    open_dialog(fleet, session)
    again = fleet.messages.dialog("one")
    context = fleet._access.context
    old = {**recorded(fleet)[session.id], "episode": "before"}
    context.registry.note(
        lambda transaction: evidence.record(
            transaction.connection, session.id, evidence.DIALOG, time.time(), old, time.time()
        )
    )
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], ["Enter"], mark=session.id
    )
    # The hook after the tool reports work, the one after the turn idleness; `wait` takes both in.
    session.wait("idle", timeout=10)
    assert recorded(fleet) == {}
    assert len({first["fingerprint"], again["fingerprint"]}) == 2


def test_another_opening_is_noticed_between_two_keys(fleet, session, monkeypatch) -> None:
    open_dialog(fleet, session)
    shown = fleet.messages.dialog("one")
    row = session.row

    def press(context, row, key, check):
        """Another process has seen the dialog close and open again, just before the key."""
        data = {**recorded(fleet)[row["id"]], "episode": "another"}
        now = time.time() + 1
        context.registry.note(
            lambda transaction: evidence.record(
                transaction.connection, row["id"], evidence.DIALOG, now, data, now
            )
        )
        real(context, row, key, check)

    from mam.app.messages import answer

    real = answer.press
    monkeypatch.setattr(answer, "press", press)
    with pytest.raises(Conflict, match="another one is open"):
        session.answer("allow", expect=shown["fingerprint"])
    monkeypatch.undo()
    assert fleet.messages.dialog(row["name"])["text"] == shown["text"], "nothing was pressed"


def test_a_record_of_an_earlier_launch_counts_for_nothing(fleet, session) -> None:
    open_dialog(fleet, session)
    fleet.messages.dialog("one")
    data = {**recorded(fleet)[session.id], "launch": "1:1"}
    fleet._access.context.registry.note(
        lambda transaction: evidence.record(
            transaction.connection, session.id, evidence.DIALOG, time.time() + 1, data, time.time() + 1
        )
    )
    assert listed(fleet)["asks"]["fingerprint"] is None


def test_a_dialog_that_nobody_can_record_is_answered_all_the_same(fleet, session, monkeypatch) -> None:
    open_dialog(fleet, session)

    def full(self, work):
        raise Unavailable("the disk is full")

    monkeypatch.setattr(type(fleet._access.context.registry), "note_without_migration", full)
    shown = fleet.messages.dialog("one")
    assert shown["command"] == "touch foo"
    assert recorded(fleet) == {}
    # The answer of a person who has looked fits, although nothing was kept in between.
    assert session.answer("deny", expect=shown["fingerprint"])["answer"].startswith("No")


@pytest.mark.parametrize("expect", ["", "1234567", "not hexadecimal", "12345678 "])
def test_what_is_no_fingerprint_is_refused(fleet, session, expect) -> None:
    open_dialog(fleet, session)
    with pytest.raises(Usage, match="is no fingerprint"):
        session.answer("allow", expect=expect)
    assert fleet.messages.dialog("one")["dialog"] == "permission"


def test_a_session_without_a_dialog_has_none_to_show(fleet, session) -> None:
    with pytest.raises(NoDialog):
        fleet.messages.dialog("one")
    assert recorded(fleet) == {}
