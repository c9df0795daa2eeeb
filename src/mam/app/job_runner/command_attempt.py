"""Starts the command of a job in a session of its own, and follows it: the kind `exec`."""

from __future__ import annotations

import os
import sys

from mam.adapters.store.files import exec_files
from mam.adapters.system import exec_runner, process, program_lookup
from mam.app.context.caller import calling_row
from mam.app.context.liveness import identity_of
from mam.app.job_runner.begin_attempt import create_session_for_job
from mam.app.jobs.command_end import end_now
from mam.app.jobs.write_job_files import write_files
from mam.core import command_template, names
from mam.core.errors import AgentMissing, NotAllowed
from mam.core.job_rules import EXEC
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.app.sessions.create_options import AllOptions
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_NEEDED = "skip"


def check_caller(context: Context, caller: Caller) -> None:
    """Raise NotAllowed for a session that may not run whatever it likes: a command asks nobody."""
    if caller.is_user:
        return
    row = calling_row(context, caller)
    if row is None or row.get("permissions") != _NEEDED:
        raise NotAllowed(
            "only a session with the permissions 'skip' may run a command with --exec",
            hint="give the job to an agent instead: mam job submit --agent KIND",
        )


def find_program(context: Context, command: list[str], workdir: str) -> str:
    """Return the full path of a command's program; a relative path starts at the job's directory."""
    program = command_template.expand(command[:1], prompt="", prompt_file="", workdir=workdir)[0]
    path = context.environ.get("PATH", os.defpath)
    location = os.path.join(workdir, program) if "/" in program else program
    found = program_lookup.which(location, path)
    if found is not None:
        return found
    problem = program_lookup.file_problem(location) if "/" in program else program_lookup.ABSENT
    hint = "name a program"
    if problem is None:
        problem = "is not executable"
        hint = f"make it executable: chmod +x {location}; or name what runs it: -- sh {program}"
    elif problem == program_lookup.ABSENT:
        similar = program_lookup.similar(program, path)
        hint = f"did you mean {' or '.join(similar)}?" if similar else "install it, or name its full path"
    raise AgentMissing(f"the program '{program}' of the command {problem}", hint=hint)


def argv_of(context: Context, job_id: str, attempt: int, data: Mapping[str, Any], prompt: str) -> list[str]:
    """Return the command of an attempt with its placeholders filled in."""
    path = exec_files.prompt_file(context.paths.jobs, job_id, attempt)
    argv = command_template.expand(data["command"], prompt=prompt, prompt_file=path, workdir=data["workdir"])
    return [data["program"], *argv[1:]]


def start_command(
    context: Context,
    caller: Caller,
    job_id: str,
    name: str,
    data: Mapping[str, Any],
    prompt: str,
    *,
    attempt: int = 1,
    child_limit: bool = False,
) -> Row:
    """Start the command of an attempt; return the row of its session. The command may have ended already."""
    argv = argv_of(context, job_id, attempt, data, prompt)
    prompt_path = exec_files.write_prompt(context.paths.jobs, job_id, attempt, prompt)
    runner = [
        *(sys.executable, "-I", "-S", os.path.abspath(exec_runner.__file__)),
        exec_files.record_file(context.paths.jobs, job_id, attempt),
        exec_files.output_file(os.path.join(data["logs_dir"], job_id), attempt),
        prompt_path,
        "stdin" if command_template.takes_stdin(data["command"]) else "empty",
        *argv,
    ]
    options = command_options(name, data, runner, child_limit=child_limit)
    return create_session_for_job(context.replace(workspace=data["workdir"]), caller, job_id, EXEC, **options)


def command_options(
    name: str, data: Mapping[str, Any], runner: list[str], *, child_limit: bool = False
) -> AllOptions:
    """Return the options of `create` for the session of a command."""
    return {
        "name": name,
        "permissions": "default",
        "args": [data["program"], *data["command"][1:]],
        "runner": runner,
        "wait": False,
        "child_limit": child_limit,
    }


def start_round(context: Context, caller: Caller, job: Job, prompt: str) -> Row:
    """Start the command of a later round of a review loop, or return the session that has it already."""
    attempt = job.attempt + 1
    name = names.default_name(job.data["workdir"], EXEC, label=f"{job.id}-{attempt}")
    view = context.registry.view()
    started = next((row for row in view.rows if row["name"] == name), None)
    if started is not None and started.get("delegate_job_id") == job.id:
        # The process that started it died before it could record the attempt.
        return started
    return start_command(context, caller, job.id, name, job.data, prompt, attempt=attempt)


def follow_command(context: Context, job: Job, row: Row | None) -> bool:
    """End a job whose command has ended; True while the command runs. `row` is the job's session."""
    has_ended = row is None or not is_running(row)
    if end_now(context, job.id, job.attempt, (row or _GONE) if has_ended else None):
        write_files(context, job.id)
        return False
    return not has_ended


def runs_on(row: Row) -> bool:
    """Tell whether the process of a command's session is alive."""
    identity = identity_of(row)
    return is_running(row) and identity is not None and process.is_alive(identity)


# Stands for a session that was forgotten.
_GONE: Any = {}
