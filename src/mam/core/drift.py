"""Where the registry and the world differ, and what follows from it. Nothing is looked at here.

A: held for running, and it is not. B: a session of the original's naming pattern without a row. C: the
conversation that the session has is on disk, and the row does not own it yet. D: the row's conversation
was on disk once and is not any more.
"""

from __future__ import annotations

from mam.core.liveness import Liveness
from mam.core.names import kind_of_name
from mam.core.session_row import Status, own_id, own_id_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from mam.core.session_row import Row

NONE = "-"
# A person's own action is never undone: for so long a row is left alone after one.
HANDS_OFF_SECONDS = 5.0
_ENDED = (Liveness.DEAD, Liveness.GONE)


class Seen:
    """What was seen of one running session.

    Its process and pane, its conversation and whether it is on disk.
    """

    __slots__ = ("conversation", "on_disk", "own_on_disk", "reason", "state")

    def __init__(
        self,
        state: Liveness,
        reason: str = "",
        *,
        conversation: str | None = None,
        on_disk: bool | None = None,
        own_on_disk: bool | None = None,
    ) -> None:
        """`conversation` is the one that the agent has now; None in `on_disk` means that nobody can say."""
        self.state = state
        self.reason = reason
        self.conversation = conversation
        self.on_disk = on_disk
        self.own_on_disk = own_on_disk


class Stray:
    """A tmux session that no row speaks of, in a directory of this root and without anybody's mark."""

    __slots__ = ("name", "pane_id", "path", "pid", "server")

    def __init__(self, server: str, name: str, pane_id: str, pid: int, path: str) -> None:
        self.server = server
        self.name = name
        self.pane_id = pane_id
        self.pid = pid
        self.path = path


class Drift:
    """One difference. `key` names its episode: the same one is reported once."""

    __slots__ = ("after", "before", "field", "key", "kind", "message", "row", "stray")

    def __init__(
        self,
        kind: str,
        key: str,
        message: str,
        *,
        field: str | None = None,
        before: object = None,
        after: object = None,
        row: Row | None = None,
        stray: Stray | None = None,
    ) -> None:
        """Without an `after` nothing is to be written: it is reported only."""
        self.kind = kind
        self.key = key
        self.message = message
        self.field = field
        self.before = before
        self.after = after
        self.row = row
        self.stray = stray

    def as_json(self) -> dict[str, Any]:
        """Return it as a report shows it."""
        return {
            "id": self.key,
            "class": self.kind,
            "session": self.row["name"] if self.row else self.stray.name if self.stray else None,
            "server": self.row["tmux_server"] if self.row else self.stray.server if self.stray else None,
            "field": self.field,
            "before": self.before,
            "after": self.after,
            "message": self.message,
        }


class Observation:
    """One look at everything: which servers answered, what is there of each row, what has no row."""

    __slots__ = ("confirmed", "seen", "strays")

    def __init__(
        self, confirmed: Mapping[str, bool], seen: Mapping[str, Seen], strays: Iterable[Stray] = ()
    ) -> None:
        """`seen` goes by the ids of rows."""
        self.confirmed = confirmed
        self.seen = seen
        self.strays = strays


def plan(rows: Collection[Row], found: Observation, now: float, busy: Collection[str] = ()) -> list[Drift]:
    """Return what differs, in the order of the rows; `busy` are the ids and names that a verb works on.

    Nothing follows from a server that did not answer, nothing is said of ended rows, and a row is left
    alone for some seconds after somebody's action.
    """
    drifts = [
        drift
        for row in rows
        if _is_settled(row, now, busy) and found.confirmed.get(row["tmux_server"])
        for drift in _of_row(row, found.seen.get(row.get("id") or ""))
    ]
    named = {row["name"] for row in rows}
    drifts += [
        _registers(stray)
        for stray in found.strays
        if found.confirmed.get(stray.server)
        and stray.name not in named
        and stray.name not in busy
        and kind_of_name(stray.name)
    ]
    return drifts


def rests_until(row: Row) -> float:
    """Return when a row that somebody acted on may be looked at again."""
    action = row.get("last_action")
    # The row keeps whole seconds: the action may have been at the end of its.
    return float((action["at_epoch"] if action else 0) or 0) + 1.0 + HANDS_OFF_SECONDS


def _is_settled(row: Row, now: float, busy: Collection[str]) -> bool:
    if row["status"] != Status.RUNNING or row.get("id") in busy or row["name"] in busy:
        return False
    # An action of the future is a clock that was put back.
    return not now < rests_until(row) <= now + 1.0 + HANDS_OFF_SECONDS


def letter(
    row: Row, state: Liveness, *, conversation: str | None, on_disk: bool | None, own_on_disk: bool | None
) -> str:
    """Return the letter of the gravest difference of one row; nothing follows from what is unknown."""
    own = own_id(row)
    if row["status"] == Status.RUNNING:
        if state in _ENDED or state == Liveness.LOOSE:
            return "A"
        if state == Liveness.ALIVE and conversation and on_disk and conversation != own:
            return "C"
    return "D" if own and own_on_disk is False else NONE


def _of_row(row: Row, seen: Seen | None) -> list[Drift]:
    if seen is None or seen.state == Liveness.UNKNOWN:
        return []
    kind = letter(
        row, seen.state, conversation=seen.conversation, on_disk=seen.on_disk, own_on_disk=seen.own_on_disk
    )
    found = {"A": _ended, "C": _appeared, "D": _vanished}.get(kind)
    return [found(row, seen)] if found else []


def _ended(row: Row, seen: Seen) -> Drift:
    pane, name = row.get("pane") or {}, row["name"]
    who = f"process {pane.get('pid')} ({pane.get('cmd')})"
    key = f"A:{row.get('id') or name}:{pane.get('pid')}:{pane.get('pid_start')}"
    if seen.state == Liveness.LOOSE:
        # Held for running until it is gone: a resume beside a process that lives would make two of it.
        said = f"{name}: {who} lives without its pane; mam stop {name} ends it"
        return Drift("A", f"{key}:loose", said, field="pane", before=pane.get("id"), row=row)
    said = f"{name}: {who} is gone: {seen.reason}"
    return Drift("A", key, said, field="status", before=Status.RUNNING, after=Status.TERMINATED, row=row)


def _appeared(row: Row, seen: Seen) -> Drift:
    own, now = own_id(row), seen.conversation
    said = f"{row['name']}: its conversation {now} is on disk"
    key = f"C:{row.get('id') or row['name']}:{now}"
    return Drift("C", key, said, field=own_id_field(row["agent"]), before=own, after=now, row=row)


def _vanished(row: Row, seen: Seen) -> Drift:
    own = own_id(row)
    said = f"{row['name']}: its conversation {own} is not on disk any more"
    key = f"D:{row.get('id') or row['name']}:{own}"
    return Drift("D", key, said, field=own_id_field(row["agent"]), before=own, row=row)


def _registers(stray: Stray) -> Drift:
    said = f"{stray.name}: a session of tmux server {stray.server} (process {stray.pid}) had no row"
    key = f"B:{stray.server}:{stray.name}:{stray.pid}"
    return Drift("B", key, said, field="status", after=Status.RUNNING, stray=stray)
