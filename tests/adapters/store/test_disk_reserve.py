"""The reserve holds its space, is spent once, and a full disk leaves no part of it."""

from __future__ import annotations

import errno
import os

from mam.adapters.store import disk_reserve


def test_it_holds_space_and_is_spent_once(tmp_path) -> None:
    assert disk_reserve.make(str(tmp_path))
    facts = (tmp_path / "reserve").stat()
    assert (facts.st_size, facts.st_mode & 0o777) == (disk_reserve.SIZE, 0o600)
    assert disk_reserve.make(str(tmp_path))
    assert (tmp_path / "reserve").stat().st_ino == facts.st_ino
    assert disk_reserve.spend(str(tmp_path))
    assert not disk_reserve.spend(str(tmp_path))


def test_without_space_nothing_is_left(tmp_path, monkeypatch) -> None:
    def write(_handle, _data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "reserve.part").write_bytes(b"left by a crash")
    monkeypatch.setattr(os, "write", write)
    assert not disk_reserve.make(str(tmp_path))
    assert not list(tmp_path.iterdir())
