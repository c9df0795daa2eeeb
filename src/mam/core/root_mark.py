"""The text by which a pane names its root: the id of the root and its directory. Pure.

A pane that mam 0.1 marked names the directory alone.
"""

from __future__ import annotations

ID_LENGTH = 16
_HEX = frozenset("0123456789abcdef")


def root_mark(root_id: str | None, directory: str) -> str:
    """Return the mark for the panes of a root."""
    return f"{root_id} {directory}" if root_id else directory


def directory_of(mark: str) -> str:
    """Return the directory that a mark names."""
    return mark[ID_LENGTH + 1 :] if id_of(mark) else mark


def id_of(mark: str) -> str | None:
    """Return the id of the root that a mark names; None in a mark of mam 0.1."""
    root_id = mark[:ID_LENGTH]
    if mark[ID_LENGTH : ID_LENGTH + 1] == " " and len(root_id) == ID_LENGTH and _HEX.issuperset(root_id):
        return root_id
    return None


def is_same_root(first: str, second: str) -> bool:
    """Tell whether two marks name one root: by the id, or by the directory where one of them has no id."""
    first_id, second_id = id_of(first), id_of(second)
    if first_id and second_id:
        return first_id == second_id
    return directory_of(first) == directory_of(second)
