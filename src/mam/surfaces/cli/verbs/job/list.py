"""mam job list: list the jobs of this root."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: which jobs, and in which form."""
    parser.add_argument("--open", action="store_true", help="only open jobs")
    parser.add_argument("--ids", action="store_true", help="print only the ids, one per line")
    add_folder(parser)


def run(call: Invocation) -> int:
    """Print the jobs."""
    from mam.surfaces.cli.verbs.job import render_jobs

    jobs = call.fleet.jobs.list(only_open=call.options.open)
    if call.options.ids:
        ids = [job["job_id"] for job in jobs]
        return call.say({"ids": ids}, *ids)
    return call.say({"jobs": jobs}, *([] if call.as_json else render_jobs.table(jobs, call.paint())))
