"""mam backup: copy the state of this root, or list its copies."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint

DESCRIPTION = """\
Copy the state of this root now, beside the copies that mam makes by itself; --list shows them.
With FILE the copy is written there. It has no tokens of jobs, unless you say --with-secrets."""
EXAMPLES = """
  mam backup
  mam backup --list
  mam backup ~/mam-2026-11-18.db
  mam backup /media/disk/mam.db --with-secrets --force"""


def add_options(parser: Parser) -> None:
    """Add the options: the file, and what it may have."""
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help="write the copy into this file")
    add("--with-secrets", action="store_true", help="let FILE have the tokens of jobs")
    add("--force", action="store_true", help="replace FILE")
    add("--list", action="store_true", help="list the copies that there are")


def run(call: Invocation) -> int:
    """Make a copy, or list the copies."""
    from mam.core.errors import Usage
    from mam.core.sizes import short_size
    from mam.surfaces.cli.render_sessions import clean

    options = call.options
    is_for_file = options.with_secrets or options.force
    if options.list:
        if options.file is not None or is_for_file:
            raise Usage("--list takes no FILE and no other option", hint="mam backup --list")
        copies = call.fleet.monitor.backups()
        return call.say({"copies": copies}, *([] if call.as_json else show(copies, call.paint())))
    if options.file == "-":
        raise Usage("a copy cannot go to stdout", hint="name a file: mam backup FILE (./- is a file, too)")
    if options.file is not None:
        copy = call.fleet.monitor.backup_to(
            options.file, with_secrets=options.with_secrets, force=options.force
        )
    elif is_for_file:
        raise Usage("--with-secrets and --force are for a FILE", hint="mam backup FILE --with-secrets")
    else:
        copy = call.fleet.monitor.backup()
    tokens = ", with the tokens of jobs" if copy["has_secrets"] else ""
    if options.file is not None:
        tokens = tokens or ", without the tokens of jobs"
    return call.say(copy, f"copied to {clean(copy['path'], 4096)} ({short_size(copy['size'])}{tokens})")


def show(copies: list[dict[str, Any]], paint: Paint) -> list[str]:
    """Return the copies as a table."""
    from mam.core.sizes import short_size
    from mam.core.times import short_age
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not copies:
        return ["there is no copy yet"]
    columns = (
        Column("AGE"),
        Column("SIZE"),
        Column("REASON"),
        # The argument of mam restore.
        Column("FILE"),
    )
    rows = [
        [
            (short_age(copy["age"]), None),
            (short_size(copy["size"]), None),
            (clean(copy["reason"]), None),
            (clean(copy["path"], 4096), "dim"),
        ]
        for copy in copies
    ]
    return render(columns, rows, paint)
