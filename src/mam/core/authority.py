"""Which session may write to which, and answer whose dialogs; a person may always. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.row import Row

    # A word, or pairs of who writes and who is written to.
    Rule = str | tuple[tuple[str, str], ...]

ALL, TEAM, FAMILY, NONE = "all", "team", "family", "none"
MESSAGES = (ALL, TEAM, FAMILY, NONE)
PARENT, USER = "parent", "user"
ANSWERS = (PARENT, ALL, USER)
ANYBODY = "*"


def may_write(rule: Rule, sender: Row, target: Row, *, share_team: bool) -> bool:
    """Tell whether one session may write to another, as the settings have it.

    A pair names both by name, role or kind; `*` is anybody.
    """
    if not isinstance(rule, str):
        return any(_is(one, sender) and _is(other, target) for one, other in rule)
    if rule in (FAMILY, TEAM):
        return is_family(sender, target) or (rule == TEAM and share_team)
    return rule == ALL


def may_answer(rule: str, sender: Row, target: Row) -> bool:
    """Tell whether one session may answer another's dialogs; never its own."""
    if sender.get("id") == target.get("id") or rule == USER:
        return False
    return rule == ALL or target.get("parent") == sender.get("id")


def is_family(one: Row, other: Row) -> bool:
    """Tell whether one session started the other, or both were started by the same one."""
    mine, theirs = one.get("parent"), other.get("parent")
    return one.get("id") == theirs or other.get("id") == mine or (mine is not None and mine == theirs)


def _is(word: str, row: Row) -> bool:
    return word in (ANYBODY, row["name"], row.get("role"), row["agent"])
