"""mam job wait: until jobs have ended, here or on another machine."""

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
    """Which jobs, how long, and where."""
    from mam.surfaces.cli.parser import span

    parser.add_argument("names", nargs="*", metavar="ID", default=[], help="ids of jobs; else all open ones")
    parser.add_argument("--job", action="append", metavar="ID", default=[], help="the same, as an option")
    parser.add_argument("--timeout", metavar="TIME", type=span, help="wait so long at most: 90, 30m")
    parser.add_argument("--broker", metavar="URL", help="jobs of another machine, over mqtt:// or mqtts://")
    parser.add_argument(
        "--token-file", metavar="FILE", help="with --broker: the job's token (DIR/ID.token of --registry-dir)"
    )
    add_folder(parser)


def run(call: Invocation) -> int:
    """Wait, and print each event."""
    from mam.surfaces.cli import render_jobs

    given = call.options
    named = [*given.names, *given.job]
    call.tell("waiting for events", after="the jobs go on; mam job list shows them")
    if given.broker is not None:
        return render_jobs.ended(call, _wait_remote(call, named))
    if given.token_file is not None:
        raise Usage("a token is for jobs of another machine", hint="name their --broker too")
    done = call.fleet.jobs.wait(
        named, lambda entry: render_jobs.tell(call, entry), timeout=given.timeout, folder=given.registry_dir
    )
    if not done and not call.as_json:
        return call.say({}, "no job is open")
    return render_jobs.ended(call, done)


def _wait_remote(call: Invocation, named: list[str]) -> list[Document]:
    from mam.surfaces.cli import render_jobs

    given = call.options
    if given.token_file is not None and len(named) != 1:
        raise Usage("a token file is of one job", hint="name one, or --registry-dir with ID.token of each")
    folder = given.registry_dir or call.fleet.jobs.folder
    tokens = {one: given.token_file or f"{folder}/{one}.token" for one in named}
    return call.fleet.jobs.wait_remote(
        tokens, lambda event: render_jobs.tell(call, event), broker=given.broker, timeout=given.timeout
    )
