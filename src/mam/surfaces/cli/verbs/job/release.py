"""mam job release: open parked jobs again."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the jobs."""
    parser.add_argument("names", nargs="+", metavar="ID", help="ids of parked jobs, or all")
    add_folder(parser)


def run(call: Invocation) -> int:
    """Release the jobs, and print what became of each."""
    from mam.surfaces.cli.render_sessions import clean

    names = call.options.names
    if "all" in names and len(names) > 1:
        raise Usage("name jobs, or all", hint="mam job release all")
    outcomes = call.fleet.jobs.release(*([] if names == ["all"] else names))
    lines = [] if outcomes else ["no job is parked"]
    for outcome in outcomes:
        job = clean(outcome["job_id"])
        if outcome["released"]:
            lines.append(f"released: {job} is {outcome['status']}; its timeouts count from now")
        else:
            lines.append(f"not released: {job}: {clean(outcome['reason'], 300)}")
            lines += [f"  {clean(outcome['hint'], 300)}"] if outcome["hint"] else []
    call.say({"jobs": outcomes}, *lines)
    return 0 if all(outcome["released"] for outcome in outcomes) else 1
