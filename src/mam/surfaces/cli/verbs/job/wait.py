"""mam job wait: wait until jobs have ended, on this machine or on another one."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]


def add_options(parser: Parser) -> None:
    """Add the options: the jobs, the timeout and the broker."""
    from mam.surfaces.cli.parser import span

    parser.add_argument(
        "names", nargs="*", metavar="ID", default=[], help="ids of jobs (default: all open jobs)"
    )
    parser.add_argument("--job", action="append", metavar="ID", default=[], help="the same, as an option")
    parser.add_argument("--timeout", metavar="TIME", type=span, help="wait at most this long: 90, 30m")
    parser.add_argument(
        "--broker", metavar="URL", help="wait for jobs of another machine, over mqtt:// or mqtts://"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="with --broker: the job's token (DIR/ID.token of --registry-dir)"
    )
    add_folder(parser)


def run(call: Invocation) -> int:
    """Wait for the jobs, and print each event."""
    from mam.surfaces.cli.verbs.job import render_jobs

    options = call.options
    names = [*options.names, *options.job]
    call.show_progress("waiting for events", after="the jobs continue; mam job list shows them")
    if options.broker is not None:
        return render_jobs.print_ends(call, _wait_remote(call, names))
    if options.token_file is not None:
        raise Usage("--token-file needs --broker", hint="it is for jobs of another machine")
    jobs = call.fleet.jobs.wait(
        names,
        render_jobs.Follower(call).print_event,
        timeout=options.timeout,
    )
    if not jobs and not call.as_json:
        return call.say({}, "no job is open")
    return render_jobs.print_ends(call, jobs)


def _wait_remote(call: Invocation, names: list[str]) -> list[Document]:
    from mam.surfaces.cli.verbs.job import render_jobs

    options = call.options
    if options.token_file is not None and len(names) != 1:
        raise Usage(
            "--token-file belongs to one job",
            hint="name one job, or use --registry-dir with ID.token for each",
        )
    folder = call.fleet.jobs.folder
    tokens = {name: options.token_file or f"{folder}/{name}.token" for name in names}
    return call.fleet.jobs.wait_remote(
        tokens,
        lambda event: render_jobs.print_event(call, event),
        broker=options.broker,
        timeout=options.timeout,
    )
