"""The closed list of keys that may be pressed in a pane.

mam pastes text and never sends it as keys. A name that is not in this list is not a key.
"""

from __future__ import annotations

from mam.core.errors import Usage

# The name of a key in mam -> its name in tmux.
KEYS: dict[str, str] = {
    **{
        word: word
        for word in (
            "Enter",
            "Escape",
            "Tab",
            "BTab",
            "Up",
            "Down",
            "Left",
            "Right",
            "Home",
            "End",
            "PageUp",
            "PageDown",
            "Space",
            "y",
            "n",
            *"0123456789",
        )
    },
    "Backspace": "BSpace",
    **{f"C-{letter}": f"C-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"},
}


def tmux_keys(names: list[str]) -> list[str]:
    """Return tmux's names for keys; raise Usage for a name that is not in the list."""
    for name in names:
        if name not in KEYS:
            raise Usage(f"not a key: {name}", hint="keys are " + " ".join(KEYS))
    return [KEYS[name] for name in names]
