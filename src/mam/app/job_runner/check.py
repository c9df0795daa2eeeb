"""Looking at what an agent calls completed: its artifacts, the operator's script, the reviewer's word."""

from __future__ import annotations

import os
import signal
import threading
import time

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.adapters.system import process, program_lookup
from mam.adapters.system.process import Identity
from mam.app.job_runner.finish import fail, finish
from mam.app.jobs import ledger
from mam.app.jobs.find import enrol, unknown
from mam.app.jobs.write_files import show
from mam.core import job_event as events
from mam.core.errors import InvalidPath
from mam.core.job import LOOP, JobStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]

_LOOK = 0.5
_TIMED_OUT, _NOT_STARTED = 124, 126
_LONGEST_OUTPUT = 4096
# A script's output goes to a file, however much it is; it is ours and readable by nobody else.
_SCRIPT = 'umask 077; exec >"$1" 2>&1; shift; exec "$@"'


# What this process is at, by state and job.
_at_work: set[tuple[str, str]] = set()
_guard = threading.Lock()


def check(context: Context, caller: Caller, job_id: str) -> None:
    """Check a job whose agent has reported completed, unless somebody else is at it, and end it.

    A check that failed on the way is begun again by whoever comes next, also in this process.
    """
    mine = (context.paths.state, job_id)
    with _guard:
        if mine in _at_work:
            return
        _at_work.add(mine)
    try:
        _check(context, caller, job_id)
    finally:
        _at_work.discard(mine)


def _check(context: Context, caller: Caller, job_id: str) -> None:
    job = context.registry.note(lambda draft: _claim(draft, job_id))
    if job is None:
        return
    end_script(job)
    if job.data.get("type") == LOOP:
        from mam.app.job_runner.review_loop import advance

        if not advance(context, caller, job):
            return
    conclude(context, job, job.data.get("claim") or "")


def conclude(context: Context, job: Job, detail: str) -> None:
    """Look at artifacts and run the script; end the job by what they say."""
    missing = missing_artifacts(job)
    if missing:
        reason = f"expected artifacts are missing: {', '.join(missing)}"
        fail(context, job.id, reason, "artifacts", missing=missing[:20])
        return
    if job.data.get("validate"):
        done = _run_apart(context, job, job.data["validate"])
        if done is None:
            return
        _record(context, job.id, done)
        if not done["passed"]:
            fail(context, job.id, f"validation failed (exit {done['exit_code']})", "validation")
            return
    finish(context, job.id, events.COMPLETED, detail)


def verify(context: Context, job_id: str, script: str, *, folder: str | None = None) -> Document:
    """Run a script on a job, which stays as it is; return `{job_id, passed, exit_code, output}`."""
    path = os.path.realpath(os.path.join(context.workspace, script))
    if not os.path.isfile(path):
        raise InvalidPath(f"the script {path} does not exist", hint="name one that exists")
    enrol(context, job_id, folder)
    job = context.registry.peek(lambda draft: jobs.find(draft, job_id), None)
    if job is None:
        raise unknown(context, job_id)
    done = _wait_for(context, job, _start_script(context, job, path), lambda: True)
    assert done is not None
    _record(context, job_id, done)
    return {"job_id": job_id, **done}


def missing_artifacts(job: Job) -> list[str]:
    """Return the expected paths that are not there, as they were given."""
    where = job.data.get("workdir") or "/"
    wanted: list[str] = job.data.get("expected_artifacts") or []
    return [path for path in wanted if not os.path.exists(os.path.join(where, path))]


def end_script(job: Job) -> None:
    """End the script of a check that nobody waits for any more: who began it is dead, or it is cancelled."""
    script = Identity.from_json(job.data.get("script"))
    if script is not None and process.is_alive(script):
        for one in process.tree(script):
            process.signal(one, signal.SIGKILL)


def _run_apart(context: Context, job: Job, path: str) -> Document | None:
    """Run the script of a check; None if the job ended meanwhile, and the script with it."""
    running = _start_script(context, job, path)
    script = None if running.pid is None else process.identify(running.pid)
    changes = {"script": script.as_json() if script else None}

    def is_wanted() -> bool:
        return context.registry.peek(lambda draft: _is_checking(draft, job.id), True)

    def note(draft: Transaction) -> None:
        current = jobs.find(draft, job.id)
        if current is not None:
            jobs.update(draft, current, data=changes)

    try:
        context.registry.note(note)
    except BaseException:
        running.finish(0.0)
        raise
    return _wait_for(context, job, running, is_wanted)


def _start_script(context: Context, job: Job, path: str) -> program_lookup.Running:
    """Start a script in the job's directory with JOB_ID and REGISTRY_DIR."""
    folder = job.data.get("registry_dir") or context.paths.jobs
    argv = [path] if os.access(path, os.X_OK) else [_shell(context), path]
    environ = {**context.environ, "JOB_ID": job.id, "REGISTRY_DIR": folder}
    job_files.make_folder(context.paths.jobs)
    words = ["/bin/sh", "-c", _SCRIPT, "sh", _log_of(context, job), *argv]
    return program_lookup.Running(words, environ, cwd=job.data.get("workdir") or "/")


def _wait_for(
    context: Context, job: Job, running: program_lookup.Running, is_wanted: Callable[[], bool]
) -> Document | None:
    """Return `{passed, exit_code, output}` of a script; None if it was not wanted any more, and was ended."""
    if running.pid is None:
        return {"passed": False, "exit_code": _NOT_STARTED, "output": running.finish(0.0).words}
    deadline = time.monotonic() + context.settings().validation_timeout
    has_ended = False
    try:
        while not (has_ended := running.has_ended(min(_LOOK, max(0.0, deadline - time.monotonic())))):
            if time.monotonic() >= deadline or not is_wanted():
                break
    finally:
        status = running.finish(_LOOK if has_ended else 0.0).status
    if not is_wanted():
        return None
    code = _TIMED_OUT if status is None else status if status >= 0 else 128 - status
    output = job_files.tail(_log_of(context, job), _LONGEST_OUTPUT)
    return {"passed": code == 0, "exit_code": code, "output": output}


def _log_of(context: Context, job: Job) -> str:
    return os.path.join(context.paths.jobs, f"{job.id}.validation.log")


def _is_checking(draft: Transaction, job_id: str) -> bool:
    job = jobs.find(draft, job_id)
    return job is not None and job.status == JobStatus.CHECKING


def _claim(draft: Transaction, job_id: str) -> Job | None:
    """Become who checks a job; None if it is not due, or another living process is at it."""
    job = jobs.find(draft, job_id)
    if job is None or job.status != JobStatus.CHECKING:
        return None
    checker = Identity.from_json(job.data.get("checker"))
    me = process.me()
    if checker is not None and checker != me and process.is_alive(checker):
        return None
    return jobs.update(draft, job, data={"checker": me.as_json()})


def _record(context: Context, job_id: str, done: Document) -> None:
    def work(draft: Transaction) -> None:
        job = jobs.find(draft, job_id)
        if job is not None:
            word = "PASS" if done["passed"] else "FAIL"
            kept = {"rc": done["exit_code"], "passed": done["passed"], "at": draft.now}
            job = jobs.update(draft, job, data={"validation": kept})
            ledger.enter(draft, job, events.VALIDATED, f"{word} (exit {done['exit_code']})", **kept)

    context.registry.note(work)
    show(context, job_id)


def _shell(context: Context) -> str:
    return program_lookup.which("bash", context.environ.get("PATH", "")) or "/bin/sh"
