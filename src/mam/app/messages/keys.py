"""The verb `keys`: press keys in a session's pane, one at a time, each after a look at the screen.

A key that could answer a dialog is pressed only where no dialog is open. `mam answer` answers dialogs.
"""

from __future__ import annotations

import time

from mam.adapters.tmux.error_translation import PaneChanged
from mam.adapters.tmux.key_names import tmux_keys
from mam.app.context.authority import check_sender
from mam.app.observation.log import log
from mam.app.observation.pane_look import gather_evidence, look_at_pane, look_until_clear
from mam.core.activity import WAITING, is_asking
from mam.core.errors import DialogOpen, NotReady, PaneGone, RegistryBusy, TerminalsDown, Unwritable, Usage
from mam.core.liveness_values import Liveness
from mam.core.message_rules import absence_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# In the programs that mam knows, these keys choose no option and consent to nothing.
HARMLESS = ("Escape", "Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PageDown", "C-c")
_MOST_LOOKS = 10
_PRESS = ("keys", "interrupt", "answer")


def keys(context: Context, caller: Caller, target: str, names: list[str]) -> dict[str, Any]:
    """Press keys of the closed list; raise DialogOpen before a key that would answer a dialog."""
    if not names:
        raise Usage("name a key", hint="mam keys NAME Escape")
    tmux_keys(names)
    row = context.registry.view().find(target)
    by = check_sender(context, caller, row)
    pressed: list[str] = []
    try:
        for name in names:
            press(context, row, name, lambda look, name=name: _check(context, row, look, name))
            pressed.append(name)
    finally:
        if pressed:
            log_press(context, by, "keys", row, keys=pressed)
    return {"session": row["name"], "keys": pressed}


def press(context: Context, row: Row, key: str, check: Any) -> PaneLook:
    """Look, call `check` with the look, and press one key; return the look.

    tmux presses the key only if the cursor is still where the look saw it. Otherwise there is another look.
    """
    for _ in range(_MOST_LOOKS):
        look = look_until_clear(lambda: look_at_agent(context, row))
        check(look)
        try:
            context.tmux(row["tmux_server"]).keys(look.pane_id, [key], mark=row["id"], at=look.cursor)
        except PaneChanged:
            continue
        return look
    raise NotReady(
        f"the screen of '{row['name']}' keeps changing; {key} was not pressed",
        hint=f"repeat it, or end the session: mam stop {row['name']}",
        session=row,
    )


def log_press(context: Context, by: str, verb: str, row: Row, **detail: Any) -> None:
    """Log that keys were pressed. Where nothing can be written, warn: the keys cannot be taken back."""
    try:
        context.registry.note(lambda transaction: transaction.log(by, verb, row, None, **detail))
    except (Unwritable, RegistryBusy) as error:
        context.warn(f"the keys were pressed, and are not in the log: {error}")
        # Without the entry nobody knows when the next Ctrl-C would come too soon.
        time.sleep(context.kind(row["agent"]).interrupt_gap_seconds)


def wait_between_interrupts(context: Context, row: Row, key: str) -> None:
    """Wait before a Ctrl-C that would follow another one too soon: some programs exit at two in a row."""
    pause = context.kind(row["agent"]).interrupt_gap_seconds
    if key != "C-c" or not pause:
        return
    if any(entry["verb"] in _PRESS for entry in log(context, row["id"], limit=5, since=pause)):
        time.sleep(pause)


def look_at_agent(context: Context, row: Row) -> PaneLook:
    """Look at a session; raise PaneGone where its agent does not run in its pane, or TerminalsDown."""
    look = look_at_pane(context, row)
    if not look.absence:
        return look
    name = row["name"]
    message = f"'{name}' cannot take keys: {absence_reason(look.absence)}"
    if look.absence == Liveness.UNKNOWN:
        raise TerminalsDown(message, session=row)
    # A session whose process lives without its pane counts as running, and a resume would leave it so.
    hint = f"mam restart {name}" if look.absence == Liveness.LOOSE else f"mam resume {name}"
    raise PaneGone(message, hint=hint, session=row)


def reports_dialog(context: Context, row: Row, look: PaneLook) -> bool:
    """Tell whether the evidence of the agent reports an open dialog, whatever its screen seems to show."""
    session = gather_evidence(context, row, look)
    return is_asking(session.evidence) or session.verdict(context.now()).state == WAITING


def describe_dialog(row: Row, look: PaneLook) -> str:
    """Return the part of an error that names the dialog which is on the screen, or only reported."""
    dialog = look.screen_state.dialog
    return (
        f"'{row['name']}' shows its {dialog} dialog" if dialog else f"'{row['name']}' reports an open dialog"
    )


def _check(context: Context, row: Row, look: PaneLook, key: str) -> None:
    if key in HARMLESS:
        return
    name = row["name"]
    if look.screen_state.dialog or reports_dialog(context, row, look):
        raise DialogOpen(
            f"{describe_dialog(row, look)}; {key} was not pressed",
            hint=f"mam answer {name} shows and answers it",
            session=row,
        )
    if look.screen_state.box is None:
        raise DialogOpen(
            f"mam cannot see that '{name}' shows no dialog; {key} was not pressed",
            hint=f"press it yourself: mam attach {name}",
            session=row,
        )
