"""What a session may do to other sessions: message, answer, stop, start. Pure.

The operator is a person, or a program of theirs that runs in no session. The operator may do everything.
Two settings decide which sessions may message each other, and whose dialogs a session may answer. Over MCP
a session may act freely on its descendants. On other sessions it may do only what the operator granted, and
it may never act on itself or on its ancestors.
"""

from __future__ import annotations

from mam.core.errors import NotAllowed
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mam.core.session_row import Row

    # A value of MESSAGES, or pairs of a sender and a target.
    Rule = str | tuple[tuple[str, str], ...]

OPERATOR = "user"
# Values of the settings `messages` (whom sessions may message) and `answers` (whose dialogs they may answer).
ALL, TEAM, FAMILY, NONE = "all", "team", "family", "none"
MESSAGES = (ALL, TEAM, FAMILY, NONE)
PARENT, USER = "parent", "user"
ANSWERS = (PARENT, ALL, USER)
ANYBODY = "*"
# Act on another session -> (how a refusal names the act, the grant that allows it).
ACTS = {
    "message": ("message", "message"),
    "stop": ("stop", "stop"),
    "resume": ("resume", "stop"),
    "purge": ("delete the conversation of", "stop"),
}
GRANTS = ("message", "stop")
# How far a grant of the operator reaches.
REACHES = ("descendants", ALL)
MASTER = "master"
# Permissions from the least to the most. `default` leaves the choice to the agent program.
LEAST_TO_MOST = ("ask", "default", "auto", "skip")
# Limits against a session that starts sessions without end.
MOST_CHILDREN = 10
DEEPEST = 2


def may_message(rule: Rule, sender: Row, target: Row, *, share_team: bool) -> bool:
    """Tell whether the setting `messages` lets one session message another.

    A pair names sender and target, each by name, role or kind; `*` is any session.
    """
    if not isinstance(rule, str):
        return any(_is(source, sender) and _is(destination, target) for source, destination in rule)
    if rule in (FAMILY, TEAM):
        return is_family(sender, target) or (rule == TEAM and share_team)
    return rule == ALL


def may_answer(rule: str, sender: Row, target: Row) -> bool:
    """Tell whether one session may answer the dialogs of another; a session never answers its own."""
    if sender.get("id") == target.get("id") or rule == USER:
        return False
    return rule == ALL or target.get("parent") == sender.get("id")


def is_family(first: Row, second: Row) -> bool:
    """Tell whether one session started the other, or the same session started both."""
    first_parent, second_parent = first.get("parent"), second.get("parent")
    return (
        first.get("id") == second_parent
        or second.get("id") == first_parent
        or (first_parent is not None and first_parent == second_parent)
    )


def ancestors(session_id: str, rows: Iterable[Row]) -> list[str]:
    """Return the ids of the session's parent, of its parent, and so on; the nearest first."""
    parents = {row["id"]: row.get("parent") for row in rows}
    chain: list[str] = []
    parent = parents.get(session_id)
    # A registry that was edited by hand may hold a cycle of parents.
    while parent and parent not in chain and parent != session_id:
        chain.append(parent)
        parent = parents.get(parent)
    return chain


def is_descendant(session_id: str, ancestor: str, rows: Iterable[Row]) -> bool:
    """Tell whether the ancestor, or one of its descendants, started the session."""
    return ancestor in ancestors(session_id, rows)


def check(
    act: str,
    caller: str,
    target: Row,
    rows: list[Row],
    grants: Mapping[str, str],
    *,
    masters: Collection[str] = (),
) -> None:
    """Raise NotAllowed if a caller may not do this to a session.

    `grants` are the operator's grants to sessions; `masters` are the ids of the masters of teams.
    """
    if caller == OPERATOR:
        return
    phrase, grant = ACTS[act]
    refusal = f"a session may not {phrase}"
    if target["id"] == caller:
        raise NotAllowed(f"{refusal} itself", hint="end the turn; a person or its parent decides")
    above = ancestors(caller, rows)
    if target["id"] in above:
        relative = "its parent" if target["id"] == above[0] else "one of its ancestors"
        raise NotAllowed(f"{refusal} {relative}", hint="report with a job event, or in your answer")
    if is_descendant(target["id"], caller, rows):
        return
    if target.get("role") == MASTER or target["id"] in masters:
        raise NotAllowed(f"{refusal} a master", hint="report with a job event, or in your answer")
    if grants.get(grant) == ALL:
        return
    raise NotAllowed(
        f"{refusal} '{target['name']}', which it did not start",
        hint=f'the operator may allow it: {grant} = "all" below [mcp] in ~/.config/mam/config.toml',
    )


def child_permissions(requested: str | None, usual: str, own: str) -> str:
    """Return the permissions of a child: the requested ones, else the usual ones, never more than `own`."""
    if requested is not None:
        if _rank(requested) > _rank(own):
            raise NotAllowed(
                f"a session with permissions '{own}' cannot start one with '{requested}'",
                hint=f"ask for '{own}' or less",
            )
        return requested
    return usual if _rank(usual) <= _rank(own) else own


def check_program(program: str, own: str) -> None:
    """Raise NotAllowed if a session with limited permissions starts a program that mam cannot limit."""
    if own != LEAST_TO_MOST[-1]:
        raise NotAllowed(
            f"a session with permissions '{own}' cannot start '{program}', which is not an agent kind",
            hint="start an agent: claude, codex, …; run other programs in your own shell",
        )


def check_child_limit(caller: str, rows: list[Row]) -> None:
    """Raise NotAllowed if a session has too many children to start one more, or too many ancestors."""
    if caller == OPERATOR:
        return
    if len(ancestors(caller, rows)) >= DEEPEST:
        raise NotAllowed(
            f"sessions that sessions start are at most {DEEPEST} levels deep", hint="ask your parent for help"
        )
    children = [row for row in rows if row.get("parent") == caller and is_running(row)]
    if len(children) >= MOST_CHILDREN:
        raise NotAllowed(f"a session has at most {MOST_CHILDREN} running children", hint="stop one first")


def _rank(permissions: str) -> int:
    return LEAST_TO_MOST.index(permissions)


def _is(selector: str, row: Row) -> bool:
    return selector in (ANYBODY, row["name"], row.get("role"), row["agent"])
