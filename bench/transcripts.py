"""What the agents' own records cost: a listing beside huge transcripts, and how soon a change is shown."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import ExitStack, chdir
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import mam as api
from bench.crowd import new_row, start_panes
from bench.measure import Budget, Row, alternate, run, until
from bench.stage import Stage, mam
from mam.adapters.agents.claude.files import project_key
from mam.app.context.context import open_context
from mam.core.times import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.adapters.store.rows_and_log import Transaction

SMALL, LARGE = 1024, 50 * 1024 * 1024
_numbers = iter(range(10**6))


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """List the same sessions with small and with large transcripts; then follow a turn."""
    count = 5 if quick else 50
    with ExitStack() as stack:
        acts = {}
        for name, size in (("of 1 KB", SMALL), ("of 50 MB", LARGE)):
            tell(f"writing {count} transcripts {name}")
            stage = stack.enter_context(Stage())
            settle(stage, count, size)
            acts[f"mam ls, {count} agents' transcripts {name}"] = partial(shell, stage, "ls")
            acts[f"mam status, a transcript {name}"] = partial(
                shell, stage, "status", "bench-root-1-creator-practice"
            )
        found = alternate(3 if quick else 20, acts)
    (ls, few_ls), (status, few_status) = (
        (f"{what} of 50 MB", f"{what} of 1 KB")
        for what in (f"mam ls, {count} agents' transcripts", "mam status, a transcript")
    )
    yield Row(ls, found[ls], few_ls, found[few_ls], Budget("times", 1.2))
    yield Row(status, found[status], few_status, found[few_status])
    yield from follow(quick, tell)


def shell(stage: Stage, *words: str) -> None:
    """Run a verb where a person does: in the root."""
    with chdir(stage.root):
        run(mam(*words), stage.environ)


def settle(stage: Stage, count: int, size: int) -> None:
    """Register live sessions of claude with a transcript each: real at its ends, empty in between."""
    panes = start_panes(stage, count)
    registry = open_context(workspace=str(stage.root), environ=stage.environ).registry
    home = stage.environ["HOME"]

    def work(draft: Transaction) -> None:
        for number in range(count):
            row = new_row(stage, number, {"HOME": home}, panes[f"bench-root-{number + 1}-creator-practice"])
            row |= {"agent": "claude", "start_command": ["claude"]}
            ident = str(uuid.uuid4())
            row["conversations"] = [{"id": ident, "source": "chosen", "since": row["created_at"]}]
            write_transcript(Path(home), str(stage.root), ident, size)
            draft.add(row)  # type: ignore[arg-type]

    registry.change(work)
    registry.close()


def write_transcript(home: Path, workspace: str, ident: str, size: int) -> None:
    """Write a first and a last turn that far apart; in between there is a hole, which costs no disk."""
    path = home / ".claude" / "projects" / project_key(workspace) / f"{ident}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    at = stamp(time.time())
    entries = [
        {"type": "user", "message": {"role": "user", "content": "hello"}, "cwd": workspace, "timestamp": at},
        {
            "type": "assistant",
            "message": {
                "id": "msg_1",
                "model": "some-model",
                "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "hello"}],
                "usage": {"input_tokens": 1000, "output_tokens": 10},
            },
            "timestamp": at,
        },
    ]
    turn = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
    with path.open("wb") as file:
        file.write(turn)
        file.seek(max(0, size - len(turn)), 1)
        file.write(b"\n" + turn)


def follow(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Measure from the moment at which the agent's own hook speaks until `status` says so."""
    tell("following turns of a practice agent")
    shown, spoken = "a turn begins: until status says working", "until its hook is in the spool"
    with Stage() as stage, api.open(str(stage.root), environ=stage.environ) as fleet:
        session = fleet.sessions.create("practice", args=["--speed", "40"])
        tmux = fleet._access.context.tmux(session.row["tmux_server"])
        spool = Path(fleet._access.context.paths.spool)

        def submit() -> float:
            session.wait("idle", timeout=30)
            began = time.perf_counter()
            tmux.paste(session.row["pane"]["id"], f"hello {next(_numbers)}", mark=session.id, enter=True)
            return began

        def until_spoken() -> float:
            began = submit()
            until(lambda: any(spool.glob("[!.]*.json")), "the hook")
            return time.perf_counter() - began

        def until_shown() -> float:
            began = submit()
            until(lambda: session.status()["activity"] == "working", "working")
            return time.perf_counter() - began

        found = alternate(2 if quick else 15, {spoken: until_spoken, shown: until_shown})
        session.stop(force=True)
    yield Row(shown, found[shown], spoken, found[spoken], Budget("beyond", 1000))
