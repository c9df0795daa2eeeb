"""One process holds the lock at a time, also while others ask for the holder."""

import fcntl
import json
import os
import threading
import time
from pathlib import Path

import pytest

from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import process


def test_one_holds_it_and_is_known(tmp_path) -> None:
    first, second = (ProcessLock(str(tmp_path / "lock")) for _ in range(2))
    assert first.holder() is None
    assert first.take({"pid": 1})
    assert not second.take({"pid": 2})
    assert second.holder() == {"pid": 1}
    first.release()
    assert second.holder() is None
    assert second.take({"pid": 2})
    second.release()


def test_a_long_description_of_the_holder_is_read_as_a_whole(tmp_path) -> None:
    lock = ProcessLock(str(tmp_path / "lock"))
    # Such signs take twelve bytes each in JSON.
    holder = {"pid": 1, "failing": "\N{SNOWFLAKE}\N{PILE OF POO}" * 250}
    assert lock.take(holder)
    assert ProcessLock(lock.path).holder() == holder
    lock.release()


def test_asking_for_the_holder_does_not_block_taking(tmp_path) -> None:
    path = str(tmp_path / "lock")
    asking = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(asking, fcntl.LOCK_SH)
    release = threading.Thread(target=lambda: (time.sleep(0.1), os.close(asking)))
    release.start()
    lock = ProcessLock(path)
    assert lock.take({"pid": 1})
    release.join()
    lock.release()


def test_e11_a_deleted_file_lets_no_second_holder_in(tmp_path) -> None:
    first, second = (ProcessLock(str(tmp_path / "lock")) for _ in range(2))
    assert first.take({"pid": 1})
    Path(first.path).unlink()
    assert first.is_lost()
    assert not second.take({"pid": 2})
    assert not Path(first.path).exists(), "who is refused has made no file"
    assert first.take_again({"pid": 1})
    assert not first.is_lost()
    assert second.holder() == {"pid": 1}
    first.release()
    assert second.take({"pid": 2})
    second.release()


def test_e11_a_holder_gives_way_to_one_that_locks_only_the_file(tmp_path) -> None:
    """As mam 0.1 does."""
    path = str(tmp_path / "lock")
    lock = ProcessLock(path)
    assert lock.take({"pid": 1})
    Path(path).unlink()
    other = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert lock.is_lost()
    assert not lock.take_again({"pid": 1})
    os.close(other)
    assert lock.take({"pid": 3}), "and it holds nothing any more"
    lock.release()


def test_e11_a_holder_gives_way_where_the_whole_folder_is_another_one(tmp_path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    lock = ProcessLock(str(folder / "lock"))
    assert lock.take({"pid": 1})
    folder.rename(tmp_path / "former")
    assert not lock.take_again({"pid": 1})
    folder.mkdir()
    assert not lock.take_again({"pid": 1})
    lock.release()


def test_a_holder_describes_itself_anew(tmp_path) -> None:
    lock, reader = (ProcessLock(str(tmp_path / "lock")) for _ in range(2))
    assert lock.take({"pid": 1, "text": "a long description"})
    lock.rewrite({"pid": 1})
    assert reader.holder() == {"pid": 1}
    lock.release()


def test_a_description_that_mam_did_not_write_says_nothing(tmp_path) -> None:
    lock = ProcessLock(str(tmp_path / "lock"))
    assert lock.take({"pid": 1})
    for text in ("[" * 4096, "{", "7", "\0"):
        (tmp_path / "lock").write_text(text, encoding="utf-8")
        assert ProcessLock(lock.path).holder() == {}
    lock.release()


@pytest.fixture
def described(tmp_path):
    """Return a function that gives the holder of a lock whose file has a description, true or not."""
    path = tmp_path / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)

    def holder(**facts):
        path.write_text(json.dumps({**process.me().as_json(), **facts}), encoding="utf-8")
        return ProcessLock(str(path)).holder()

    yield holder
    os.close(handle)


def test_the_description_of_a_dead_holder_is_not_that_of_the_next_one(described) -> None:
    """Which has taken the lock, and has not described itself yet."""
    assert described()["pid"] == os.getpid()
    assert described(start=process.me().start + 1, version="0.1.5") == {}


def test_a_holder_that_cannot_be_judged_counts(described, monkeypatch) -> None:
    boot = process.boot_id()
    for other in ("another boot", f"{boot.partition('/')[0]}/4026599999"):
        assert described(boot=other, start=1)["boot"] == other
    # In a container: mam 0.1 and a process outside leave out the namespace.
    monkeypatch.setattr(process, "_boot", f"{boot.partition('/')[0]}/4026599998")
    assert described(boot=boot.partition("/")[0], start=1)["start"] == 1
