"""mam job submit: its options, and what a person sees of it until the end."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.job_runner.submission import JobOptions
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

TYPES = ("once", "loop", "human")


def add_options(parser: Parser) -> None:
    """What is to be done, by whom, and for how long."""
    from mam.core.settings import PERMISSIONS
    from mam.surfaces.cli.parser import count, span

    add = parser.add_argument
    add(
        "--agent", metavar="KIND", default="claude-code", help="who does it (claude-code); human for a person"
    )
    add("--prompt", metavar="TEXT", help="what is to be done")
    add("--prompt-file", metavar="FILE", help="the same from a file; - reads it from stdin")
    add("--workdir", metavar="DIR", help="where it is done (the current directory)")
    add("--session", metavar="NAME", help="give it to a session that runs")
    add("--agent-session", metavar="tmux:NAME", help="name of the new session; one that is taken is refused")
    add("--type", choices=TYPES, help="once, loop (with a reviewer), or human")
    add("--reviewer", metavar="KIND", help="of a loop: who looks at the work")
    add("--reviewer-session", metavar="tmux:NAME", help="of a loop: the name of the reviewer's session")
    add("--max-rounds", metavar="N", type=count, help="of a loop: give up after so many reviews (3)")
    add("--timeout", metavar="TIME", type=span, help="the job ends after this time (1h); 0 is never")
    add(
        "--idle-timeout",
        metavar="TIME",
        type=span,
        help="and after this time without any sign (2m); 0 is never",
    )
    add(
        "--validate",
        metavar="FILE",
        help="a script that decides about completed, with JOB_ID and REGISTRY_DIR",
    )
    add(
        "--expect",
        metavar="PATH",
        nargs="+",
        action="extend",
        default=[],
        help="files that must be there then",
    )
    add("--permissions", choices=PERMISSIONS, help="what the agent may do by itself (skip: everything)")
    add("--trust", action="store_true", help="answer the agent's question whether it may trust the directory")
    add(
        "--broker", metavar="URL", help="publish its events there too: mqtt:// or mqtts://, no password in it"
    )
    add("--mcp", action="store_true", help="give the agent mam's own tools, for this launch (mam mcp)")
    add("--dry-run", action="store_true", help="print what the agent would be told, and do nothing")
    add("--detach", action="store_true", help="return when the agent has its task; mam job wait follows it")
    add_folder(parser)


def run(call: Invocation) -> int:
    """Submit, and follow the job to its end unless that is not wanted."""
    given = call.options
    options: JobOptions = {
        "agent": given.agent,
        "workdir": given.workdir,
        "session": given.session,
        "agent_session": given.agent_session,
        "type": given.type,
        "reviewer": given.reviewer,
        "reviewer_session": given.reviewer_session,
        "max_rounds": given.max_rounds,
        "timeout": given.timeout,
        "idle_timeout": given.idle_timeout,
        "validate": given.validate,
        "expect": given.expect,
        "permissions": given.permissions,
        "trust": given.trust,
        "mcp": given.mcp,
        "folder": given.registry_dir,
        "broker": given.broker,
        "args": given.rest,
    }
    if given.dry_run:
        return _preview(call, call.fleet.jobs.preview(_prompt(call), **options))
    job = call.fleet.jobs.submit(_prompt(call), **options)
    return _detached(call, job) if given.detach else _follow(call, job)


def _preview(call: Invocation, found: Document) -> int:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    session = f" in {clean(found['agent_session'])}" if found["agent_session"] else ""
    said = f"dry run: {clean(found['agent'])}{session} would be told:"
    return call.say(found, said, "", *for_screen(found["instructions"]).splitlines())


def _detached(call: Invocation, job: Document) -> int:
    from mam.surfaces.cli import render_jobs

    return call.say({"job": job}, *_begun(call, job), render_jobs.audit(job))


def _follow(call: Invocation, job: Document) -> int:
    from mam.surfaces.cli import render_jobs
    from mam.surfaces.cli.output import write_lines

    call.quiet()
    if not call.as_json:
        write_lines(_begun(call, job), flush=True)
    name = job["job_id"]
    call.tell(f"following job {name}", after=f"it goes on: mam job wait {name}, or cancel")
    done = call.fleet.jobs.wait([job["job_id"]], lambda entry: render_jobs.tell(call, entry), from_start=True)
    code = render_jobs.ended(call, done)
    if not call.as_json:
        write_lines([render_jobs.audit(job)])
    return code


def _begun(call: Invocation, job: Document) -> list[str]:
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    if job["type"] == "human":
        told = call.fleet.jobs.instructions(job["job_id"])
        return [f"job {clean(job['job_id'])} is for a person:", "", *for_screen(told).splitlines(), ""]
    session = clean(job["agent_session"])
    said = f"job {clean(job['job_id'])}: {clean(job['agent'])} in {session}"
    permissions = f"permissions {clean(job['permissions'])}"
    if call.options.session is not None:
        return [f"{said}, which runs with {permissions}"]
    return [f"{said}, {permissions} (setting job_permissions, or --permissions)"]


def _prompt(call: Invocation) -> str:
    from mam.surfaces.cli.verbs.create import read_prompt

    given = call.options
    if (given.prompt is None) == (given.prompt_file is None):
        raise Usage("say what is to be done", hint="--prompt TEXT or --prompt-file FILE")
    return str(given.prompt) if given.prompt is not None else read_prompt(given.prompt_file)
