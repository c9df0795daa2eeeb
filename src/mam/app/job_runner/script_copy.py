"""The copy of a job's validation script, taken when the job is submitted.

An agent that may edit files could change the script after the submission, and mam would run it outside of
the agent's permissions. So the copy lies in the user state, the script counts only if it still equals the
copy, and the copy itself is what runs.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from mam.adapters.store.files import script_file
from mam.adapters.store.tables import jobs
from mam.adapters.system import program_lookup
from mam.core.errors import InvalidPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context

CHANGED = "validate_changed"
LARGEST = 8 * 1024 * 1024


def read_script(path: str) -> bytes:
    """Return the content of a script; raise InvalidPath for one that cannot be copied."""
    try:
        return program_lookup.read_plain(path, LARGEST)
    except OSError as error:
        reason = error.strerror or f"is larger than {LARGEST // 1024 // 1024} MiB"
        raise InvalidPath(
            f"mam cannot copy the script {path}: {reason}", hint="name a small script, which may run others"
        ) from error


def keep_copy(context: Context, job_id: str, path: str, content: bytes) -> None:
    """Record the script of a new job. Copies of jobs that ended without a word are forgotten."""
    assert context.root_id is not None
    context.user_state.note_script(context.root_id, job_id, path, content)
    unended = context.registry.peek(jobs.unended_ids, None)
    if unended is None:
        return
    for other in context.user_state.script_jobs(context.root_id) - unended - {job_id}:
        context.user_state.forget_script(context.root_id, other)


def find_change(context: Context, job: Job) -> tuple[str | None, bytes]:
    """Return in words why the script of a job must not run, None if it may; and the content to run."""
    path = job.data["validate"]
    copy = context.user_state.script_of(context.root_id, job.id)
    if copy is None:
        return (
            f"mam did not run the script {path}: this user's mam did not see it when the job was submitted",
            b"",
        )
    try:
        content = program_lookup.read_plain(path, LARGEST)
    except OSError:
        return f"mam did not run the script {path}: it is gone or cannot be read any more", b""
    if copy != (path, content):
        return (
            f"mam did not run the script {path}: it was changed after the job was submitted; "
            "look at it before you run it yourself",
            b"",
        )
    return None, content


@contextmanager
def command_of_copy(context: Context, job: Job, content: bytes, shell: str) -> Iterator[list[str]]:
    """Write the copy into a private file and yield the command that runs it; remove the file afterwards.

    `$0` is the path of the copy, with the name of the script. A script finds its files from the job's
    directory, in which it runs.
    """
    path: str = job.data["validate"]
    named = (context.root_id or "", job.id)
    with script_file.written(context.user_state.folder, named, os.path.basename(path), content) as copied:
        if os.access(path, os.X_OK):
            yield [*script_file.interpreter(content), copied]
        else:
            yield [shell, copied]
