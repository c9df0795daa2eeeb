"""Checks a job whose agent reports completed: its artifacts, the user's script, and the reviewer's verdict.

The check ends the job, or gives a review loop its next turn.
"""

from __future__ import annotations

import os
import signal
import threading
import time

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.adapters.system import concurrent_program, process, program_lookup
from mam.adapters.system.process import Identity
from mam.app.job_runner.finish import fail, finish
from mam.app.job_runner.script_copy import CHANGED, command_of_copy, find_change
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import not_found
from mam.app.jobs.import_record import ensure_in_ledger
from mam.app.jobs.write_job_files import write_files
from mam.core import job_event as events
from mam.core.errors import InvalidPath, Usage
from mam.core.job_rules import LOOP, JobStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]

_LOOK = 0.5
_TIMED_OUT, _NOT_STARTED = 124, 126
_LONGEST_OUTPUT = 4096
# The script writes its output to a file, so that the size of the output does not matter. The umask keeps the
# file private.
_SCRIPT = 'umask 077; exec >"$1" 2>&1; shift; exec "$@"'


# The checks that run in this process, by state folder and job id. The claim in the database only excludes
# other processes.
_checks_here: set[tuple[str, str]] = set()
_checks_lock = threading.Lock()


def check(context: Context, caller: Caller, job_id: str) -> None:
    """Check a job whose agent has reported completed, and end it, unless another check of it runs.

    If a check is interrupted, the next caller starts it again.
    """
    key = (context.paths.state, job_id)
    with _checks_lock:
        if key in _checks_here:
            return
        _checks_here.add(key)
    try:
        _check(context, caller, job_id)
    finally:
        _checks_here.discard(key)


def _check(context: Context, caller: Caller, job_id: str) -> None:
    job = context.registry.note(lambda transaction: _claim(transaction, job_id))
    if job is None:
        return
    end_script(job)
    if job.data.get("type") == LOOP:
        from mam.app.job_runner.review_loop import advance

        if not advance(context, caller, job):
            return
    conclude(context, job, job.data.get("claim") or "")


def conclude(context: Context, job: Job, detail: str) -> None:
    """Look for the artifacts and run the script; end the job with the result."""
    missing = missing_artifacts(job)
    if missing:
        reason = f"expected artifacts are missing: {', '.join(missing)}"
        fail(context, job.id, reason, "artifacts", missing=missing[:20])
        return
    if job.data.get("validate"):
        problem, content = find_change(context, job)
        if problem is not None:
            fail(context, job.id, problem, CHANGED)
            return
        with command_of_copy(context, job, content, _shell(context)) as command:
            result = _run_cancellable(context, job, command)
        if result is None:
            return
        _record(context, job.id, result)
        if not result["passed"]:
            fail(context, job.id, f"validation failed (exit {result['exit_code']})", "validation")
            return
    finish(context, job.id, events.COMPLETED, detail)


def verify(context: Context, job_id: str, script: str, *, folder: str | None = None) -> Document:
    """Run a script for a job without changing its status; return `{job_id, passed, exit_code, output}`."""
    path = script_path(context, script)
    ensure_in_ledger(context, job_id, folder)
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    if job is None:
        raise not_found(context, job_id)
    command = [path] if os.access(path, os.X_OK) else [_shell(context), path]
    result = _wait_for(context, job, _start_script(context, job, command), lambda: True)
    assert result is not None
    _record(context, job_id, result)
    return {"job_id": job_id, **result}


def script_path(context: Context, script: str) -> str:
    """Return the full path of a script that exists."""
    if not script:
        raise Usage("--validate is empty", hint="name a script: --validate check.sh")
    path = os.path.realpath(os.path.join(context.workspace, script))
    if problem := program_lookup.file_problem(path):
        raise InvalidPath(f"the script {path} {problem}", hint="name a script that exists")
    return path


def missing_artifacts(job: Job) -> list[str]:
    """Return the expected paths that do not exist, spelled as in the submission."""
    workdir = job.data.get("workdir") or "/"
    expected: list[str] = job.data.get("expected_artifacts") or []
    return [path for path in expected if not os.path.exists(os.path.join(workdir, path))]


def end_script(job: Job) -> None:
    """Kill the script of a check whose process died or whose job was cancelled."""
    script = Identity.from_json(job.data.get("script"))
    if script is not None and process.is_alive(script):
        for identity in process.tree(script):
            process.signal(identity, signal.SIGKILL)


def _run_cancellable(context: Context, job: Job, command: list[str]) -> Document | None:
    """Run the script of a check; return None if the job ended meanwhile. The script is then killed."""
    running = _start_script(context, job, command)
    script = None if running.pid is None else process.identify(running.pid)
    changes = {"script": script.as_json() if script else None}

    def is_checking() -> bool:
        return context.registry.peek(lambda transaction: _is_checking(transaction, job.id), True)

    def note(transaction: Transaction) -> None:
        current = jobs.find(transaction, job.id)
        if current is not None:
            jobs.update(transaction, current, data=changes)

    try:
        context.registry.note(note)
    except BaseException:
        running.finish(0.0)
        raise
    return _wait_for(context, job, running, is_checking)


def _start_script(context: Context, job: Job, command: list[str]) -> concurrent_program.Running:
    """Start a script in the job's directory, with JOB_ID and REGISTRY_DIR in its environment."""
    records_folder = job.data.get("registry_dir") or context.paths.jobs
    environ = {**context.environ, "JOB_ID": job.id, "REGISTRY_DIR": records_folder}
    job_files.make_folder(context.paths.jobs)
    argv = ["/bin/sh", "-c", _SCRIPT, "sh", _log_of(context, job), *command]
    return concurrent_program.Running(argv, environ, cwd=job.data.get("workdir") or "/")


def _wait_for(
    context: Context, job: Job, running: concurrent_program.Running, should_continue: Callable[[], bool]
) -> Document | None:
    """Return `{passed, exit_code, output}` of a script; None if `should_continue` made us kill it."""
    if running.pid is None:
        return {"passed": False, "exit_code": _NOT_STARTED, "output": running.finish(0.0).output}
    deadline = time.monotonic() + context.settings().validation_timeout
    has_ended = False
    try:
        while not (has_ended := running.has_ended(min(_LOOK, max(0.0, deadline - time.monotonic())))):
            if time.monotonic() >= deadline or not should_continue():
                break
    finally:
        status = running.finish(_LOOK if has_ended else 0.0).status
    if not should_continue():
        return None
    code = _TIMED_OUT if status is None else status if status >= 0 else 128 - status
    output = job_files.tail(_log_of(context, job), _LONGEST_OUTPUT)
    return {"passed": code == 0, "exit_code": code, "output": output}


def _log_of(context: Context, job: Job) -> str:
    return os.path.join(context.paths.jobs, f"{job.id}.validation.log")


def _is_checking(transaction: Transaction, job_id: str) -> bool:
    job = jobs.find(transaction, job_id)
    return job is not None and job.status == JobStatus.CHECKING


def _claim(transaction: Transaction, job_id: str) -> Job | None:
    """Claim the check of a job; None if the job needs no check, or another living process has the claim."""
    job = jobs.find(transaction, job_id)
    if job is None or job.status != JobStatus.CHECKING:
        return None
    checker = Identity.from_json(job.data.get("checker"))
    me = process.me()
    if checker is not None and checker != me and process.is_alive(checker):
        return None
    return jobs.update(transaction, job, data={"checker": me.as_json()})


def _record(context: Context, job_id: str, result: Document) -> None:
    def work(transaction: Transaction) -> None:
        job = jobs.find(transaction, job_id)
        if job is not None:
            word = "PASS" if result["passed"] else "FAIL"
            validation = {"rc": result["exit_code"], "passed": result["passed"], "at": transaction.now}
            job = jobs.update(transaction, job, data={"validation": validation})
            ledger_writer.enter(
                transaction, job, events.VALIDATED, f"{word} (exit {result['exit_code']})", **validation
            )

    context.registry.note(work)
    write_files(context, job_id)


def _shell(context: Context) -> str:
    return program_lookup.which("bash", context.environ.get("PATH", "")) or "/bin/sh"
