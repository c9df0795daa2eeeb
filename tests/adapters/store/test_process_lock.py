"""One process holds the lock at a time, also while others ask for the holder."""

import fcntl
import os
import threading
import time

from mam.adapters.store.process_lock import ProcessLock


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
