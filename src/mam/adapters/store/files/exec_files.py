"""The files of a command that a job runs: its prompt, the record of its end, and its output.

Each attempt has its own. The runner (`adapters/system/exec_runner.py`) writes the record and the output.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mam.adapters.store.database import errors
from mam.adapters.store.files import job_files
from mam.adapters.system import atomic_file
from mam.adapters.system.exec_runner import EMPTY, HEAD, TAIL
from mam.core.whole_number import whole_number

_LARGEST_RECORD = 64 * 1024
_LAST = 4096


def prompt_file(jobs_folder: str, job_id: str, attempt: int) -> str:
    """Return the path of the prompt that an attempt's command gets."""
    return os.path.join(_folder(jobs_folder, job_id), f"prompt-{attempt}.txt")


def record_file(jobs_folder: str, job_id: str, attempt: int) -> str:
    """Return the path of the record of how an attempt's command ended."""
    return os.path.join(_folder(jobs_folder, job_id), f"end-{attempt}.json")


def output_file(audit_folder: str, attempt: int) -> str:
    """Return the path of the output of an attempt's command."""
    return os.path.join(audit_folder, "output.log" if attempt == 1 else f"output-{attempt}.log")


def write_prompt(jobs_folder: str, job_id: str, attempt: int, prompt: str) -> str:
    """Write the prompt of an attempt, exactly as it is, and return its path."""
    job_files.make_folder(jobs_folder)
    job_files.make_folder(_folder(jobs_folder, job_id))
    path = prompt_file(jobs_folder, job_id, attempt)
    with errors(path):
        atomic_file.replace(path, prompt.encode("utf-8", "surrogatepass"))
    return path


def make_place(jobs_folder: str, job_id: str, attempt: int) -> None:
    """Make the folder of a command that runs, and an empty record with room for its end, if they are lost."""
    job_files.make_folder(jobs_folder)
    job_files.make_folder(_folder(jobs_folder, job_id))
    path = record_file(jobs_folder, job_id, attempt)
    with errors(path), suppress(FileExistsError):
        atomic_file.create(path, EMPTY)


def read_record(jobs_folder: str, job_id: str, attempt: int) -> bytes | None:
    """Return the record of an attempt's end as it is on disk; None if there is none."""
    try:
        with job_files.open_plain(record_file(jobs_folder, job_id, attempt)) as file:
            return file.read(_LARGEST_RECORD)
    except OSError:
        return None


def last_output_at(jobs_folder: str, job_id: str, attempt: int) -> float | None:
    """Return when an attempt's command last wrote something, or started; None if nobody knows."""
    try:
        return os.stat(record_file(jobs_folder, job_id, attempt)).st_mtime
    except OSError:
        return None


def read_output(path: str) -> bytes | None:
    """Return what is kept of an output, also while its command runs; None if there is no output file.

    At the end of the command the runner replaces the file and then removes the parts. If that happened in
    between, the file that is there now has everything.
    """
    while True:
        try:
            with job_files.open_plain(path) as file:
                output = file.read(HEAD + 2 * TAIL)
                if len(output) != HEAD:
                    return output
                parts = [(at, content) for at, part in _parts(path) if (content := _content(part))]
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    return output + _newest(parts)
        except OSError:
            return None


def _newest(parts: list[tuple[int, bytes]]) -> bytes:
    """Return the newest output from its parts, after a line that says how much was left out."""
    if not parts:
        return b""
    end = parts[-1][0] + len(parts[-1][1])
    start = max(HEAD, end - TAIL, parts[0][0])
    kept = b"".join(content[max(0, start - at) :] for at, content in parts)
    return (b"\n[mam: %d bytes are left out here]\n" % (start - HEAD) if start > HEAD else b"") + kept


def last_line(path: str) -> str:
    """Return the last line of an output that is not empty."""
    lines = job_files.tail(path, _LAST).splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _parts(path: str) -> list[tuple[int, str]]:
    """Return the files that hold the newest output, each with the position of its first byte."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    begin = f"{name}."
    endings = [(other.removeprefix(begin), other) for other in names if other.startswith(begin)]
    return sorted(
        (position, os.path.join(folder, other))
        for ending, other in endings
        if (position := whole_number(ending)) is not None
    )


def _content(path: str) -> bytes:
    try:
        with job_files.open_plain(path) as file:
            return file.read(TAIL)
    except OSError:
        return b""


def _folder(jobs_folder: str, job_id: str) -> str:
    return os.path.join(jobs_folder, f"{job_id}.exec")
