"""mam job logs: print the log of a job."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the job, or all log folders."""
    from mam.surfaces.cli.parser import count

    add_job(parser)
    parser.add_argument("--list", action="store_true", help="list the log folders of all jobs instead")
    parser.add_argument(
        "--output", action="store_true", help="print what the command of a job with --exec wrote, instead"
    )
    parser.add_argument(
        "--attempt", metavar="N", type=count, help="with --output: of this attempt (default: the last one)"
    )


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
    if call.options.output:
        from mam.core.safe_text import for_screen

        output = call.fleet.jobs.output(job_id(call), attempt=call.options.attempt)
        text = output["output"].decode("utf-8", "replace")
        return call.say({**output, "output": text}, *([] if call.as_json else for_screen(text).splitlines()))
    document = call.fleet.jobs.logs(job_id(call))
    lines = [] if call.as_json else [render_jobs.line(event, call.paint()) for event in document["events"]]
    return call.say(document, *lines, clean(document["directory"], 500))
