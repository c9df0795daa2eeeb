"""mam restore: bring the state of a root back from a copy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

# How mam calls the pages of a database that say where its tables are.
_SCHEMA = "sqlite_schema"
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
    parser.ways = {"--list": "mam backup --list shows the copies"}
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
    if document.get("written_back"):
        return call.say(
            document, "SQLite has written the emptied database back from its log; nothing was lost"
        )
    return call.say(document, *_lines(document))


def _lines(document: Document) -> list[str]:
    from mam.surfaces.cli.render_rebuild import brought, counted, left_behind, listed
    from mam.surfaces.cli.render_sessions import clean

    lines = [_first_line(document)]
    older = document["older_copy"]
    if older is not None:
        holds = f"{counted(older['sessions'], 'session')}, {counted(older['messages'], 'message')}"
        path = clean(older["file"], 4096)
        lines.append(f"an older copy has more: {path} ({holds}); mam restore {path} --yes goes back to it")
    for copy in document["tried"]:
        path, problem = clean(copy["file"], 4096), clean(copy["problem"], 4096)
        lines.append(f"not taken: {problem if path in problem else f'{path}: {problem}'}")
    if document["salvage"] is not None:
        lines += _salvaged(document["salvage"], document)
    lines.append(f"brought back: {brought(document['taken'])}")
    if document["sessions_taken_back"]:
        lines.append(f"live agents taken back: {listed(document['sessions_taken_back'])}")
    if document["conversations_unknown"]:
        lines.append(
            f"their conversation is not known: {listed(document['conversations_unknown'])}; "
            "it is found again when the agent reports it, such as at its next turn"
        )
    if document["sessions_still_running"]:
        lines.append(f"still running: {listed(document['sessions_still_running'])}")
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
    """Return what was lost, then the tables and the damaged pages that have to do with it."""
    from mam.surfaces.cli.render_rebuild import counted
    from mam.surfaces.cli.render_sessions import clean

    summary = salvage["summary"]
    lines = [_verdict(salvage, document)]
    for table, counts in summary["tables"].items():
        parts = [f"{counted(counts['database'], 'row')} from the damaged database"]
        parts += [f"{counts['copy']} from the copy"] if counts["copy"] else []
        parts += [f"{counts['lost']} lost"] if counts["lost"] else []
        lines.append(f"{clean(table)}: {', '.join(parts)}")
    lines += _pages(salvage)
    if salvage["wal"]["problem"]:
        lines.append(f"the log of the database: {clean(salvage['wal']['problem'], 200)}")
    if salvage["copy_problem"]:
        lines.append(f"the copy was not readable: {clean(salvage['copy_problem'], 200)}")
    elif document["file"]:
        lines.append(f"the copy: {clean(document['file'], 4096)} of {document['made_at']}")
    elif summary["pages_with_rows"]:
        lines.append("there is no copy, so what the database lacks is lost")
    return lines


def _verdict(salvage: Document, document: Document) -> str:
    from mam.surfaces.cli.render_rebuild import counted

    summary = salvage["summary"]
    lost = summary["lost"]
    if lost:
        verdict = f"{counted(lost, 'row')} {'was' if lost == 1 else 'were'} lost"
    elif summary["unreadable_pages"] or salvage["wal"]["problem"]:
        verdict = "nobody can tell whether a row was lost"
    elif summary["pages_with_rows"]:
        verdict = "no row is known to be lost"
    else:
        verdict = "nothing was lost"
    if summary["from_copy"]:
        verdict += f"; {summary['from_copy']} came from the copy of {document['made_at']}"
    return verdict


def _pages(salvage: Document) -> list[str]:
    """Return how many pages are damaged, and which of them held rows or led to them."""
    from mam.surfaces.cli.render_rebuild import MOST_LISTED, counted

    held = [page for page in salvage["pages"] if page["page"] in salvage["summary"]["pages_with_rows"]]
    count = len(salvage["pages"])
    if not count:
        return []
    damaged = f"{count} of {counted(salvage['page_count'], 'page')} {'was' if count == 1 else 'were'} damaged"
    if not held:
        return [f"{damaged}; none held rows"]
    lost = [page for page in held if not (page["tree"] + page["leaf"] + page["left_out"])]
    lines = [f"{damaged}; not readable: {_by_table(lost)}" if lost else damaged]
    in_part = [page for page in held if page not in lost]
    lines += [_page(page) for page in in_part[:MOST_LISTED]]
    if len(in_part) > MOST_LISTED:
        lines.append(f"… and {len(in_part) - MOST_LISTED} more; --json has all")
    return lines


def _by_table(pages: list[Document]) -> str:
    """Return pages by what they held: `7, 9 (messages), 12 (unknown)`."""
    from mam.surfaces.cli.render_rebuild import MOST_LISTED

    groups: dict[str, list[str]] = {}
    for page in pages[:MOST_LISTED]:
        groups.setdefault(_held_by(page), []).append(str(page["page"]))
    text = ", ".join(f"{', '.join(numbers)} ({table})" for table, numbers in groups.items())
    return (
        text if len(pages) <= MOST_LISTED else f"{text} and {len(pages) - MOST_LISTED} more (--json has all)"
    )


def _held_by(page: Document) -> str:
    from mam.surfaces.cli.render_sessions import clean

    table = page["table"]
    return "unknown" if table is None else "list of tables" if table == _SCHEMA else clean(table)


def _page(page: Document) -> str:
    from mam.surfaces.cli.render_rebuild import counted

    counts = [f"{counted(page['tree'] + page['leaf'], 'row')} read"]
    counts += [f"{page['left_out']} left out"] if page["left_out"] else []
    counts += [f"{page['from_copy']} from the copy"] if page["from_copy"] else []
    return f"page {page['page']} ({_held_by(page)}): {', '.join(counts)}"


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
    if document["jobs_not_in_copy"]:
        newer = listed(document["jobs_not_in_copy"])
        lines.append(f"jobs that the copy does not have, ended with an error (submit them again): {newer}")
    return lines
