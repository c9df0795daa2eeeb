"""Finds out what a root is to this user's mam, and records a root that this process is about to change.

The database of a root may have come with a cloned repository. Until the user state knows the root, mam reads
a copy of the database in memory, and writes nothing.
"""

from __future__ import annotations

import os
import stat

from mam.adapters.store import database
from mam.adapters.system import json_text as json
from mam.adapters.system import machine
from mam.core.errors import Damaged, RootCopy, RootElsewhere, RootForeign, RootMissing, Unavailable
from mam.core.root_state import PLACE_SECONDS, Arrival, KnownRoot, Place, RootFacts, RootState, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.root_safety import RootSafety
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.user_state import UserState
    from mam.core.errors import RootRefused

ID, PLACE = database.ROOT_ID, "place"
# A verdict on a root that mam may not change counts this long.
_LOOK_SECONDS = 1.0


class RootVerdict:
    """What a root is, with its id and, if it is changed from elsewhere, that place."""

    __slots__ = ("arrival", "elsewhere", "has_id", "id", "known", "state")

    def __init__(
        self,
        state: RootState,
        arrival: Arrival,
        root_id: str | None,
        known: KnownRoot | None,
        elsewhere: Place | None,
        *,
        has_id: bool,
    ) -> None:
        """`known` is the record of the user state that the root matches, or of which it is a copy.

        `has_id` tells whether the database has the id; a database that was lost and made anew has none yet.
        """
        self.state = state
        self.arrival = arrival
        self.id = root_id
        self.known = known
        self.has_id = has_id
        # The place of another machine or container that the database names, also for a foreign root.
        self.elsewhere = elsewhere

    @property
    def is_ours(self) -> bool:
        """Whether the database may be opened itself, and what the rows name may be looked at."""
        return self.state in (RootState.NEW, RootState.KNOWN, RootState.COPY)


class RootIdentity:
    """The identity of one root for one process. Nothing is read before it is needed."""

    def __init__(
        self, paths: RootPaths, user_state: UserState, clock: Callable[[], float], safety: RootSafety
    ) -> None:
        self.paths = paths
        self.safety = safety
        self.user_state = user_state
        self.clock = clock
        # True while the caller has proven that it belongs to a session of this root, which may have its
        # tools run in a PID namespace of their own.
        self.is_proven_session = False
        # Opens the database of a recorded folder; the registry of the root sets it.
        self.connect: Callable[[], sqlite3.Connection] | None = None
        self._seen: tuple[object, object] | None = None
        self._verdict: RootVerdict | None = None
        self._judged_at = 0.0

    def verdict(self) -> RootVerdict:
        """Return what the root is; looked up again after its folder or its database was replaced."""
        seen = self._identities()
        if self._verdict is None or seen != self._seen or self._is_old(self._verdict):
            self.safety.check_owners()
            try:
                self._verdict = self._judge()
            except (Damaged, Unavailable):
                # The state may have been moved or deleted between two looks.
                if seen == (seen := self._identities()):
                    raise
                self._verdict = self._judge()
            if self._verdict.state == RootState.FOREIGN:
                # Another process may have made the root between two looks.
                self._verdict = self._judge()
            self._seen, self._judged_at = seen, self.clock()
        return self._verdict

    def _identities(self) -> tuple[object, object]:
        return database.identity(self.paths.state), database.identity(self.paths.db)

    def _is_old(self, verdict: RootVerdict) -> bool:
        """Tell whether another process may have changed since what a root of others is to this user's mam."""
        is_lasting = verdict.state in (RootState.NEW, RootState.KNOWN)
        return not is_lasting and not 0 <= self.clock() - self._judged_at < _LOOK_SECONDS

    def check_safety(self) -> None:
        """Raise RootRefused if another user could write into the root, or if it is on a network."""
        refusal = self.safety.refusal_of_change()
        if refusal is not None:
            raise refusal

    def forget_verdict(self) -> None:
        """Look the root up again the next time: this process has changed what it is."""
        self._verdict = None

    def _judge(self) -> RootVerdict:
        here = self.user_state.root_at(self.paths.state)
        folder = _stat(self.paths.state)
        has_database = folder is not None and has_content(self.paths.db)
        database_id, place = None, None
        if has_database:
            is_recorded = folder is not None and self._is_recorded(folder, here)
            database_id, place = self._read_identity(is_recorded=is_recorded)
        known_by_id = here if here and here.id == database_id else self.user_state.root_by_id(database_id)
        other = _stat(known_by_id.state) if known_by_id and known_by_id is not here else None
        facts = RootFacts(
            inode=folder.st_ino if folder else None,
            is_empty=folder is not None and not has_database and not os.listdir(self.paths.state),
            has_database=has_database,
            database_id=database_id,
            known_here=here,
            known_by_id=known_by_id,
            known_without_id=here is None and self.user_state.is_known_without_id(self.paths.yaml),
            other_inode=other.st_ino if other else None,
            same_as_other=bool(folder and other and os.path.samestat(folder, other)),
        )
        state, arrival = judge(facts)
        elsewhere = place if place is not None and not place.is_same(my_place()) else None
        if state == RootState.KNOWN and elsewhere is not None and not self.is_proven_session:
            state = RootState.ELSEWHERE
        root_id = database_id or (here.id if here and state == RootState.KNOWN else None)
        return RootVerdict(
            state, arrival, root_id, known_by_id or here, elsewhere, has_id=database_id is not None
        )

    def _is_recorded(self, folder: os.stat_result, here: KnownRoot | None) -> bool:
        """Tell whether the user state has this folder, under this path or another one.

        Then its database is opened itself, and not copied, to see what the root is.
        """
        if here is not None:
            return here.inode == folder.st_ino
        others = (_stat(known.state) for known in self.user_state.roots_with_inode(folder.st_ino))
        return any(other is not None and os.path.samestat(folder, other) for other in others)

    def _read_identity(self, *, is_recorded: bool) -> tuple[str | None, Place | None]:
        """Return the id and the place in the database.

        A copy that cannot be read tells nothing, and the root counts as foreign.
        """
        path = self.paths.db
        if is_recorded and self.connect is not None:
            self.paths.check()
            return _identity_in(self.connect(), path)
        try:
            copy = database.connect_to_copy(path)
            try:
                return _identity_in(copy, path)
            finally:
                copy.close()
        except (Damaged, Unavailable):
            return None, None

    def check(self) -> None:
        """Raise RootRefused if this process may not change the root."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal

    def refusal(self) -> RootRefused | None:
        """Return why this process may not change the root; None if it may."""
        verdict, root = self.verdict(), self.paths.root
        if verdict.state == RootState.FOREIGN:
            place = self._described(verdict.elsewhere)
            return RootForeign(
                f"your mam did not make the state in {self.paths.state}"
                + (f"; {place} changed it last" if place else ""),
                hint="it may come with a cloned repository or from another home: mam ls shows what it holds, "
                "mam init --trust takes it in",
            )
        if verdict.state == RootState.COPY:
            original = verdict.known.root if verdict.known else "another root"
            return RootCopy(
                f"{root} is a copy of {original}, which is still there",
                hint="mam init --copy makes it a root of its own; the conversations stay with the original",
            )
        if verdict.state == RootState.MISSING:
            lost = self.paths.db if os.path.exists(self.paths.state) else self.paths.state
            return RootMissing(
                f"the state of this root is gone: {lost} was there, and was deleted, emptied or moved",
                hint="mam restore brings it back from the newest copy, and takes live agents back; "
                "mam init --new begins anew",
            )
        if verdict.state == RootState.ELSEWHERE:
            return self._elsewhere(verdict.elsewhere)
        return self.safety.refusal_of_change()

    def _elsewhere(self, place: Place | None) -> RootElsewhere:
        return RootElsewhere(
            f"{self.paths.root} is changed from {self._described(place) or 'elsewhere'}",
            hint="use mam there; after ten minutes without a change there: mam init --take-over",
        )

    def _described(self, place: Place | None) -> str | None:
        if place is None:
            return None
        from mam.core.times import short_age

        host = place.host if place.host != machine.host_name() else f"another container on {place.host}"
        return f"{host} ({short_age(self.clock() - place.at)} ago)"

    def begin_claim(self) -> KnownRoot | None:
        """Record the root before its database has the id, so that no crash makes it foreign.

        Return the record; None if nothing has to be recorded. The state folder exists.
        """
        verdict, refusal = self.verdict(), self.refusal()
        if refusal is not None:
            # It came between the check and this look, such as with a clone.
            raise refusal
        is_recorded = verdict.known is not None and verdict.known.is_complete and verdict.has_id
        if is_recorded and verdict.arrival in (Arrival.SAME, Arrival.ALIAS):
            return None
        known = self.record(verdict.id or os.urandom(8).hex(), is_complete=False)
        self.forget_verdict()
        return known

    def record(self, root_id: str, *, is_complete: bool) -> KnownRoot:
        """Record the root in the user state with an id; return what is recorded."""
        folder = os.stat(self.paths.state)
        known = KnownRoot(
            root_id,
            self.paths.root,
            self.paths.yaml,
            self.paths.state,
            folder.st_ino,
            is_complete=is_complete,
        )
        return self.user_state.record_root(known)

    def finish_claim(self, connection: sqlite3.Connection, known: KnownRoot, arrival: Arrival) -> None:
        """Write the id into the database, and complete the record of the user state."""
        with database.transaction(connection, self.paths.db):
            connection.execute("INSERT OR IGNORE INTO meta VALUES(?, ?)", (ID, json.dumps(known.id)))
            (text,) = connection.execute("SELECT value FROM meta WHERE key=?", (ID,)).fetchone()
            if arrival in (Arrival.MOVED, Arrival.RESTORED):
                connection.execute(
                    "INSERT INTO log(at, actor, verb, detail) VALUES(?, 'mam', ?, ?)",
                    (self.clock(), str(arrival), json.dumps({"root": self.paths.root})),
                )
        self.record(json.loads(text), is_complete=True)
        self.forget_verdict()

    def check_place(self, transaction: Transaction) -> None:
        """Raise RootElsewhere where another place changes the root; record this place once in a minute."""
        place, mine = Place.from_json(transaction.meta(PLACE)), my_place(transaction.now)
        if place is not None and not place.is_same(mine):
            if self.is_proven_session:
                return
            raise self._elsewhere(place)
        if place is None or not 0 <= transaction.now - place.at < PLACE_SECONDS:
            transaction.set_meta(PLACE, mine.as_json())


def my_place(now: float = 0.0) -> Place:
    """Return the place of this process."""
    host = machine.host_name()
    # Without an id, the user state tells machines apart: each has its own.
    return Place(machine.machine_id() or "", host, machine.pid_namespace(), now)


def has_content(path: str) -> bool:
    """Tell whether there is a database. An empty file was cut, or is being made, and holds nothing."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise database.translate_os(error, path) from error
    return facts.st_size > 0 or not stat.S_ISREG(facts.st_mode)


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise database.translate_os(error, path) from error


def _identity_in(connection: sqlite3.Connection, path: str) -> tuple[str | None, Place | None]:
    values = database.read_meta(connection, path, (ID, PLACE))
    root_id = values.get(ID)
    return (root_id if isinstance(root_id, str) else None), Place.from_json(values.get(PLACE))
