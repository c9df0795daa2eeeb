"""mam job verify: run a script on a job, and exit with its exit code."""

from __future__ import annotations

from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the job and the script."""
    add_job(parser)
    parser.add_argument(
        "--validate", metavar="FILE", required=True, help="the script; it gets JOB_ID and REGISTRY_DIR"
    )


def run(call: Invocation) -> int:
    """Run the script."""
    import os

    from mam.core.safe_text import for_screen

    script = os.path.abspath(call.options.validate)
    document = call.fleet.jobs.verify(job_id(call), script)
    verdict = "PASS" if document["passed"] else f"FAIL (exit {document['exit_code']})"
    call.say(document, *for_screen(document["output"]).splitlines(), f"validation: {verdict}")
    return int(document["exit_code"])
