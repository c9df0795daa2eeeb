"""A clone that was built to attack: no verb runs, deletes, opens or sends what the clone names."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.trust.hostile_repository import HostileRepository

pytestmark = pytest.mark.slow
SECRET = "the-secret-of-the-environment"
READING = (
    "ls",
    "ls --json",
    "ls --all",
    "status victim",
    "read victim",
    "read victim --parsed",
    "explain victim",
    "inbox victim",
    "log",
    "doctor",
    "drill",
    "drill victim",
    "job list",
    "job status JOB",
    "job logs JOB",
    "team list",
    "task list",
    "board list",
    "wait victim --for idle --timeout 1",
    "monitor --once --dry-run",
)
CHANGING = (
    "create --agent practice --session two",
    "create --session victim",
    "create --agent practice --worktree",
    "resume victim",
    "resume --all",
    "restart victim",
    "fork victim",
    "drill --run",
    "stop victim",
    "stop victim --force",
    "stop victim --purge-conversation --yes",
    "stop --all",
    "send victim hello",
    "broadcast hello",
    "answer victim allow",
    "keys victim Enter",
    "interrupt victim",
    "archive victim",
    "forget victim",
    "rename victim other",
    "adopt victim",
    "monitor --once",
    "monitor --timeout 1",
    "job submit --agent practice task",
    "job submit --exec -- true",
    "job verify JOB",
    "job cancel JOB",
    "job wait JOB --timeout 1",
    "job event --job-id JOB completed",
    "team up --role dev=practice",
    "team down",
    "spawn --role dev --agent practice",
    "close victim",
    "report done",
    "task add text",
    "board create title",
    "init",
)


@pytest.fixture
def clone(fleet, tmp_path, home):
    """The clone, with the socket that it names: it records whatever is sent to it."""
    fleet.close()
    repository = HostileRepository(tmp_path, tmp_path / "attacker")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(repository.socket))
        listener.listen()
        listener.setblocking(False)
        yield repository
        heard = b""
        while True:
            try:
                line, _ = listener.accept()
            except BlockingIOError:
                break
            line.settimeout(5)
            heard += line.recv(1 << 16)
            line.close()
        assert SECRET.encode() not in heard
        assert heard == b"", "nobody connects to a socket that a foreign root names"


def run(clone: HostileRepository, words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mam", *words.replace("JOB", clone.job).split()]
    environ = {**os.environ, "A_SECRET": SECRET}
    return subprocess.run(
        command,
        cwd=clone.root,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def contents(clone: HostileRepository) -> dict[str, tuple[int, int]]:
    """Return what is in the clone, and beside it, with size and time of each file."""
    place = clone.treasure.parent
    return {
        str(path.relative_to(place)): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for folder in (clone.root, place / "logs", place / "records")
        for path in [folder, *folder.rglob("*")]
        if path.exists() and not path.is_dir()
    }


def check_harmless(clone: HostileRepository, result: subprocess.CompletedProcess[str], words: str) -> None:
    said = result.stdout + result.stderr
    assert "Traceback" not in said, said
    assert result.returncode in (0, 1, 2, 64, 65), (words, said)
    assert not clone.ran.exists(), (words, said)
    assert clone.treasure.read_text(encoding="utf-8") == "precious", words


@pytest.mark.promise("P37")
def test_reading_verbs_show_the_rows_and_say_so(clone) -> None:
    before = contents(clone)
    for words in READING:
        check_harmless(clone, run(clone, words), words)
    listed = run(clone, "ls --json")
    document = json.loads(listed.stdout)
    assert document["root_state"] == "foreign"
    assert [session["name"] for session in document["sessions"]] == ["victim"]
    assert "your mam did not make the state in" in listed.stderr
    assert contents(clone) == before


@pytest.mark.promise("P37")
def test_d1_d2_no_changing_verb_runs_or_deletes_anything(clone) -> None:
    before = contents(clone)
    for words in CHANGING:
        result = run(clone, words)
        check_harmless(clone, result, words)
        if not words.startswith(("job event", "job wait")):
            assert result.returncode in (1, 64), (words, result.stdout, result.stderr)
    after = contents(clone)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed <= {f"clone/.mam/state.db{suffix}" for suffix in ("", "-wal", "-shm", ".queue")}, (
        "a job's event by its token is recorded; nothing else is written"
    )
    refused = run(clone, "create --agent practice --json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["code"]) == (1, "root_foreign")
    assert "mam init --trust" in error["hint"]


@pytest.mark.parametrize("name", ["state.db", "state.db-wal", "spool", "jobs"])
def test_links_in_the_state_are_not_followed(clone, name) -> None:
    path = clone.state / name
    if path.is_dir():
        path.rename(clone.state / f"{name}-away")
    path.unlink(missing_ok=True)
    path.symlink_to(clone.treasure)
    for words in ("ls", "create --agent practice", "stop victim", "job event --job-id JOB completed"):
        check_harmless(clone, run(clone, words), words)


@pytest.mark.parametrize("kind", ["fifo", "folder", "noise", "empty"])
def test_a_database_that_is_none(clone, kind) -> None:
    path = Path(clone.state, "state.db")
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"noise " * 1000 if kind == "noise" else b"")
    for words in ("ls", "create --agent practice", "stop victim", "doctor"):
        check_harmless(clone, run(clone, words), words)
