"""mam job list: the jobs of this root."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which jobs."""
    parser.add_argument("--open", action="store_true", help="only those that have not ended")
    parser.add_argument("--ids", action="store_true", help="print ids only, one a line")
    add_folder(parser)


def run(call: Invocation) -> int:
    """List them."""
    from mam.surfaces.cli import render_jobs

    found = call.fleet.jobs.list(folder=call.options.registry_dir, only_open=call.options.open)
    if call.options.ids:
        ids = [one["job_id"] for one in found]
        return call.say({"ids": ids}, *ids)
    return call.say({"jobs": found}, *([] if call.as_json else render_jobs.table(found, call.paint())))
