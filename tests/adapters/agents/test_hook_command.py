"""The hook writes one complete, private file per payload, and never disturbs the agent."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.waiting import wait_until

from mam.adapters.agents import hook_command
from mam.adapters.store.files import hook_spool


def run(spool, payload: bytes, session: str | None = "s_1f00ab42"):
    env = {**os.environ, **({"MAM_SESSION": session} if session else {})}
    env = env if session else {key: value for key, value in env.items() if key != "MAM_SESSION"}
    return subprocess.run(
        ["/bin/sh", "-c", hook_command.command(str(spool))],
        input=payload,
        capture_output=True,
        env=env,
        timeout=10,
        check=False,
    )


@pytest.mark.parametrize("folder", ["spool", "sp ace", "quo'te", "$(x)", "-n"])
def test_a_payload_becomes_one_private_file(tmp_path, folder) -> None:
    spool = tmp_path / folder
    spool.mkdir()
    payload = json.dumps({"prompt": "x" * 100_000}).encode()
    result = run(spool, payload)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    (file,) = spool.iterdir()
    assert file.read_bytes() == payload
    assert file.stat().st_mode & 0o777 == 0o600
    session, parent, _ = file.name.split(".", 2)
    assert (session, parent) == ("s_1f00ab42", str(os.getpid()))


def test_concurrent_hooks_keep_all_payloads(tmp_path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: run(tmp_path, json.dumps(number).encode()), range(60)))
    assert sorted(json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()) == list(
        range(60)
    )


def test_a_failing_hook_does_not_disturb_the_agent(tmp_path) -> None:
    for spool, session in ((tmp_path / "missing", "s_1"), (tmp_path, None)):
        result = run(spool, b"{}", session)
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_killed_hook_is_removed_later(tmp_path) -> None:
    hook = subprocess.Popen(
        ["/bin/sh", "-c", hook_command.command(str(tmp_path))],
        stdin=subprocess.PIPE,
        env={**os.environ, "MAM_SESSION": "s_1f00ab42"},
        start_new_session=True,
    )
    half_files = wait_until(lambda: list(tmp_path.iterdir()))
    os.killpg(hook.pid, signal.SIGKILL)
    hook.communicate()
    other_files = [tmp_path / ".s_1f00ab42.tmp", tmp_path / ".other.1.2.tmp", tmp_path / "s_1f00ab42.1.2.tmp"]
    for path in other_files:
        path.touch()
        os.utime(path, (0, 0))
    hook_spool.remove_unfinished(str(tmp_path))
    assert hook_spool.pending(str(tmp_path)) == []
    assert half_files[0].exists()
    os.utime(half_files[0], (time.time() - 3600,) * 2)
    hook_spool.remove_unfinished(str(tmp_path))
    assert hook_spool.pending(str(tmp_path)) == []
    assert sorted(tmp_path.iterdir()) == sorted(other_files)
