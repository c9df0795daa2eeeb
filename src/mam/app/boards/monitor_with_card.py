"""Monitoring a root with a card on a board, in one pass, until the card says stop, or as Hermes' worker."""

from __future__ import annotations

import os
import time

from mam.app.boards.board import HERMES, open_board
from mam.app.boards.monitor_comments import CardWatch, claimer
from mam.app.context.commit_watch import Commits
from mam.app.monitor import takeover
from mam.app.monitor.monitor_timeouts import MonitorTimeouts
from mam.app.monitor.resident import Resident
from mam.app.sessions import reconcile as passes
from mam.core import monitor_card_comments as rules
from mam.core.errors import MamError, NoRegistry, Unavailable, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mam.adapters.kanban.board import Board
    from mam.app.context.context import Context
    from mam.app.monitor.resident import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]
    Tell = Callable[[Document], None]

NEW = "new"
_TITLE = "agent-sessions monitor"
_BODY = """\
mam keeps the registry of {root} in line with what is there, and comments each difference here.
A comment with the line `stop` or `stop monitoring` ends it."""


def one_pass(context: Context, caller: Caller, card: str, *, which: str | None, emit_diff: bool) -> Document:
    """Make one pass and tell the card."""
    context.require_registry()
    board = open_board(context, which)
    visit = CardWatch(context, board, _named(context, board, card), is_visit=True)
    report = passes.one_pass(context, caller, emit_diff=emit_diff)
    ended = visit.tick()
    return {**report, "card": board.show(visit.card).as_json(), "ended": ended or None}


def monitor(
    context: Context,
    caller: Caller,
    card: str,
    tell: Tell,
    *,
    which: str | None = None,
    timeout: float = 0.0,
    idle_timeout: float = 0.0,
    tasks: Iterable[ResidentTask] = (),
) -> str:
    """Watch the root and keep its card up to date; beside a resident, tell what that one records."""
    context.require_registry()
    board = open_board(context, which)
    limits = MonitorTimeouts(timeout, idle_timeout)
    companion = CardWatch(context, board, _named(context, board, card))
    held = companion.claim()
    tell({"card": held.as_json(), "board": {"name": board.name, "path": board.path}})
    why = takeover.watch_or_follow(
        lambda: Resident(context, caller, tell, [companion, *tasks]).run(limits),
        lambda: _accompany(context, companion, tell, limits),
    )
    companion.leave(why)
    return why


def work(context: Context, caller: Caller, tell: Tell, tasks: Iterable[ResidentTask] = ()) -> str:
    """Watch as a dispatched worker; one that ends before its card is no success."""
    task = context.environ.get("HERMES_KANBAN_TASK")
    if not task:
        raise Usage("no card was given to this worker", hint="Hermes' dispatcher sets HERMES_KANBAN_TASK")
    board = open_board(context, HERMES)
    try:
        context.require_registry()
    except NoRegistry as error:
        board.block(task, f"{error.message}: {error.hint}")
        raise
    why = monitor(context, caller, task, tell, which=HERMES, tasks=tasks)
    left = board.show(task)
    who, run = claimer(context, task)
    if left.claimed_by == who and run in (None, left.run_id):
        raise Unavailable(f"the worker ended before card {task} did: {why}")
    return why


def _named(context: Context, board: Board, card: str) -> str:
    if card != NEW:
        return card
    root = context.paths.root
    title = f"{_TITLE}: {os.path.basename(root)}"[:200]
    body = _BODY.format(root=root)
    return board.create(title, body=body, created_by=rules.AUTHOR, workspace=root).id


def _accompany(context: Context, companion: CardWatch, tell: Tell, limits: MonitorTimeouts) -> str:
    """Go along with a resident of another process, by what it records; return nothing when it has ended."""
    with Commits(context) as commits:
        while takeover.is_watched(context):
            try:
                why = companion.tick()
            except MamError as error:
                why = ""
                tell({"error": error.as_json()["error"]})
            if companion.news:
                tell({"drifts": companion.news})
                limits.happened()
            if why := why or limits.over():
                return why
            _rest(context, commits, min(companion.due(), limits.next_end()))
        return ""


def _rest(context: Context, commits: Commits, until: float) -> None:
    """Wait until then, for a commit of others, or for the end of the resident."""
    while takeover.is_watched(context) and (now := time.monotonic()) < until:
        if commits.wait(min(until, now + takeover.NET)):
            return
