"""mam job status: print one job with all its fields."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the job."""
    add_job(parser)


def run(call: Invocation) -> int:
    """Print the job."""
    from mam.surfaces.cli.verbs.job import render_jobs

    job = call.fleet.jobs.status(job_id(call))
    return call.say({"job": job}, *([] if call.as_json else render_jobs.details(job, call.paint())))
