"""The oracle notices what a reader must not do."""

from __future__ import annotations

import pytest
from tests.fuzz import oracle

from mam.core.errors import Broken, InvalidPrompt, MamError


def raising(error: Exception):
    def reader() -> None:
        raise error

    return reader


def test_a_value_and_an_error_of_mam_are_fine():
    assert oracle.read(lambda: 1) == 1
    assert isinstance(oracle.read(raising(InvalidPrompt("no", hint="do"))), InvalidPrompt)


def test_any_other_exception_is_not():
    with pytest.raises(KeyError):
        oracle.read(raising(KeyError("x")))
    with pytest.raises(AssertionError):
        oracle.read(raising(Broken("a bug")))


def test_an_error_that_a_terminal_acts_on_is_not():
    error = MamError("fine")
    error.message = "a\x1b[2Jb"
    with pytest.raises(AssertionError, match="acts on"):
        oracle.read(raising(error))


def test_an_endless_reader_is_ended_by_its_processor_time():
    def endless() -> None:
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    with pytest.raises(oracle.TookTooLong), oracle.bounded(0.05):
        endless()


def test_a_reader_that_takes_all_memory_is_ended():
    with pytest.raises(MemoryError), oracle.bounded(more_bytes=64 * 1024 * 1024):
        bytearray(1024 * 1024 * 1024)
    assert len(bytearray(65 * 1024 * 1024)) > 0, "the bound is lifted again"


@pytest.mark.parametrize("change", [lambda path: path.write_bytes(b"y"), lambda path: path.unlink()])
def test_a_changed_file_is_noticed(tmp_path, change):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with pytest.raises(AssertionError), oracle.unchanged(tmp_path):
        change(path)
    path.write_bytes(b"x")
    with oracle.unchanged(tmp_path):
        path.read_bytes()
