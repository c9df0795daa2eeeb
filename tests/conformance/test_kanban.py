"""Cards on the real Hermes' board: we write what Hermes would write, and its dispatcher runs our worker."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.install import Unavailable, installed
from tests.conformance.launch import guard
from tests.conformance.model_server import ModelServer
from tests.waiting import wait_until

from mam.adapters.system import process
from mam.core import drift_detection as rules
from mam.core.errors import Conflict

pytestmark = [pytest.mark.starts, pytest.mark.slow]

# Everything that mam does to a card, done by Hermes' own code instead.
BY_HERMES = """
import json, sys
from hermes_cli import kanban_db as kb
with kb.connect_closing() as board:
    goal = dict(goal_mode=True, goal_max_turns=5, max_runtime_seconds=60, max_retries=1, idempotency_key="k")
    place = dict(workspace_kind="worktree", workspace_path="/tmp", branch_name="wt/x")
    place |= dict(assignee="default", created_by="me", skills=["one", " two ", "one"])
    card = kb.create_task(board, title="watch", body="text", **goal, **place)
    kb.add_comment(board, card, "me", "hello")
    kb.claim_task(board, card, claimer="host:1")
    kb.heartbeat_claim(board, card, claimer="host:1")
    kb.heartbeat_worker(board, card, note="1 drift")
    if sys.argv[1] == "blocked":
        kb.block_task(board, card, reason="which one?")
    else:
        kb.complete_task(board, card, summary="all of it")
print(card)
"""


def reading(file: Path) -> closing[sqlite3.Connection]:
    """Open a board as mam does, for reading alone: Hermes would lose what it writes when this is closed."""
    return closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True))


class Hermes:
    """The real program with a home of its own."""

    def __init__(self, program: Path, workspace: Path) -> None:
        self.program = program
        self.workspace = workspace
        self.file = Path(os.environ["HERMES_HOME"]) / "kanban.db"

    def run(self, *words: str, **more: str) -> str:
        """Run `hermes kanban`; its exit status says nothing, so nobody looks at it."""
        return self._run([str(self.program), "kanban", *words], more)

    def python(self, code: str, *words: str) -> str:
        return self._run([str(self.program.with_name("python")), "-c", code, *words], {}).strip()

    def _run(self, argv: list[str], more: dict[str, str]) -> str:
        done = subprocess.run(
            argv,
            cwd=self.workspace,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout

    def create(self, title: str, *words: str) -> str:
        return json.loads(self.run("create", title, *words, "--json"))["id"]

    def show(self, card: str) -> dict:
        return json.loads(self.run("show", card, "--json"))

    def status(self, card: str) -> str:
        """Ask the file: the program takes 0.6 s."""
        with reading(self.file) as board:
            return board.execute("SELECT status FROM tasks WHERE id = ?", (card,)).fetchone()[0]

    def rows(self, card: str) -> dict[str, list[dict]]:
        """Return everything about a card, without what differs from card to card."""
        found = {}
        with reading(self.file) as board:
            board.row_factory = sqlite3.Row
            for table, key in (("tasks", "id"), ("task_comments", "task_id"), ("task_runs", "task_id")):
                rows = board.execute(f"SELECT * FROM {table} WHERE {key} = ?", (card,))
                found[table] = [_plain(dict(row)) for row in rows]
            rows = board.execute("SELECT * FROM task_events WHERE task_id = ? ORDER BY id", (card,))
            found["task_events"] = [
                {
                    "kind": row["kind"],
                    "of a run": row["run_id"] is not None,
                    "payload": _plain(json.loads(row["payload"] or "{}")),
                }
                for row in rows
            ]
        return found


def _plain(row: dict) -> dict:
    """Leave ids away, and of points in time whether there is one."""
    times = {
        key: value is not None
        for key, value in row.items()
        if key.endswith("_at") or key in ("claim_expires", "expires", "current_run_id", "run_id")
    }
    return {**row, **times, "id": None, "task_id": None, "idempotency_key": None}


@pytest.fixture
def real(home, workspace, monkeypatch):
    try:
        program = installed("hermes")
    except Unavailable as reason:
        pytest.skip(str(reason))
    with ModelServer() as nobody:
        for name, value in guard(nobody).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HERMES_HOME", str(home / ".hermes"))
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        found = Hermes(program, workspace)
        found.run("init")
        yield found


def mam_words(*words: str) -> list[str]:
    return [sys.executable, "-m", "mam", *words]


@pytest.mark.parametrize("end", ["blocked", "done"])
def test_s001_23_what_we_write_is_what_hermes_writes(real, fleet, end) -> None:
    theirs = real.python(BY_HERMES, end)
    goal = {
        "goal_mode": True,
        "goal_max_turns": 5,
        "max_runtime": 60,
        "max_retries": 1,
        "assignee": "default",
    }
    place = {"workspace_kind": "worktree", "workspace": "/tmp", "branch": "wt/x"}
    made = fleet.boards.create(
        "watch", body="text", key="other", skills=["one", " two ", "one"], board="hermes", **place, **goal
    )
    ours = made["card"]["id"]
    with reading(real.file), closing(sqlite3.connect(real.file)) as board:
        board.execute("UPDATE tasks SET created_by = 'me' WHERE id = ?", (ours,))
        board.commit()
    fleet.boards.comment(ours, "hello", author="me", board="hermes")
    fleet.boards.claim(ours, who="host:1", board="hermes")
    fleet.boards.heartbeat(ours, who="host:1", note="1 drift", board="hermes")
    if end == "blocked":
        fleet.boards.block(ours, "which one?", board="hermes")
    else:
        fleet.boards.complete(ours, "all of it", board="hermes")
    assert real.rows(ours) == real.rows(theirs)
    for card in (ours, theirs):
        assert fleet.boards.show(card, board="hermes")["card"]["heartbeat_note"] == "1 drift"


def test_what_hermes_writes_is_what_we_show(real, fleet) -> None:
    card = real.create("watch", "--body", "text", "--assignee", "default")
    real.run("comment", card, "hello", "--author", "me")
    real.run("claim", card)
    shown = fleet.boards.show(card, board="hermes")
    assert (shown["card"]["title"], shown["card"]["status"]) == ("watch", "running")
    assert [(one["author"], one["body"]) for one in shown["comments"]] == [("me", "hello")]
    with pytest.raises(Conflict, match="has claimed"):
        fleet.boards.claim(card, who="me", board="hermes")
    real.run("block", card, "which one?")
    assert fleet.boards.show(card, board="hermes")["card"]["summary"] == "which one?"
    assert fleet.boards.list(board="hermes")["cards"][0]["id"] == card


def test_from_card_to_block(real, fleet, workspace, until) -> None:
    fleet.init()
    card = real.create("watch", "--body", "text")
    words = mam_words("monitor", "--card", card, "--board", "hermes")
    running = subprocess.Popen(
        words, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: "heartbeat" in kinds(real, card))
        real.run("comment", card, "it stopped?")
        assert running.poll() is None
        real.run("comment", card, "please\nstop monitoring")
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 0, said
    shown = real.show(card)
    assert shown["task"]["status"] == "blocked"
    assert shown["latest_summary"].startswith("stop-requested by user at 20")


def kinds(real, card: str) -> list[str]:
    return [one["kind"] for one in real.rows(card)["task_events"]]


def worker(real, card: str) -> int | None:
    with reading(real.file) as board:
        return board.execute("SELECT worker_pid FROM tasks WHERE id = ?", (card,)).fetchone()[0]


def log(real, card: str) -> str:
    paths = [real.file.with_name("kanban") / "logs" / f"{card}.log", real.file.with_name("dispatcher.log")]
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in paths if path.exists())


@pytest.mark.long
def test_dispatched_it_watches_until_somebody_says_stop(real, fleet, until) -> None:
    fleet.init()
    done = fleet.monitor.dispatch_to_hermes()
    card = done["card"]["id"]
    assert (done["created"], done["spawned"], done["card"]["goal_mode"]) == (True, True, True)
    assert (done["card"]["max_runtime"], done["card"]["goal_max_turns"]) == (28800, 100)
    pid = worker(real, card)
    until(lambda: "heartbeat" in kinds(real, card), timeout=60)
    assert "monitor --worker" in " ".join(process.command_line(pid) or [])
    session = fleet.sessions.create("sleep", args=["1000"], name="one")
    time.sleep(max(0.0, rules.hands_off_until(fleet.sessions.get("one").row) - time.time()))
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: fleet.boards.show(card, board="hermes")["comments"], timeout=60)
    again = fleet.monitor.dispatch_to_hermes()
    assert (again["card"]["id"], again["created"], again["spawned"]) == (card, False, True)
    assert worker(real, card) == pid, "no second worker"
    real.run("comment", card, "stop")
    until(lambda: real.status(card) == "blocked", timeout=60)
    until(lambda: not process.runs(pid), timeout=60)
    shown = real.show(card)
    assert shown["comments"][0]["author"] == "mam-monitor"
    assert " A: one: process " in shown["comments"][0]["body"]
    assert shown["latest_summary"].startswith("stop-requested by user at 20")
    assert shown["runs"][0]["outcome"] == "blocked", log(real, card)
    later = fleet.monitor.dispatch_to_hermes()
    assert later["created"], "the old one has ended"
    assert later["card"]["id"] != card
    fleet.boards.complete(later["card"]["id"], "enough", board="hermes")
    until(lambda: later["card"]["worker_pid"] and not process.runs(later["card"]["worker_pid"]), timeout=60)


def test_cards_of_others_are_left_to_hermes(real, fleet) -> None:
    fleet.init()
    script = fleet.monitor.dispatch_to_hermes()["worker"]
    environ = {**os.environ, "HERMES_KANBAN_TASK": "t_00000000", "HERMES_BIN": script}
    said = subprocess.run([script, "--version"], env=environ, capture_output=True, text=True, check=False)
    assert "0.19.0" in said.stdout
    assert fleet.boards.list(board="hermes")["cards"][0]["skills"] == ["tmux-agent-orchestrate-monitor"]
    fleet.boards.complete(fleet.boards.list(board="hermes")["cards"][0]["id"], "enough", board="hermes")


@pytest.mark.long
def test_a_card_that_a_person_made_is_run_by_our_worker_until_its_cap(real, fleet, script, until) -> None:
    fleet.init()
    place = ("--workspace", f"dir:{fleet.root}", "--assignee", "default")
    card = real.create("watch", *place, "--goal", "--max-runtime", "6s", "--max-retries", "1")
    assert card in real.run("dispatch", "--json", HERMES_BIN=script)
    until(lambda: real.status(card) == "blocked", timeout=60)
    shown = real.show(card)
    assert shown["latest_summary"].startswith("the time limit of the card was reached at 20"), log(real, card)
    assert "timed_out" not in kinds(real, card)


def test_a_worker_that_is_told_to_stop_is_no_success(real, fleet, tmp_path, until) -> None:
    fleet.init()
    done = fleet.monitor.dispatch_to_hermes()
    card, pid = done["card"]["id"], worker(real, done["card"]["id"])
    until(lambda: "heartbeat" in kinds(real, card), timeout=60)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not process.runs(pid), timeout=60)
    assert real.status(card) == "running", "what becomes of it is the dispatcher's decision"
    assert "monitoring ended: the monitor was told to stop" in real.show(card)["comments"][-1]["body"]


@pytest.fixture
def dispatcher(real, workspace):
    """A dispatcher of Hermes that stays, and is the parent of what it starts, as in its gateway."""
    started = []

    def start(program: str) -> None:
        environ = {**os.environ, "HERMES_BIN": program, "HERMES_KANBAN_CRASH_GRACE_SECONDS": "1"}
        words = [str(real.program), "kanban", "daemon", "--force", "--interval", "0.5"]
        with real.file.with_name("dispatcher.log").open("wb") as said:
            started.append(subprocess.Popen(words, cwd=workspace, env=environ, stdout=said, stderr=said))

    yield start
    for one in started:
        one.terminate()
        one.wait(30)


@pytest.fixture
def script(tmp_path) -> str:
    """What a person would write to have every card of a board watched."""
    path = tmp_path / "worker"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam monitor --worker\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.long
def test_a_dispatcher_that_stays_is_content_with_our_end(real, fleet, dispatcher, script, until) -> None:
    fleet.init()
    place = ("--workspace", f"dir:{fleet.root}", "--assignee", "default", "--max-retries", "1")
    dispatcher(script)
    for title in ("first", "second"):
        card = real.create(title, *place)
        until(lambda card=card: "heartbeat" in kinds(real, card), timeout=60)
        real.run("comment", card, "stop")
        until(lambda card=card: real.status(card) == "blocked", timeout=60)
    first = real.rows(fleet.boards.list(board="hermes")["cards"][0]["id"])
    # When the dispatcher notes that it has started us is its own affair: we may be faster.
    ours = [one["kind"] for one in first["task_events"] if one["kind"] != "spawned"]
    assert ours == ["created", "claimed", "heartbeat", "commented", "blocked"]
    assert len(first["task_runs"]) == 1


def test_a_worker_that_is_killed_is_found_and_the_next_goes_on(
    real, fleet, dispatcher, script, until
) -> None:
    fleet.init()
    card = real.create("watch", "--workspace", f"dir:{fleet.root}", "--assignee", "default")
    dispatcher(script)
    until(lambda: "heartbeat" in kinds(real, card), timeout=60)
    # Hermes notes the process that it started a moment after that, and the worker may be faster.
    pid = wait_until(lambda: worker(real, card), lambda: f"{real.rows(card)}\n{log(real, card)}", 60)
    os.kill(pid, signal.SIGKILL)
    until(lambda: kinds(real, card).count("claimed") == 2, timeout=60)
    until(lambda: kinds(real, card).count("heartbeat") == 2, timeout=60)
    assert worker(real, card) != pid
    real.run("comment", card, "stop")
    until(lambda: real.status(card) == "blocked", timeout=60)
    assert [one["outcome"] for one in real.rows(card)["task_runs"]] == ["crashed", "blocked"]
