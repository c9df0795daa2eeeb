"""Which job a command line means, and where its record lies."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_folder(parser: Parser) -> None:
    """Take the folder of records."""
    parser.add_argument("--registry-dir", metavar="DIR", help="the folder of records (.mam/jobs)")


def add_job(parser: Parser) -> None:
    """Take one job, as a word or with --job."""
    parser.add_argument("id", nargs="?", metavar="ID", help="id of the job; inside an agent its own")
    parser.add_argument("--job", metavar="ID", help="the same, as an option")
    add_folder(parser)


def job_id(call: Invocation) -> str | None:
    """Return the job that is named; None where none is."""
    given: str | None = call.options.id
    option: str | None = call.options.job
    if given is not None and option is not None and given != option:
        raise Usage("two jobs are named", hint="give ID or --job ID")
    return option if given is None else given
