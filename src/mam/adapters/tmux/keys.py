"""The closed list of keys that may be pressed in a pane.

Text never goes this way: it is pasted. What is not in this list is not a key.
"""

from __future__ import annotations

from mam.core.errors import Usage

# Our word for the key -> tmux's.
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


def tmux_keys(words: list[str]) -> list[str]:
    """Return tmux's names for our keys; raises Usage for a word that is not one."""
    for word in words:
        if word not in KEYS:
            raise Usage(f"not a key: {word}", hint="keys are " + " ".join(KEYS))
    return [KEYS[word] for word in words]
