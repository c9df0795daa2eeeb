"""mam job cancel: end a job at once."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which job, why, and whether its session ends too."""
    add_job(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why, in one line")
    parser.add_argument("--stop", action="store_true", help="stop its session, too")


def run(call: Invocation) -> int:
    """End it."""
    from mam.surfaces.cli import render_jobs

    given = call.options
    done = call.fleet.jobs.cancel(
        job_id(call), reason=given.reason, stop=given.stop, folder=given.registry_dir
    )
    already = [] if done["changed"] else ["it had ended already"]
    return call.say(done, render_jobs.summary(done["job"], call.paint()), *already)
