"""Cut an agent's turn short in the way of its kind, and see that it rests."""

from __future__ import annotations

import time

from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.deadline import Deadline
from mam.app.context.authority import check_writer
from mam.app.messages.keys import asks, look_inside, press, space_out
from mam.app.observation.pane_look import known
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
# Between the keys of one interrupt, and before they are pressed once more.
_BETWEEN = 0.3
_AGAIN_SECONDS = 3.0
_SECONDS = 15.0


def interrupt(context: Context, caller: Caller, target: str) -> dict[str, Any]:
    """Interrupt a session; `{session, was, activity, box}`. One that rests is left as it is.

    Raises DialogOpen where the key would refuse a dialog, DeliveryUnconfirmed where it does not come to rest.
    """
    row = context.registry.view().find(target)
    by = check_writer(context, caller, row)
    kind = context.kind(row["agent"])
    seen = look_inside(context, row)
    was = _state(context, row, seen)
    if was == IDLE:
        return _told(row, was, was, seen)
    _press(context, row, kind)
    context.registry.note(lambda draft: draft.log(by, "interrupt", row, None, was=was))
    deadline, pressed = Deadline(_SECONDS), load_adjusted_clock.now()
    while kind.reads_screen:
        seen = look_inside(context, row)
        if _rests(kind, seen):
            return _told(row, was, IDLE, seen)
        if load_adjusted_clock.now() - pressed > _AGAIN_SECONDS and seen.look.state == WORKING:
            # One that has only begun to ask its model may not have taken the key.
            _press(context, row, kind)
            pressed = load_adjusted_clock.now()
        if not deadline.pause(_STEP):
            break
    raise DeliveryUnconfirmed(
        f"{' '.join(kind.interrupt_keys)} was pressed in '{row['name']}', and nothing shows that it rests",
        hint=f"look: mam read {row['name']}",
        session=row,
    )


def _state(context: Context, row: Row, seen: PaneLook) -> str:
    """Return what it is doing: its screen first, because a hook says nothing about what happened since."""
    if seen.look.dialog or asks(context, row, seen):
        raise DialogOpen(
            f"'{row['name']}' shows its {seen.look.dialog or 'own'} dialog; nothing was interrupted",
            hint=f"mam answer {row['name']} deny",
            session=row,
        )
    if seen.look.state != UNKNOWN:
        return seen.look.state
    return known(context, row, seen).verdict(context.now()).state


def _press(context: Context, row: Row, kind: Kind) -> None:
    for number, key in enumerate(kind.interrupt_keys):
        if number:
            time.sleep(_BETWEEN)
        space_out(context, row, key)
        press(context, row, key, lambda seen: _refuse_dialog(row, seen))


def _refuse_dialog(row: Row, seen: PaneLook) -> None:
    if seen.look.dialog:
        raise DialogOpen(f"a {seen.look.dialog} dialog opened in '{row['name']}'", session=row)


def _rests(kind: Kind, seen: PaneLook) -> bool:
    title = seen.sight.pane.title if seen.sight.pane else ""
    return seen.look.state == IDLE and seen.look.box is not None and kind.read_title(title) != WORKING


def _told(row: Row, was: str, activity: str, seen: PaneLook) -> dict[str, Any]:
    return {"session": row["name"], "was": str(was), "activity": str(activity), "box": seen.look.box}
