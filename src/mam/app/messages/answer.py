"""The verb `answer`: answer the dialog that is open in a session, this dialog and no other.

A dialog has a fingerprint of its words and of the episode in which it is open. mam compares both at the
first look and again right before each key. tmux compares the cursor in the same step in which it presses the
key. An answer succeeds only if the dialog is gone afterwards.
"""

from __future__ import annotations

import time

from mam.adapters.store.tables import evidence
from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.deadline import Deadline
from mam.app.context.authority import check_answerer
from mam.app.messages.keys import log_press, look_at_agent, press, wait_between_interrupts
from mam.app.observation import open_dialogs
from mam.app.observation.newest_hook_reports import newest_reports
from mam.app.observation.pane_look import gather_evidence, look_at_pane, look_until_clear
from mam.app.observation.versions import runs_tested_version, untested_error
from mam.core.activity import UNKNOWN, WAITING
from mam.core.dialog import SHORTEST_EXPECTED
from mam.core.errors import (
    Conflict,
    DeliveryUnconfirmed,
    InvalidPrompt,
    NoDialog,
    Refused,
    Unavailable,
    Usage,
)
from mam.core.liveness_values import Liveness
from mam.core.safe_text import for_paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.dialog_options import Choices
    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.caller import Caller
    from mam.core.session_row import Row

ALLOW, DENY = "allow", "deny"
_STEP = 0.02
_MOVE_SECONDS = 2.0
_SECONDS = 10.0
_STANDS_SECONDS = 0.5
_LONGEST = 2000


class Dialog:
    """An open dialog, as one look shows it."""

    __slots__ = ("choices", "words")

    def __init__(self, look: PaneLook, choices: Choices | None) -> None:
        self.choices = choices
        self.words = open_dialogs.words_of(look.screen_state.dialog or "", look.screen, choices)

    @property
    def name(self) -> str:
        """What kind of dialog it is; empty if there is none."""
        return self.words.name

    def is_same(self, other: Dialog) -> bool:
        """Tell whether another look shows the same words."""
        return self.words.are(other.words)


def show(context: Context, target: str) -> dict[str, Any]:
    """Return the open dialog with its fingerprint, and record it; raise NoDialog where there is none."""
    row = context.view_to_show().find(target)
    dialog = _find_dialog(context, row)
    return open_dialogs.as_asks(row, open_dialogs.note(context, row, dialog.words))


def answer(
    context: Context, caller: Caller, target: str, text: str, *, expect: str | None = None
) -> dict[str, Any]:
    """Answer with `allow`, `deny`, an option, or free text; `{session, dialog, fingerprint, answer, next}`.

    Raises Conflict where the dialog is not the expected one, and then no key was pressed; Refused for an
    answer that the dialog does not offer; DeliveryUnconfirmed where the dialog is still open afterwards.
    """
    _check_expected(expect)
    row = context.registry.view().find(target)
    by = check_answerer(context, caller, row)
    if runs_tested_version(context, row) is False:
        raise untested_error(row, "its dialog was not answered")
    dialog = _find_dialog(context, row)
    record = open_dialogs.note(context, row, dialog.words)
    fingerprint = open_dialogs.fingerprint_of(row, record)
    if expect is not None and not fingerprint.startswith(expect.lower()):
        raise _changed_error(row, fingerprint)
    asked_until = context.now()
    choice = _Answering(context, row, dialog, record).give(text)
    log_press(context, by, "answer", row, dialog=dialog.name, answer=choice, of=dialog.words.text[:500])
    look = _wait_until_gone(context, row, dialog)
    _forget_question(context, row, asked_until, is_closed=look.screen_state.dialog is None)
    facts = {"session": row["name"], "dialog": dialog.name, "fingerprint": fingerprint}
    return {**facts, "answer": choice, "next": look.screen_state.dialog}


def _check_expected(expect: str | None) -> None:
    """Raise Usage for what cannot be the begin of a fingerprint: a shorter one may fit another dialog."""
    if expect is not None and (len(expect) < SHORTEST_EXPECTED or expect.strip("0123456789abcdefABCDEF")):
        raise Usage(
            f"{expect!r} is no fingerprint",
            hint=f"give at least its first {SHORTEST_EXPECTED} digits, as mam answer NAME shows them",
        )


def _forget_question(context: Context, row: Row, asked_until: float, *, is_closed: bool) -> None:
    """End the record of the dialog, and once no other one is open, the agent's report of it.

    While that report is fresh, it would overrule the screen. A report from after the answer stays.
    """
    report = newest_reports(context, [row]).get(row["id"])
    is_outdated = report is not None and report.data["state"] == WAITING and report.at <= asked_until

    def work(transaction: Transaction) -> None:
        open_dialogs.forget(transaction, row["id"])
        if is_closed and is_outdated and report is not None:
            data = {**report.data, "state": UNKNOWN, "waiting_for": None}
            evidence.record(transaction.connection, row["id"], "hook", asked_until, data, transaction.now)

    try:
        context.registry.note(work)
    except Unavailable as error:
        # The answer was given and the dialog is gone. The old report loses its weight in a moment.
        context.warn(error.message)


class _Answering:
    """The keys that answer one dialog, each pressed only while this dialog is open."""

    def __init__(self, context: Context, row: Row, dialog: Dialog, record: dict[str, Any]) -> None:
        self.context = context
        self.row = row
        self.dialog = dialog
        self.record = record
        self.kind: Kind = context.kind(row["agent"])

    def give(self, text: str) -> str:
        """Press the keys that give the answer; return the label of the chosen option, or the free text."""
        choices = self.dialog.choices
        if text == DENY:
            return self._deny(choices)
        option = choices.consent() if choices and text == ALLOW else None
        if choices and option is None and text != ALLOW:
            option = choices.find_option(text)
            if option is None and self.dialog.name == "question":
                return self._give_free_text(choices, text)
        if choices is None or option is None:
            raise Refused(
                f"the {self.dialog.name} dialog of '{self.row['name']}' does not offer this answer",
                hint=_options_hint(self.row, choices),
            )
        self._choose(option)
        return choices.labels[option]

    def _deny(self, choices: Choices | None) -> str:
        option = choices.refusal() if choices else None
        if choices and option is not None and choices.at is not None:
            self._choose(option)
            return choices.labels[option]
        for key in self.kind.refuse_keys:
            wait_between_interrupts(self.context, self.row, key)
            self._press(key)
        return choices.labels[option] if choices and option is not None else DENY

    def _give_free_text(self, choices: Choices, answer: str) -> str:
        """Type a free text into the option that takes one."""
        option = choices.free_text()
        text = for_paste(answer)
        if option is None:
            raise Refused("the dialog takes no free text", hint=_options_hint(self.row, choices))
        if "\n" in text or len(text) > _LONGEST or not text.strip():
            raise InvalidPrompt(f"a free-text answer is one line of at most {_LONGEST} characters")
        if self.kind.free_text_needs_enter:
            before = _drawing(look_at_agent(self.context, self.row))
            self._choose(option)
            self._look_until(lambda look: _drawing(look) != before)
            self._wait_until_still()
        else:
            self._move(option)
        look = self._check_same_dialog(look_at_agent(self.context, self.row))
        if not self.kind.free_text_needs_enter and self._pointer(look) != option:
            raise self._unclear_error()
        tmux = self.context.tmux(self.row["tmux_server"])
        tmux.paste(look.pane_id, text, mark=self.row["id"], enter=False, at=look.cursor)
        end = text.strip()[-20:]
        self._look_until(lambda look: end in self._check_same_dialog(look).screen.text)
        time.sleep(self.kind.pause(text))
        look = self._look_until(lambda look: end in self._check_same_dialog(look).screen.text)
        tmux.keys(look.pane_id, ["Enter"], mark=self.row["id"], at=look.cursor)
        return text

    def _wait_until_still(self) -> None:
        """Wait until a text field that was just opened stands still: an earlier text may be lost."""
        pause = max(_STEP, self.kind.dialog_settle_seconds)
        before = _drawing(look_at_agent(self.context, self.row))
        deadline = Deadline(_MOVE_SECONDS)
        while deadline.pause(pause):
            drawing = _drawing(look_at_agent(self.context, self.row))
            if drawing == before:
                return
            before = drawing

    def _choose(self, option: int) -> None:
        choices = self.dialog.choices
        if choices is None or choices.at is not None:
            self._move(option)
            self._press("Enter", option)
        elif choices.is_numbered:
            self._press(str(option + 1))
        elif option == 0:
            # The pointer is not visible. It starts at the first option, and none of the others that a person
            # may have moved it to consents for good.
            self._press("Enter")
        else:
            raise self._unclear_error()

    def _unclear_error(self) -> Refused:
        hint = f"answer it there: mam attach {self.row['name']}"
        return Refused("mam cannot see which option is selected", hint=hint)

    def _move(self, option: int) -> None:
        """Move the pointer to an option, and check that it is there."""
        for _ in range(len(self.dialog.choices.labels) if self.dialog.choices else 0):
            # A half-drawn screen may lack the pointer.
            at = self._pointer(self._look_until(lambda look: self._pointer(look) is not None))
            if at == option:
                return
            self._press("Down" if at is not None and at < option else "Up")
            self._look_until(lambda look, at=at: self._pointer(look) not in (None, at))

    def _press(self, key: str, option: int | None = None) -> None:
        """Press a key while the same dialog is open, and with `option` while the pointer is at it."""

        def check(look: PaneLook) -> None:
            dialog = Dialog(look, self.kind.choices(look.screen))
            if not dialog.is_same(self.dialog) or not open_dialogs.is_same_episode(
                self.context, self.row, self.record
            ):
                raise self._changed_error(dialog)
            # A half-drawn screen may lack the pointer, and Enter takes the option that it is really at.
            if option is not None and self._pointer(look) != option:
                raise self._changed_error(dialog)

        deadline = Deadline(_STANDS_SECONDS)
        while True:
            try:
                press(self.context, self.row, key, check)
                return
            except Conflict:
                # The look may have shown a half-drawn screen.
                if not deadline.pause(_STEP):
                    raise

    def _pointer(self, look: PaneLook) -> int | None:
        """Return the number of the option that the pointer is at; None where no pointer is visible."""
        choices = self.kind.choices(look.screen)
        return choices.at if choices else None

    def _check_same_dialog(self, look: PaneLook) -> PaneLook:
        """Return the look; raise Conflict where something else has replaced the dialog that takes the text.

        The text field may look like no dialog, but never like the input box for prompts.
        """
        is_box = look.screen_state.dialog is None and look.screen_state.box is not None
        if is_box or look.screen_state.dialog not in (None, self.dialog.name):
            raise self._changed_error(Dialog(look, self.kind.choices(look.screen)))
        return look

    def _changed_error(self, dialog: Dialog) -> Conflict:
        return _changed_error(self.row, "" if dialog.name else None)

    def _look_until(self, condition: Any) -> PaneLook:
        deadline = Deadline(_MOVE_SECONDS)
        while not condition(look := look_at_agent(self.context, self.row)):
            if not deadline.pause(_STEP):
                raise DeliveryUnconfirmed(
                    f"the dialog of '{self.row['name']}' does not react to the keys",
                    hint=f"look: mam read {self.row['name']}",
                    session=self.row,
                )
        return look


def _drawing(look: PaneLook) -> tuple[str, tuple[int, int]]:
    return look.screen.text, look.cursor


def _find_dialog(context: Context, row: Row) -> Dialog:
    """Return the open dialog once two looks in a row show the same: some programs redraw a new dialog."""
    pause = max(_STEP, context.kind(row["agent"]).dialog_settle_seconds)
    deadline = Deadline(_MOVE_SECONDS)
    dialog = _look_for_dialog(context, row)
    while deadline.pause(pause):
        before, dialog = dialog, _look_for_dialog(context, row)
        if before.is_same(dialog):
            break
    return dialog


def _look_for_dialog(context: Context, row: Row) -> Dialog:
    """Return the dialog on the screen; raise NoDialog where there is none."""
    deadline = Deadline(_MOVE_SECONDS)
    while True:
        look = look_until_clear(lambda: look_at_agent(context, row))
        # A limit may be shown beside the input box: then there is nothing to answer.
        if look.screen_state.dialog and look.screen_state.box is None:
            return Dialog(look, context.kind(row["agent"]).choices(look.screen))
        # A hook may report the dialog before the program has drawn it.
        is_waiting = gather_evidence(context, row, look).verdict(context.now()).state == WAITING
        if not is_waiting or not deadline.pause(_STEP):
            raise NoDialog(
                f"'{row['name']}' shows no dialog", hint=f"mam read {row['name']} shows its screen"
            )


def _wait_until_gone(context: Context, row: Row, dialog: Dialog) -> PaneLook:
    """Wait until the dialog is gone and return the look: another dialog may be open, or the agent ended."""
    kind = context.kind(row["agent"])
    deadline = Deadline(_SECONDS)
    last: Dialog | None = None
    since = 0.0
    while True:
        look = look_at_pane(context, row)
        if look.absence in (Liveness.DEAD, Liveness.GONE) or (
            look.screen_state.dialog != dialog.name and not look.absence
        ):
            return look
        shown = Dialog(look, kind.choices(look.screen))
        if last is None or not shown.is_same(last):
            last, since = shown, load_adjusted_clock.now()
        # A dialog that is closing may be half drawn: other words count only if they stay.
        if not shown.is_same(dialog) and load_adjusted_clock.now() - since > _STANDS_SECONDS:
            return look
        if not deadline.pause(_STEP):
            raise DeliveryUnconfirmed(
                f"the {dialog.name} dialog of '{row['name']}' was answered and is still open",
                hint=f"look: mam read {row['name']}",
                session=row,
            )


def _changed_error(row: Row, fingerprint: str | None) -> Conflict:
    """Return the refusal; `fingerprint` is that of the dialog now, empty if unknown, None without one."""
    present = "it is gone" if fingerprint is None else "another one is open"
    if fingerprint:
        present = f"the fingerprint is {fingerprint[:SHORTEST_EXPECTED]} now"
    return Conflict(
        f"the dialog of '{row['name']}' is not the expected one: {present}",
        hint=f"look at it again: mam answer {row['name']}",
        session=row,
    )


def _options_hint(row: Row, choices: Choices | None) -> str:
    if choices is None or not choices.labels:
        return f"answer it there: mam attach {row['name']}"
    return "it offers: " + "; ".join(f"{number}. {label}" for number, label in enumerate(choices.labels, 1))
