"""Find drift: differences between the registry and what exists. Pure: the caller observes, this decides.

Drift has four classes. A: the row says running, but the session is not. B: a tmux session has a name of the
original system's pattern, but no row. C: the session's conversation is on disk, but the row does not have its
id yet. D: the conversation of a row, or of the identity cache, was on disk once, but is not any more.
"""

from __future__ import annotations

from mam.core.liveness_values import Liveness
from mam.core.names import kind_of_name
from mam.core.session_row import Status, id_or_name, is_purged, own_id, own_id_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

    from mam.core.session_row import Row

NONE = "-"
# A pass leaves a row alone for this long after an action, so that it never undoes what a person just did.
HANDS_OFF_SECONDS = 5.0
_ENDED = (Liveness.DEAD, Liveness.GONE)


class SessionObservation:
    """What was observed of one session: its process, its pane, its conversation.

    Of an ended session only the conversation is observed.
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
        """`conversation` is the one that the agent has open now; None in `on_disk` means unknown."""
        self.state = state
        self.reason = reason
        self.conversation = conversation
        self.on_disk = on_disk
        self.own_on_disk = own_on_disk


class UnregisteredSession:
    """A tmux session without a row, in a directory of this root, and without a mark of mam."""

    __slots__ = ("name", "pane_id", "path", "pid", "server")

    def __init__(self, server: str, name: str, pane_id: str, pid: int, path: str) -> None:
        self.server = server
        self.name = name
        self.pane_id = pane_id
        self.pid = pid
        self.path = path


class LostIdentity:
    """An entry of the identity cache whose conversation is not on disk; `field` is its place in the file."""

    __slots__ = ("conversation", "field", "kind")

    def __init__(self, kind: str, field: str, conversation: str) -> None:
        self.kind = kind
        self.field = field
        self.conversation = conversation


class Drift:
    """One difference. `key` names its episode, so that it is reported once."""

    __slots__ = ("after", "before", "field", "key", "kind", "message", "row", "unregistered")

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
        unregistered: UnregisteredSession | None = None,
    ) -> None:
        """A drift without `after` is only reported; nothing is written."""
        self.kind = kind
        self.key = key
        self.message = message
        self.field = field
        self.before = before
        self.after = after
        self.row = row
        self.unregistered = unregistered

    @property
    def is_loose(self) -> bool:
        """Tell whether this is a process without its pane."""
        return self.kind == "A" and self.after is None

    def as_json(self) -> dict[str, Any]:
        """Return the drift as a report shows it."""
        source = self.unregistered
        return {
            "id": self.key,
            "class": self.kind,
            "session": self.row["name"] if self.row else source.name if source else None,
            "server": self.row["tmux_server"] if self.row else source.server if source else None,
            "field": self.field,
            "before": self.before,
            "after": self.after,
            "message": self.message,
        }


class Observation:
    """One observation of everything: which servers answered, what exists for each row, what has no row."""

    __slots__ = ("confirmed", "lost_identities", "sessions", "unregistered")

    def __init__(
        self,
        confirmed: Mapping[str, bool],
        sessions: Mapping[str, SessionObservation],
        unregistered: Iterable[UnregisteredSession] = (),
        lost_identities: Iterable[LostIdentity] = (),
    ) -> None:
        """`confirmed` tells by server whether it answered; `sessions` has the keys of `id_or_name`."""
        self.confirmed = confirmed
        self.sessions = sessions
        self.unregistered = unregistered
        self.lost_identities = lost_identities


def plan(
    rows: Collection[Row], observation: Observation, now: float, busy: Collection[str] = ()
) -> list[Drift]:
    """Return the drift, in the order of the rows; `busy` are the ids and names that a verb works on.

    Three kinds of rows have no drift: running rows on a server that did not answer, archived and purged rows,
    and rows on which somebody acted a few seconds ago. An ended row has drift of class D only.
    """
    drifts = [
        drift
        for row in rows
        if _may_differ(row, now, busy) and (_is_ended(row) or observation.confirmed.get(row["tmux_server"]))
        for drift in _of_row(row, observation.sessions.get(id_or_name(row)))
    ]
    names = {row["name"] for row in rows}
    drifts += [
        _without_row(session)
        for session in observation.unregistered
        if observation.confirmed.get(session.server)
        and session.name not in names
        and session.name not in busy
        and kind_of_name(session.name)
    ]
    return drifts + [_of_identity(identity) for identity in observation.lost_identities]


def decided(
    rows: Collection[Row], observation: Observation, now: float, busy: Collection[str] = ()
) -> set[str]:
    """Return the names of the rows of which `plan` knows everything: what it does not name has ended."""
    return {
        row["name"]
        for row in rows
        if says_nothing(row)
        or (
            _may_differ(row, now, busy)
            and (observed := observation.sessions.get(id_or_name(row))) is not None
            and observed.state != Liveness.UNKNOWN
        )
    }


def says_nothing(row: Row) -> bool:
    """Tell whether nobody needs to hear of the conversation of a row: it is archived or purged."""
    return row["status"] == Status.ARCHIVED or is_purged(row)


def _is_ended(row: Row) -> bool:
    return row["status"] != Status.RUNNING


def hands_off_until(row: Row) -> float:
    """Return until when a pass leaves a row alone after an action on it."""
    action = row.get("last_action")
    # The row stores whole seconds; the action may have happened up to one second later.
    return float((action["at_epoch"] if action else 0) or 0) + 1.0 + HANDS_OFF_SECONDS


def _may_differ(row: Row, now: float, busy: Collection[str]) -> bool:
    if says_nothing(row) or row.get("id") in busy or row["name"] in busy:
        return False
    # An action that lies in the future means that the clock was set back; it protects nothing.
    return not now < hands_off_until(row) <= now + 1.0 + HANDS_OFF_SECONDS


def drift_class(
    row: Row, state: Liveness, *, conversation: str | None, on_disk: bool | None, own_on_disk: bool | None
) -> str:
    """Return the class of the most serious drift of one row; an unknown value causes none."""
    own = own_id(row)
    if row["status"] == Status.RUNNING:
        if state in _ENDED or state == Liveness.LOOSE:
            return "A"
        if state == Liveness.ALIVE and conversation and on_disk and conversation != own:
            return "C"
    return "D" if own and own_on_disk is False else NONE


def _of_row(row: Row, observed: SessionObservation | None) -> list[Drift]:
    if observed is None or observed.state == Liveness.UNKNOWN:
        return []
    kind = drift_class(
        row,
        observed.state,
        conversation=observed.conversation,
        on_disk=observed.on_disk,
        own_on_disk=observed.own_on_disk,
    )
    describe = {"A": _ended, "C": _appeared, "D": _vanished}.get(kind)
    return [describe(row, observed)] if describe else []


def _ended(row: Row, observed: SessionObservation) -> Drift:
    pane, name = row.get("pane") or {}, row["name"]
    process = f"process {pane.get('pid')} ({pane.get('cmd')})"
    key = f"A:{row.get('id') or name}:{pane.get('pid')}:{pane.get('pid_start')}"
    if observed.state == Liveness.LOOSE:
        # The row stays running until the process ends: a resume beside it would start the agent twice.
        message = f"{name}: {process} runs without its pane; mam stop {name} ends it"
        return Drift("A", f"{key}:loose", message, field="pane", before=pane.get("id"), row=row)
    message = f"{name}: {process} is gone: {observed.reason}"
    return Drift("A", key, message, field="status", before=Status.RUNNING, after=Status.TERMINATED, row=row)


def _appeared(row: Row, observed: SessionObservation) -> Drift:
    own, now = own_id(row), observed.conversation
    message = f"{row['name']}: its conversation {now} is on disk"
    key = f"C:{row.get('id') or row['name']}:{now}"
    return Drift("C", key, message, field=own_id_field(row["agent"]), before=own, after=now, row=row)


def _vanished(row: Row, _observed: SessionObservation) -> Drift:
    own = own_id(row)
    message = f"{row['name']}: its conversation {own} is not on disk any more"
    key = f"D:{row.get('id') or row['name']}:{own}"
    return Drift("D", key, message, field=own_id_field(row["agent"]), before=own, row=row)


def _of_identity(identity: LostIdentity) -> Drift:
    message = (
        f"the identity cache of {identity.kind}: conversation {identity.conversation} is not on disk any more"
    )
    key = f"D:identity:{identity.kind}:{identity.conversation}"
    return Drift("D", key, message, field=identity.field, before=identity.conversation)


def _without_row(session: UnregisteredSession) -> Drift:
    message = f"{session.name}: a session of tmux server {session.server} (process {session.pid}) had no row"
    key = f"B:{session.server}:{session.name}:{session.pid}"
    return Drift("B", key, message, field="status", after=Status.RUNNING, unregistered=session)
