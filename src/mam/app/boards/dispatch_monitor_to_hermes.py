"""Lets Hermes run the monitor: creates a goal card, and the program that Hermes' dispatcher starts for it.

Hermes' own command line creates the card. Its exit status is not reliable, so mam looks at the board.
"""

from __future__ import annotations

import glob
import os
import shlex

from mam.adapters.store.user_state import VARIABLE
from mam.adapters.system import atomic_file, concurrent_program, program_lookup
from mam.app.boards.board import HERMES, open_board
from mam.app.context.resident_start_and_lock import command
from mam.core.errors import AgentMissing, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.kanban.board import Board, Card
    from mam.app.context.context import Context

_SECONDS = 120.0
_DROPPED_PREFIXES = ("MAM_", "TMUX_PANE")
_OPEN = ("todo", "scheduled", "ready", "running", "review")
_TITLE = "agent-sessions monitor (live reconcile)"
_SKILL = "tmux-agent-orchestrate-monitor"
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
A comment of a person that asks to stop (`stop`, `please stop monitoring`):
`kanban_block(reason="stop-requested by user at <time>")`.

## Never
- Touch conversations (jsonl, db, brain/).
- Start or end tmux sessions or agents: people do that.
- `git commit` or `git push`."""


def dispatch(context: Context) -> dict[str, Any]:
    """Ensure that this root has one open goal card, and run Hermes' dispatcher."""
    context.require_registry()
    program = program_lookup.which("hermes", context.environ.get("PATH", ""))
    if program is None:
        raise AgentMissing(
            "hermes is not on PATH", hint="install hermes-agent, whose dispatcher starts the monitor"
        )
    board = open_board(context, HERMES)
    open_card = _open_card(context, board)
    card = open_card or _create(context, program, board)
    worker = _write_worker(context, program, card.id)
    output = ""
    if card.status == "ready":
        output = _hermes(context, board, [program, "kanban", "dispatch", "--json"], HERMES_BIN=worker)
        card = board.show(card.id)
    return {
        "board": {"name": board.name, "path": board.path},
        "card": card.as_json(),
        "created": open_card is None,
        "spawned": card.status == "running",
        "worker": worker,
        "missing_skill": _missing_skill(context),
        "note": None if card.status == "running" else output or None,
    }


def _missing_skill(context: Context) -> dict[str, str] | None:
    """Return the skill of the card and Hermes' folder of skills, if the folder does not have the skill.

    The monitor needs no skill. Hermes' own worker, which takes the card where HERMES_BIN is not set, refuses
    to start without it.
    """
    home = context.environ.get("HERMES_HOME") or os.path.join(
        context.environ.get("HOME") or os.path.expanduser("~"), ".hermes"
    )
    place = os.path.join(home, "skills")
    # Hermes groups skills in folders.
    patterns = [os.path.join(glob.escape(place), *below, _SKILL) for below in ((), ("*",))]
    return None if any(map(glob.glob, patterns)) else {"name": _SKILL, "directory": place}


def _key(context: Context) -> str:
    return f"mam-monitor:{context.paths.root}"


def _cards(context: Context, board: Board) -> list[Card]:
    if not os.path.exists(board.path):
        return []
    key = _key(context)
    return [card for card in board.list() if card.key and (card.key == key or card.key.startswith(f"{key}#"))]


def _open_card(context: Context, board: Board) -> Card | None:
    return next((card for card in reversed(_cards(context, board)) if card.status in _OPEN), None)


def _create(context: Context, program: str, board: Board) -> Card:
    # Hermes returns the existing card for a known key, even if that card has ended, so each new card needs a
    # new key.
    ended = len(_cards(context, board))
    key = f"{_key(context)}#{ended}" if ended else _key(context)
    output = _hermes(
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
            "--skill",
            _SKILL,
            "--idempotency-key",
            key,
            "--created-by",
            "mam-monitor",
            "--json",
        ],
    )
    card = _open_card(context, board)
    if card is None:
        raise Unavailable(f"hermes created no card: {output[-300:] or 'it printed nothing'}")
    return card


def _hermes(context: Context, board: Board, argv: list[str], **variables: str) -> str:
    environ = {key: value for key, value in context.environ.items() if not key.startswith(_DROPPED_PREFIXES)}
    environ.pop("TMUX", None)
    # mam and hermes must use the same board, so hermes gets its path.
    environ = {**environ, "HERMES_KANBAN_DB": board.path, **variables}
    return concurrent_program.Running(argv, environ, context.paths.root).finish(_SECONDS).output


def _exports(context: Context) -> str:
    """Return the lines that name another user state to the worker; usually there are none."""
    named = context.environ.get(VARIABLE)
    return f"export {VARIABLE}={shlex.quote(named)}\n" if named else ""


def _write_worker(context: Context, program: str, card: str) -> str:
    """Write the program that the dispatcher starts: for our card the monitor, for other cards Hermes."""
    path = os.path.join(context.paths.state, "hermes-worker")
    argv = ["--worker" if word == "--resident" else word for word in command(context)]
    text = (
        "#!/bin/sh\n"
        "# Made by mam monitor --dispatch: HERMES_BIN for Hermes' dispatcher.\n"
        "unset HERMES_BIN\n"
        f"{_exports(context)}"
        f'[ "$HERMES_KANBAN_TASK" = {shlex.quote(card)} ] && exec {shlex.join(argv)}\n'
        f'exec {shlex.quote(program)} "$@"\n'
    )
    context.registry.ensure_exists()
    # The file is replaced atomically, because a dispatcher may be starting the old one.
    atomic_file.replace(path, text.encode(), 0o700)
    return path
