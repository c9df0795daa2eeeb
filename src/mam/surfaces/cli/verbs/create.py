"""mam create: start an agent in its own pane."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Start an agent in its own tmux pane, and return when it is ready.
With the name of an ended session, start that session again, with a new conversation.
mam passes arguments after -- to the agent's program."""
EXAMPLES = """
  mam create --agent claude --role developer
  mam create --agent codex --session api --prompt "read README.md and say what is missing"
  mam create --agent claude --worktree fix-login --permissions ask
  mam create --agent claude --role lead --mcp      with tools to control other agents
  mam create --session api                  start an ended session again
  mam create --agent practice -- --speed 80"""
TAKES_REST = True


def add_options(parser: Parser) -> None:
    """Add the options: the agent, the session and its start."""
    from mam.core.settings import PERMISSIONS
    from mam.surfaces.cli.parser import add_run_recorded, span

    add = parser.add_argument
    add("--agent", metavar="KIND", help="claude, codex, gemini, …, human, practice, or a program on PATH")
    add("--session", metavar="NAME", help="name of the new session (default: made from the directory)")
    add("--role", metavar="ROLE", help="role of the session; it never changes once set")
    add(
        "--tmux-server",
        metavar="SERVER",
        help="tmux -L name or socket path (default: TMUX_SERVER_NAME, or default)",
    )
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="the first message, sent when the agent is ready")
    prompt.add_argument(
        "--prompt-file", metavar="FILE", help="read the first message from a file; - reads it from stdin"
    )
    add(
        "--permissions",
        choices=PERMISSIONS,
        help="what the agent may do without asking (default: the agent's own setting)",
    )
    add("--trust", action="store_true", help="let the agent trust the directory")
    add_run_recorded(parser)
    add("--model", metavar="MODEL", help="the model, as the agent names it")
    add("--env", metavar="K=V", action="append", default=[], help="a variable for the agent; may be repeated")
    add("--worktree", metavar="BRANCH", nargs="?", const=True, help="work in a new git worktree")
    add("--mcp", action="store_true", help="give the agent mam's own tools (mam mcp), also after a resume")
    add("--submit-job", metavar="TEXT", help="give the agent this work as a job; mam job wait follows it")
    add("--no-wait", action="store_true", help="do not wait until the agent is ready")
    add("--timeout", metavar="TIME", type=span, help="how long to wait for the agent: 90, 2m (default 60)")


def run(call: Invocation) -> int:
    """Create the session, and print it."""
    from mam.core.errors import Usage
    from mam.core.names import parse_environment
    from mam.surfaces.cli.render_sessions import line
    from mam.surfaces.cli.text_input import read_prompt

    options = call.options
    if options.no_wait and (options.prompt or options.prompt_file):
        raise Usage(
            "a prompt needs a wait until the agent is ready", hint="leave out --no-wait or the prompt"
        )
    session = call.fleet.sessions.create(
        options.agent,
        name=options.session,
        role=options.role,
        tmux_server=options.tmux_server,
        prompt=read_prompt(options.prompt_file) if options.prompt_file is not None else options.prompt,
        permissions=options.permissions,
        trust=options.trust,
        run_recorded=options.run_recorded,
        model=options.model,
        env=parse_environment(options.env),
        worktree=options.worktree,
        mcp=options.mcp,
        args=options.rest,
        wait=not options.no_wait,
        timeout=options.timeout,
        submit_job=options.submit_job,
    )
    state = "started" if options.no_wait else "ready"
    job = session.row["delegate_job_id"] if options.submit_job is not None else None
    lines = [f"{state}: {line(session.row)}", *([f"job {job}: mam job wait {job} follows it"] if job else [])]
    return call.say({"session": session.row, "job_id": job}, *lines)
