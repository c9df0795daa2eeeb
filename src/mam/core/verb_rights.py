"""Who may use which verb. Pure.

The table has an entry for each verb, for each subcommand of a verb that has some, and for options and
arguments that need another right than their verb. What one session may do to another is decided in
`core/authority.py`. All this guards against accidents, and against instructions that an agent reads; the
processes of one user form one trust domain.
"""

from __future__ import annotations

from mam.core.caller import CallerKind, Role
from mam.core.errors import NotAllowed
from mam.core.string_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.caller import Caller


class Right(StrEnum):
    """What a verb does."""

    # It reads, or waits; it changes nothing that a person or an agent would notice.
    WATCH = "watch"
    # It reports on a job, with the job's token.
    SIGNED = "signed"
    # It reports on the caller's own task or card.
    REPORT = "report"
    # It answers a dialog.
    ANSWER = "answer"
    # It starts, ends or changes something, or types into a pane.
    OPERATE = "operate"
    # It needs a terminal or a process of this machine, or changes how mam is set up here.
    LOCAL = "local"
    # A person alone decides it: it lets something run that nobody has looked at yet, or hands out the state.
    TRUST = "trust"


_WATCHES = (
    "ls, status, read, explain, wait, attach, inbox, log, doctor, drill, completion, mcp, "
    "job status, job list, job wait, job logs, team list, task list, board list, board show, skills list"
)
_SIGNS = "job event"
_REPORTS = (
    "report, register, task claim, task done, "
    "board comment, board claim, board heartbeat, board block, board complete"
)
_ANSWERS = "answer"
_OPERATES = (
    "create, resume, restart, stop, send, broadcast, keys, interrupt, archive, forget, "
    "rename, fork, spawn, close, rebalance, "
    "job submit, job verify, job cancel, job forget, team up, team down, task add, board create"
)
_TRUSTS = "job release, restore"
_IS_LOCAL = "init, adopt, monitor, backup, demo, skills install, skills uninstall"
RIGHTS = {
    verb: right
    for right, verbs in (
        (Right.WATCH, _WATCHES),
        (Right.SIGNED, _SIGNS),
        (Right.REPORT, _REPORTS),
        (Right.ANSWER, _ANSWERS),
        (Right.OPERATE, _OPERATES),
        (Right.LOCAL, _IS_LOCAL),
        (Right.TRUST, _TRUSTS),
    )
    for verb in verbs.split(", ")
}
# Options that need another right than their verb.
OPTION_RIGHTS = {
    "inbox --withdraw": Right.OPERATE,
    "inbox --release": Right.TRUST,
    "backup FILE": Right.TRUST,
    "init --trust": Right.TRUST,
    "init --copy": Right.TRUST,
    "init --take-over": Right.TRUST,
    "init --new": Right.TRUST,
    "create --run-recorded": Right.TRUST,
    "resume --run-recorded": Right.TRUST,
    "restart --run-recorded": Right.TRUST,
    "fork --run-recorded": Right.TRUST,
    "stop --run-recorded": Right.TRUST,
    "job submit --run-recorded": Right.TRUST,
    # It starts programs of all sessions at once, whoever's they are.
    "drill --run": Right.TRUST,
}
_OF_UNKNOWN = frozenset((Right.WATCH, Right.SIGNED))
_OF_USER = frozenset(Right)
_OF_SESSION = _OF_USER - {Right.TRUST}
# Devices, and other hosts.
_OF_ROLE = {
    Role.WATCH: frozenset((Right.WATCH,)),
    Role.ANSWER: frozenset((Right.WATCH, Right.ANSWER)),
    Role.OPERATE: frozenset((Right.WATCH, Right.ANSWER, Right.OPERATE)),
}


def right_of(verb: str) -> Right:
    """Return the right that a verb needs, or a verb with an option: `stop`, `job submit`, `init --trust`."""
    return OPTION_RIGHTS[verb] if verb in OPTION_RIGHTS else RIGHTS[verb]


def rights_of(caller: Caller) -> frozenset[Right]:
    """Return the rights of a caller."""
    if caller.kind is CallerKind.USER:
        return _OF_USER
    if caller.kind is CallerKind.SESSION:
        return _OF_SESSION
    if caller.kind is CallerKind.UNKNOWN:
        return _OF_UNKNOWN
    rights = _OF_ROLE[caller.role or Role.WATCH]
    return rights | {Right.SIGNED} if caller.kind is CallerKind.HOST else rights


def check(caller: Caller, verb: str) -> None:
    """Raise NotAllowed if a caller may not use a verb, or a verb with an option such as `init --trust`."""
    if right_of(verb) in rights_of(caller):
        return
    if caller.kind is CallerKind.UNKNOWN:
        raise NotAllowed(
            f"'mam {verb}' is refused, because mam cannot tell who calls: {caller.reason}", hint=caller.hint
        )
    if caller.kind is CallerKind.SESSION:
        raise NotAllowed(
            f"a session may not use 'mam {verb}'", hint="a person decides that, in a terminal of their own"
        )
    raise NotAllowed(
        f"a {caller.kind} with the role '{caller.role or Role.WATCH}' may not use 'mam {verb}'",
        hint="a person can give it another role",
    )
