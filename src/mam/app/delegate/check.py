"""Looking at what an agent calls completed: its artifacts, the operator's script, the reviewer's word."""

from __future__ import annotations

import os
import threading

from mam.adapters.store import job_files, jobs
from mam.adapters.system import process, programs
from mam.adapters.system.process import Identity
from mam.app.delegate.finish import fail, finish
from mam.app.jobs import ledger
from mam.app.jobs.find import enrol, unknown
from mam.app.jobs.show import show
from mam.core import event as events
from mam.core.errors import InvalidPath
from mam.core.job import CHECKING, LOOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.draft import Draft
    from mam.adapters.store.jobs import Job
    from mam.app.world import World

    Document = dict[str, Any]

_SECONDS = 600.0
_TIMED_OUT = 124
_LONGEST_OUTPUT = 4096
# A script's output goes to a file, however much it is; it is ours and readable by nobody else.
_SCRIPT = 'umask 077; exec >"$1" 2>&1; shift; exec "$@"'


# What this process is at, by state and job.
_at_work: set[tuple[str, str]] = set()
_guard = threading.Lock()


def check(world: World, job_id: str) -> None:
    """Check a job whose agent has reported completed, unless somebody else is at it, and end it.

    A check that failed on the way is begun again by whoever comes next, also in this process.
    """
    mine = (world.place.state, job_id)
    with _guard:
        if mine in _at_work:
            return
        _at_work.add(mine)
    try:
        _check(world, job_id)
    finally:
        _at_work.discard(mine)


def _check(world: World, job_id: str) -> None:
    job = world.registry.note(lambda draft: _claim(draft, job_id))
    if job is None:
        return
    if job.data.get("type") == LOOP:
        from mam.app.delegate.rounds import advance

        if not advance(world, job):
            return
    conclude(world, job, job.data.get("claim") or "")


def conclude(world: World, job: Job, detail: str) -> None:
    """Look at artifacts and run the script; end the job by what they say."""
    missing = missing_artifacts(job)
    if missing:
        fail(
            *(world, job.id, f"expected artifacts are missing: {', '.join(missing)}", "artifacts"),
            missing=missing[:20],
        )
        return
    if job.data.get("validate"):
        done = run_script(world, job, job.data["validate"])
        _record(world, job.id, done)
        if not done["passed"]:
            fail(world, job.id, f"validation failed (exit {done['exit_code']})", "validation")
            return
    finish(world, job.id, events.COMPLETED, detail)


def verify(world: World, job_id: str, script: str, *, folder: str | None = None) -> Document:
    """Run a script on a job, which stays as it is; return `{job_id, passed, exit_code, output}`."""
    path = os.path.realpath(os.path.join(world.workspace, script))
    if not os.path.isfile(path):
        raise InvalidPath(f"the script {path} does not exist", hint="name one that exists")
    enrol(world, job_id, folder)
    job = world.registry.peek(lambda draft: jobs.find(draft, job_id), None)
    if job is None:
        raise unknown(world, job_id)
    done = run_script(world, job, path)
    _record(world, job_id, done)
    return {"job_id": job_id, **done}


def missing_artifacts(job: Job) -> list[str]:
    """Return the expected paths that are not there, as they were given."""
    where = job.data.get("workdir") or "/"
    wanted: list[str] = job.data.get("expected_artifacts") or []
    return [path for path in wanted if not os.path.exists(os.path.join(where, path))]


def run_script(world: World, job: Job, path: str) -> Document:
    """Run a script in the job's directory with JOB_ID and REGISTRY_DIR; `{passed, exit_code, output}`."""
    folder = job.data.get("registry_dir") or world.place.jobs
    log = os.path.join(world.place.jobs, f"{job.id}.validation.log")
    argv = [path] if os.access(path, os.X_OK) else [_shell(world), path]
    environ = {**world.environ, "JOB_ID": job.id, "REGISTRY_DIR": folder}
    job_files.make_folder(world.place.jobs)
    running = programs.Running(
        ["/bin/sh", "-c", _SCRIPT, "sh", log, *argv], environ, cwd=job.data.get("workdir") or "/"
    )
    status = running.finish(_SECONDS).status
    code = _TIMED_OUT if status is None else status if status >= 0 else 128 - status
    return {"passed": code == 0, "exit_code": code, "output": job_files.tail(log, _LONGEST_OUTPUT)}


def _claim(draft: Draft, job_id: str) -> Job | None:
    """Become who checks a job; None if it is not due, or another living process is at it."""
    job = jobs.find(draft, job_id)
    if job is None or job.status != CHECKING:
        return None
    checker = Identity.from_json(job.data.get("checker"))
    me = process.me()
    if checker is not None and checker != me and process.is_alive(checker):
        return None
    return jobs.update(draft, job, data={"checker": me.as_json()})


def _record(world: World, job_id: str, done: Document) -> None:
    def work(draft: Draft) -> None:
        job = jobs.find(draft, job_id)
        if job is not None:
            word = "PASS" if done["passed"] else "FAIL"
            kept = {"rc": done["exit_code"], "passed": done["passed"], "at": draft.now}
            job = jobs.update(draft, job, data={"validation": kept})
            ledger.enter(draft, job, events.VALIDATED, f"{word} (exit {done['exit_code']})", **kept)

    world.registry.note(work)
    show(world, job_id)


def _shell(world: World) -> str:
    return programs.which("bash", world.environ.get("PATH", "")) or "/bin/sh"
