"""Typing a text into an agent's input box and pressing Enter, each right after a look at the screen.

tmux compares the cursor with the position that was seen, in the same step in which it types. So nothing is
typed when the screen has changed since the look. An idle agent gets the text and Enter at once, if its kind
allows that. Otherwise Enter follows once the input box shows exactly the text and no dialog is open. There
are three reasons: some programs take an Enter that comes too early for a part of the text, a working agent
may open a dialog at any time, and a person may type at the same moment.
"""

from __future__ import annotations

import time
from contextlib import suppress

from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux.error_translation import PaneChanged, PaneInMode
from mam.app.observation.newest_hook_reports import COARSE_SECONDS, newest_reports
from mam.app.observation.pane_look import SHELL, look_at_pane, look_until_clear
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import DeliveryUnconfirmed, PaneGone, TerminalsDown, Unavailable
from mam.core.liveness_values import Liveness
from mam.core.message_rules import ASKING, absence_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.adapters.agents.kind import ScreenState
    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.session_row import Row

    # Returns why nothing may be typed into this screen, or None.
    Check = Callable[[ScreenState], str | None]

_TEXT_SECONDS = 5.0
_STEP = 0.02
# How long mam waits for a changing screen to stand still.
_STILL_SECONDS = 2.0
# Programs open a list of commands while a command is typed. Enter must wait until the list is open.
_COMMAND_PAUSE = 0.3
_OTHER_TEXT = "the input box shows other text"


class InTheWay(PaneGone):
    """Something is in the way; nothing was typed."""

    code = "in_the_way"

    def __init__(self, reason: str) -> None:
        """Keep the reason with its code; the message of an error is only its sentence."""
        super().__init__(reason)
        self.reason = reason


def type_text(
    context: Context,
    row: Row,
    text: str,
    check: Check | None = None,
    *,
    is_command: bool = False,
    is_resting: bool = True,
) -> ScreenState:
    """Type a text into the session's empty input box and press Enter; return the screen before that.

    `is_resting` means that no evidence says that the agent is working, whatever its screen shows. Raises
    InTheWay, or what a paste raises, where nothing was typed, and DeliveryUnconfirmed where the text was
    typed and Enter was not pressed.
    """
    kind, tmux = context.kind(row["agent"]), context.tmux(row["tmux_server"])
    pane_id, pause = row["pane"]["id"], kind.pause(text)
    if is_command:
        pause = max(pause, _COMMAND_PAUSE)
    since = context.now() - COARSE_SECONDS
    deadline = Deadline(_STILL_SECONDS)
    while True:
        look = _look(context, row, check or _not_empty, since)
        at_once = pause <= 0 and is_resting and look.screen_state.state == IDLE
        try:
            tmux.paste(pane_id, text, mark=row["id"], enter=at_once, at=look.cursor)
        except PaneChanged:
            if not deadline.pause(_STEP):
                raise InTheWay("the screen keeps changing") from None
            continue
        if at_once:
            return look.screen_state
        # The first screen may have been out of date. The later one may not show that the agent works: some
        # programs hide that while there is a draft in the input box. So either of them counts.
        screen_at_enter = _enter(context, row, text, pause, since)
        return screen_at_enter if screen_at_enter.state == WORKING else look.screen_state


def _look(context: Context, row: Row, check: Check, since: float) -> PaneLook:
    look = look_until_clear(lambda: look_at_pane(context, row))
    reason = absence_reason(look.absence) if look.absence else check(look.screen_state)
    if reason is None and look.screen_state.state != IDLE and _reports_dialog(context, row, look, since):
        reason = ASKING
    if reason:
        raise InTheWay(reason)
    return look


def _not_empty(screen: ScreenState) -> str | None:
    return None if screen.box == "empty" and screen.dialog is None else "the input box is not empty"


def enter_standing_text(
    context: Context, row: Row, text: str, since: float, is_ours: Callable[[ScreenState], bool]
) -> ScreenState:
    """Press Enter for a text that stands in the input box already; return the screen before that.

    `is_ours` tells whether a screen surely shows it: a person may have pasted another one that is folded
    alike. Raises InTheWay where the agent has ended, and DeliveryUnconfirmed where Enter was not pressed.
    """
    return _enter(context, row, text, context.kind(row["agent"]).pause(text), since, is_ours)


def _enter(
    context: Context,
    row: Row,
    text: str,
    pause: float,
    since: float,
    is_ours: Callable[[ScreenState], bool] | None = None,
) -> ScreenState:
    """Press Enter once the input box shows exactly the text, and only while no dialog is open."""
    kind = context.kind(row["agent"])
    shows_text = is_ours or (lambda screen: kind.box_shows(screen, text))

    def holds_text(look: PaneLook) -> bool:
        """Tell whether the input box holds exactly this text, with no dialog open or reported."""
        screen = look.screen_state
        is_shown = screen.dialog is None and shows_text(screen)
        return is_shown and not _reports_dialog(context, row, look, since)

    deadline = Deadline(_TEXT_SECONDS)
    while not holds_text(look := _look_for_text(context, row, deadline)):
        has_other_text = look.screen_state.box == "draft"
        _wait(row, deadline, _OTHER_TEXT if has_other_text else "the text does not appear in the input box")
    time.sleep(pause)
    deadline = Deadline(_TEXT_SECONDS)
    while True:
        look = _look_for_text(context, row, deadline)
        if look.screen_state.dialog:
            raise _not_entered(row, f"the {look.screen_state.dialog} dialog opened")
        is_held = holds_text(look)
        if is_held and _press_enter(context, row, look):
            break
        has_other_text = look.screen_state.box == "draft" and not is_held
        _wait(row, deadline, _OTHER_TEXT if has_other_text else "the screen keeps changing")
    if kind.early_enter_makes_new_line and not look.screen_state.is_on_new_line:
        _enter_again(context, row, look, pause, holds_text)
    return look.screen_state


def _enter_again(
    context: Context, row: Row, before: PaneLook, pause: float, holds_text: Callable[[PaneLook], bool]
) -> None:
    """Press Enter again if the program took the first one for a new line, and only if the screen shows that.

    A program that stood still for the whole pause reads text and Enter together, whatever the pause was.
    """
    deadline = Deadline(_TEXT_SECONDS)
    while True:
        look = look_at_pane(context, row)
        if look.absence or look.screen_state.dialog or look.screen_state.box == "empty":
            return
        if _is_below_text(look, before):
            time.sleep(pause)
            cursor, look = look.cursor, look_at_pane(context, row)
            is_unchanged = look.absence is None and look.cursor == cursor and _is_below_text(look, before)
            if not is_unchanged or deadline.has_passed() or not holds_text(look):
                return
            # If the pane is gone by now, the proof decides: the first Enter was pressed.
            with suppress(DeliveryUnconfirmed):
                _press_enter(context, row, look)
            return
        if not deadline.pause(_STEP):
            return


def _is_below_text(look: PaneLook, before: PaneLook) -> bool:
    """Tell whether the cursor is on a new line below the line on which it was: our text, not a person's."""
    if not look.screen_state.is_on_new_line:
        return False
    lines, lines_before = look.screen.text.split("\n"), before.screen.text.split("\n")
    return lines[look.cursor[1] - 1].rstrip() == lines_before[before.cursor[1]].rstrip()


def _look_for_text(context: Context, row: Row, deadline: Deadline) -> PaneLook:
    """Look at an agent after the text was typed; InTheWay where the agent has ended, and the text with it."""
    while (absence := (look := look_at_pane(context, row)).absence) is not None:
        if absence not in (Liveness.UNKNOWN, SHELL):
            raise InTheWay(f"{absence_reason(absence)} before Enter was pressed")
        # The agent may still run, with the text in its input box.
        _wait(row, deadline, absence_reason(absence))
    return look


def _press_enter(context: Context, row: Row, look: PaneLook) -> bool:
    """Press Enter; return False where the screen has changed since the look."""
    try:
        context.tmux(row["tmux_server"]).keys(row["pane"]["id"], ["Enter"], mark=row["id"], at=look.cursor)
    except (PaneChanged, PaneInMode):
        return False
    except TerminalsDown:
        # tmux did not answer: it may have pressed Enter all the same.
        raise
    except Unavailable as error:
        raise _not_entered(row, error.message) from error
    return True


def _wait(row: Row, deadline: Deadline, reason: str) -> None:
    if not deadline.pause(_STEP):
        raise _not_entered(row, reason)


def _reports_dialog(context: Context, row: Row, look: PaneLook, since: float) -> bool:
    """Tell whether title or hook have reported a dialog since then: it may not be on the screen yet."""
    title = look.liveness.pane.title if look.liveness.pane else ""
    if context.kind(row["agent"]).read_title(title) == WAITING:
        return True
    report = newest_reports(context, [row]).get(row["id"])
    return report is not None and report.at >= since and report.data["state"] == WAITING


def _not_entered(row: Row, reason: str) -> DeliveryUnconfirmed:
    return DeliveryUnconfirmed(
        f"the text was typed into '{row['name']}' and Enter was not pressed: {reason}",
        hint=f"look: mam read {row['name']}",
        session=row,
    )
