"""Whether this user's mam made a root, and whether it is the place from which the root is changed. Pure.

A root has a random id in its database, and the user state knows the id with the folder of the root's state.
A folder is recognised by its inode. Device numbers are not compared: they change between boots.
"""

from __future__ import annotations

from mam.core.string_enum import StrEnum

# After this time without a change, another machine or container counts as silent.
SILENT_SECONDS = 600.0
# How often a change records that its place is alive.
PLACE_SECONDS = 60.0
# No time of a record is later: the year 2286. Anything else is no time.
_LATEST = 1e10


class RootState(StrEnum):
    """What a root is to this user's mam."""

    # There is nothing yet, or only a registry file.
    NEW = "new"
    KNOWN = "known"
    # A copy of a root that is still there.
    COPY = "copy"
    # Somebody else made it: a cloned repository, another home, another user state.
    FOREIGN = "foreign"
    # It is changed from another machine or container.
    ELSEWHERE = "elsewhere"
    # The user state knows it, and its folder is gone.
    MISSING = "missing"


class Arrival(StrEnum):
    """How a known root came to where it is."""

    SAME = "same"
    # The same folder under a second path, such as a bind mount.
    ALIAS = "alias"
    MOVED = "moved"
    # Another folder at the same path, such as a backup that was put back.
    RESTORED = "restored"
    # Known by its path alone, because mam 0.1 gave roots no id.
    WITHOUT_ID = "without id"


class KnownRoot:
    """What the user state records of a root. `is_complete` is False until the database has the id."""

    __slots__ = ("id", "inode", "is_complete", "registry", "root", "state")

    def __init__(
        self, root_id: str, root: str, registry: str, state: str, inode: int, *, is_complete: bool = True
    ) -> None:
        """`state` is the path of the folder that holds the database, `registry` that of the YAML file."""
        self.id = root_id
        self.root = root
        self.registry = registry
        self.state = state
        self.inode = inode
        self.is_complete = is_complete

    @property
    def is_lost(self) -> bool:
        """Whether another root was made at its path since. It may have been moved, and is known by its id."""
        return not self.inode


class RootFacts:
    """What was observed of one root."""

    __slots__ = (
        "database_id",
        "has_database",
        "inode",
        "is_empty",
        "known_by_id",
        "known_here",
        "known_without_id",
        "other_inode",
        "same_as_other",
    )

    def __init__(
        self,
        *,
        inode: int | None,
        is_empty: bool = False,
        has_database: bool = False,
        database_id: str | None = None,
        known_here: KnownRoot | None = None,
        known_by_id: KnownRoot | None = None,
        known_without_id: bool = False,
        other_inode: int | None = None,
        same_as_other: bool = False,
    ) -> None:
        """`inode` is that of the state folder, None without one; `is_empty` if nothing lies in it.

        `known_here` is recorded for this path, `known_by_id` for the id in the database, and
        `known_without_id` by mam 0.1. `other_inode` is the inode of the folder at the path that
        `known_by_id` names, None without one; `same_as_other` tells that both are one folder.
        """
        self.inode = inode
        self.is_empty = is_empty
        self.has_database = has_database
        self.database_id = database_id
        self.known_here = known_here
        self.known_by_id = known_by_id
        self.known_without_id = known_without_id
        self.other_inode = other_inode
        self.same_as_other = same_as_other


def judge(facts: RootFacts) -> tuple[RootState, Arrival]:
    """Return what a root is, and for a known root how it came to where it is."""
    here = facts.known_here
    if facts.inode is None or (facts.is_empty and (here is None or here.inode != facts.inode)):
        # A process may have died between making the folder and recording it.
        is_recorded = facts.known_without_id or (here is not None and here.is_complete)
        return (RootState.MISSING if is_recorded else RootState.NEW), Arrival.SAME
    if not facts.has_database:
        return _judge_without_database(facts)
    if here is not None and facts.database_id == here.id:
        return RootState.KNOWN, Arrival.SAME if here.inode == facts.inode else Arrival.RESTORED
    if here is not None and facts.database_id is None:
        # The id is recorded here first, and in the database after that.
        is_ours = here.inode == facts.inode and not here.is_complete
        return (RootState.KNOWN if is_ours else RootState.FOREIGN), Arrival.SAME
    if facts.known_by_id is not None:
        return _judge_known_elsewhere(facts, facts.known_by_id)
    if facts.known_without_id:
        return RootState.KNOWN, Arrival.WITHOUT_ID
    return RootState.FOREIGN, Arrival.SAME


def _judge_without_database(facts: RootFacts) -> tuple[RootState, Arrival]:
    """The database was lost, or never made. What else lies in the folder may be left, or came since."""
    here = facts.known_here
    if here is not None and here.is_complete:
        return RootState.MISSING, Arrival.SAME
    if here is not None and here.inode == facts.inode:
        return RootState.KNOWN, Arrival.SAME
    if here is None and facts.known_without_id:
        return RootState.KNOWN, Arrival.WITHOUT_ID
    return RootState.FOREIGN, Arrival.SAME


def _judge_known_elsewhere(facts: RootFacts, known: KnownRoot) -> tuple[RootState, Arrival]:
    """The database has the id of a root that is recorded at another path."""
    if facts.same_as_other:
        return RootState.KNOWN, Arrival.ALIAS
    if facts.other_inode is None:
        return RootState.KNOWN, Arrival.MOVED
    # Something is at the recorded path. If that is not the recorded folder, and this one is, then this one
    # was moved, and something else was made in its old place.
    was_moved = known.inode == facts.inode and known.inode != facts.other_inode
    return (RootState.KNOWN if was_moved else RootState.COPY), Arrival.MOVED


class Place:
    """From where a root is changed: a machine and, on Linux, a PID namespace. `at` is the last change."""

    __slots__ = ("at", "host", "machine", "namespace")

    def __init__(self, machine: str, host: str, namespace: int | None, at: float = 0.0) -> None:
        """`machine` identifies the machine, and `host` is its name for people."""
        self.machine = machine
        self.host = host
        self.namespace = namespace
        self.at = at

    def is_same(self, other: Place) -> bool:
        """Tell whether both are one machine and one PID namespace."""
        return (self.machine, self.namespace) == (other.machine, other.namespace)

    def is_silent(self, now: float) -> bool:
        """Tell whether nothing was changed from there for some time; also if its time lies in the future."""
        return not 0 <= now - self.at < SILENT_SECONDS

    def as_json(self) -> dict[str, object]:
        """Return the form that the database keeps."""
        return {"machine": self.machine, "host": self.host, "pid_ns": self.namespace, "at": self.at}

    @classmethod
    def from_json(cls, document: object) -> Place | None:
        """Return the place in a record; None if the record holds none."""
        if not isinstance(document, dict):
            return None
        machine, host = document.get("machine"), document.get("host")
        namespace, at = document.get("pid_ns"), document.get("at")
        if not isinstance(machine, str) or not isinstance(host, str) or not isinstance(at, (int, float)):
            return None
        if not 0 <= at < _LATEST:
            return None
        return cls(machine, host, namespace if isinstance(namespace, int) else None, float(at))
