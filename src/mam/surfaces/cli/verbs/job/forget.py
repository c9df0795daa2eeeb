"""mam job forget: remove jobs that have ended, with their files."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the jobs."""
    parser.add_argument("names", nargs="+", metavar="ID", help="ids of jobs that have ended")
    add_folder(parser)


def run(call: Invocation) -> int:
    """Forget the jobs, and print what became of each."""
    from mam.surfaces.cli.render_sessions import clean

    outcomes = call.fleet.jobs.forget(*call.options.names)
    lines = []
    for outcome in outcomes:
        job = clean(outcome["job_id"])
        if outcome["forgotten"]:
            lines.append(f"forgotten: {job}")
        else:
            lines.append(f"not forgotten: {job}: {clean(outcome['reason'], 300)}")
            lines += [f"  {clean(outcome['hint'], 300)}"] if outcome["hint"] else []
    call.say({"jobs": outcomes}, *lines)
    return 0 if all(outcome["forgotten"] for outcome in outcomes) else 1
