"""Many sessions at once: rows as `create` and the hooks leave them, with or without live panes."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from mam.adapters.agents.practice import STORE, Practice
from mam.adapters.store.tables import evidence
from mam.adapters.tmux.argv import mark
from mam.app.context.context import open_context
from mam.app.context.settings_check import warn_of_settings
from mam.app.sessions.launch import pane_record
from mam.core.times import stamp

if TYPE_CHECKING:
    from typing import Any

    from bench.stage import Stage
    from mam.adapters.store.registry import Registry
    from mam.adapters.store.rows_and_log import Transaction
    from mam.core.session_row import Pane

_AGO = 60
_FOX = "The quick brown fox jumps over the lazy dog, and the dog does not mind it."
QUIET = "sleep 3600"
# Each line has about as many changes of the style as a line of an agent's screen.
_STYLED = _FOX.replace("quick", "\x1b[1;38;5;75mquick\x1b[0m").replace("dog", "\x1b[2mdog\x1b[0m")
SCREEN = f"""sh -c "yes '{_STYLED}' | head -n 60; exec sleep 3600" """
FLOOD = f"""sh -c "while :; do yes '{_FOX}' | head -c 100000; sleep 0.1; done" """


def settle(stage: Stage, count: int, *, alive: bool, program: str = QUIET) -> Registry:
    """Register `count` sessions that are idle by their hooks' word; alive ones have a marked pane each."""
    panes = start_panes(stage, count, program) if alive else {}
    store = Practice().stores(stage.environ)
    context = open_context(workspace=str(stage.root), environ=stage.environ)
    registry = context.registry

    def work(draft: Transaction) -> None:
        for number in range(count):
            row = new_row(stage, number, store, panes.get(name_of(number)))
            _write_transcript(store[STORE], row["conversations"][0]["id"])
            draft.add(row)  # type: ignore[arg-type]
            word = {"event": "Stop", "state": "idle", "waiting_for": None}
            word["conversation"] = row["conversations"][0]["id"]
            evidence.record(draft.connection, row["id"], "hook", draft.now - _AGO, word, draft.now)
            draft.log("user", "create", row)  # type: ignore[arg-type]

    registry.change(work)
    warn_of_settings(context, is_changing=True)
    return registry


def start_panes(stage: Stage, count: int, program: str = QUIET) -> dict[str, Any]:
    """Start marked panes with something cheap in them, in one tmux call; return them by session name."""
    stage.ask_tmux(
        *("start-server", ";", "source-file", "-"),
        script="".join(
            f"new-session -d -s {name_of(number)} -x 200 -y 50 -- {program}\n" for number in range(count)
        ),
    )
    ids = {pane.session_name: pane.id for pane in stage.tmux.panes().panes}
    stage.ask_tmux(
        *("source-file", "-"),
        script="".join(
            " ".join(mark(ids[name_of(number)], id_of(number), str(stage.root))) + "\n"
            for number in range(count)
        ),
    )
    return {pane.session_name: pane for pane in stage.tmux.panes().panes}


def name_of(number: int) -> str:
    """Return the name of a session."""
    return f"bench-root-{number + 1}-creator-practice"


def id_of(number: int) -> str:
    """Return the id of a session."""
    return f"s_{number + 1:08x}"


def new_row(stage: Stage, number: int, store: dict[str, str], pane: Any) -> dict[str, Any]:
    """Return the row of a session that was created a minute ago."""
    at = int(time.time()) - _AGO
    cwd = str(stage.root)
    record: Pane | dict[str, Any] = (
        pane_record(pane, "python", cwd)
        if pane is not None
        else {"id": f"%{number}", "pid": 0, "cmd": "python", "cwd": cwd, "mcp_attachments": []}
    )
    return {
        "id": id_of(number),
        "name": name_of(number),
        "agent": "practice",
        "role": "developer",
        "workspace": cwd,
        "status": "running",
        "tmux_server": stage.server,
        "tmux_session_id": pane.session_id if pane is not None else f"${number}",
        "start_command": ["practice"],
        "pane": record,
        "conversations": [{"id": str(uuid.uuid4()), "source": "chosen", "since": stamp(at)}],
        "stores": store,
        "last_visible_status": "running",
        "created_at": stamp(at),
        "created_at_epoch": at,
        "last_action": {"by": "user", "verb": "create", "at_epoch": at},
    }


def _write_transcript(store: str, conversation: str) -> None:
    folder = Path(store) / "mam-practice"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{conversation}.jsonl").write_text('{"type": "user", "text": "hello"}\n', encoding="utf-8")
