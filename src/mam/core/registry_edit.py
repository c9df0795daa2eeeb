"""What a person changed in the registry file, and whether it may be taken in.

An edit is the difference, field by field, between the file as it is and the file as it was last
written. While a change is committed and not yet in the file, the file may show either state of
a row: a value that equals one of the two is no edit.
"""

from __future__ import annotations

from datetime import datetime

from mam.core import transitions
from mam.core.errors import EditRefused, IllegalTransition
from mam.core.row_checks import flaws, is_conversation_id
from mam.core.session_row import DEFAULTS, Status, is_own_id_field
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from mam.core.session_row import Action, Row

_MISSING = object()


class KnownRow:
    """A row that we keep: as committed, and as the file last showed it (None: not in the file yet)."""

    __slots__ = ("id", "now", "written")

    def __init__(self, session_id: str, now: Row, written: Row | None) -> None:
        self.id = session_id
        self.now = now
        self.written = written


class Plan:
    """An edit that may be taken in."""

    __slots__ = ("changes", "claims", "order", "removals")

    def __init__(self) -> None:
        self.changes: dict[str, dict[str, Any]] = {}
        self.claims: list[tuple[str, str, int | None]] = []
        self.removals: list[str] = []
        self.order: list[str] = []

    def is_empty(self) -> bool:
        """Tell whether there is nothing to take in but the order of the rows."""
        return not (self.changes or self.claims or self.removals)


def refuse(path: str, line: int | None, reason: str) -> EditRefused:
    """Return the error for an edit that cannot be taken in."""
    where = f"{path}, line {line}" if line else path
    return EditRefused(
        f"{where}: {reason}",
        hint="undo that edit, or move the file away: mam writes what it recorded into a new one",
    )


def plan_edit(
    known: Sequence[KnownRow], forgotten: Iterable[Row], rows: Sequence[Any], *, path: str, complete: bool
) -> Plan:
    """Return what the file's rows change, or raise EditRefused with line and reason.

    `rows` carry the line of each key. `complete` says that the file's last line is there: without
    it, whatever is missing or different is a file cut short and not an edit.
    """
    plan = Plan()
    by_id = {one.id: one for one in known}
    by_name = {_name(one): one for one in known}
    gone = {row.get("id") or row["name"] for row in forgotten}
    for row in rows:
        for field, reason in flaws(row):
            raise refuse(path, _line(row, field), reason)
        key = row.get("id") or row["name"]
        match = by_id.get(key) or (None if key in gone else by_name.get(row["name"]))
        if match is None:
            if key in gone:
                continue
            raise refuse(path, _line(row, "name"), _added(row["name"]))
        if match.id in plan.order:
            raise refuse(path, _line(row, "name"), f"the session '{row['name']}' stands here twice")
        plan.order.append(match.id)
        _compare(plan, match, row, path)
        _refuse_shared(plan.changes.get(match.id) or {}, row, rows, path)
    _find_removals(plan, known, path)
    if not (complete or plan.is_empty()):
        raise refuse(path, None, "the file ends early, its last line is missing")
    return plan


def _name(one: KnownRow) -> str:
    return (one.written or one.now)["name"]


def _added(name: str) -> str:
    return f"the session '{name}' is not one of ours; sessions are added by mam create or mam adopt"


def _compare(plan: Plan, one: KnownRow, row: Any, path: str) -> None:
    bases = [base for base in (one.written, one.now) if base is not None]
    for key in {**row, **bases[0]}:
        value = row.get(key, _MISSING)
        if any(_same(value, base.get(key, _MISSING), key) for base in bases):
            continue
        line = _line(row, key)
        if key == "status":
            plan.claims.append((one.id, value, line))
            continue
        problem = _problem(key, value, one.now)
        if problem:
            raise refuse(path, line, problem)
        plan.changes.setdefault(one.id, {})[key] = value


def _refuse_shared(changes: Mapping[str, Any], row: Any, rows: Sequence[Any], path: str) -> None:
    """Refuse an own id that another session has: one of them would take, or purge, the other's."""
    for key in filter(is_own_id_field, changes):
        other = next((one for one in rows if one is not row and one.get(key) == row.get(key)), None)
        if row.get(key) and other is not None:
            raise refuse(
                path, _line(row, key), f"conversation '{row[key]}' is that of the session '{other['name']}'"
            )


def _same(value: object, base: object, key: str) -> bool:
    if value is _MISSING:
        has_default = key in DEFAULTS or is_own_id_field(key)
        return base is _MISSING or (has_default and base in (None, [], {}, DEFAULTS.get(key)))
    return _is_alike(value, base) or (key.endswith("_at") and key in DEFAULTS and _is_instant(value, base))


def _is_instant(value: object, base: object) -> bool:
    """Tell whether two texts mean the same time: a program that loads and dumps YAML changes the form."""
    try:
        return datetime.fromisoformat(str(value)) == datetime.fromisoformat(str(base))
    except (ValueError, TypeError):
        return False


def _is_alike(one: object, other: object) -> bool:
    """Compare as a person reads: `true` is not `1`, wherever it stands."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _problem(key: str, value: object, now: Row) -> str | None:
    if key == "role":
        return None if not now.get("role") else f"'role' never changes once set (it is '{now['role']}')"
    if is_own_id_field(key):
        return None if value is None or is_conversation_id(value) else f"'{key}' must be an id or null"
    if key == "start_command":
        return "'start_command' was removed" if value in (_MISSING, None, [], "") else None
    if key in DEFAULTS:
        what = "was removed" if value is _MISSING else "was changed"
        way = f" (mam rename {now['name']} does that)" if key == "name" else ""
        return f"'{key}' {what}, and only mam writes it{way}"
    return None


def _find_removals(plan: Plan, known: Sequence[KnownRow], path: str) -> None:
    seen = set(plan.order)
    for one in known:
        if one.id in seen or one.written is None:
            continue
        name = one.now["name"]
        if one.now["status"] == Status.RUNNING:
            raise refuse(path, None, f"the session '{name}' is running and was removed; put it back")
        plan.removals.append(one.id)


def _line(row: Any, field: str | None) -> int | None:
    lines = getattr(row, "lines", {})
    return lines.get(field) or getattr(row, "line", None)


def apply_change(row: Row, fields: dict[str, Any], action: Action) -> Row:
    """Return the row with a person's fields; a new own id joins the history of conversations."""
    changed: dict[str, Any] = {**row, "last_action": action}
    for key, value in fields.items():
        if value is _MISSING:
            changed.pop(key, None)
        else:
            changed[key] = value
        if is_own_id_field(key) and value and all(one["id"] != value for one in changed["conversations"]):
            entry = {"id": value, "source": "hand", "since": stamp(action["at_epoch"])}
            changed["conversations"] = [*changed["conversations"], entry]
            changed["resumable"] = True
    return changed  # type: ignore[return-value]  # a mapping of the same fields


def apply_status(row: Row, status: str, action: Action) -> Row:
    """Return the row with a status that a person wrote and an observation confirmed."""
    if status == Status.STOPPED:
        return transitions.stopped(row, action, reason="edited by hand", mode="graceful", exit_status=None)
    if status == Status.TERMINATED:
        return transitions.died(row, action, on_disk=bool(row.get("resumable")), exit_status=None)
    if status == Status.ARCHIVED:
        return transitions.archived(row, action)
    changed: dict[str, Any] = {
        **row,
        **transitions.alive_fields(),
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
    """Return the rows that the edit changes, None for a removed one; `confirm` answers for a status."""
    changed: dict[str, Row | None] = {
        key: apply_change(rows[key], fields, action) for key, fields in plan.changes.items()
    }
    for key, status, line in plan.claims:
        row = changed.get(key) or rows[key]
        seen = confirm(row, status)
        if seen is not True:
            what = "could not be confirmed" if seen is None else "is not what was observed"
            raise refuse(path, line, f"'status: {status}' {what} for '{row['name']}'")
        try:
            changed[key] = apply_status(row, status, action)
        except IllegalTransition as error:
            raise refuse(path, line, f"'status: {status}': {error.message}") from error
    changed.update(dict.fromkeys(plan.removals))
    return changed
