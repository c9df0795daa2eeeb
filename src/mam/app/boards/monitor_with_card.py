"""Monitors a root with a card on a board: in one pass, until the card says stop, or as Hermes' worker."""

from __future__ import annotations

import os
import time

from mam.app.boards.board import HERMES, open_board
from mam.app.boards.monitor_card_task import CardWatch, claimer
from mam.app.context.commit_watch import CommitWatch
from mam.app.monitor import watch_or_follow
from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
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
    from mam.app.monitor.supervised_task import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]
    Tell = Callable[[Document], None]

NEW = "new"
_TITLE = "agent-sessions monitor"
_BODY = """\
mam keeps the registry of {root} in line with what exists, and comments each difference here.
A comment that asks to stop (`stop`, `please stop monitoring`) ends the monitoring."""


def one_pass(
    context: Context, caller: Caller, card: str, *, board_name: str | None, emit_diff: bool
) -> Document:
    """Make one pass and comment its drifts on the card."""
    context.require_registry()
    board = open_board(context, board_name)
    card_id = _card_id(context, board, card)
    card_watch = CardWatch(context, board, card_id, is_visit=True, prints=emit_diff)
    report = passes.one_pass(context, caller, emit_diff=emit_diff)
    ended = card_watch.tick()
    return {**report, "card": board.show(card_watch.card).as_json(), "ended": ended or None}


def monitor(
    context: Context,
    caller: Caller,
    card: str,
    tell: Tell,
    *,
    board_name: str | None = None,
    timeout: float = 0.0,
    idle_timeout: float = 0.0,
    tasks: Iterable[ResidentTask] = (),
) -> str:
    """Monitor the root and keep its card up to date; return why it ended.

    If a resident runs in another process, follow what that resident records.
    """
    context.require_registry()
    board = open_board(context, board_name)
    limits = MonitorTimeouts(timeout, idle_timeout)
    card_watch = CardWatch(context, board, _card_id(context, board, card))
    claimed = card_watch.claim()
    tell({"card": claimed.as_json(), "board": {"name": board.name, "path": board.path}})
    try:
        reason = watch_or_follow.watch_or_follow(
            lambda: Resident(context, caller, tell, [card_watch, *tasks]).run(limits),
            lambda: _follow_resident(context, card_watch, tell, limits),
        )
    except KeyboardInterrupt:
        card_watch.leave("interrupted")
        raise
    card_watch.leave(reason)
    return reason


def work(context: Context, caller: Caller, tell: Tell, tasks: Iterable[ResidentTask] = ()) -> str:
    """Monitor as a worker of Hermes' dispatcher; raise Unavailable if it ends before its card does."""
    task = context.environ.get("HERMES_KANBAN_TASK")
    if not task:
        raise Usage("this worker has no card", hint="Hermes' dispatcher sets HERMES_KANBAN_TASK")
    board = open_board(context, HERMES)
    try:
        context.require_registry()
    except NoRegistry as error:
        board.block(task, f"{error.message}: {error.hint}")
        raise
    reason = monitor(context, caller, task, tell, board_name=HERMES, tasks=tasks)
    final_card = board.show(task)
    holder, run = claimer(context, task)
    if final_card.claimed_by == holder and run in (None, final_card.run_id):
        raise Unavailable(f"the worker ended before card {task} did: {reason}")
    return reason


def _card_id(context: Context, board: Board, card: str) -> str:
    if card != NEW:
        return card
    # A registry that cannot be read must not leave a card behind. Rows are parsed when they are asked for.
    _ = context.registry.view().rows
    root = context.paths.root
    title = f"{_TITLE}: {os.path.basename(root)}"[:200]
    body = _BODY.format(root=root)
    return board.create(title, body=body, created_by=rules.AUTHOR, workspace=root).id


def _follow_resident(context: Context, card_watch: CardWatch, tell: Tell, limits: MonitorTimeouts) -> str:
    """Follow the resident of another process; return why to end, or an empty string when it has ended."""
    with CommitWatch(context) as commits:
        while watch_or_follow.is_watched(context):
            try:
                reason = card_watch.tick()
            except MamError as error:
                reason = ""
                tell({"error": error.as_json()["error"]})
            if card_watch.new_drifts:
                tell({"drifts": card_watch.new_drifts})
                limits.note_event()
            if reason := reason or limits.end_reason():
                return reason
            _wait(context, commits, min(card_watch.due(), limits.next_end()))
        return ""


def _wait(context: Context, commits: CommitWatch, until: float) -> None:
    """Wait until that time, a commit of another process, or the end of the resident."""
    while watch_or_follow.is_watched(context) and (now := time.monotonic()) < until:
        if commits.wait(min(until, now + watch_or_follow.NET)):
            return
