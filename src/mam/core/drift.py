"""Where the registry and the world differ, as one letter.

A: held for running, and it is not. C: a conversation appeared on disk that the row does not own yet.
D: the row's conversation was on disk once and is not any more. (B, a session without a row, has no
row to stand in.)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.row import Row

NONE = "-"


def letter(
    row: Row, *, is_there: bool | None, own: str | None, own_on_disk: bool | None, chosen_on_disk: bool
) -> str:
    """Return the letter of the gravest difference; nothing follows from what is unknown."""
    if row["status"] == "running" and is_there is False:
        return "A"
    if own and own_on_disk is False:
        return "D"
    if row["status"] == "running" and not own and chosen_on_disk:
        return "C"
    return NONE
