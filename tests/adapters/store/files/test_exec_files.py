"""The output of a command is read whole, also while its runner puts the files together."""

from __future__ import annotations

from pathlib import Path

import pytest

from mam.adapters.store.files import exec_files
from mam.adapters.system import exec_runner


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log with small parts that has begun its second part."""
    for module in (exec_runner, exec_files):
        monkeypatch.setattr(module, "HEAD", 4)
        monkeypatch.setattr(module, "TAIL", 100)
    log = exec_runner.Log(str(tmp_path / "output.log"))
    log.write(b"head and the rest")
    return log


def test_an_output_is_read_while_its_command_runs(log):
    assert exec_files.read_output(log.path) == b"head and the rest"


@pytest.mark.parametrize("step", ["_parts", "_content"])
def test_a_command_that_ends_while_its_output_is_read_loses_nothing(log, monkeypatch, step):
    original = getattr(exec_files, step)

    def finish_first(path):
        monkeypatch.setattr(exec_files, step, original)
        log.finish()
        return original(path)

    monkeypatch.setattr(exec_files, step, finish_first)
    assert exec_files.read_output(log.path) == b"head and the rest"


def test_other_files_of_the_folder_are_no_output(log, tmp_path):
    (tmp_path / "20261118").write_bytes(b"mine")
    assert exec_files.read_output(log.path) == b"head and the rest"


def test_a_file_whose_number_is_too_long_is_no_part_of_an_output(log):
    Path(f"{log.path}.{'9' * 200}").write_bytes(b"mine")
    assert exec_files.read_output(log.path) == b"head and the rest"
