"""Files of jobs that are none: a pipe in their place keeps nobody waiting."""

from __future__ import annotations

import os
import threading

import pytest

from mam.adapters.store.files import job_files
from mam.core.errors import MamError


@pytest.mark.parametrize("is_read", [True, False])
def test_a_pipe_in_the_place_of_a_log_keeps_nobody_waiting(tmp_path, is_read) -> None:
    """With a reader of the pipe, it could even be written."""
    path = str(tmp_path / "events.ndjson")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    outcomes: list[object] = []

    def look() -> None:
        outcomes.append(job_files.tail(path, 100))
        outcomes.append(job_files.read_log(path))
        try:
            job_files.append(path, [{"number": 1}])
        except MamError as error:
            outcomes.append(type(error).__name__)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(20)
    assert outcomes == ["", [], "Unavailable"]
    if reader is not None:
        os.close(reader)


@pytest.mark.parametrize("number", ["9223372036854775808", "1e999", "-1", "9" * 5000, "true", '"1"', "null"])
def test_a_line_whose_number_is_none_of_mam_has_none(tmp_path, number) -> None:
    """SQLite takes no greater number, and one that it just takes would leave none for the next entry."""
    path = tmp_path / "events.ndjson"
    path.write_text(f'{{"number": 7}}\n{{"number": {number}}}\n', encoding="utf-8")
    assert job_files.last_number(str(path)) == 0
    assert [line["number"] for line in job_files.lines_after(str(path), 3)] == [7]
