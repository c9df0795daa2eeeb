"""The right that a caller needs for each verb. Pure.

The table has an entry for each verb, and for each subcommand of a verb that has some. A person has all
rights. The table is there for callers that are devices or other hosts. What one session may do to another
is decided in `core/authority.py`.
"""

from __future__ import annotations

from enum import StrEnum


class Right(StrEnum):
    """What a verb does to the sessions, from the least to the most."""

    # It reads, or waits; it changes nothing that a person or an agent would notice.
    WATCH = "watch"
    # It reports on the caller's own job, task or card.
    REPORT = "report"
    # It answers a dialog.
    ANSWER = "answer"
    # It starts, ends or changes something, or types into a pane.
    OPERATE = "operate"


_WATCHES = (
    "ls, status, read, explain, wait, inbox, log, doctor, completion, "
    "job status, job list, job wait, job logs, team list, task list, board list, board show, skills list"
)
_REPORTS = (
    "job event, report, register, task claim, task done, "
    "board comment, board claim, board heartbeat, board block, board complete"
)
_ANSWERS = "answer"
_OPERATES = (
    "init, create, resume, restart, stop, attach, send, broadcast, keys, interrupt, archive, forget, adopt, "
    "rename, fork, spawn, close, rebalance, mcp, monitor, demo, "
    "job submit, job verify, job cancel, job release, team up, team down, task add, board create, "
    "skills install, skills uninstall"
)
RIGHTS = {
    verb: right
    for right, verbs in (
        (Right.WATCH, _WATCHES),
        (Right.REPORT, _REPORTS),
        (Right.ANSWER, _ANSWERS),
        (Right.OPERATE, _OPERATES),
    )
    for verb in verbs.split(", ")
}
