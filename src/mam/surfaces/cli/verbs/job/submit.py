"""mam job submit: give work to an agent, and follow the job to its end."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.jobs import JobOptions
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

TYPES = ("once", "loop", "human")


def add_options(parser: Parser) -> None:
    """Add the options: the work, the agent and the limits."""
    from mam.core.settings import PERMISSIONS
    from mam.surfaces.cli.parser import count, span

    add = parser.add_argument
    add(
        "--agent",
        metavar="KIND",
        help="the agent kind (claude); human for a person",
    )
    add(
        "--exec",
        dest="runs_command",
        action="store_true",
        help="run the command after -- instead of an agent; it gets the prompt, if any, on stdin, or by "
        "{prompt_file} or {prompt}; its exit status is the end",
    )
    add("--prompt", metavar="TEXT", help="the work to do")
    add("--prompt-file", metavar="FILE", help="read the work from a file; - reads it from stdin")
    add("--workdir", metavar="DIR", help="the directory of the work (default: the current one)")
    add("--session", metavar="NAME", help="give the job to this running session")
    add("--agent-session", metavar="tmux:NAME", help="name of the new session; it must not exist yet")
    add("--type", choices=TYPES, help="once, loop (with a reviewer), or human")
    add("--reviewer", metavar="KIND", help="of a loop: the reviewer's agent kind")
    add("--reviewer-session", metavar="tmux:NAME", help="of a loop: the name of the reviewer's session")
    add("--max-rounds", metavar="N", type=count, help="of a loop: give up after this many reviews (3)")
    add("--timeout", metavar="TIME", type=span, help="end the job after this time (1h); 0 means never")
    add(
        "--idle-timeout",
        metavar="TIME",
        type=span,
        help="end the job after this time without an event while the agent does not work (2m); 0 means never",
    )
    add(
        "--validate",
        metavar="FILE",
        help="a script that accepts or refuses the result; it gets JOB_ID and REGISTRY_DIR",
    )
    add(
        "--expect",
        metavar="PATH",
        nargs="+",
        action="extend",
        default=[],
        help="files that must exist at the end",
    )
    add("--permissions", choices=PERMISSIONS, help="what the agent may do without asking (skip: everything)")
    add("--trust", action="store_true", help="let the agent trust the directory")
    add(
        "--broker",
        metavar="URL",
        help="also publish events to this broker: mqtt:// or mqtts://, without a password",
    )
    add("--mcp", action="store_true", help="give the agent mam's own tools (mam mcp), also after a resume")
    add("--dry-run", action="store_true", help="print the message to the agent, and do nothing")
    add("--detach", action="store_true", help="return when the agent has its task; mam job wait follows it")
    add_folder(parser)


def run(call: Invocation) -> int:
    """Submit the job, and follow it to its end unless --detach or --dry-run is given."""
    options = call.options
    job_options: JobOptions = {
        "agent": options.agent,
        "workdir": options.workdir,
        "session": options.session,
        "agent_session": options.agent_session,
        "type": options.type,
        "reviewer": options.reviewer,
        "reviewer_session": options.reviewer_session,
        "max_rounds": options.max_rounds,
        "timeout": options.timeout,
        "idle_timeout": options.idle_timeout,
        "validate": options.validate,
        "expect": options.expect,
        "permissions": options.permissions,
        "trust": options.trust,
        "mcp": options.mcp,
        "broker": options.broker,
        **({"command": options.rest} if options.runs_command else {"args": options.rest}),
    }
    if options.dry_run:
        return _preview(call, call.fleet.jobs.preview(_prompt(call), **job_options))
    job = call.fleet.jobs.submit(_prompt(call), **job_options)
    return _detached(call, job) if options.detach else _follow(call, job)


def _preview(call: Invocation, preview: Document) -> int:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    session = f" in {clean(preview['agent_session'])}" if preview["agent_session"] else ""
    if "argv" in preview:
        import shlex

        prompt = "its stdin" if preview["stdin"] else "its prompt"
        head = f"dry run:{session} would run {clean(shlex.join(preview['argv']), 4096)}"
        lines = for_screen(preview["instructions"]).splitlines()
        if not lines:
            return call.say(preview, head, "", "its stdin would be empty")
        return call.say(preview, head, "", f"{prompt} would be:", *lines)
    head = f"dry run: the message to {clean(preview['agent'])}{session} would be:"
    return call.say(preview, head, "", *for_screen(preview["instructions"]).splitlines())


def _detached(call: Invocation, job: Document) -> int:
    from mam.surfaces.cli.verbs.job import render_jobs

    code = call.say({"job": job}, *_head(call, job), render_jobs.audit(job))
    if not call.as_json:
        call.show_note(f"mam job wait {job['job_id']} follows it")
    return code


def _follow(call: Invocation, job: Document) -> int:
    from mam.surfaces.cli.output import write_lines
    from mam.surfaces.cli.verbs.job import render_jobs

    call.clear_progress()
    if not call.as_json:
        write_lines(_head(call, job), flush=True)
    name = job["job_id"]
    call.show_progress(f"following job {name}", after=f"the job continues: mam job wait {name}, or cancel")
    jobs = call.fleet.jobs.wait([name], render_jobs.Follower(call).print_event, from_start=True)
    code = render_jobs.print_ends(call, jobs)
    if not call.as_json:
        write_lines([render_jobs.audit(job)])
    return code


def _head(call: Invocation, job: Document) -> list[str]:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    if job["type"] == "human":
        instructions = call.fleet.jobs.instructions(job["job_id"])
        return [
            f"job {clean(job['job_id'])} is for a person:",
            "",
            *for_screen(instructions).splitlines(),
            "",
        ]
    session = clean(job["agent_session"])
    if job["command"]:
        return [f"job {clean(job['job_id'])}: {clean(job['command'][0], 200)} in {session}"]
    head = f"job {clean(job['job_id'])}: {clean(job['agent'])} in {session}"
    permissions = f"permissions {clean(job['permissions'])}"
    if call.options.session is not None:
        return [f"{head}, which runs with {permissions}"]
    return [f"{head}, {permissions} (setting job_permissions, or --permissions)"]


def _prompt(call: Invocation) -> str | None:
    """Return the prompt; None if there is none, which only a command may do without."""
    from mam.surfaces.cli.text_input import read_prompt

    options = call.options
    if options.prompt is not None and options.prompt_file is not None:
        raise Usage("--prompt and --prompt-file both give the prompt", hint="leave one of them out")
    return read_prompt(options.prompt_file) if options.prompt_file is not None else options.prompt
