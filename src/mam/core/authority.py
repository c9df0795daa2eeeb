"""What a session may do to others: write, answer, stop, start. A person may everything. Pure.

A person, or a program of theirs that runs in no session, is the operator. What sessions write to each other
and answer for each other is as two settings say. Over MCP a session may do as it likes with what it started,
and with what that started; of the others it may only what the operator has granted, and never anything to
itself or to those that it comes from.
"""

from __future__ import annotations

from mam.core.errors import NotAllowed
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mam.core.session_row import Row

    # A word, or pairs of who writes and who is written to.
    Rule = str | tuple[tuple[str, str], ...]

OPERATOR = "user"
# Whom sessions may write to, and whose dialogs they may answer: the words of the settings.
ALL, TEAM, FAMILY, NONE = "all", "team", "family", "none"
MESSAGES = (ALL, TEAM, FAMILY, NONE)
PARENT, USER = "parent", "user"
ANSWERS = (PARENT, ALL, USER)
ANYBODY = "*"
# What is done to another session: in the words of a refusal, and the grant that covers it.
ACTS = {
    "message": ("write to", "message"),
    "stop": ("stop", "stop"),
    "resume": ("resume", "stop"),
    "purge": ("delete the conversation of", "stop"),
}
GRANTS = ("message", "stop")
# How far a grant of the operator reaches.
REACHES = ("descendants", ALL)
MASTER = "master"
# From the least to the most; what the agent does by itself stands between being asked and a rule of its own.
LEAST_TO_MOST = ("ask", "default", "auto", "skip")
# A session that starts sessions without end is a fault, whatever it was told.
MOST_CHILDREN = 10
DEEPEST = 2


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


def ancestors(session_id: str, rows: Iterable[Row]) -> list[str]:
    """Return the starter of a session, its starter, and so on; the nearest first."""
    parents = {row["id"]: row.get("parent") for row in rows}
    found: list[str] = []
    above = parents.get(session_id)
    while above and above not in found and above != session_id:
        found.append(above)
        above = parents.get(above)
    return found


def descends(session_id: str, of: str, rows: Iterable[Row]) -> bool:
    """Tell whether a session was started by another, or by something that it started."""
    return of in ancestors(session_id, rows)


def check(
    act: str,
    caller: str,
    target: Row,
    rows: list[Row],
    grants: Mapping[str, str],
    *,
    masters: Collection[str] = (),
) -> None:
    """Refuse what a caller may not do to a session.

    `grants` say how far the operator lets it reach; `masters` are those whom teams report to.
    """
    if caller == OPERATOR:
        return
    words, grant = ACTS[act]
    what = f"a session may not {words}"
    if target["id"] == caller:
        raise NotAllowed(f"{what} itself", hint="end the turn; a person or its parent decides")
    above = ancestors(caller, rows)
    if target["id"] in above:
        who = "its parent" if target["id"] == above[0] else "one that it comes from"
        raise NotAllowed(f"{what} {who}", hint="report with a job event, or in your answer")
    if descends(target["id"], caller, rows):
        return
    if target.get("role") == MASTER or target["id"] in masters:
        raise NotAllowed(f"{what} a master", hint="report with a job event, or in your answer")
    if grants.get(grant) == ALL:
        return
    raise NotAllowed(
        f"{what} '{target['name']}', which it did not start",
        hint=f'the operator may allow it: {grant} = "all" below [mcp] in ~/.config/mam/config.toml',
    )


def child_permissions(asked: str | None, usual: str, own: str) -> str:
    """Return what a child runs with: as asked, else as usual, and never more than its parent has."""
    if asked is not None:
        if _rank(asked) > _rank(own):
            raise NotAllowed(
                f"a session with permissions '{own}' cannot start one with '{asked}'",
                hint=f"ask for '{own}' or less",
            )
        return asked
    return usual if _rank(usual) <= _rank(own) else own


def check_program(program: str, own: str) -> None:
    """Refuse an agent that is held to permissions a program that cannot be: it does whatever it does."""
    if own != LEAST_TO_MOST[-1]:
        raise NotAllowed(
            f"a session with permissions '{own}' cannot start '{program}', which is no agent that mam knows",
            hint="start an agent: claude, codex, …; programs are run in your own shell, as you may",
        )


def check_birth(caller: str, rows: list[Row]) -> None:
    """Refuse one more child of a session that has many, or that is itself far down."""
    if caller == OPERATOR:
        return
    if len(ancestors(caller, rows)) >= DEEPEST:
        raise NotAllowed(f"sessions start sessions at most {DEEPEST} deep", hint="ask your parent for help")
    living = [row for row in rows if row.get("parent") == caller and is_running(row)]
    if len(living) >= MOST_CHILDREN:
        raise NotAllowed(f"a session has at most {MOST_CHILDREN} children that run", hint="stop one first")


def _rank(permissions: str) -> int:
    return LEAST_TO_MOST.index(permissions)


def _is(word: str, row: Row) -> bool:
    return word in (ANYBODY, row["name"], row.get("role"), row["agent"])
