"""The hook: one file per payload, whole, private, and never a disturbance."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from mam.adapters.agents import hooks


def run(spool, payload: bytes, session: str | None = "s_1f00ab42"):
    env = {**os.environ, **({"MAM_SESSION": session} if session else {})}
    env = env if session else {key: value for key, value in env.items() if key != "MAM_SESSION"}
    return subprocess.run(
        ["/bin/sh", "-c", hooks.command(str(spool))],
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
    done = run(spool, payload)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (file,) = spool.iterdir()
    assert file.read_bytes() == payload
    assert file.stat().st_mode & 0o777 == 0o600
    session, parent, _ = file.name.split(".", 2)
    assert (session, parent) == ("s_1f00ab42", str(os.getpid()))


def test_many_at_once_are_all_kept(tmp_path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: run(tmp_path, json.dumps(number).encode()), range(60)))
    assert sorted(json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()) == list(
        range(60)
    )


def test_it_never_disturbs(tmp_path) -> None:
    for spool, session in ((tmp_path / "missing", "s_1"), (tmp_path, None)):
        done = run(spool, b"{}", session)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []
