"""Press keys in a session's own pane: one at a time, each after a look.

A key that could answer a dialog is pressed only where none is seen; `mam answer` is for those.
"""

from __future__ import annotations

import time

from mam.adapters.tmux.failures import PaneChanged
from mam.adapters.tmux.keys import tmux_keys
from mam.app.context.authority import check_writer
from mam.app.observation.log import log
from mam.app.observation.pane_look import glance, known, look_until_clear
from mam.core.activity import WAITING, is_asking
from mam.core.errors import DialogOpen, NotReady, PaneGone, Usage
from mam.core.liveness import Liveness
from mam.core.message import not_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# They choose nothing and consent to nothing in any program that mam knows.
HARMLESS = ("Escape", "Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PageDown", "C-c")
_MOST_LOOKS = 10
_PRESS = ("keys", "interrupt", "answer")


def keys(context: Context, caller: Caller, target: str, words: list[str]) -> dict[str, Any]:
    """Press keys of the closed list; raise DialogOpen before one that would answer a dialog."""
    if not words:
        raise Usage("name a key", hint="mam keys NAME Escape")
    tmux_keys(words)
    row = context.registry.view().find(target)
    by = check_writer(context, caller, row)
    pressed: list[str] = []
    try:
        for word in words:
            press(context, row, word, lambda seen, word=word: _check(context, row, seen, word))
            pressed.append(word)
    finally:
        if pressed:
            context.registry.note(lambda draft: draft.log(by, "keys", row, None, keys=pressed))
    return {"session": row["name"], "keys": pressed}


def press(context: Context, row: Row, key: str, check: Any) -> PaneLook:
    """Look, have the look checked, and press one key while it still holds; return what was seen before."""
    for _ in range(_MOST_LOOKS):
        seen = look_until_clear(lambda: look_inside(context, row))
        check(seen)
        try:
            context.tmux(row["tmux_server"]).keys(seen.pane_id, [key], mark=row["id"], at=seen.cursor)
        except PaneChanged:
            continue
        return seen
    raise NotReady(f"the screen of '{row['name']}' does not stand still; {key} was not pressed", session=row)


def space_out(context: Context, row: Row, key: str) -> None:
    """Wait until a Ctrl-C is not taken for the second of two, which some programs leave at."""
    apart = context.kind(row["agent"]).interrupts_apart
    if key != "C-c" or not apart:
        return
    if any(one["verb"] in _PRESS for one in log(context, row["id"], limit=5, since=apart)):
        time.sleep(apart)


def look_inside(context: Context, row: Row) -> PaneLook:
    """Look at a session whose agent is there; raise PaneGone where it is not."""
    seen = glance(context, row)
    if seen.absence:
        name = row["name"]
        hint = "mam doctor looks at tmux" if seen.absence == Liveness.UNKNOWN else f"mam resume {name}"
        raise PaneGone(f"'{name}' hears no key: {not_there(seen.absence)}", hint=hint, session=row)
    return seen


def asks(context: Context, row: Row, seen: PaneLook) -> bool:
    """Tell whether the agent's own word or its title is that it asks, whatever its screen seems to show."""
    heard = known(context, row, seen)
    return is_asking(heard.evidence) or heard.verdict(context.now()).state == WAITING


def _check(context: Context, row: Row, seen: PaneLook, key: str) -> None:
    if key in HARMLESS:
        return
    name = row["name"]
    if seen.look.dialog or asks(context, row, seen):
        raise DialogOpen(
            f"'{name}' shows its {seen.look.dialog or 'own'} dialog; {key} was not pressed",
            hint=f"mam answer {name} shows and answers it",
            session=row,
        )
    if seen.look.box is None:
        raise DialogOpen(
            f"mam cannot see that '{name}' shows no dialog; {key} was not pressed",
            hint=f"press it yourself: mam attach {name}",
            session=row,
        )
