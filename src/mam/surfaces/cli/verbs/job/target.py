"""Arguments that several subcommands of `mam job` share: the job and the folder of records."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_folder(parser: Parser) -> None:
    """Add the option for the folder of job records; `Invocation.fleet` opens the fleet with it."""
    parser.add_argument(
        "--registry-dir", dest="records_folder", metavar="DIR", help="the folder of job records (.mam/jobs)"
    )


def add_job(parser: Parser) -> None:
    """Add the arguments for one job: an id, or --job."""
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="id of the job (default in an agent: its own job)"
    )
    parser.add_argument("--job", metavar="ID", help="the same, as an option")
    add_folder(parser)


def job_id(call: Invocation) -> str | None:
    """Return the job id of the command line; None if it names no job."""
    argument: str | None = call.options.id
    option: str | None = call.options.job
    if argument is not None and option is not None and argument != option:
        raise Usage("the command line names two jobs", hint="give ID or --job ID")
    return option if argument is None else argument
