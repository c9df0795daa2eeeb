"""mam restore: bring the state of a root back from a copy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

DESCRIPTION = """\
Bring the state of this root back. Without FILE: where .mam is gone, from the newest copy that
mam made by itself; where the database is damaged, from what it still holds, and from the newest
copy for what it lacks. With FILE, which is such a copy or one of mam backup, the root goes back
to the time of that copy.

Nothing is done twice: live agents are the same sessions as before. A held message that an agent
has got since is submitted, and one of which nobody can tell that is unconfirmed. Open jobs go on
if their agent runs, and are parked otherwise. The former state is kept, and the answer says
where. Only a person may use this."""
EXAMPLES = """
  mam restore                          the state is gone, or damaged
  mam restore --dry-run                show what would be done
  mam restore ~/monday.db --yes        go back to a copy, without a question"""


def add_options(parser: Parser) -> None:
    """Add the copy, and how to go on."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="a copy; without it, see above")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(call: Invocation) -> int:
    """Restore; print what came from where, and what was put to rest."""
    from mam.core.errors import NeedsConfirmation, Refused

    options, fleet = call.options, call.fleet
    try:
        document = fleet.restore(options.file, is_confirmed=options.yes, dry_run=options.dry_run)
    except NeedsConfirmation as error:
        if not call.may_ask():
            raise
        if not call.ask(f"{error.message.partition(';')[0]}. Go back?"):
            raise Refused("not confirmed; mam has not changed anything") from None
        document = fleet.restore(options.file, is_confirmed=True)
    if document.get("finished"):
        return call.say(document, "an interrupted restore is finished")
    return call.say(document, *_lines(document))


def _lines(document: Document) -> list[str]:
    from mam.surfaces.cli.render_rebuild import counted, left_behind, listed
    from mam.surfaces.cli.render_sessions import clean

    taken = document["taken"]
    lines = [_first_line(document)]
    older = document["older_copy"]
    if older is not None:
        holds = f"{counted(older['sessions'], 'session')}, {counted(older['messages'], 'message')}"
        path = clean(older["file"], 4096)
        lines.append(f"an older copy has more: {path} ({holds}); mam restore {path} --yes goes back to it")
    for copy in document["tried"]:
        lines.append(f"not readable: {clean(copy['file'], 4096)}: {clean(copy['problem'], 200)}")
    if document["salvage"] is not None:
        lines += _salvaged(document["salvage"], document)
    counts = [f"{taken.get(name, 0)} {name}" for name in ("sessions", "messages", "jobs", "tasks")]
    lines.append(f"brought back: {', '.join(counts)}")
    if document["sessions_taken_back"]:
        lines.append(f"live agents taken back: {listed(document['sessions_taken_back'])}")
    lines += [*_at_rest(document), *left_behind(document)]
    if document["kept"]:
        lines.append(f"the former state is kept in {clean(document['kept'], 4096)}")
    return lines


def _first_line(document: Document) -> str:
    from mam.surfaces.cli.render_sessions import clean

    verb = "would be restored" if document["dry_run"] else "is restored"
    if document["salvage"] is not None:
        return f"this root {verb} from its damaged database"
    line = f"this root {verb} from {clean(document['file'], 4096)}, a copy of {document['made_at']}"
    if document["original"]:
        line += f"; it is a root of its own, and not {clean(document['original'], 4096)}"
    return line


def _salvaged(salvage: Document, document: Document) -> list[str]:
    """Return for each table and each damaged page what came from where."""
    from mam.surfaces.cli.render_rebuild import MOST_LISTED
    from mam.surfaces.cli.render_sessions import clean

    lines = []
    for table, sources in salvage["sources"].items():
        parts = [f"{sources['tree'] + sources['leaf']} from the damaged database"]
        parts += [f"{sources['copy']} from the copy"] if sources["copy"] else []
        lines.append(f"{clean(table)}: {', '.join(parts)}")
    lines += [_page(page) for page in salvage["pages"][:MOST_LISTED]]
    if len(salvage["pages"]) > MOST_LISTED:
        lines.append(f"{len(salvage['pages']) - MOST_LISTED} more damaged pages (--json lists them)")
    if salvage["wal"]["problem"]:
        lines.append(f"the log of the database: {clean(salvage['wal']['problem'], 200)}")
    if salvage["copy_problem"]:
        lines.append(f"the copy was not readable: {clean(salvage['copy_problem'], 200)}")
    elif document["file"]:
        lines.append(f"the copy: {clean(document['file'], 4096)} of {document['made_at']}")
    else:
        lines.append("there is no copy, so what the database lacks is lost")
    return lines


def _page(page: Document) -> str:
    from mam.surfaces.cli.render_sessions import clean

    what = clean(page["what"]) + (f" of {clean(page['table'])}" if page["table"] else "")
    counts = f"{page['tree'] + page['leaf']} rows read, {page['left_out']} left out"
    filled = "" if page["from_copy"] is None else f", {page['from_copy']} from the copy"
    return f"page {page['page']} ({what}): {clean(page['problem'], 200)}; {counts}{filled}"


def _at_rest(document: Document) -> list[str]:
    from mam.surfaces.cli.render_rebuild import listed

    messages, jobs = document["messages"], document["jobs"]
    lines = [
        f"{word}: {listed(messages[state])}"
        for state, word in (
            ("held", "messages still held"),
            ("submitted", "messages that the agents have got since"),
            ("queued", "messages that the agents have queued since"),
            ("unconfirmed", "messages of which nobody can tell that (look: mam read)"),
            ("parked", "parked messages (mam inbox --release ID…, or all)"),
        )
        if messages.get(state)
    ]
    if jobs["going_on"]:
        lines.append(f"jobs that go on: {listed(jobs['going_on'])}")
    if jobs["parked"]:
        lines.append(f"parked jobs (mam job release ID…, or all): {listed(jobs['parked'])}")
    return lines
