"""mam job status: one job, whole."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which job."""
    add_job(parser)


def run(call: Invocation) -> int:
    """Show it."""
    from mam.surfaces.cli import render_jobs

    found = call.fleet.jobs.status(job_id(call), folder=call.options.registry_dir)
    return call.say({"job": found}, *([] if call.as_json else render_jobs.whole(found, call.paint())))
