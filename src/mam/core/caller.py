"""The caller of a verb: the user, a session, a paired device, another host, or unknown. Pure."""

from __future__ import annotations

from mam.core.string_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.session_row import Action


class CallerKind(StrEnum):
    """What a caller is. What the caller may do depends on it."""

    USER = "user"
    SESSION = "session"
    DEVICE = "device"
    HOST = "host"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """What a person lets a device or another host do, from the least to the most."""

    WATCH = "watch"
    ANSWER = "answer"
    OPERATE = "operate"


class Caller:
    """Who calls a verb, and from which process. A caller is immutable."""

    __slots__ = ("hint", "id", "kind", "pid", "reason", "role")

    id: str | None
    kind: CallerKind
    pid: int
    role: Role | None
    # Why an unknown caller counts as unknown, and what a person can do about it.
    reason: str | None
    hint: str | None

    def __init__(
        self,
        kind: CallerKind,
        pid: int,
        caller_id: str | None = None,
        *,
        role: Role | None = None,
        reason: str | None = None,
        hint: str | None = None,
    ) -> None:
        """`caller_id` is the id of a session, a device or a host; a person has none.

        `role` is that of a device or a host; without one it may only watch.
        """
        values = {"kind": kind, "pid": pid, "id": caller_id, "role": role, "reason": reason, "hint": hint}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse every change: rights were checked for this caller."""
        raise AttributeError(f"a caller does not change: {name}")

    @property
    def name(self) -> str:
        """The caller's name in the registry and the log: `user`, a session's id, or its kind and id."""
        if self.id is None or self.kind is CallerKind.SESSION:
            return self.id or str(self.kind)
        # A device may have any id, also `user`.
        return f"{self.kind}:{self.id}"

    @property
    def session_id(self) -> str | None:
        """The id of the session that calls; None for other callers."""
        return self.id if self.kind is CallerKind.SESSION else None

    @property
    def is_user(self) -> bool:
        """Whether the caller is a person, or a program of theirs that runs in no session."""
        return self.kind is CallerKind.USER

    def action(self, verb: str, now: float) -> Action:
        """Return the record of this caller's action for a row."""
        return {"by": self.name, "verb": verb, "at_epoch": int(now)}


def user(pid: int = 0) -> Caller:
    """Return a person as the caller."""
    return Caller(CallerKind.USER, pid)


def session(session_id: str, pid: int = 0) -> Caller:
    """Return a session as the caller."""
    return Caller(CallerKind.SESSION, pid, session_id)


def unknown(pid: int = 0, *, reason: str, hint: str) -> Caller:
    """Return a caller of whom nothing is proven; `reason` and `hint` become part of a refusal."""
    return Caller(CallerKind.UNKNOWN, pid, reason=reason, hint=hint)
