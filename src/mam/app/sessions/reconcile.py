"""One pass: observe the sessions, plan what follows from each drift, act on it, and record the drifts.

A dry run only observes and plans. A pass never starts or ends a tmux session and never changes a
conversation.
"""

from __future__ import annotations

import time

from mam.adapters.store.tables import drifts
from mam.adapters.system.exit_watch import wait_gone
from mam.app.context.liveness import identity_of
from mam.app.observation import conversations
from mam.app.observation.hook_intake import take_in
from mam.app.observation.newest_hook_reports import newest_reports
from mam.app.observation.snapshot import observe
from mam.app.sessions import adopt, death
from mam.app.sessions.steps_before_each_change import recover_if_needed
from mam.core.drift_detection import decided, plan
from mam.core.errors import MamError
from mam.core.session_row import is_running
from mam.core.stop_escalation import GRACE, HANG_UP
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.app.observation.snapshot import Snapshot
    from mam.app.sessions.ending_processes import EndingProcesses
    from mam.core.caller import Caller
    from mam.core.drift_detection import Drift

DRIFT_ACTIONS = {"A": "terminated", "B": "registered", "C": "filled"}


class Pass:
    """What one pass observed and did. `decided` are the names of the rows of which it knows all drift.

    `next_look_in` are the seconds after which a process that has lost its pane should have ended.
    """

    __slots__ = ("actions", "decided", "drifts", "is_full", "next_look_in", "snapshot", "view")

    def __init__(self, snapshot: Snapshot, view: View, decided: set[str], *, is_full: bool) -> None:
        self.snapshot = snapshot
        self.view = view
        self.decided = decided
        self.is_full = is_full
        self.next_look_in: float | None = None
        self.drifts: list[dict[str, Any]] = []
        self.actions: list[dict[str, Any]] = []


def one_pass(
    context: Context, caller: Caller, *, dry_run: bool = False, emit_diff: bool = False
) -> dict[str, Any]:
    """Make one pass and return its report; with `emit_diff` the report includes what a resident recorded."""
    context.require_registry()
    began = time.perf_counter()
    at = context.now()
    if dry_run:
        this_pass = preview(context)
    else:
        recover_if_needed(context, caller)
        this_pass = reconcile(context, caller)
        if emit_diff:
            this_pass.drifts = _since_last_print(context, this_pass.drifts)
    listings = this_pass.snapshot.listings
    return {
        "timestamp": stamp(at),
        "yaml_path": context.paths.yaml,
        "tmux_confirmed": all(listing.confirmed for listing in listings.values()),
        "tmux_sessions_alive": sorted(
            {pane.session_name for listing in listings.values() for pane in listing.panes if not pane.dead}
        ),
        "servers": {
            server: {"confirmed": listing.confirmed, "error": listing.error or None}
            for server, listing in sorted(listings.items())
        },
        "drifts": this_pass.drifts,
        "actions": this_pass.actions,
        "duration_ms": round((time.perf_counter() - began) * 1000, 1),
    }


def preview(context: Context) -> Pass:
    """Observe and plan, and write nothing: hook payloads stay in the spool."""
    view = context.registry.view()
    this_pass, planned_drifts = _observe_patiently(context, view)
    keys = [drift.key for drift in planned_drifts]
    no_keys: list[str] = []
    known_keys = context.registry.peek(
        lambda transaction: [key for key in keys if drifts.is_known(transaction, key)], no_keys
    )
    this_pass.drifts = [
        _document(drift, is_new=drift.key not in known_keys, is_written=False) for drift in planned_drifts
    ]
    this_pass.actions = [_action(drift) for drift in planned_drifts if drift.after]
    return this_pass


def reconcile(
    context: Context,
    caller: Caller,
    only: Collection[str] | None = None,
    *,
    with_ended: bool = True,
    ending: EndingProcesses | None = None,
) -> Pass:
    """Observe, plan, act and record, for all sessions or for some ids. One failure stops no other session.

    Without `with_ended` the conversations of ended sessions are not looked at. A process that has just lost
    its pane may end by itself: without `ending` this waits for it, and with it a later pass decides.
    """
    view = context.registry.view()
    if any(is_running(row) and not row.get("id") for row in view.rows):
        # A file of the original system that mam has not recorded yet.
        context.registry.commit(lambda _transaction: None)
        view = context.registry.view()
    if view.rows:
        take_in(context)
    this_pass, planned_drifts = _observe_patiently(context, view, only, with_ended, ending)
    if any(drift.row is not None and not drift.row.get("id") for drift in planned_drifts):
        # An ended row of that file: without its id the drift would be new again once the row has one.
        context.registry.commit(lambda _transaction: None)
        view = context.registry.view()
        this_pass, planned_drifts = _observe_patiently(context, view, only, with_ended, ending)
    was_written = {drift.key: _act(context, caller, drift, this_pass) for drift in planned_drifts}
    # A drift that lasts is no reason to take the write lock in each pass.
    none: list[drifts.OpenDrift] = []
    recorded = context.registry.peek(drifts.open_drifts, none)
    known = {drift.key for drift in recorded}
    if (
        any(was_written.values())
        or not known.issuperset(was_written)
        or _over(recorded, was_written, this_pass)
    ):
        this_pass.drifts = context.registry.note(
            lambda transaction: _record(transaction, planned_drifts, was_written, this_pass)
        )
    else:
        this_pass.drifts = [_document(drift, is_new=False, is_written=False) for drift in planned_drifts]
    return this_pass


def _observe_patiently(
    context: Context,
    view: View,
    only: Collection[str] | None = None,
    with_ended: bool = True,
    ending: EndingProcesses | None = None,
) -> tuple[Pass, list[Drift]]:
    """Observe and plan, and plan nothing for a process that has lost its pane and may be ending."""
    this_pass, planned_drifts = _observe_and_plan(context, view, only, with_ended)
    loose = _newly_loose(context, planned_drifts)
    if not loose:
        return this_pass, planned_drifts
    if ending is None:
        wait_gone(loose.values(), GRACE[HANG_UP])
        return _observe_and_plan(context, view, only, with_ended)
    seconds = ending.seconds_left(loose.values())
    undecided = {key: seconds[identity] for key, identity in loose.items() if seconds[identity] > 0}
    this_pass.next_look_in = min(undecided.values(), default=None)
    return this_pass, [drift for drift in planned_drifts if drift.key not in undecided]


def _newly_loose(context: Context, planned_drifts: list[Drift]) -> dict[str, Identity]:
    """Return the processes without their pane that are not recorded as such, by the keys of the drifts."""
    loose = {
        drift.key: identity
        for drift in planned_drifts
        if drift.is_loose and drift.row is not None and (identity := identity_of(drift.row))
    }
    if not loose:
        return loose
    nobody: dict[str, Identity] = {}
    return context.registry.peek(
        lambda transaction: {
            key: identity for key, identity in loose.items() if not drifts.is_known(transaction, key)
        },
        nobody,
    )


def _observe_and_plan(
    context: Context, view: View, only: Collection[str] | None, with_ended: bool
) -> tuple[Pass, list[Drift]]:
    reports = newest_reports(context, view.rows) if view.rows else {}
    snapshot = observe(context, view.rows, reports, only, identities=view.identities, with_ended=with_ended)
    busy = {part for intent in view.intents for part in (intent.session_id, intent.name)}
    now = context.now()
    this_pass = Pass(
        snapshot, view, decided(view.rows, snapshot.observation, now, busy), is_full=only is None
    )
    return this_pass, plan(view.rows, snapshot.observation, now, busy)


def _action(drift: Drift) -> dict[str, Any]:
    document = drift.as_json()
    return {"action": DRIFT_ACTIONS[drift.kind], "session": document["session"], "server": document["server"]}


def _act(context: Context, caller: Caller, drift: Drift, this_pass: Pass) -> bool:
    """Write what follows from a drift. Return False if nothing follows or the write failed."""
    if drift.after is None:
        return False
    try:
        is_written = _write(context, caller, drift, this_pass)
    except MamError as error:
        context.warn(f"{drift.message}; mam could not record it: {error}")
        return False
    if is_written:
        this_pass.actions.append(_action(drift))
    return is_written


def _write(context: Context, caller: Caller, drift: Drift, this_pass: Pass) -> bool:
    if drift.kind == "B" and drift.unregistered is not None:
        adopt.register(context, caller, drift.unregistered)
        return True
    row = drift.row
    if row is None:
        return False
    if drift.kind == "A":
        return not is_running(
            death.record_death(context, caller, row, this_pass.snapshot.liveness_by_id[row["id"]])
        )
    return bool(conversations.record_conversation(context, row).get(drift.field or "") == drift.after)


def _document(drift: Drift, *, is_new: bool, is_written: bool) -> dict[str, Any]:
    return {**drift.as_json(), "new": is_new, "written": is_written}


def _record(
    transaction: Transaction, planned_drifts: list[Drift], was_written: dict[str, bool], this_pass: Pass
) -> list[dict[str, Any]]:
    documents = []
    for drift in planned_drifts:
        is_written = was_written[drift.key]
        # A drift that could not be written last time counts as new once it is written.
        is_new = is_written or not drifts.is_known(transaction, drift.key)
        if is_new:
            drifts.record(transaction, drift.as_json(), is_written=is_written)
        documents.append(_document(drift, is_new=is_new, is_written=is_written))
    drifts.close(transaction, _over(drifts.open_drifts(transaction), was_written, this_pass))
    return documents


def _over(
    recorded: list[drifts.OpenDrift], was_written: dict[str, bool], this_pass: Pass
) -> list[drifts.OpenDrift]:
    """Return the recorded drifts that have ended: this pass could have found them again, and did not."""
    lasting = {key for key, is_written in was_written.items() if not is_written}
    confirmed = this_pass.snapshot.observation.confirmed
    registered = {row["name"] for row in this_pass.view.rows}

    def is_decided(drift: drifts.OpenDrift) -> bool:
        if drift.session in registered:
            return drift.session in this_pass.decided
        # It is of the identity cache, of a row that is gone, or of a tmux session without a row.
        return this_pass.is_full and (drift.server is None or confirmed.get(drift.server, True))

    return [drift for drift in recorded if drift.key not in lasting and is_decided(drift)]


def _since_last_print(context: Context, current_drifts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the drifts that were never printed, then the others that last, and mark all as printed."""

    def work(transaction: Transaction) -> list[dict[str, Any]]:
        unprinted = [{**drift, "new": True} for drift in drifts.unprinted(transaction)]
        drifts.set_printed(transaction)
        keys = {drift["id"] for drift in unprinted}
        return unprinted + [{**drift, "new": False} for drift in current_drifts if drift["id"] not in keys]

    return context.registry.note(work)
