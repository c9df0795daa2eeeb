"""List sessions with what they are doing. Reads only: nothing changes in the registry or in tmux."""

from __future__ import annotations

import time

from mam.adapters.store import root_paths as places
from mam.app.context.context import Context
from mam.app.context.liveness import ask_early, see_all
from mam.app.observation import activity, conversations
from mam.app.observation.hook_reports import newest_reports
from mam.core.activity import IDLE, WAITING
from mam.core.attention import attention
from mam.core.drift import letter
from mam.core.errors import MamError
from mam.core.liveness import Liveness
from mam.core.resume_choice import OWN
from mam.core.session_row import current_conversation, is_running, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypedDict, Unpack

    from mam.adapters.store.registry import View
    from mam.adapters.tmux.parse import Listing
    from mam.app.observation.activity import SessionEvidence
    from mam.core.session_row import Row

    class Filters(TypedDict, total=False):
        """Which sessions are meant; without a filter every one."""

        status: Sequence[str]
        agent: Sequence[str]
        role: Sequence[str]
        waiting: bool


SCHEMA_VERSION = 2


def ls(
    context: Context,
    *,
    all_roots: bool = False,
    asked: dict[str, Callable[[], Listing]] | None = None,
    **filters: Unpack[Filters],
) -> dict[str, Any]:
    """Return the sessions that fit; with all_roots those of every known root, each with its `root`."""
    status, agent, role = filters.get("status"), filters.get("agent"), filters.get("role")

    def fits(row: Row) -> bool:
        return (
            (not status or row["status"] in status)
            and (not agent or row["agent"] in agent)
            and (not role or row.get("role") in role)
        )

    if all_roots:
        found, unread = _everywhere(context, fits)
    else:
        asked = ask_early(context) if asked is None else asked
        found, unread = describe(context, context.registry.view(), fits, asked=asked), []
    if filters.get("waiting"):
        found = [one for one in found if one["activity"] == WAITING]
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "root": context.paths.root,
        "sessions": found,
    }
    if all_roots:
        document["unreadable"] = unread
    return document


def watch(
    context: Context, interval: float = 1.0, *, all_roots: bool = False, **filters: Unpack[Filters]
) -> Iterator[dict[str, Any]]:
    """Yield the listing at once and whenever something other than an age in it changed."""
    last = None
    while True:
        document = ls(context, all_roots=all_roots, **filters)
        essence = [
            {key: value for key, value in one.items() if key != "activity_age_s"}
            for one in document["sessions"]
        ]
        if essence != last:
            last = essence
            yield document
        time.sleep(interval)


def describe(
    context: Context,
    view: View,
    fits: Any = None,
    *,
    thorough: bool = False,
    asked: dict[str, Callable[[], Listing]] | None = None,
) -> list[dict[str, Any]]:
    """Return rows with activity, tmux, resume, job and drift; `asked` are listings that are under way."""
    rows = [row for row in view.rows if fits is None or fits(row)]
    reports = newest_reports(context, rows) if rows else {}
    # Before the answer of tmux is collected, which is still at work.
    kept = [_conversation(context, row) for row in rows]
    sights = see_all(context, rows, full=thorough, asked=asked)
    now = context.now()
    known = activity.gather(context, rows, sights, reports, thorough=thorough)
    jobs = _jobs(context, rows)
    return [_entry(context, view, one, had, now, jobs=jobs) for one, had in zip(known, kept, strict=True)]


def _jobs(context: Context, rows: Sequence[Row]) -> dict[str, tuple[str, float | None]]:
    """Return the status of the jobs that these sessions were given, and when they were reminded of it."""
    wanted = {job for row in rows if (job := row.get("delegate_job_id"))}
    if not wanted:
        return {}
    from mam.adapters.store.tables.jobs import statuses

    none: dict[str, tuple[str, float | None]] = {}
    return context.registry.peek(lambda draft: statuses(draft, wanted), none)


def _is_open(status: str | None) -> bool:
    # Signing and its modules are dear on the start-up path, and few sessions have a job.
    from mam.core.job import ENDED

    return status not in ENDED


def _conversation(context: Context, row: Row) -> tuple[str | None, bool | None]:
    """Return the conversation that the session has now, and whether it is on disk."""
    current = current_conversation(row)
    return current, conversations.on_disk(context, row, current) if current else None


def _entry(
    context: Context,
    view: View,
    one: SessionEvidence,
    had: tuple[str | None, bool | None],
    now: float,
    *,
    jobs: dict[str, tuple[str, float | None]],
) -> dict[str, Any]:
    row, sight = one.row, one.sight
    current, on_disk = had
    verdict = one.verdict(now)
    own = own_id(row)
    age = max(0.0, now - verdict.at)
    job = row.get("delegate_job_id")
    # One that nothing is known of any more counts as open: somebody wrote it into the row.
    status, reminded = jobs.get(job, ("unknown", None)) if job else (None, None)
    has_job = bool(job) and _is_open(status)
    is_silent = has_job and reminded is not None and verdict.state == IDLE and verdict.at > reminded
    needs = attention(verdict.state, age, verdict.waiting_for, has_job=has_job, is_silent=is_silent)
    there = None if sight.state == Liveness.UNKNOWN else sight.state in (Liveness.ALIVE, Liveness.LOOSE)
    return {
        **row,
        "activity": str(verdict.state),
        "activity_source": verdict.source,
        "activity_age_s": round(age, 1),
        "waiting_for": verdict.waiting_for,
        "tmux_alive": there,
        "resume": _resume(context, view, one, current, on_disk),
        "attention": needs.text if needs else None,
        "job": job,
        "job_status": status,
        "job_silent": is_silent,
        "drift": letter(
            row, sight.state, conversation=current, on_disk=on_disk, own_on_disk=on_disk if own else None
        ),
    }


def _resume(
    context: Context, view: View, one: SessionEvidence, current: str | None, on_disk: bool | None
) -> dict[str, Any]:
    """Return what a resume would take; a running session has its conversation, others may have to look."""
    if on_disk:
        return {"id": current, "tier": OWN, "on_disk": True}
    if is_running(one.row) or current or not one.kind.can_resume:
        return {"id": current, "tier": None, "on_disk": on_disk}
    return conversations.resume_choice(context, one.row, view.rows, view.identities, view.listed).as_json()


def _everywhere(context: Context, fits: Any) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return the sessions of every known root; one that cannot be read is named and hides no other."""
    roots = dict(context.user_state.roots())
    roots.setdefault(context.paths.root, context.paths.yaml)
    found: list[dict[str, Any]] = []
    unread: list[dict[str, str]] = []
    for root, registry in sorted(roots.items()):
        other = Context(places.of_registry(registry), root, context.environ)
        if not other.paths.exists():
            continue
        try:
            found += [{**one, "root": root} for one in describe(other, other.registry.view(), fits)]
        except MamError as error:
            unread.append({"root": root, "error": error.message})
        finally:
            other.close()
    return found, unread
