"""One pass: observe the sessions, plan what follows from each drift, act on it, and record the drifts.

A dry run only observes and plans. A pass never starts or ends a tmux session and never changes a
conversation.
"""

from __future__ import annotations

import time

from mam.adapters.store.tables import drifts
from mam.app.observation import conversations
from mam.app.observation.hook_intake import take_in
from mam.app.observation.newest_hook_reports import newest_reports
from mam.app.observation.snapshot import observe
from mam.app.sessions import adopt, death
from mam.app.sessions.steps_before_each_change import recover_if_needed
from mam.core.drift_detection import plan
from mam.core.errors import MamError
from mam.core.liveness_values import Liveness
from mam.core.session_row import id_or_name, is_running
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.snapshot import Snapshot
    from mam.core.caller import Caller
    from mam.core.drift_detection import Drift

DRIFT_ACTIONS = {"A": "terminated", "B": "registered", "C": "filled"}


class Pass:
    """What one pass observed and did."""

    __slots__ = ("actions", "drifts", "snapshot", "view")

    def __init__(self, snapshot: Snapshot, view: View) -> None:
        self.snapshot = snapshot
        self.view = view
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
    this_pass, planned_drifts = _observe_and_plan(context, view)
    keys = [drift.key for drift in planned_drifts]
    no_keys: list[str] = []
    known_keys = context.registry.peek(
        lambda transaction: [key for key in keys if drifts.is_known(transaction, key)], no_keys
    )
    this_pass.drifts = [
        {**drift.as_json(), "new": drift.key not in known_keys, "written": False} for drift in planned_drifts
    ]
    this_pass.actions = [_action(drift) for drift in planned_drifts if drift.after]
    return this_pass


def reconcile(context: Context, caller: Caller, only: Collection[str] | None = None) -> Pass:
    """Observe, plan, act and record, for all sessions or for some ids. One failure stops no other session."""
    view = context.registry.view()
    if any(is_running(row) and not row.get("id") for row in view.rows):
        # A file of the original system that mam has not recorded yet.
        context.registry.commit(lambda _transaction: None)
        view = context.registry.view()
    if view.rows:
        take_in(context)
    this_pass, planned_drifts = _observe_and_plan(context, view, only)
    was_written = {drift.key: _act(context, caller, drift, this_pass) for drift in planned_drifts}
    has_open = context.registry.peek(drifts.has_open, False)
    if planned_drifts or has_open:
        this_pass.drifts = context.registry.note(
            lambda transaction: _record(transaction, planned_drifts, was_written, this_pass)
        )
    return this_pass


def _observe_and_plan(
    context: Context, view: View, only: Collection[str] | None = None
) -> tuple[Pass, list[Drift]]:
    reports = newest_reports(context, view.rows) if view.rows else {}
    this_pass = Pass(observe(context, view.rows, reports, only), view)
    busy = {part for intent in view.intents for part in (intent.session_id, intent.name)}
    return this_pass, plan(view.rows, this_pass.snapshot.observation, context.now(), busy)


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


def _record(
    transaction: Transaction, planned_drifts: list[Drift], was_written: dict[str, bool], this_pass: Pass
) -> list[dict[str, Any]]:
    documents = []
    for drift in planned_drifts:
        # A drift that could not be written last time counts as new once it is written.
        is_new = was_written[drift.key] or not drifts.is_known(transaction, drift.key)
        if is_new:
            drifts.record(transaction, drift.as_json(), is_written=was_written[drift.key])
        documents.append({**drift.as_json(), "new": is_new, "written": was_written[drift.key]})
    drifts.close_others(
        transaction,
        [drift.key for drift in planned_drifts if not was_written[drift.key]],
        _observed_names(this_pass),
    )
    return documents


def _observed_names(this_pass: Pass) -> list[str]:
    """Return the names of sessions whose liveness is known now. An ended session has no drift any more."""
    seen_sessions = this_pass.snapshot.observation.sessions
    return [
        row["name"]
        for row in this_pass.view.rows
        if not is_running(row)
        or ((seen := seen_sessions.get(id_or_name(row))) and seen.state != Liveness.UNKNOWN)
    ]


def _since_last_print(context: Context, current_drifts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the drifts that were never printed, then the others that last, and mark all as printed."""

    def work(transaction: Transaction) -> list[dict[str, Any]]:
        unprinted = [{**drift, "new": True} for drift in drifts.unprinted(transaction)]
        drifts.set_printed(transaction)
        keys = {drift["id"] for drift in unprinted}
        return unprinted + [{**drift, "new": False} for drift in current_drifts if drift["id"] not in keys]

    return context.registry.note(work)
