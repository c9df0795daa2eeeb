"""mam job logs: what happened to a job."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which job, or every audit folder."""
    add_job(parser)
    parser.add_argument("--list", action="store_true", help="list every audit folder instead")


def run(call: Invocation) -> int:
    """Print its log."""
    from mam.surfaces.cli import render_jobs
    from mam.surfaces.cli.render_sessions import clean

    if call.options.list:
        audits = call.fleet.jobs.audits()
        lines = [
            f"{clean(one['job_id'])}  {clean(one['status'])}  {clean(one['directory'], 500)}"
            for one in audits
        ]
        return call.say({"logs": audits}, *(lines or ["no job has left a log"]))
    found = call.fleet.jobs.logs(job_id(call), folder=call.options.registry_dir)
    lines = [] if call.as_json else [render_jobs.line(one, call.paint()) for one in found["events"]]
    return call.say(found, *lines, clean(found["directory"], 500))
