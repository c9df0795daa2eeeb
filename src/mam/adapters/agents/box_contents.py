"""What is in an input box, and whether it is exactly a given text."""

from __future__ import annotations

import re

from mam.adapters.agents.ambiguous_width_characters import reliably_shown
from mam.core.whole_number import whole_number

# A person who types just now may have written the same few signs.
_SURE_SIGNS, _SURE_INSIDE = 16, 64
# A draft that begins or ends so may have been the text before somebody changed it.
_COMMON_SIGNS = 8
# No program folds a shorter line. Claude Code 2.1 folds one of more than 800 characters.
_SHORTEST_FOLDED_LINE = 400
# How some programs show a tab.
_SHOWN_TAB = "^I"


class BoxContents:
    """What is in an input box: `empty` or `draft`, and of a draft its text, row by row."""

    __slots__ = ("box", "draft", "has_suggestion", "shows_end_only")

    def __init__(
        self, draft: str | None = None, *, has_suggestion: bool = False, shows_end_only: bool = False
    ) -> None:
        """A draft of None means that the box is empty."""
        self.box = "empty" if draft is None else "draft"
        self.draft = draft or ""
        self.has_suggestion = has_suggestion
        self.shows_end_only = shows_end_only


def shows_text(draft: str, text: str, *, shows_end_only: bool = False, folded: str | None = None) -> bool:
    """Tell whether a draft, as an input box shows it, is exactly this text.

    Where a box wraps a line is not seen, and neither are spaces there: so spaces and line ends do not count.
    """
    shown, wanted = reliably_shown(draft), reliably_shown(text)
    if not shown:
        # A text of flags alone has nothing that is reliably shown.
        return bool(draft.strip()) and not wanted
    for form in (wanted, reliably_shown(text.replace("\t", _SHOWN_TAB))):
        if shown == form or (shows_end_only and form.endswith(shown)):
            return True
    sign = re.fullmatch(folded, " ".join(draft.split())) if folded is not None else None
    return sign is not None and _has_counts(sign, text)


def surely_shows_text(
    draft: str, text: str, *, shows_end_only: bool = False, folded: str | None = None
) -> bool:
    """Tell whether a draft is exactly this text, and so much of it that nobody else wrote it.

    Spaces count, but for those at the end of a row. The sign of a folded paste says nothing of its words.
    """
    is_hidden = folded is not None and re.search(folded, " ".join(draft.split())) is not None
    least = _SURE_INSIDE if shows_end_only else _SURE_SIGNS
    if is_hidden or len(reliably_shown(draft)) < least:
        return False
    rest = _one_row(text)
    for row in map(_one_row, reversed(draft.split("\n"))):
        rest = rest.rstrip()
        if not rest.endswith(row):
            return False
        rest = rest.removesuffix(row)
    return shows_end_only or not rest.strip()


def _one_row(text: str) -> str:
    return " ".join(filter(None, map(reliably_shown, text.split())))


def shows_part(draft: str, text: str, *, shows_end_only: bool = False, is_sure: bool = True) -> bool:
    """Tell whether a draft is the beginning of this text; if `is_sure`, so much that nobody else wrote it."""
    shown, wanted = reliably_shown(draft), reliably_shown(text)
    if shows_end_only:
        return len(shown) >= _SURE_INSIDE and shown in wanted
    return len(shown) >= (_SURE_SIGNS if is_sure else 1) and wanted.startswith(shown) and shown != wanted


def may_show_text(draft: str, text: str, *, shows_end_only: bool = False, folded: str | None = None) -> bool:
    """Tell whether a draft may be this text, have it as a part, or be what somebody has left of it."""
    if shows_end_only or (folded is not None and re.search(folded, " ".join(draft.split()))):
        return True
    shown, wanted = reliably_shown(draft), reliably_shown(text)
    ends = (wanted[:_COMMON_SIGNS], wanted[-_COMMON_SIGNS:])
    return shown in wanted or any(end in shown for end in ends)


def _has_counts(sign: re.Match[str], text: str) -> bool:
    """Tell whether the sign of a folded paste counts what the text has."""
    stripped = text.strip("\n")
    counts = {
        "breaks": {one.count("\n") for one in (text, stripped)},
        "lines": {one.count("\n") + 1 for one in (text, stripped)},
        "chars": {len(one) for one in (text, stripped)}
        | {len(text.encode()), len(text.encode("utf-16-le")) // 2},
    }
    found = sign.groupdict()
    if not any(found.values()):
        # A sign without a count stands for a paste of one line.
        return "\n" not in stripped and len(stripped) >= _SHORTEST_FOLDED_LINE
    return all(whole_number(value) in counts[name] for name, value in found.items() if value)
