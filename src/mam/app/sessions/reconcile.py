"""One pass of the monitor: look, plan, act, record. A dry run is the same without the last two.

It never creates or ends tmux sessions and never touches a conversation.
"""

from __future__ import annotations

import time

from mam.adapters.store.tables import drifts
from mam.app.observation import conversations
from mam.app.observation.hook_intake import take_in
from mam.app.observation.hook_reports import newest_reports
from mam.app.observation.snapshot import observe
from mam.app.sessions import adopt, death
from mam.app.sessions.begin_change import settle
from mam.core.drift import plan
from mam.core.errors import MamError
from mam.core.liveness import Liveness
from mam.core.session_row import is_running
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.snapshot import Snapshot
    from mam.core.caller import Caller
    from mam.core.drift import Drift

DRIFT_ACTIONS = {"A": "terminated", "B": "registered", "C": "filled"}


class Pass:
    """What one pass found and did."""

    __slots__ = ("actions", "drifts", "look", "view")

    def __init__(self, look: Snapshot, view: View) -> None:
        self.look = look
        self.view = view
        self.drifts: list[dict[str, Any]] = []
        self.actions: list[dict[str, Any]] = []


def one_pass(
    context: Context, caller: Caller, *, dry_run: bool = False, emit_diff: bool = False
) -> dict[str, Any]:
    """Make one pass and return its report; with `emit_diff` also what a resident recorded in between."""
    context.require_registry()
    began = time.perf_counter()
    at = context.now()
    if dry_run:
        done = foresee(context)
    else:
        settle(context, caller)
        done = reconcile(context, caller)
        if emit_diff:
            done.drifts = _since_last_print(context, done.drifts)
    listings = done.look.listings
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
        "drifts": done.drifts,
        "actions": done.actions,
        "duration_ms": round((time.perf_counter() - began) * 1000, 1),
    }


def foresee(context: Context) -> Pass:
    """Look and plan, and write nothing: not even what hooks reported is taken in."""
    view = context.registry.view()
    done, planned = _look(context, view)
    keys = [one.key for one in planned]
    none: list[str] = []
    known = context.registry.peek(lambda draft: [key for key in keys if drifts.is_known(draft, key)], none)
    done.drifts = [{**one.as_json(), "new": one.key not in known, "written": False} for one in planned]
    done.actions = [_action(one) for one in planned if one.after]
    return done


def reconcile(context: Context, caller: Caller, only: Collection[str] | None = None) -> Pass:
    """Look, plan, act and record, for all or for some ids; one session that fails stops no other."""
    view = context.registry.view()
    if view.rows:
        take_in(context)
    done, planned = _look(context, view, only)
    written = {one.key: _act(context, caller, one, done) for one in planned}
    has_open = context.registry.peek(drifts.has_open, False)
    if planned or has_open:
        done.drifts = context.registry.note(lambda draft: _record(draft, planned, written, done))
    return done


def _look(context: Context, view: View, only: Collection[str] | None = None) -> tuple[Pass, list[Drift]]:
    reports = newest_reports(context, view.rows) if view.rows else {}
    done = Pass(observe(context, view.rows, reports, only), view)
    busy = {part for intent in view.intents for part in (intent.session_id, intent.name)}
    return done, plan(view.rows, done.look.found, context.now(), busy)


def _action(drift: Drift) -> dict[str, Any]:
    found = drift.as_json()
    return {"action": DRIFT_ACTIONS[drift.kind], "session": found["session"], "server": found["server"]}


def _act(context: Context, caller: Caller, drift: Drift, done: Pass) -> bool:
    """Write what follows from a difference; False where nothing does, or where it could not be."""
    if drift.after is None:
        return False
    try:
        is_done = _write(context, caller, drift, done)
    except MamError as error:
        context.warn(f"{drift.message}; not written: {error}")
        return False
    if is_done:
        done.actions.append(_action(drift))
    return is_done


def _write(context: Context, caller: Caller, drift: Drift, done: Pass) -> bool:
    if drift.kind == "B" and drift.stray is not None:
        adopt.register(context, caller, drift.stray)
        return True
    row = drift.row
    if row is None:
        return False
    if drift.kind == "A":
        return not is_running(death.record_death(context, caller, row, done.look.sights[row["id"]]))
    return bool(conversations.capture(context, row).get(drift.field or "") == drift.after)


def _record(
    draft: Transaction, planned: list[Drift], written: dict[str, bool], done: Pass
) -> list[dict[str, Any]]:
    found = []
    for one in planned:
        # What could not be written the last time is news once it is.
        is_new = written[one.key] or not drifts.is_known(draft, one.key)
        if is_new:
            drifts.record(draft, one.as_json(), written=written[one.key])
        found.append({**one.as_json(), "new": is_new, "written": written[one.key]})
    drifts.close_others(draft, [one.key for one in planned if not written[one.key]], _looked_at(done))
    return found


def _looked_at(done: Pass) -> list[str]:
    """Return the sessions of which something is known now; an ended one has no difference any more."""
    seen = done.look.found.seen
    return [
        row["name"]
        for row in done.view.rows
        if not is_running(row) or ((one := seen.get(row.get("id") or "")) and one.state != Liveness.UNKNOWN)
    ]


def _since_last_print(context: Context, now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what nobody has printed yet, and after it what still lasts; from here on it is printed."""

    def work(draft: Transaction) -> list[dict[str, Any]]:
        unprinted = [{**one, "new": True} for one in drifts.unprinted(draft)]
        drifts.set_printed(draft)
        keys = {one["id"] for one in unprinted}
        return unprinted + [{**one, "new": False} for one in now if one["id"] not in keys]

    return context.registry.note(work)
