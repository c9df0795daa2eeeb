"""Handing the monitor to Hermes: its goal card, and the program that Hermes' dispatcher starts for it.

The card is made by Hermes' own command line, whose exit status says nothing; what counts is the board.
"""

from __future__ import annotations

import os
import shlex

from mam.adapters.system import atomic_file, program_lookup
from mam.app.boards.board import HERMES, open_board
from mam.app.context.start_resident import command
from mam.core.errors import AgentMissing, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.kanban.board import Board, Card
    from mam.app.context.context import Context

_SECONDS = 120.0
_STRANGE = ("MAM_", "TMUX_PANE")
_OPEN = ("todo", "scheduled", "ready", "running", "review")
_TITLE = "agent-sessions monitor (live reconcile)"
_BODY = """\
# agent-sessions monitor

Keep `.hermes/agent-sessions.yaml` of {root} in line with the agents that really run
there, until you are told to stop.

One command does all of it and stays until this card is blocked: `mam monitor --worker`. Without it:

## Loop (every 30 s; 60 s from five sessions on)
1. `mam monitor --once --emit-diff --card "$HERMES_KANBAN_TASK"` compares registry, tmux and
   the agents' files, writes what follows, and comments each new difference on this card.
2. Every 5 minutes `kanban_heartbeat(note="alive, N drifts, last at <time>")`.

## What it does about a difference
- A: a running session is gone: its row becomes terminated.
- B: a session of the naming pattern has no row: it is registered.
- C: a conversation's id appeared on disk: it is filled in.
- D: a recorded conversation is not on disk any more: that is reported, and nothing else.

## Stop
A comment of a person with the line `stop` or `stop monitoring`:
`kanban_block(reason="stop-requested by user at <time>")`.

## Never
- Touch conversations (jsonl, db, brain/).
- Start or end tmux sessions or agents: people do that.
- `git commit` or `git push`."""


def dispatch(context: Context) -> dict[str, Any]:
    """See to it that this root has one open goal card, and that the dispatcher looked at it."""
    context.require_registry()
    program = program_lookup.which("hermes", context.environ.get("PATH", ""))
    if program is None:
        raise AgentMissing(
            "hermes is not on PATH", hint="install hermes-agent; its board dispatches the card"
        )
    board = open_board(context, HERMES)
    found = _open_card(context, board)
    card = found or _create(context, program, board)
    worker = _write_worker(context, program, card.id)
    said = ""
    if card.status == "ready":
        said = _hermes(context, board, [program, "kanban", "dispatch", "--json"], HERMES_BIN=worker)
        card = board.show(card.id)
    return {
        "board": {"name": board.name, "path": board.path},
        "card": card.as_json(),
        "created": found is None,
        "spawned": card.status == "running",
        "worker": worker,
        "note": None if card.status == "running" else said or None,
    }


def _key(context: Context) -> str:
    return f"mam-monitor:{context.paths.root}"


def _cards(context: Context, board: Board) -> list[Card]:
    if not os.path.exists(board.path):
        return []
    key = _key(context)
    return [one for one in board.list() if one.key and (one.key == key or one.key.startswith(f"{key}#"))]


def _open_card(context: Context, board: Board) -> Card | None:
    return next((one for one in reversed(_cards(context, board)) if one.status in _OPEN), None)


def _create(context: Context, program: str, board: Board) -> Card:
    # Hermes answers a key with the card that has it, also where that one has ended.
    ended = len(_cards(context, board))
    key = f"{_key(context)}#{ended}" if ended else _key(context)
    said = _hermes(
        context,
        board,
        [
            program,
            "kanban",
            "create",
            _TITLE,
            "--body",
            _BODY.format(root=context.paths.root),
            "--assignee",
            "default",
            "--workspace",
            f"dir:{context.paths.root}",
            "--goal",
            "--goal-max-turns",
            "100",
            "--max-runtime",
            "8h",
            "--max-retries",
            "1",
            "--idempotency-key",
            key,
            "--created-by",
            "mam-monitor",
            "--json",
        ],
    )
    card = _open_card(context, board)
    if card is None:
        raise Unavailable(f"hermes made no card: {said[-300:] or 'it said nothing'}")
    return card


def _hermes(context: Context, board: Board, argv: list[str], **more: str) -> str:
    environ = {key: value for key, value in context.environ.items() if not key.startswith(_STRANGE)}
    environ.pop("TMUX", None)
    # The same board for both, whatever either would find.
    environ = {**environ, "HERMES_KANBAN_DB": board.path, **more}
    return program_lookup.Running(argv, environ, context.paths.root).finish(_SECONDS).words


def _write_worker(context: Context, program: str, card: str) -> str:
    """Write what the dispatcher starts: for our card the monitor, for every other one Hermes itself."""
    path = os.path.join(context.paths.state, "hermes-worker")
    argv = ["--worker" if word == "--resident" else word for word in command(context)]
    text = (
        "#!/bin/sh\n"
        "# Made by mam monitor --dispatch: HERMES_BIN for Hermes' dispatcher.\n"
        "unset HERMES_BIN\n"
        f'[ "$HERMES_KANBAN_TASK" = {shlex.quote(card)} ] && exec {shlex.join(argv)}\n'
        f'exec {shlex.quote(program)} "$@"\n'
    )
    context.paths.make()
    # Renamed into place: a dispatcher may be starting the old one.
    atomic_file.replace(path, text.encode(), 0o700)
    return path
