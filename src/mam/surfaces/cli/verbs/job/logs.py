"""mam job logs: print the log of a job."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the job, or all log folders."""
    add_job(parser)
    parser.add_argument("--list", action="store_true", help="list the log folders of all jobs instead")


def run(call: Invocation) -> int:
    """Print the log."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.verbs.job import render_jobs

    if call.options.list:
        audits = call.fleet.jobs.audits()
        lines = [
            f"{clean(audit['job_id'])}  {clean(audit['status'])}  {clean(audit['directory'], 500)}"
            for audit in audits
        ]
        return call.say({"logs": audits}, *(lines or ["no job has a log"]))
    document = call.fleet.jobs.logs(job_id(call))
    lines = [] if call.as_json else [render_jobs.line(event, call.paint()) for event in document["events"]]
    return call.say(document, *lines, clean(document["directory"], 500))
