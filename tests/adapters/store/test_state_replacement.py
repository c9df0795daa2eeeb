"""One state at a time is replaced."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from mam.adapters.store import fifo_lock, state_replacement
from mam.core.errors import ReadOnly, RegistryBusy

HOLD = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_whoever_meets_another_restore_is_told_so(tmp_path, monkeypatch) -> None:
    """The lock is that of the user, so the other one may be at another root."""
    monkeypatch.setattr(state_replacement, "_PATIENCE", 0.1)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "init.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(RegistryBusy) as refused, state_replacement.only_one(str(tmp_path)):
            pass
    assert "mam init or mam restore" in refused.value.message
    assert "another root" in refused.value.message


def test_a_lock_that_cannot_be_written_is_an_error_of_mam(tmp_path, monkeypatch) -> None:
    def refuse(path, _patience):
        raise OSError(errno.EROFS, "Read-only file system", path)

    monkeypatch.setattr(fifo_lock, "hold", refuse)
    with pytest.raises(ReadOnly, match=r"init\.lock") as refused, state_replacement.only_one(str(tmp_path)):
        pass
    assert refused.value.hint
