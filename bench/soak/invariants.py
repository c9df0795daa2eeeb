"""What must be true of a root that rests: I1 to I9, by the history of the clients and by what is there.

Each check yields a sentence for each violation, with the calls that belong to it.
"""

from __future__ import annotations

import json
import re
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.adapters.store.making import Store, check_invariants

from bench.soak.person import DRAFT
from bench.soak.remote_reporter import FORGED
from mam.adapters.store.root_paths import of_root
from mam.adapters.store.tables import jobs
from mam.adapters.system import load_adjusted_clock, process
from mam.app.context.liveness import check_liveness
from mam.core import job_event
from mam.core.job_rules import ENDED
from mam.core.liveness_values import Liveness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from bench.soak.history import Call
    from bench.soak.soaked_root import SoakedRoot

# What a verb answers if mam itself is wrong.
_BUGS = {"traceback", "error", "internal", "broken"}
_RESULTS = {"resume": {"running"}, "stop": {"stopped"}, "archive": {"archived"}, "create": {"running"}}
# Of the thousand messages that mam keeps some are tasks of jobs.
_NEWEST_MESSAGES = 700
# A hook of an agent that dies needs a moment.
HOOK_SECONDS = 10.0
_LIFE = ("create", "resume", "stop", "archive", "forget", "rename")
_KNOWN_FILES = re.compile(
    r"(\.gitignore|state\.db(-wal|-shm|\.queue)?|resident\.lock|reserve|jobs|launch|settings|spool|mcp.*"
    r"|files\.lock|backups?|messages|titles|kept|\.?mail|[0-9a-f]{16}\.sock)\Z"
)


def violations(soaked: SoakedRoot) -> Iterator[str]:
    """Yield every violation in a root in which nothing happens at the moment."""
    soaked.history.read()
    for check in CHECKS:
        try:
            for text in check(soaked):
                yield f"{check.__name__}: {text}"
        except Exception:
            yield f"{check.__name__} is not possible: {traceback.format_exc()}"


def bugs(soaked: SoakedRoot) -> Iterator[str]:
    """No verb fails in a way that nobody foresaw, and no client or reporter ends by itself."""
    yield from soaked.clients.failed
    yield from soaked.reporter.failed
    yield from (str(call) for call in soaked.history.calls if call.outcome in _BUGS)


# ------------------------------------------------------------ sessions


class _Expected:
    """What the calls allow a session to be. Faults let one that runs die."""

    def __init__(self) -> None:
        self.statuses: set[str] = {"running"}
        # None before the first name that a call has acknowledged.
        self.names: set[str] | None = None
        self.is_gone: bool | None = False
        self.calls: list[Call] = []

    def apply(self, call: Call) -> None:
        """Take a call into account; one whose end nobody knows may have had its effect or not."""
        self.calls.append(call)
        if call.is_acknowledged:
            self._clear(call.verb)
        if call.verb == "rename":
            if self.names is not None:
                self.names.add(call.asked["name"])
        elif call.verb == "forget":
            self.is_gone = True if call.is_acknowledged else (self.is_gone or None)
        else:
            result = (call.result or {}).get("status")
            self.statuses |= {result} if result else _RESULTS[call.verb]

    def _clear(self, verb: str) -> None:
        if verb == "rename":
            self.names = set()
        elif verb != "forget":
            self.statuses.clear()

    def allows(self, row: Any) -> bool:
        """Tell whether a session may be what its row says; a row that is not there is None."""
        if row is None:
            return self.is_gone is not False
        if self.is_gone is True:
            return False
        statuses = self.statuses | ({"terminated"} if "running" in self.statuses else set())
        return row["status"] in statuses and (self.names is None or row["name"] in self.names)


def sessions(soaked: SoakedRoot) -> Iterator[str]:
    """I1: every session is what the calls of its client made of it, or what a fault did to that."""
    rows = {session.id: session.row for session in soaked.fleet.sessions.list()}
    expected: dict[str, _Expected] = {}
    for call in soaked.history.of(*_LIFE):
        session = call.asked.get("session") or (call.result or call.error or {}).get("session")
        if session is None:
            continue
        one = expected.setdefault(session, _Expected())
        if call.verb == "create":
            one.names = {call.asked["name"]}
        one.apply(call)
    for session, one in expected.items():
        row = rows.get(session)
        if not one.allows(row):
            shown = row and (row["name"], row["status"], row.get("last_action"))
            yield f"{session} is {shown}, and not {one.statuses} {one.names}:{_listed(one.calls[-6:])}"


def registry(soaked: SoakedRoot) -> Iterator[str]:
    """I2, I3: every record parses, the file shows the database, and no change is half done."""
    store = Store(soaked.stage.root, time.time)
    try:
        check_invariants(store)
    except AssertionError as error:
        yield f"the file and the database: {error}"
    finally:
        store.registry.close()
    yield from (f"half done: {one.verb} of {one.name}" for one in _view(soaked).intents)
    rows = {row["id"]: row for row in _view(soaked).rows}
    for key, session in soaked.notes.items():
        if session in rows and key not in rows[session]:
            yield f"the note of a person is lost: {rows[session]['name']} has no {key}"


def panes(soaked: SoakedRoot) -> Iterator[str]:
    """I4: each session that runs has its one pane, no other has one, and no pane is left over."""
    rows = {row["id"]: row for row in _view(soaked).rows}
    listing = soaked.stage.tmux.panes()
    marked = [pane.mark for pane in listing.panes if pane.mark and not pane.dead]
    yield from (f"{count} live panes claim {mark}" for mark, count in Counter(marked).items() if count > 1)
    for mark in set(marked):
        if mark not in rows or rows[mark]["status"] != "running":
            yield f"a live pane of {mark}, which is {rows.get(mark, {}).get('status', 'not registered')}"
    for row in rows.values():
        state = check_liveness(soaked.fleet._access.context, row).state
        if (row["status"] == "running") != (state == Liveness.ALIVE):
            yield f"{row['name']} ({row['id']}) is {row['status']}, its process {state}: {row['last_action']}"


def processes(soaked: SoakedRoot) -> Iterator[str]:
    """I7: no process of a session that has ended is alive."""
    running = {row["id"] for row in _view(soaked).rows if row["status"] == "running"}
    deadline = load_adjusted_clock.now() + HOOK_SECONDS
    while (left := _left_over(running, str(soaked.stage.root))) and load_adjusted_clock.now() < deadline:
        time.sleep(0.2)
    yield from left


def _left_over(running: set[str], root: str) -> list[str]:
    found = []
    for identity, (session, argv) in process.carriers("MAM_SESSION", 0).items():
        environ = process.environment(identity.pid) or {}
        if environ.get("MAM_ROOT") == root and session not in running:
            found.append(f"process {identity.pid} of {session}, which does not run: {argv}")
    return found


# ------------------------------------------------------------ messages and people


def sent(soaked: SoakedRoot) -> Iterator[str]:
    """I5: a message is taken at most once, one that is submitted exactly once, and nothing is glued to it."""
    taken = Counter(taken_by_agents(soaked))
    recorded = _recorded_messages(soaked)
    gone = {call.asked["session"] for call in soaked.history.of("forget")}
    calls = soaked.history.of("send")
    # The oldest of those that have ended are removed.
    newest = {call.asked["message"] for call in calls[-_NEWEST_MESSAGES:]}
    for call in calls:
        text, count = call.asked["text"], taken[call.asked["text"]]
        state = recorded.get(call.asked["message"], (None, None))[1]
        receipt = (call.result or {}).get("state")
        if count > 1:
            yield f"taken {count} times: {call}"
        if count == 0 and "submitted" in (state, receipt):
            yield f"submitted and not taken: {call}; recorded as {state}"
        if count and state in ("held", "typing", "failed", "parked"):
            yield f"taken and recorded as {state}: {call}"
        is_kept = call.asked["message"] in newest and call.asked["session"] not in gone
        if call.is_acknowledged and state is None and is_kept:
            yield f"acknowledged and not recorded: {call}"
        if state == "typing":
            yield f"still being typed: {text}"
    known = {call.asked["text"] for call in calls}
    for text in taken:
        if text not in known and ("message c" in text or DRAFT in text) and "\nTask:\n" not in text:
            yield f"an agent took {text!r}, which nobody sent"


def dialogs(soaked: SoakedRoot) -> Iterator[str]:
    """Nobody has answered the dialogs: no key of mam went into one."""
    said = "\n".join(taken_by_agents(soaked, kind="assistant"))
    for asked in soaked.person.asked:
        if f"`{asked.command}`" in said:
            yield f"somebody allowed {asked.command} of {asked.session}"
        if not process.is_alive(asked.agent):
            # Another process may have its number, and another pane of a new server the number of its pane.
            continue
        if not soaked.person.shows(asked):
            screen = soaked.person.screen(asked.pane) or ""
            yield f"the dialog about {asked.command} of {asked.session} is gone: {screen[-800:]!r}"


def taken_by_agents(soaked: SoakedRoot, kind: str = "user") -> list[str]:
    """Return what all agents took, or said, by their own records."""
    found = []
    for path in soaked.stage.home.rglob("mam-practice/*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("type") == kind:
                found.append(entry["text"])
    return found


# ------------------------------------------------------------ jobs


def reports(soaked: SoakedRoot) -> Iterator[str]:
    """I1, I6: a report that was acknowledged is in the log once, any other at most once."""
    counts = Counter((one.job_id, one.document["detail"]) for one in _entries(soaked))
    for call in soaked.history.of("report", "end"):
        count = counts[call.asked["job"], call.asked["detail"]]
        if count > 1 or (call.is_acknowledged and count != 1):
            yield f"{count} times in the log: {call}"


def ends(soaked: SoakedRoot) -> Iterator[str]:
    """I6: a job that is over has one end, and any other none; every job that was acknowledged is there."""
    counts = Counter(one.job_id for one in _entries(soaked) if one.name in job_event.TERMINAL)
    found = {job.id: job for job in _peek(soaked, jobs.listed)}
    for job in found.values():
        if counts[job.id] != (job.status in ENDED):
            yield f"job {job.id} is {job.status} and has {counts[job.id]} ends"
    for call in soaked.history.of("submit"):
        if call.is_acknowledged and call.result["job"] not in found:  # type: ignore[index]
            yield f"lost: {call}"
    for call in soaked.history.of("end"):
        if call.is_acknowledged and found[call.asked["job"]].status not in ENDED:
            yield f"not ended: {call}"


def remote_reports(soaked: SoakedRoot) -> Iterator[str]:
    """I6: what a machine elsewhere has signed counts once, and what it has not signed never."""
    for job, last in soaked.reporter.published.items():
        entries = [one for one in _entries(soaked) if one.job_id == job]
        counts = Counter(one.document["seq"] for one in entries if one.name == job_event.PROGRESS)
        lost = [seq for seq in range(1, last + 1) if counts[seq] == 0]
        doubled = [seq for seq, count in counts.items() if count > 1]
        if lost or doubled:
            yield f"job {job}: lost {lost[:20]}, doubled {doubled[:20]}"
        if any(FORGED in one.document["detail"] for one in entries):
            yield f"job {job} has a forged event"


def tasks(soaked: SoakedRoot) -> Iterator[str]:
    """I1: every task that was acknowledged is there, and none twice."""
    listed = soaked.fleet.tasks.list()["tasks"]
    counts, ids = Counter(one["text"] for one in listed), {one["id"] for one in listed}
    for call in soaked.history.of("task"):
        is_lost = call.is_acknowledged and call.result["id"] not in ids  # type: ignore[index]
        if is_lost or counts[call.asked["text"]] > 1:
            yield f"{counts[call.asked['text']]} times: {call}"


# ------------------------------------------------------------ files


def leftovers(soaked: SoakedRoot) -> Iterator[str]:
    """I9: no temporary file, launch file or unknown file is left."""
    state = Path(of_root(str(soaked.stage.root)).state)
    yield from (f"{path.name} in .mam" for path in state.iterdir() if not _KNOWN_FILES.match(path.name))
    yield from (f"{path.name} in launch" for path in (state / "launch").glob("*"))
    known = {
        f"{job.id}{end}" for job in _peek(soaked, jobs.listed) for end in (".json", ".events.log", ".token")
    }
    for path in (state / "jobs").glob("*"):
        if path.name not in known and not path.name.startswith(".lock"):
            yield f"{path.name} in jobs"


CHECKS: tuple[Callable[[SoakedRoot], Iterable[str]], ...] = (
    bugs,
    sessions,
    registry,
    panes,
    processes,
    sent,
    dialogs,
    reports,
    ends,
    remote_reports,
    tasks,
    leftovers,
)


def _view(soaked: SoakedRoot) -> Any:
    return soaked.fleet._access.context.registry.view()


def _peek(soaked: SoakedRoot, read: Callable[[Any], list[Any]]) -> list[Any]:
    return soaked.fleet._access.context.registry.peek(read, [])


def _entries(soaked: SoakedRoot) -> list[Any]:
    return _peek(soaked, lambda transaction: jobs.since(transaction, 0))


def _recorded_messages(soaked: SoakedRoot) -> dict[str, tuple[str, str]]:
    query = "SELECT id, session_id, state FROM messages"
    found = _peek(soaked, lambda transaction: transaction.connection.execute(query).fetchall())
    return {message: (session, state) for message, session, state in found}


def _listed(calls: Iterable[Call]) -> str:
    return "".join(f"\n    {call}" for call in calls)
