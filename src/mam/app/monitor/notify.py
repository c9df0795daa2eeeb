"""Telling a person that a session needs them: once per episode, however often the resident restarts."""

from __future__ import annotations

import json
import sys
from threading import Thread

from mam.adapters.store.tables import notices
from mam.adapters.system import program_lookup
from mam.app.observation import activity
from mam.app.observation.ls import describe
from mam.core.activity import UNKNOWN
from mam.core.attention import attention, due_in
from mam.core.errors import MamError
from mam.core.job import ENDED
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.adapters.store.transaction import Transaction
    from mam.adapters.tmux.parse import Listing
    from mam.app.context.context import Context

    Notice = dict[str, Any]

_COMMAND_SECONDS = 10.0


def look(context: Context, view: View, listings: Mapping[str, Listing]) -> tuple[list[Notice], float | None]:
    """Return what became news, recorded as told, and in how many seconds there may be more."""
    found = describe(
        context, view, is_running, asked={server: _given(one) for server, one in listings.items()}
    )
    activity.remember(context, found)
    now = [notice for one in found if (notice := _notice(one))]
    # Where nobody can say how it is, what was told is still told.
    unsure = {one["id"] for one in found if one["activity"] == UNKNOWN}
    fresh = context.registry.peek(lambda draft: notices.fresh(draft, now), now)
    ended = context.registry.peek(lambda draft: notices.ended(draft, now, unsure), False)
    if fresh or ended:
        fresh = context.registry.note(lambda draft: _keep(draft, now, unsure))
    soon = [
        due
        for one in found
        if not one["attention"]
        and (due := due_in(one["activity"], one["activity_age_s"], **_of_job(one))) is not None
    ]
    return fresh, min(soon) if soon else None


def describe_told(context: Context, told: Collection[tuple[str, str]]) -> list[Notice]:
    """Return the notices that another process recorded, in words of now, without those that are over."""
    ids = {session_id for session_id, _ in told}
    found = describe(context, context.registry.view(), lambda row: row.get("id") in ids and is_running(row))
    notices_now = [notice for one in found if (notice := _notice(one))]
    return [one for one in notices_now if (one["session_id"], one["kind"]) in told]


def _given(listing: Listing) -> Callable[[], Listing]:
    return lambda: listing


def _keep(draft: Transaction, now: list[Notice], unsure: Collection[str]) -> list[Notice]:
    found = notices.fresh(draft, now)
    notices.keep(draft, now, unsure)
    return found


def _of_job(one: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether a session is to work on something, and keeps silent about it."""
    is_open = bool(one["job"]) and one["job_status"] not in ENDED
    return {"has_job": is_open, "is_silent": bool(one["job_silent"])}


def _notice(one: dict[str, Any]) -> Notice | None:
    found = attention(
        one["activity"],
        one["activity_age_s"],
        one["waiting_for"],
        **_of_job(one),
    )
    if found is None:
        return None
    return {
        "session_id": one["id"],
        "session": one["name"],
        "kind": found.kind,
        "text": found.text,
        "agent": one["agent"],
        "role": one.get("role"),
    }


def spread_apart(context: Context, found: list[Notice]) -> Thread:
    """Spread notices in a thread: a command may take its time, and a death is to be noticed meanwhile."""
    twin = context.for_thread()

    def work() -> None:
        for notice in found:
            try:
                spread(twin, notice)
            except MamError as error:
                twin.warn(f"{notice['session']} was not announced: {error}")

    # A daemon: who is told to stop waits for no command.
    running = Thread(target=work, daemon=True)
    running.start()
    return running


def spread(context: Context, notice: Notice) -> None:
    """Tell the desktop, and run the command of the settings; what fails there is only a warning."""
    settings = context.settings()
    text = f"{notice['session']}: {notice['text']}"
    commands = [_desktop(context, text)] if settings.notify_desktop else []
    if settings.notify_command:
        commands.append([*settings.notify_command, text])
    facts = {"MAM_NOTICE": json.dumps(notice), "MAM_NOTICE_SESSION": notice["session"]}
    for command in filter(None, commands):
        done = program_lookup.Running(command, {**context.environ, **facts}).finish(_COMMAND_SECONDS)
        if done.status != 0:
            context.warn(f"{command[0]} did not take the notice: {done.words or done.status}")


def _desktop(context: Context, text: str) -> list[str] | None:
    """Return what shows a text on this desktop; None where there is none."""
    path = context.environ.get("PATH", "")
    if sys.platform == "darwin":
        script = f"display notification {json.dumps(text)} with title {json.dumps('mam')}"
        return ["/usr/bin/osascript", "-e", script]
    has_desktop = context.environ.get("DISPLAY") or context.environ.get("WAYLAND_DISPLAY")
    program = program_lookup.which("notify-send", path) if has_desktop else None
    return [program, "--app-name=mam", "--", "mam", text] if program else None
