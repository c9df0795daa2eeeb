"""Files that exist complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from mam.adapters.system import atomic_file


@pytest.fixture
def place(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o644)
    return tmp_path


@pytest.fixture
def calls(monkeypatch):
    """The calls that change something, in order; a call whose name is in `fails` fails."""
    names, fails = [], set()

    def watch(name):
        real = getattr(os, name)

        def call(*arguments, **more):
            names.append(name)
            if name in fails:
                if name == "close":
                    real(*arguments, **more)
                raise OSError(errno.EIO, f"{name} broke")
            return real(*arguments, **more)

        monkeypatch.setattr(os, name, call)

    for name in ("open", "write", "utime", "fsync", "close", "rename", "unlink"):
        watch(name)
    return names, fails


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestReplace:
    def test_the_new_content_replaces_the_old(self, place):
        atomic_file.replace(str(place / "file"), b"new")
        assert (place / "file").read_bytes() == b"new"
        assert [path.name for path in place.iterdir()] == ["file"]

    def test_the_mode_is_set_at_creation_and_follows_the_umask(self, place):
        before = os.umask(0o027)
        try:
            for name, mode in (("file", 0o600), ("program", 0o700), ("shared", 0o666)):
                atomic_file.replace(str(place / name), b"x", mode)
        finally:
            os.umask(before)
        assert [mode_of(place / name) for name in ("file", "program", "shared")] == [0o600, 0o700, 0o640]

    def test_the_content_is_flushed_before_the_rename(self, place, calls):
        atomic_file.replace(str(place / "file"), b"x" * 10, flushed=True)
        assert calls[0] == ["open", "write", "fsync", "close", "rename"]

    def test_nothing_is_flushed_by_default(self, place, calls):
        atomic_file.replace(str(place / "file"), b"new")
        assert calls[0] == ["open", "write", "close", "rename"]

    @pytest.mark.parametrize("beside", [None, "fresh"])
    @pytest.mark.parametrize("call", ["open", "write", "fsync", "close", "rename"])
    def test_a_failure_leaves_the_old_file_and_nothing_beside_it(self, place, calls, call, beside):
        _, fails = calls
        fails.add(call)
        with pytest.raises(OSError, match="broke"):
            atomic_file.replace(
                str(place / "file"), b"new", flushed=True, beside=beside and str(place / beside)
            )
        fails.clear()
        assert (place / "file").read_bytes() == b"old"
        assert [path.name for path in place.iterdir()] == ["file"]

    def test_an_interrupt_leaves_nothing_beside_it(self, place, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "rename", interrupt)
        with pytest.raises(KeyboardInterrupt):
            atomic_file.replace(str(place / "file"), b"new")
        assert [path.name for path in place.iterdir()] == ["file"]

    def test_the_first_failure_is_raised_if_cleaning_up_fails_too(self, place, calls):
        calls[1].update(("unlink", "rename"))
        with pytest.raises(OSError, match="rename broke"):
            atomic_file.replace(str(place / "file"), b"new")
        assert calls[0][-2:] == ["rename", "unlink"]

    def test_what_a_dead_writer_left_is_replaced(self, place):
        for remnant in ("file", "link"):
            if remnant == "file":
                (place / "fresh").write_bytes(b"half")
            else:
                (place / "fresh").symlink_to(place / "elsewhere")
            atomic_file.replace(str(place / "file"), remnant.encode(), beside=str(place / "fresh"))
            assert (place / "file").read_text(encoding="utf-8") == remnant
            assert [path.name for path in place.iterdir()] == ["file"]

    def test_a_link_is_replaced_and_not_followed(self, place):
        (place / "link").symlink_to(place / "file")
        atomic_file.replace(str(place / "link"), b"new")
        assert not (place / "link").is_symlink()
        assert (place / "file").read_bytes() == b"old"

    def test_two_writers_have_different_fresh_files(self, place, monkeypatch):
        names = []
        monkeypatch.setattr(os, "rename", lambda fresh, _: names.append(fresh))
        for _ in range(2):
            atomic_file.replace(str(place / "file"), b"new")
        assert len(set(names)) == 2


class TestCreate:
    def test_the_facts_are_those_of_the_file(self, place):
        facts = atomic_file.create(str(place / "new"), b"12345", modified_ns=1_000_000_007)
        now = (place / "new").stat()
        assert (facts.st_ino, facts.st_size, facts.st_mtime_ns) == (now.st_ino, 5, 1_000_000_007)
        assert now.st_mtime_ns == 1_000_000_007

    def test_a_name_that_is_taken_is_left_alone(self, place):
        (place / "link").symlink_to(place / "nowhere")
        for name in ("file", "link"):
            with pytest.raises(FileExistsError):
                atomic_file.create(str(place / name), b"new")
        assert (place / "file").read_bytes() == b"old"
        assert (place / "link").is_symlink()
        assert not (place / "nowhere").exists()

    def test_all_of_it_is_written_where_one_call_takes_less(self, place, monkeypatch):
        real = os.write
        monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
        atomic_file.create(str(place / "new"), b"0123456789")
        assert (place / "new").read_bytes() == b"0123456789"

    def test_its_time_is_set_before_it_is_flushed(self, place, calls):
        atomic_file.create(str(place / "new"), b"x", flushed=True, modified_ns=1)
        assert calls[0] == ["open", "write", "utime", "fsync", "close"]

    def test_no_descriptor_is_left(self, place, calls):
        calls[1].add("write")
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(OSError, match="broke"):
            atomic_file.create(str(place / "new"), b"x")
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_that_is_not_there_is_discarded_already(tmp_path):
    atomic_file.discard(str(tmp_path / "none"))
    with pytest.raises(OSError, match=str(tmp_path)):
        atomic_file.discard(str(tmp_path))


def test_a_folder_is_flushed(tmp_path, calls):
    atomic_file.flush_folder(str(tmp_path))
    assert calls[0] == ["open", "fsync", "close"]
