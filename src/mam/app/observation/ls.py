"""The verb `ls`: the sessions with what they are doing. Reads only: neither registry nor tmux changes."""

from __future__ import annotations

import time

from mam.adapters.store import root_paths
from mam.app.context.context import Context
from mam.app.context.liveness import check_all_liveness, request_listings
from mam.app.context.settings_check import warn_of_settings
from mam.app.observation import activity, conversations
from mam.app.observation.newest_hook_reports import newest_reports
from mam.core.activity import IDLE, WAITING
from mam.core.attention import LIMIT, attention
from mam.core.drift_detection import drift_class
from mam.core.errors import InvalidSettings, MamError, TerminalsDown
from mam.core.liveness_values import Liveness
from mam.core.resume_choice import OWN
from mam.core.root_state import RootState
from mam.core.session_row import current_conversation, is_running, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypedDict, Unpack

    from mam.adapters.store.registry import View
    from mam.adapters.tmux.parse import Listing
    from mam.app.context.liveness import SessionLiveness
    from mam.app.observation.activity import SessionEvidence
    from mam.app.observation.newest_hook_reports import HookReport
    from mam.app.observation.open_dialogs import RecordedDialogs
    from mam.core.activity import Activity
    from mam.core.session_row import Row

    class Filters(TypedDict, total=False):
        """Which sessions are listed; without a filter all of them."""

        status: Sequence[str]
        agent: Sequence[str]
        role: Sequence[str]
        waiting: bool


SCHEMA_VERSION = 2


def ls(
    context: Context,
    *,
    all_roots: bool = False,
    requests: dict[str, Callable[[], Listing]] | None = None,
    **filters: Unpack[Filters],
) -> dict[str, Any]:
    """Return the sessions that fit the filters; with `all_roots` of every known root, each with its `root`.

    `requests` are listings of `request_listings` that are under way.
    """
    status, agent, role = filters.get("status"), filters.get("agent"), filters.get("role")
    if context.may_look:
        warn_of_settings(context)

    def fits(row: Row) -> bool:
        return (
            (not status or row["status"] in status)
            and (not agent or row["agent"] in agent)
            and (not role or row.get("role") in role)
        )

    if all_roots:
        sessions, unreadable = _describe_all_roots(context, fits)
    else:
        requests = request_listings(context) if requests is None else requests
        sessions, unreadable = describe(context, context.view_to_show(), fits, requests=requests), []
    if filters.get("waiting"):
        sessions = [session for session in sessions if session["activity"] == WAITING]
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "root": context.paths.root,
        "root_state": str(context.root.verdict().state),
        "resident": _resident(context) if context.may_look and not all_roots else None,
        "sessions": sessions,
    }
    if all_roots:
        document["unreadable"] = unreadable
    return document


def _resident(context: Context) -> dict[str, Any] | None:
    from mam.app.context.resident_state import resident_state

    try:
        return resident_state(context)
    except InvalidSettings:
        # The listing warns of them.
        return None


def watch(
    context: Context, interval: float = 1.0, *, all_roots: bool = False, **filters: Unpack[Filters]
) -> Iterator[dict[str, Any]]:
    """Yield the listing at once, and again whenever anything but an age in it has changed."""
    last = None
    while True:
        document = ls(context, all_roots=all_roots, **filters)
        without_ages = [
            {key: value for key, value in session.items() if key != "activity_age_s"}
            for session in document["sessions"]
        ]
        if without_ages != last:
            last = without_ages
            yield document
        time.sleep(interval)


def describe(
    context: Context,
    view: View,
    fits: Any = None,
    *,
    thorough: bool = False,
    requests: dict[str, Callable[[], Listing]] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows with activity, tmux, resume, job and drift; `requests` are listings under way."""
    rows = [row for row in view.rows if fits is None or fits(row)]
    is_ours = context.may_look
    reports = newest_reports(context, rows) if rows and is_ours else {}
    # The disk is read first, while tmux still works on the listings.
    open_conversations = [
        _conversation(context, row) if is_ours else (current_conversation(row), None) for row in rows
    ]
    liveness_by_name = check_all_liveness(context, rows, full=thorough, requests=requests, view=view)
    if is_ours:
        _warn_of_foreign_servers(context, rows, liveness_by_name)
    now = context.now()
    sessions = activity.gather(context, rows, liveness_by_name, reports, thorough=thorough)
    jobs = _jobs(context, rows)
    recorded: list[RecordedDialogs] = []

    def ask(row: Row, verdict: Activity) -> dict[str, Any] | None:
        return _asks(context, reports, recorded, row, verdict)

    return [
        _entry(context, view, session, conversation, now, jobs=jobs, ask=ask)
        for session, conversation in zip(sessions, open_conversations, strict=True)
    ]


def _warn_of_foreign_servers(
    context: Context, rows: Sequence[Row], liveness_by_name: dict[str, SessionLiveness]
) -> None:
    """Say why a session is unknown, if its tmux server is not this user's."""
    unknown = (row for row in rows if liveness_by_name[row["name"]].state == Liveness.UNKNOWN)
    for server in sorted({row["tmux_server"] for row in unknown}):
        try:
            context.tmux(server).check_socket()
        except TerminalsDown as error:
            context.warn(error.message)


def _jobs(context: Context, rows: Sequence[Row]) -> dict[str, tuple[str, float | None]]:
    """Return for each job of these sessions its status, and when the session was reminded of the job."""
    job_ids = {job for row in rows if (job := row.get("delegate_job_id"))}
    if not job_ids:
        return {}
    from mam.adapters.store.tables.jobs import statuses

    none: dict[str, tuple[str, float | None]] = {}
    return context.registry.peek(lambda transaction: statuses(transaction, job_ids), none)


def _is_open(status: str | None) -> bool:
    # Imported here: the modules for signing are slow to import, and few sessions have a job.
    from mam.core.job_rules import AT_REST

    return status not in AT_REST


def _conversation(context: Context, row: Row) -> tuple[str | None, bool | None]:
    """Return the conversation that the session has now, and whether it is on disk."""
    current = current_conversation(row)
    return current, conversations.on_disk(context, row, current) if current else None


def _entry(
    context: Context,
    view: View,
    session: SessionEvidence,
    conversation: tuple[str | None, bool | None],
    now: float,
    *,
    jobs: dict[str, tuple[str, float | None]],
    ask: Callable[[Row, Activity], dict[str, Any] | None],
) -> dict[str, Any]:
    row, liveness = session.row, session.liveness.state
    current, on_disk = conversation
    verdict = session.verdict(now)
    own = own_id(row)
    age = max(0.0, now - verdict.at)
    job = row.get("delegate_job_id")
    # A job in the row that the database does not have counts as open.
    status, reminded = jobs.get(job, ("unknown", None)) if job else (None, None)
    has_job = bool(job) and _is_open(status)
    is_silent = has_job and reminded is not None and verdict.state == IDLE and verdict.at > reminded
    needs = attention(verdict.state, age, verdict.waiting_for, has_job=has_job, is_silent=is_silent)
    is_alive = None if liveness == Liveness.UNKNOWN else liveness in (Liveness.ALIVE, Liveness.LOOSE)
    return {
        **row,
        "activity": str(verdict.state),
        "activity_source": verdict.source,
        "activity_age_s": round(age, 1),
        "waiting_for": verdict.waiting_for,
        "tmux_alive": is_alive,
        "resume": _resume(context, view, session, current, on_disk),
        "attention": needs.text if needs else None,
        "needs_you": needs is not None or verdict.state == WAITING,
        "asks": ask(row, verdict) if verdict.state == WAITING else None,
        "job": job,
        "job_status": status,
        "job_silent": is_silent,
        "drift": drift_class(
            row, liveness, conversation=current, on_disk=on_disk, own_on_disk=on_disk if own else None
        ),
    }


def _asks(
    context: Context,
    reports: dict[str, HookReport],
    recorded: list[RecordedDialogs],
    row: Row,
    verdict: Activity,
) -> dict[str, Any] | None:
    """Return what a waiting session asks; `recorded` keeps the records for the next one."""
    if str(verdict.waiting_for or "").startswith(LIMIT):
        return None
    if not recorded:
        from mam.app.observation.open_dialogs import RecordedDialogs

        recorded.append(RecordedDialogs(context))
    return recorded[0].asks(row, verdict.waiting_for, verdict.at, reports.get(row.get("id") or ""))


def _resume(
    context: Context, view: View, session: SessionEvidence, current: str | None, on_disk: bool | None
) -> dict[str, Any]:
    """Return the conversation that a resume would take up.

    Only a session that has ended without a conversation of its own searches the disk for one.
    """
    row = session.row
    if on_disk:
        return {"id": current, "tier": OWN, "on_disk": True}
    is_ours = context.may_look
    if is_running(row) or current or not session.kind.can_resume or not is_ours:
        return {"id": current, "tier": None, "on_disk": on_disk}
    return conversations.resume_choice(context, row, view.rows, view.identities, view.listed).as_json()


def _describe_all_roots(
    context: Context, fits: Any
) -> tuple[list[dict[str, Any]], list[dict[str, str | None]]]:
    """Return the sessions of every known root, and the roots that cannot be read, with their errors.

    A root whose state is gone is one of these.
    """
    context.warn_of_root()
    roots = dict(context.user_state.roots())
    roots.setdefault(context.paths.root, context.paths.yaml)
    sessions: list[dict[str, Any]] = []
    unreadable: list[dict[str, str | None]] = []
    for root, registry in sorted(roots.items()):
        root_context = Context(root_paths.of_registry(registry), root, context.environ)
        root_context = root_context.replace(warn=context.warn)
        try:
            if not root_context.paths.exists():
                if lost := _lost_root(root_context, root, registry):
                    unreadable.append(lost)
                continue
            sessions += [
                {**session, "root": root}
                for session in describe(root_context, root_context.view_to_show(), fits)
            ]
        except MamError as error:
            unreadable.append({"root": root, "root_state": None, "error": error.message, "hint": error.hint})
        finally:
            root_context.close()
    return sessions, unreadable


def _lost_root(context: Context, root: str, registry: str) -> dict[str, str | None] | None:
    """Return a root whose state is gone, with what helps; None if there is nothing to do about it."""
    refusal = context.root.refusal()
    if context.root.verdict().state != RootState.MISSING or refusal is None:
        return None
    from mam.app.observation.lost_roots import way_back

    hint = way_back(context, root, registry)
    if hint is None:
        return None
    return {"root": root, "root_state": str(RootState.MISSING), "error": refusal.message, "hint": hint}
