"""Copies the rows of a database that anybody may have written into a new database of mam's own schema.

Only values cross over: no trigger, view, generated column, index or type of the other schema does. Each value
is bounded and parsed. A row with a value that mam could not have written is left out and listed. Rows that
say what some process is doing now (intents, the outbox, evidence, drifts, notices) are not copied.
"""

from __future__ import annotations

import json
import re
import sqlite3

from mam.adapters.store import database, schema
from mam.adapters.store.rows_and_log import dump
from mam.core import record_limits
from mam.core.errors import Damaged, InvalidName, RegistryCorrupt, SchemaTooNew, Usage
from mam.core.job_event import NAMES, is_job_id
from mam.core.job_file_format import parse_facts
from mam.core.job_rules import JobStatus
from mam.core.message_rules import LARGEST, MessageState, parse_id
from mam.core.names import is_session_id, parse_server
from mam.core.record_limits import LARGEST_NUMBER, LONGEST_TEXT
from mam.core.row_checks import flaws, is_conversation_id
from mam.core.session_row import with_all_fields
from mam.core.task_format import STATUSES
from mam.core.team_plan import ACTIVE, CLOSED, READY, SPAWNING
from mam.core.team_plan import is_session_id as is_team_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Values = dict[str, Any]

# In the order in which they are copied. The rows of `meta` that are kept are copied by themselves.
TABLES = (
    *("sessions", "log", "messages", "jobs", "job_prompts", "job_events"),
    *("teams", "members", "tasks", "team_lines"),
    *("board_tasks", "board_comments", "board_events", "board_runs", "board_links"),
)
_MOST_LISTED = 100
# Columns that are not copied: they name processes, or show what was written into a file.
SKIPPED = {
    "sessions": ("written", "block"),
    "messages": ("owner", "looked"),
    "members": ("owner", "words"),
    "board_tasks": ("claim_lock", "claim_expires", "worker_pid"),
    "board_runs": ("claim_lock", "claim_expires", "worker_pid"),
}
_LAYOUT = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
_PANE, _WINDOW = re.compile(r"%[0-9]{1,9}\Z"), re.compile(r"@[0-9]{1,9}\Z")
_EVENT_FIELDS: dict[str, type] = {"event": str, "timestamp": str, "detail": str, "seq": int, "data": dict}


class Unfit(Exception):
    """A row holds something that mam could not have written."""


class _NotText:
    """Stands for a text of the database that is not valid Unicode."""


class CopyReport:
    """What was copied from a database, what was left out, and what was dropped on purpose."""

    __slots__ = ("dropped", "left_out", "left_out_count", "taken")

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}
        # The first rows that were left out: their table, their key and the reason.
        self.left_out: list[dict[str, str]] = []
        self.left_out_count = 0
        self.dropped: dict[str, int] = {}

    def leave_out(self, table: str, key: object, reason: str) -> None:
        """Note that a row, or a whole table, was left out."""
        self.left_out_count += 1
        if len(self.left_out) < _MOST_LISTED:
            self.left_out.append({"table": table, "key": str(key)[:100], "reason": reason})


def check_source(path: str, name: str = "the state of this root") -> sqlite3.Connection:
    """Open the copy of a database in a folder of mam's own; raise Damaged if mam cannot read it.

    `name` is what a person calls the database.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        with database.errors(path):
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version > len(schema.STATE_MIGRATIONS):
                known = f"{len(schema.STATE_MIGRATIONS)}.{len(schema.STATE_ADDITIONS)}"
                raise database.too_new(connection, name, known)
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok" or (version < 1 and _has_tables(connection)):
                raise RegistryCorrupt(f"{name} is not a sound database of mam")
    except SchemaTooNew:
        connection.close()
        raise
    except Damaged as error:
        connection.close()
        raise RegistryCorrupt(
            f"{name} cannot be taken in: its database is damaged, or not one of mam",
            hint="move its .mam away; mam then reads the registry file beside it",
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def copy_rows(
    source: sqlite3.Connection, target: sqlite3.Connection, job_facts: Mapping[str, Any]
) -> CopyReport:
    """Copy the rows of mam's tables, inside a transaction of the target; every job gets `job_facts`."""
    report = CopyReport()
    former_factory, source.text_factory = source.text_factory, text_or_flaw
    try:
        tables = real_tables(source)
        for table in TABLES:
            _copy_table(source, target, table, tables, report, job_facts)
        _copy_meta(source, target, tables)
        for table, which in (("intents", ""), ("outbox", " WHERE published_at IS NULL")):
            if tables.get(table):
                query = f"SELECT count(*) FROM {table} NOT INDEXED{which}"  # noqa: S608  (our words)
                report.dropped[table] = int(source.execute(query).fetchone()[0])
    finally:
        source.text_factory = former_factory
    return report


def text_or_flaw(content: bytes) -> str | _NotText:
    """Return a text of a database, or something that no check accepts."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _NotText()


def real_tables(source: sqlite3.Connection) -> dict[str, bool]:
    """Return for each name of the schema whether it is an ordinary table: not a view, not a virtual table."""
    rows = source.execute("SELECT name, type, rootpage FROM sqlite_master WHERE type IN ('table', 'view')")
    return {str(name): kind == "table" and bool(page) for name, kind, page in rows}


def columns(connection: sqlite3.Connection, table: str) -> dict[str, tuple[str, bool]]:
    """Return the ordinary columns of a table, with type and whether they need a value; no generated ones."""
    rows = connection.execute('SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?)', (table,))
    return {
        str(name): (str(kind).upper(), bool(notnull or pk))
        for name, kind, notnull, pk, hidden in rows
        if not hidden
    }


def _copy_table(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    table: str,
    tables: dict[str, bool],
    report: CopyReport,
    job_facts: Mapping[str, Any],
) -> None:
    if table not in tables:
        return
    if not tables[table]:
        report.leave_out(table, "", "it is not a table")
        return
    expected, present = columns(target, table), columns(source, table)
    names = [name for name in expected if name in present and name not in SKIPPED.get(table, ())]
    count = 0
    for values in rows_of(source, table, names, report):
        row = dict(zip(names, values, strict=True))
        try:
            check_row(table, row, expected)
            if table == "jobs":
                row["data"] = dump({**json.loads(row["data"]), **job_facts})
            insert(target, table, row)
            count += 1
        except (Unfit, sqlite3.IntegrityError) as error:
            reason = str(error) if isinstance(error, Unfit) else "it contradicts another row"
            report.leave_out(table, row.get("id") or next(iter(row.values()), ""), reason)
    report.taken[table] = count


def rows_of(
    source: sqlite3.Connection, table: str, names: list[str], report: CopyReport
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table as they lie there; a damaged page ends the table, and is reported."""
    if not names:
        return
    fields = ", ".join(f'"{name}"' for name in names)
    try:
        # An index of the other schema could show other rows than its table holds.
        yield from source.execute(f'SELECT {fields} FROM "{table}" NOT INDEXED')  # noqa: S608  (our names)
    except sqlite3.DatabaseError as error:
        report.leave_out(table, "", f"the rest of the table is not readable: {error}")


def insert(target: sqlite3.Connection, table: str, row: Values) -> None:
    """Add a row that was checked."""
    fields, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
    target.execute(f"INSERT INTO {table}({fields}) VALUES({marks})", tuple(row.values()))


def check_row(table: str, row: Values, expected: dict[str, tuple[str, bool]]) -> None:
    """Raise Unfit for a row that mam could not have written; bring its documents into today's form.

    `expected` are the columns of the table, as `columns` returns them.
    """
    _check_values(row, expected)
    parse = _PARSERS.get(table)
    if parse is not None:
        parse(row)


def _check_values(row: Values, expected: dict[str, tuple[str, bool]]) -> None:
    for name, (kind, needs_value) in expected.items():
        # SQLite numbers a row itself only if its key is missing.
        if row.get(name) is None:
            if needs_value:
                raise Unfit(f"{name} is missing")
            continue
        value = row[name]
        if kind == "TEXT":
            if not record_limits.is_text(name, value):
                raise Unfit(f"{name} is not a text, or too long")
        elif isinstance(value, bool) or not isinstance(value, (int, float) if kind == "REAL" else int):
            raise Unfit(f"{name} is not a number")
        elif not record_limits.is_number(name, value):
            raise Unfit(f"{name} is out of range")


def _json(row: Values, name: str, kind: type) -> Any:
    """Return the document in a column."""
    try:
        value = json.loads(row[name])
    except (ValueError, RecursionError):
        raise Unfit(f"{name} is not JSON") from None
    if not isinstance(value, kind):
        raise Unfit(f"{name} is not a {kind.__name__}")
    return value


def _need(row: Values, name: str, fits: Callable[[Any], object], *, may_lack: bool = False) -> None:
    value = row.get(name)
    if value is None and may_lack:
        return
    if not fits(value):
        raise Unfit(f"{name} is {str(value)[:40]!r}")


def _is_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _parse_session(row: Values) -> None:
    data = _json(row, "data", dict)
    for _field, reason in flaws(data):
        raise Unfit(reason)
    _need(row, "id", is_session_id)
    if (data.get("id"), data["name"], data["status"]) != (row["id"], row["name"], row["status"]):
        raise Unfit("the columns contradict the row")
    _need(row, "version", lambda version: version >= 0)
    try:
        data["version"] = row["version"]
        row["data"] = dump(with_all_fields(data))
        row["data"].encode()
    except (TypeError, ValueError):
        raise Unfit("data is not readable") from None


def _parse_log(row: Values) -> None:
    _json(row, "detail", dict)
    _need(row, "session_id", is_session_id, may_lack=True)


def _parse_message(row: Values) -> None:
    try:
        parse_id(row["id"])
    except Usage:
        raise Unfit("id is not that of a message") from None
    _need(row, "session_id", is_session_id)
    _need(row, "sender", _is_line)
    _need(row, "text", lambda text: text.strip() and len(text.encode()) <= LARGEST)
    _need(row, "state", lambda state: state in tuple(MessageState))
    _need(row, "wanted", lambda wanted: wanted in ("ready", "idle"))
    _need(row, "carrier", lambda carrier: carrier in ("inline", "file"), may_lack=True)
    _need(row, "attempts", lambda attempts: attempts >= 0)
    _need(row, "conversation", is_conversation_id, may_lack=True)
    row["is_command"] = int(bool(row["is_command"]))
    row["typed"] = _typed(row)


def _typed(row: Values) -> str | None:
    if row.get("typed") is None:
        return None
    typed = _json(row, "typed", dict)
    words = [typed.get(key) for key in ("text", "conversation", "launch")]
    is_time = isinstance(typed.get("at"), (int, float)) and record_limits.is_number("at", typed["at"])
    if set(typed) != {"text", "at", "conversation", "launch", "attempt"} or not is_time:
        return None
    return dump(typed) if all(isinstance(word, str) for word in words) else None


def _parse_job(row: Values) -> None:
    _need(row, "id", is_job_id)
    _need(row, "status", lambda status: status in tuple(JobStatus))
    _need(row, "session_id", is_session_id, may_lack=True)
    _need(row, "attempt", lambda attempt: 1 <= attempt < LARGEST_NUMBER // 2)
    _need(row, "last_seq", lambda seq: 0 <= seq < LARGEST_NUMBER // 2)
    row["data"] = dump(parse_facts(_json(row, "data", dict)))


def _parse_job_prompt(row: Values) -> None:
    _need(row, "job_id", is_job_id)


def _parse_job_event(row: Values) -> None:
    _need(row, "job_id", is_job_id)
    _need(row, "name", lambda name: name in NAMES)
    payload = _json(row, "payload", dict)
    for field, kind in _EVENT_FIELDS.items():
        if not isinstance(payload.get(field), kind) or isinstance(payload[field], bool):
            raise Unfit(f"payload has no {field}")
    if payload.get("job_id") != row["job_id"] or payload["seq"] != row["seq"]:
        raise Unfit("payload is that of another event")


def _parse_team(row: Values) -> None:
    _need(row, "id", is_team_id)
    _need(row, "layout", _LAYOUT.match)
    _need(row, "window_id", _WINDOW.match, may_lack=True)
    _need(row, "master_pane", _PANE.match, may_lack=True)
    try:
        parse_server(row["server"])
    except InvalidName:
        raise Unfit("server is not a tmux server") from None


def _parse_member(row: Values) -> None:
    _need(row, "team_id", is_team_id)
    _need(row, "session_id", is_session_id)
    _need(row, "name", _is_line)
    _need(row, "role", _is_line)
    _need(row, "state", lambda state: state in (SPAWNING, ACTIVE, READY, CLOSED))
    _need(row, "pane", _PANE.match, may_lack=True)
    _need(row, "window_id", _WINDOW.match, may_lack=True)


def _parse_task(row: Values) -> None:
    _need(row, "status", lambda status: status in STATUSES)
    _need(row, "role", _is_line)
    _need(row, "team_id", is_team_id, may_lack=True)


def _parse_team_line(row: Values) -> None:
    _need(row, "team_id", is_team_id)


_PARSERS: dict[str, Callable[[Values], None]] = {
    "sessions": _parse_session,
    "log": _parse_log,
    "messages": _parse_message,
    "jobs": _parse_job,
    "job_prompts": _parse_job_prompt,
    "job_events": _parse_job_event,
    "teams": _parse_team,
    "members": _parse_member,
    "tasks": _parse_task,
    "team_lines": _parse_team_line,
}


def _copy_meta(source: sqlite3.Connection, target: sqlite3.Connection, tables: dict[str, bool]) -> None:
    """Copy the identity cache and the user's own keys of the registry file; all else is found out anew."""
    if not tables.get("meta") or not {"key", "value"} <= columns(source, "meta").keys():
        return
    rows = source.execute("SELECT key, value FROM meta NOT INDEXED").fetchall()
    for key, value in rows:
        if key not in ("identities", "extra") or not isinstance(value, str) or len(value) > LONGEST_TEXT:
            continue
        try:
            document = json.loads(value)
            is_fit = isinstance(document, dict) and (key == "extra" or are_identities(document))
        except (ValueError, RecursionError):
            continue
        if is_fit:
            target.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, dump(document)))


def are_identities(document: dict[str, Any]) -> bool:
    """Tell whether a document is the cache of the newest conversation of each kind."""
    return all(
        isinstance(identity, dict)
        and all(field is None or isinstance(field, str) for field in identity.values())
        for identity in document.values()
    )
