"""Who asks for something: a person, a session, a paired device, another host, or nobody knows. Pure."""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.session_row import Action


class CallerKind(StrEnum):
    """What a caller is; what it may do follows from it."""

    USER = "user"
    SESSION = "session"
    DEVICE = "device"
    HOST = "host"
    UNKNOWN = "unknown"


class Caller:
    """Who calls, and by which process. It never changes."""

    __slots__ = ("id", "kind", "pid")

    id: str | None
    kind: CallerKind
    pid: int

    def __init__(self, kind: CallerKind, pid: int, caller_id: str | None = None) -> None:
        """`caller_id` is a session's, a device's or a host's; a person has none."""
        for name, value in (("kind", kind), ("pid", pid), ("id", caller_id)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a verb is done by the one who called it."""
        raise AttributeError(f"a caller does not change: {name}")

    @property
    def name(self) -> str:
        """How the registry and the log call it: `user`, a session's id, or what it is with its id."""
        if self.id is None or self.kind is CallerKind.SESSION:
            return self.id or str(self.kind)
        # A device may have been given any name, also `user`.
        return f"{self.kind}:{self.id}"

    @property
    def session_id(self) -> str | None:
        """The session that calls; None for anybody else."""
        return self.id if self.kind is CallerKind.SESSION else None

    @property
    def is_user(self) -> bool:
        """Whether a person calls, or a program of theirs that runs in no session."""
        return self.kind is CallerKind.USER

    def action(self, verb: str, now: float) -> Action:
        """Return the record of who does what, and when."""
        return {"by": self.name, "verb": verb, "at_epoch": int(now)}


def user(pid: int = 0) -> Caller:
    """Return a person as the caller."""
    return Caller(CallerKind.USER, pid)


def session(session_id: str, pid: int = 0) -> Caller:
    """Return a session as the caller."""
    return Caller(CallerKind.SESSION, pid, session_id)
