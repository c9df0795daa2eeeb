"""Find what a person edited in the registry file, and decide whether mam accepts it.

An edit is the difference, field by field, between the file now and the file as mam last wrote it. Between
a commit and the next write of the file, the file may show either state of a row; where mam has failed to
record what it wrote, it may show a state in between. So a value that equals one of these is not an edit.
"""

from __future__ import annotations

from datetime import datetime

from mam.core import session_transitions
from mam.core.errors import EditRefused, IllegalTransition
from mam.core.names import KIND_ALIASES, KNOWN_KINDS, UNKNOWN_KIND
from mam.core.row_checks import flaws, is_conversation_id
from mam.core.session_row import DEFAULTS, Status, is_own_id_field, own_id, own_id_field, with_all_fields
from mam.core.stop_escalation import FOUND
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mam.core.session_row import Action, Row

_MISSING = object()


class KnownRow:
    """A row of the registry: as committed (`now`), and as last written to the file (None: never written).

    `possibly_shown` are states that the file may show as well.
    """

    __slots__ = ("id", "now", "possibly_shown", "written")

    def __init__(
        self, session_id: str, now: Row, written: Row | None, possibly_shown: Sequence[Row] = ()
    ) -> None:
        self.id = session_id
        self.now = now
        self.written = written
        self.possibly_shown = possibly_shown


class Plan:
    """An edit that mam accepts."""

    __slots__ = ("changes", "claims", "order", "removals")

    def __init__(self) -> None:
        self.changes: dict[str, dict[str, Any]] = {}
        self.claims: list[tuple[str, str, int | None]] = []
        self.removals: list[str] = []
        self.order: list[str] = []

    def is_empty(self) -> bool:
        """Tell whether the edit changes nothing but the order of the rows."""
        return not (self.changes or self.claims or self.removals)


class StatusEdits:
    """The statuses that a person wrote into the file. Only an observation can tell whether they are true."""

    __slots__ = ("_action", "_path", "_plan", "_rows")

    def __init__(self, plan: Plan, rows: dict[str, Row], action: Action, path: str) -> None:
        """Take what a plan holds of them; `rows` are all rows of the registry by id."""
        self._plan = Plan()
        self._plan.claims = plan.claims
        self._rows = rows
        self._action = action
        self._path = path

    @property
    def rows(self) -> list[Row]:
        """The rows whose status was edited."""
        return [self._rows[key] for key, _, _ in self._plan.claims]

    def refusal(self, confirm: Callable[[Row, str], bool | None]) -> EditRefused | None:
        """Return the error with which the next change would end; None if it takes the edit in."""
        try:
            take_in(self._plan, self._rows, self._action, path=self._path, confirm=confirm)
        except EditRefused as error:
            return error
        return None


def refuse(path: str, line: int | None, reason: str, remedy: str | None = None) -> EditRefused:
    """Return the error for an edit that mam does not accept; `remedy` does what the edit was meant to do."""
    place = f"{path}, line {line}" if line else path
    hint = "undo the edit, or move the file away: mam then writes a new file from its records"
    return EditRefused(f"{place}: {reason}", hint=f"{hint}; {remedy}" if remedy else hint)


def plan_edit(
    known_rows: Sequence[KnownRow],
    forgotten: Iterable[Row],
    rows: Sequence[Any],
    *,
    path: str,
    complete: bool,
) -> Plan:
    """Return what the rows of the file change, or raise EditRefused with the line and the reason.

    `rows` carry the line of each key. `complete` tells whether the file has its last line. Without that
    line the file was cut short, and a difference is not an edit.
    """
    plan = Plan()
    by_id = {row.id: row for row in known_rows}
    by_name = {_name(row): row for row in known_rows}
    forgotten_keys = {row.get("id") or row["name"] for row in forgotten}
    for row in rows:
        for field, reason in flaws(row):
            raise refuse(path, _line(row, field), reason)
        key = row.get("id") or row["name"]
        known_row = by_id.get(key) or (None if key in forgotten_keys else by_name.get(row["name"]))
        if known_row is None:
            if key in forgotten_keys:
                continue
            raise refuse(
                path,
                _line(row, "name"),
                f"the session '{row['name']}' is not in the registry",
                "add sessions with mam create or mam adopt",
            )
        if known_row.id in plan.order:
            raise refuse(path, _line(row, "name"), f"the session '{row['name']}' is listed twice")
        plan.order.append(known_row.id)
        _compare(plan, known_row, row, path)
        _refuse_shared(plan.changes.get(known_row.id) or {}, row, rows, path)
    _find_removals(plan, known_rows, path)
    if not (complete or plan.is_empty()):
        raise refuse(path, None, "the file ends early, its last line is missing")
    return plan


def _name(row: KnownRow) -> str:
    return (row.written or row.now)["name"]


def _compare(plan: Plan, known_row: KnownRow, row: Any, path: str) -> None:
    bases = [base for base in (known_row.written, known_row.now) if base is not None]
    bases += known_row.possibly_shown
    for key in {**row, **bases[0]}:
        value = row.get(key, _MISSING)
        if any(_same(value, base.get(key, _MISSING), key) for base in bases):
            continue
        line = _line(row, key)
        if key == "status":
            plan.claims.append((known_row.id, value, line))
            continue
        problem = _problem(key, value, known_row.now)
        if problem:
            remedy = f"mam rename {known_row.now['name']} renames it" if key == "name" else None
            raise refuse(path, line, problem, remedy)
        plan.changes.setdefault(known_row.id, {})[key] = value


def _refuse_shared(changes: Mapping[str, Any], row: Any, rows: Sequence[Any], path: str) -> None:
    """Refuse a conversation id that another session has: one would resume, or purge, the other's."""
    for key in filter(is_own_id_field, changes):
        owner = next((other for other in rows if other is not row and other.get(key) == row.get(key)), None)
        if row.get(key) and owner is not None:
            raise refuse(
                path, _line(row, key), f"conversation '{row[key]}' belongs to the session '{owner['name']}'"
            )


def _same(value: object, base: object, key: str) -> bool:
    if value is _MISSING:
        has_default = key in DEFAULTS or is_own_id_field(key)
        return base is _MISSING or (has_default and base in (None, [], {}, DEFAULTS.get(key)))
    return _is_equal(value, base) or (key.endswith("_at") and key in DEFAULTS and _is_same_time(value, base))


def _is_same_time(value: object, base: object) -> bool:
    """Tell whether two texts mean the same time: a program that loads and dumps YAML changes their form."""
    try:
        return _time_of(value) == _time_of(base)
    except (ValueError, TypeError):
        return False


def _time_of(value: object) -> datetime:
    """Return the time of a text. Python takes any sign between date and time."""
    text = str(value)
    if text[10:11] not in ("T", " "):
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _is_equal(first: object, second: object) -> bool:
    """Compare as a person reads: unlike in Python, `true` is not `1`, at any depth."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_is_equal(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_is_equal, first, second))
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def _problem(key: str, value: object, now: Row) -> str | None:
    if key == "role":
        return None if not now.get("role") else f"'role' never changes once set (it is '{now['role']}')"
    if key == "agent" and now["agent"] == UNKNOWN_KIND:
        is_known = isinstance(value, str) and KIND_ALIASES.get(value, value) in KNOWN_KINDS
        return None if is_known else f"'agent' must be one of {', '.join(KNOWN_KINDS)}"
    if is_own_id_field(key):
        return None if value is None or is_conversation_id(value) else f"'{key}' must be an id or null"
    if key == "start_command":
        return "'start_command' was removed" if value in (_MISSING, None, [], "") else None
    if key in DEFAULTS:
        change = "was removed" if value is _MISSING else "was changed"
        return f"'{key}' {change}, and only mam writes it"
    return None


def _find_removals(plan: Plan, known_rows: Sequence[KnownRow], path: str) -> None:
    listed = set(plan.order)
    for row in known_rows:
        if row.id in listed or row.written is None:
            continue
        name = row.now["name"]
        if row.now["status"] == Status.RUNNING:
            raise refuse(path, None, f"the session '{name}' is running and was removed; put it back")
        plan.removals.append(row.id)


def _line(row: Any, field: str | None) -> int | None:
    lines = getattr(row, "lines", {})
    return lines.get(field) or getattr(row, "line", None)


def apply_change(row: Row, fields: dict[str, Any], action: Action) -> Row:
    """Return the row with the edited fields; a new conversation id also joins `conversations`."""
    changed: dict[str, Any] = {**row, "last_action": action}
    for key, value in fields.items():
        if value is _MISSING:
            changed.pop(key, None)
        else:
            changed[key] = value
        if is_own_id_field(key) and value and all(entry["id"] != value for entry in changed["conversations"]):
            entry = {"id": value, "source": "hand", "since": stamp(action["at_epoch"])}
            changed["conversations"] = [*changed["conversations"], entry]
            changed["resumable"] = True
    corrected: Row = changed  # type: ignore[assignment]  # a mapping of the same fields
    return _with_kind(corrected) if row["agent"] == UNKNOWN_KIND else corrected


def _with_kind(row: Row) -> Row:
    """Return a row that had no kind with the kind that a person wrote, or that the edit shows."""
    if row.get(own_id_field(UNKNOWN_KIND)) is None:
        row.pop(own_id_field(UNKNOWN_KIND), None)  # type: ignore[misc]  # the field of no kind
    row = with_all_fields({**row, "agent": KIND_ALIASES.get(row["agent"], row["agent"])})
    return {**row, "resumable": row["resumable"] or bool(own_id(row))}


def apply_status(row: Row, status: str, action: Action) -> Row:
    """Return the row with a status that a person wrote and an observation confirmed."""
    if status == Status.STOPPED:
        return session_transitions.stopped(row, action, reason="edited by hand", mode=FOUND, exit_status=None)
    if status == Status.TERMINATED:
        return session_transitions.died(row, action, on_disk=bool(row.get("resumable")), exit_status=None)
    if status == Status.ARCHIVED:
        return session_transitions.archived(row, action)
    changed: dict[str, Any] = {
        **row,
        **session_transitions.alive_fields(),
        "status": Status.RUNNING,
        "last_action": action,
    }
    return changed  # type: ignore[return-value]  # a mapping of the same fields


def take_in(
    plan: Plan,
    rows: dict[str, Row],
    action: Action,
    *,
    path: str,
    confirm: Callable[[Row, str], bool | None],
) -> dict[str, Row | None]:
    """Return the rows that the edit changes, None for a removed row; `confirm` checks an edited status."""
    changed: dict[str, Row | None] = {
        key: apply_change(rows[key], fields, action) for key, fields in plan.changes.items()
    }
    for key, status, line in plan.claims:
        row = changed.get(key) or rows[key]
        is_confirmed = confirm(row, status)
        if is_confirmed is not True:
            problem = "could not be confirmed" if is_confirmed is None else "is not what was observed"
            raise refuse(path, line, f"'status: {status}' {problem} for '{row['name']}'")
        try:
            changed[key] = apply_status(row, status, action)
        except IllegalTransition as error:
            raise refuse(path, line, f"'status: {status}': {error.message}") from error
    changed.update(dict.fromkeys(plan.removals))
    return changed
