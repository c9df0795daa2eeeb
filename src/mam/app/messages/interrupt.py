"""The verb `interrupt`: end an agent's turn with the keys of its kind, and check that it is idle."""

from __future__ import annotations

import time

from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.deadline import Deadline
from mam.app.context.authority import check_sender
from mam.app.messages.keys import (
    describe_dialog,
    log_press,
    look_at_agent,
    press,
    reports_dialog,
    wait_between_interrupts,
)
from mam.app.observation.foreign_root import is_foreign, with_own_pane
from mam.app.observation.pane_look import gather_evidence
from mam.core.activity import IDLE, UNKNOWN, WORKING
from mam.core.errors import DeliveryUnconfirmed, DialogOpen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.kind import Kind
    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_STEP = 0.05
# Seconds between the keys of one interrupt, and before the keys are pressed again.
_BETWEEN = 0.3
_AGAIN_SECONDS = 3.0
_SECONDS = 15.0


def interrupt(context: Context, caller: Caller, target: str) -> dict[str, Any]:
    """Interrupt a session and return `{session, was, activity, box}`. An idle session gets no key.

    Raises DialogOpen where the key would refuse a dialog, and DeliveryUnconfirmed where the session does not
    become idle.
    """
    context, row = with_own_pane(context, context.view_to_show().find(target))
    by = check_sender(context, caller, row)
    kind = context.kind(row["agent"])
    look = look_at_agent(context, row)
    was = _state(context, row, look)
    if was == IDLE:
        return _result(row, was, was, look)
    _press(context, row, kind)
    if not is_foreign(context):
        log_press(context, by, "interrupt", row, was=was)
    deadline, pressed_at = Deadline(_SECONDS), load_adjusted_clock.now()
    while kind.reads_screen:
        look = look_at_agent(context, row)
        if _is_idle(kind, look):
            return _result(row, was, IDLE, look)
        if load_adjusted_clock.now() - pressed_at > _AGAIN_SECONDS and look.screen_state.state == WORKING:
            # An agent that has just sent a request to its model may have ignored the key.
            _press(context, row, kind)
            pressed_at = load_adjusted_clock.now()
        if not deadline.pause(_STEP):
            break
    raise DeliveryUnconfirmed(
        f"{' '.join(kind.interrupt_keys)} was pressed in '{row['name']}', and nothing shows that it is idle",
        hint=f"look: mam read {row['name']}",
        session=row,
    )


def _state(context: Context, row: Row, look: PaneLook) -> str:
    """Return the activity, by the screen if it shows one: a hook tells nothing about what happened since.

    Raises DialogOpen where a dialog is open.
    """
    if look.screen_state.dialog or reports_dialog(context, row, look):
        raise DialogOpen(
            f"{describe_dialog(row, look)}; nothing was interrupted",
            hint=f"mam answer {row['name']} deny",
            session=row,
        )
    if look.screen_state.state != UNKNOWN:
        return look.screen_state.state
    return gather_evidence(context, row, look).verdict(context.now()).state


def _press(context: Context, row: Row, kind: Kind) -> None:
    for number, key in enumerate(kind.interrupt_keys):
        if number:
            time.sleep(_BETWEEN)
        wait_between_interrupts(context, row, key)
        press(context, row, key, lambda look: _refuse_dialog(row, look))


def _refuse_dialog(row: Row, look: PaneLook) -> None:
    if look.screen_state.dialog:
        raise DialogOpen(f"a {look.screen_state.dialog} dialog opened in '{row['name']}'", session=row)


def _is_idle(kind: Kind, look: PaneLook) -> bool:
    title = look.liveness.pane.title if look.liveness.pane else ""
    screen = look.screen_state
    return screen.state == IDLE and screen.box is not None and kind.read_title(title) != WORKING


def _result(row: Row, was: str, activity: str, look: PaneLook) -> dict[str, Any]:
    box = look.screen_state.box
    return {"session": row["name"], "was": str(was), "activity": str(activity), "box": box}
