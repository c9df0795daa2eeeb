"""mam job cancel: end a job at once."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the job, the reason, and whether to stop its session."""
    add_job(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why, in one line")
    parser.add_argument("--stop", action="store_true", help="also stop its session")


def run(call: Invocation) -> int:
    """Cancel the job."""
    from mam.surfaces.cli.verbs.job import render_jobs

    options = call.options
    document = call.fleet.jobs.cancel(job_id(call), reason=options.reason, stop=options.stop)
    note = [] if document["changed"] else ["the job had already ended"]
    return call.say(document, render_jobs.summary(document["job"], call.paint()), *note)
