"""One holder at a time, whoever asks meanwhile who that is."""

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


def test_who_asks_keeps_nobody_from_taking_it(tmp_path) -> None:
    path = str(tmp_path / "lock")
    asking = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(asking, fcntl.LOCK_SH)
    over = threading.Thread(target=lambda: (time.sleep(0.1), os.close(asking)))
    over.start()
    wanted = ProcessLock(path)
    assert wanted.take({"pid": 1})
    over.join()
    wanted.release()
