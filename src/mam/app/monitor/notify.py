"""Notifies a person that a session needs them: once per episode, even if the resident restarts."""

from __future__ import annotations

import json
import sys
from threading import Thread

from mam.adapters.store.tables import sent_notices
from mam.adapters.system import concurrent_program, program_lookup
from mam.app.observation import activity, open_dialogs
from mam.app.observation.ls import describe
from mam.core.activity import UNKNOWN
from mam.core.attention import attention, due_in
from mam.core.errors import MamError
from mam.core.job_rules import AT_REST
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.parse import Listing
    from mam.app.context.context import Context

    Notice = dict[str, Any]

_COMMAND_SECONDS = 10.0


def new_notices(
    context: Context, view: View, listings: Mapping[str, Listing]
) -> tuple[list[Notice], float | None]:
    """Return the new notices, recorded as announced, and in how many seconds to look again.

    It also records what the sessions ask that wait for a person.
    """
    sessions = describe(
        context,
        view,
        is_running,
        requests={server: _as_getter(session) for server, session in listings.items()},
    )
    activity.record_looks(context, sessions)
    look_again_in = open_dialogs.look_at_waiting(context, sessions)
    current = [notice for session in sessions if (notice := _notice(session))]
    # A session with unknown activity keeps its recorded notice, so that it is not announced twice.
    unsure = {session["id"] for session in sessions if session["activity"] == UNKNOWN}
    unannounced = context.registry.peek(
        lambda transaction: sent_notices.unsent(transaction, current), current
    )
    ended = context.registry.peek(lambda transaction: sent_notices.ended(transaction, current, unsure), False)
    if unannounced or ended:
        unannounced = context.registry.note(lambda transaction: _record(transaction, current, unsure))
    soon = [
        due
        for session in sessions
        if not session["attention"]
        and (due := due_in(session["activity"], session["activity_age_s"], **_job_facts(session))) is not None
    ]
    if look_again_in is not None:
        soon.append(look_again_in)
    return unannounced, min(soon) if soon else None


def describe_recorded(context: Context, recorded: Collection[tuple[str, str]]) -> list[Notice]:
    """Return the notices that another process recorded and that still hold, with their current text."""
    ids = {session_id for session_id, _ in recorded}
    sessions = describe(
        context, context.registry.view(), lambda row: row.get("id") in ids and is_running(row)
    )
    notices_now = [notice for session in sessions if (notice := _notice(session))]
    return [session for session in notices_now if (session["session_id"], session["kind"]) in recorded]


def _as_getter(listing: Listing) -> Callable[[], Listing]:
    return lambda: listing


def _record(transaction: Transaction, current: list[Notice], unsure: Collection[str]) -> list[Notice]:
    unannounced = sent_notices.unsent(transaction, current)
    sent_notices.store_lasting(transaction, current, unsure)
    return unannounced


def _job_facts(session: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether a session has an open job, and whether it is silent about it."""
    is_open = bool(session["job"]) and session["job_status"] not in AT_REST
    return {"has_job": is_open, "is_silent": bool(session["job_silent"])}


def _notice(session: dict[str, Any]) -> Notice | None:
    need = attention(
        session["activity"],
        session["activity_age_s"],
        session["waiting_for"],
        **_job_facts(session),
    )
    if need is None:
        return None
    return {
        "session_id": session["id"],
        "session": session["name"],
        "kind": need.kind,
        "text": need.text,
        "agent": session["agent"],
        "role": session.get("role"),
    }


def announce_in_thread(context: Context, pending: list[Notice]) -> Thread:
    """Announce notices in a thread, because a slow command must not delay the resident."""
    thread_context = context.for_thread()

    def work() -> None:
        for notice in pending:
            try:
                announce(thread_context, notice)
            except MamError as error:
                thread_context.warn(f"{notice['session']} was not announced: {error}")

    # A daemon thread: a resident that is told to stop does not wait for the command.
    running = Thread(target=work, daemon=True)
    running.start()
    return running


def announce(context: Context, notice: Notice) -> None:
    """Show a notice on the desktop, and run the command of the settings; a failure is only a warning."""
    settings = context.settings()
    text = f"{notice['session']}: {notice['text']}"
    commands = [_desktop(context, text)] if settings.notify_desktop else []
    if settings.notify_command:
        commands.append([*settings.notify_command, text])
    facts = {"MAM_NOTICE": json.dumps(notice), "MAM_NOTICE_SESSION": notice["session"]}
    for command in filter(None, commands):
        result = concurrent_program.Running(command, {**context.environ, **facts}).finish(_COMMAND_SECONDS)
        if result.status != 0:
            context.warn(f"{command[0]} could not show the notice: {result.output or result.status}")


def _desktop(context: Context, text: str) -> list[str] | None:
    """Return the command that shows a text on this desktop; None without a desktop."""
    path = context.environ.get("PATH", "")
    if sys.platform == "darwin":
        script = f"display notification {json.dumps(text)} with title {json.dumps('mam')}"
        return ["/usr/bin/osascript", "-e", script]
    has_desktop = context.environ.get("DISPLAY") or context.environ.get("WAYLAND_DISPLAY")
    program = program_lookup.which("notify-send", path) if has_desktop else None
    return [program, "--app-name=mam", "--", "mam", text] if program else None
