"""Answer the dialog that is open in a session: this one and no other, and proven gone afterwards.

A dialog has a fingerprint made of its words. It is compared at the first look and again right before each
key; tmux itself compares the cursor in the step in which it presses it.
"""

from __future__ import annotations

import hashlib
import time

from mam.adapters.store.tables import evidence
from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.deadline import Deadline
from mam.app.context.authority import check_answerer
from mam.app.messages.keys import look_inside, press, space_out
from mam.app.observation.hook_reports import newest_reports
from mam.app.observation.pane_look import glance, known, look_until_clear
from mam.app.observation.versions import is_known, untested
from mam.core.activity import UNKNOWN, WAITING
from mam.core.errors import (
    Conflict,
    DeliveryUnconfirmed,
    InvalidPrompt,
    NoDialog,
    Refused,
    Unavailable,
)
from mam.core.liveness import Liveness
from mam.core.safe_text import for_paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.dialog_options import Choices
    from mam.adapters.agents.kind import Kind
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
    """An open dialog as it was seen."""

    __slots__ = ("choices", "fingerprint", "name", "seen", "text")

    def __init__(self, seen: PaneLook, choices: Choices | None) -> None:
        self.seen = seen
        self.name: str = seen.look.dialog or ""
        self.choices = choices
        self.text = choices.text if choices else seen.screen.text.strip()
        self.fingerprint = hashlib.sha256(f"{self.name}\n{self.text}".encode()).hexdigest()[:8]

    def as_json(self, row: Row) -> dict[str, Any]:
        """Return what a person is shown before they decide."""
        found = self.choices
        return {
            "session": row["name"],
            "dialog": self.name,
            "fingerprint": self.fingerprint,
            "text": self.text,
            "options": list(found.labels) if found else [],
        }


def show(context: Context, target: str) -> dict[str, Any]:
    """Return the dialog that is open now, with its fingerprint; reads only. NoDialog where there is none."""
    row = context.registry.view().find(target)
    return _dialog(context, row).as_json(row)


def answer(
    context: Context, caller: Caller, target: str, words: str, *, expect: str | None = None
) -> dict[str, Any]:
    """Give `allow`, `deny`, an option, or words of one's own; `{session, dialog, fingerprint, answer, next}`.

    Raises Conflict where the dialog is not the one that was expected, and nothing was pressed; Refused for
    an answer that it does not offer; DeliveryUnconfirmed where it is still there afterwards.
    """
    row = context.registry.view().find(target)
    by = check_answerer(context, caller, row)
    if is_known(context, row) is False:
        raise untested(row, "its dialog was not answered")
    shown = _dialog(context, row)
    if expect is not None and expect != shown.fingerprint:
        raise _changed(row, shown)
    asked_until = context.now()
    given = _Answering(context, row, shown).give(words)
    context.registry.note(
        lambda draft: draft.log(by, "answer", row, None, dialog=shown.name, answer=given, of=shown.text[:500])
    )
    left = _gone(context, row, shown)
    if left.look.dialog is None:
        _forget_question(context, row, asked_until)
    return {**_facts(row, shown), "answer": given, "next": left.look.dialog}


def _forget_question(context: Context, row: Row, asked_until: float) -> None:
    """Drop the agent's report that it is asking: while that is fresh it would overrule the screen.

    What the agent reports after the answer is kept.
    """
    report = newest_reports(context, [row]).get(row["id"])
    if report is not None and report.data["state"] == WAITING and report.at <= asked_until:
        data = {**report.data, "state": UNKNOWN, "waiting_for": None}
        try:
            context.registry.note(
                lambda draft: evidence.record(draft.connection, row["id"], "hook", asked_until, data)
            )
        except Unavailable as error:
            # The answer was given and seen; its report ends by itself in a moment.
            context.warn(error.message)


class _Answering:
    """One way through a dialog."""

    def __init__(self, context: Context, row: Row, shown: Dialog) -> None:
        self.context = context
        self.row = row
        self.shown = shown
        self.kind: Kind = context.kind(row["agent"])

    def give(self, words: str) -> str:
        """Press what gives the answer; return the option that was taken."""
        choices = self.shown.choices
        if words == DENY:
            return self._deny(choices)
        wanted = choices.consent() if choices and words == ALLOW else None
        if choices and wanted is None and words != ALLOW:
            wanted = choices.named(words)
            if wanted is None and self.shown.name == "question":
                return self._say(choices, words)
        if choices is None or wanted is None:
            raise Refused(
                f"the {self.shown.name} dialog of '{self.row['name']}' does not offer that",
                hint=_offer(self.row, choices),
            )
        self._take(wanted)
        return choices.labels[wanted]

    def _deny(self, choices: Choices | None) -> str:
        wanted = choices.refusal() if choices else None
        if choices and wanted is not None and choices.at is not None:
            self._take(wanted)
            return choices.labels[wanted]
        for key in self.kind.refuse_keys:
            space_out(self.context, self.row, key)
            self._press(key)
        return choices.labels[wanted] if choices and wanted is not None else DENY

    def _say(self, choices: Choices, words: str) -> str:
        """Give words of one's own, where there is an option for them."""
        wanted = choices.own_words()
        text = for_paste(words)
        if wanted is None:
            raise Refused("it takes no words of one's own", hint=_offer(self.row, choices))
        if "\n" in text or len(text) > _LONGEST or not text.strip():
            raise InvalidPrompt("an answer is one line of words")
        if self.kind.opens_own_words:
            before = _drawing(look_inside(self.context, self.row))
            self._take(wanted)
            self._until(lambda seen: _drawing(seen) != before)
            self._settle()
        else:
            self._move(wanted)
        seen = self._still(look_inside(self.context, self.row))
        if not self.kind.opens_own_words and self._at(seen) != wanted:
            raise self._unseen()
        tmux = self.context.tmux(self.row["tmux_server"])
        tmux.paste(seen.pane_id, text, mark=self.row["id"], enter=False, at=seen.cursor)
        end = text.strip()[-20:]
        self._until(lambda seen: end in self._still(seen).screen.text)
        time.sleep(self.kind.pause(text))
        seen = self._until(lambda seen: end in self._still(seen).screen.text)
        tmux.keys(seen.pane_id, ["Enter"], mark=self.row["id"], at=seen.cursor)
        return text

    def _settle(self) -> None:
        """Wait until what was just opened stands still: words that come sooner may be lost."""
        settles = max(_STEP, self.kind.dialog_settles)
        before = _drawing(look_inside(self.context, self.row))
        deadline = Deadline(_MOVE_SECONDS)
        while deadline.pause(settles):
            seen = _drawing(look_inside(self.context, self.row))
            if seen == before:
                return
            before = seen

    def _take(self, wanted: int) -> None:
        choices = self.shown.choices
        if choices is None or choices.at is not None:
            self._move(wanted)
            self._press("Enter", wanted)
        elif choices.is_numbered:
            self._press(str(wanted + 1))
        elif wanted == 0:
            # It opens there; wherever else somebody moved it, Enter consents to nothing for good.
            self._press("Enter")
        else:
            raise self._unseen()

    def _unseen(self) -> Refused:
        hint = f"answer it there: mam attach {self.row['name']}"
        return Refused("mam cannot see which option is chosen", hint=hint)

    def _move(self, wanted: int) -> None:
        """Bring the pointer to an option, and see it there."""
        for _ in range(len(self.shown.choices.labels) if self.shown.choices else 0):
            # A drawing that is not whole may lack the pointer.
            at = self._at(self._until(lambda seen: self._at(seen) is not None))
            if at == wanted:
                return
            self._press("Down" if at is not None and at < wanted else "Up")
            self._until(lambda seen, at=at: self._at(seen) not in (None, at))

    def _press(self, key: str, wanted: int | None = None) -> None:
        def check(seen: PaneLook) -> None:
            dialog = Dialog(seen, self.kind.choices(seen.screen))
            if dialog.name != self.shown.name or dialog.fingerprint != self.shown.fingerprint:
                raise _changed(self.row, dialog)
            # A drawing that is not whole may lack the pointer, and Enter takes what it is really at.
            if wanted is not None and self._at(seen) != wanted:
                raise _changed(self.row, dialog)

        deadline = Deadline(_STANDS_SECONDS)
        while True:
            try:
                press(self.context, self.row, key, check)
                return
            except Conflict:
                # A look may fall between two parts of one drawing.
                if not deadline.pause(_STEP):
                    raise

    def _at(self, seen: PaneLook) -> int | None:
        found = self.kind.choices(seen.screen)
        return found.at if found else None

    def _still(self, seen: PaneLook) -> PaneLook:
        """Return a look unless something else took the place of the dialog that takes the words.

        The field for them may look like no dialog, but never like the box that takes prompts.
        """
        is_box = seen.look.dialog is None and seen.look.box is not None
        if is_box or seen.look.dialog not in (None, self.shown.name):
            raise _changed(self.row, Dialog(seen, self.kind.choices(seen.screen)))
        return seen

    def _until(self, condition: Any) -> PaneLook:
        deadline = Deadline(_MOVE_SECONDS)
        while not condition(seen := look_inside(self.context, self.row)):
            if not deadline.pause(_STEP):
                raise DeliveryUnconfirmed(
                    f"the dialog of '{self.row['name']}' does not follow the keys",
                    hint=f"look: mam read {self.row['name']}",
                    session=self.row,
                )
        return seen


def _drawing(seen: PaneLook) -> tuple[str, tuple[int, int]]:
    return seen.screen.text, seen.cursor


def _dialog(context: Context, row: Row) -> Dialog:
    """Return the dialog that is open once it stands still: one that was just drawn may be drawn anew."""
    settles = max(_STEP, context.kind(row["agent"]).dialog_settles)
    deadline = Deadline(_MOVE_SECONDS)
    found = _drawn(context, row)
    while deadline.pause(settles):
        before, found = found, _drawn(context, row)
        if (before.name, before.fingerprint) == (found.name, found.fingerprint):
            break
    return found


def _drawn(context: Context, row: Row) -> Dialog:
    deadline = Deadline(_MOVE_SECONDS)
    # A limit may be told beside the box: there is nothing to answer.
    while not (seen := _made_out(context, row)).look.dialog or seen.look.box is not None:
        # Its own word may come before the dialog is drawn.
        if known(context, row, seen).verdict(context.now()).state == WAITING and deadline.pause(_STEP):
            continue
        raise NoDialog(f"'{row['name']}' shows no dialog", hint=f"mam read {row['name']} shows its screen")
    return Dialog(seen, context.kind(row["agent"]).choices(seen.screen))


def _made_out(context: Context, row: Row) -> PaneLook:
    return look_until_clear(lambda: look_inside(context, row))


def _gone(context: Context, row: Row, shown: Dialog) -> PaneLook:
    """Wait until the dialog is gone: another one may stand in its place, and some agents leave over it."""
    kind = context.kind(row["agent"])
    deadline = Deadline(_SECONDS)
    other, since = "", 0.0
    while True:
        seen = glance(context, row)
        if seen.absence in (Liveness.DEAD, Liveness.GONE) or (
            seen.look.dialog != shown.name and not seen.absence
        ):
            return seen
        found = Dialog(seen, kind.choices(seen.screen)).fingerprint
        if found != other:
            other, since = found, load_adjusted_clock.now()
        # One that is on its way out may be drawn in parts.
        if found != shown.fingerprint and load_adjusted_clock.now() - since > _STANDS_SECONDS:
            return seen
        if not deadline.pause(_STEP):
            raise DeliveryUnconfirmed(
                f"the {shown.name} dialog of '{row['name']}' was answered and is still there",
                hint=f"look: mam read {row['name']}",
                session=row,
            )


def _facts(row: Row, shown: Dialog) -> dict[str, Any]:
    return {"session": row["name"], "dialog": shown.name, "fingerprint": shown.fingerprint}


def _changed(row: Row, now: Dialog) -> Conflict:
    shows = f"shows {now.fingerprint}" if now.name else "is gone"
    return Conflict(
        f"the dialog of '{row['name']}' is not the one that was shown: it {shows} now",
        hint=f"look at it again: mam answer {row['name']}",
        session=row,
    )


def _offer(row: Row, choices: Choices | None) -> str:
    if choices is None or not choices.labels:
        return f"answer it there: mam attach {row['name']}"
    return "it offers: " + "; ".join(f"{number}. {one}" for number, one in enumerate(choices.labels, 1))
