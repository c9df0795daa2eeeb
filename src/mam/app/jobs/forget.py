"""Forgets jobs that have ended: their files and their rows. What an agent wrote into its workspace stays."""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.jobs import removal
from mam.core.errors import MamError
from mam.core.job_rules import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]


def forget(context: Context, caller: Caller, job_ids: Sequence[str]) -> list[Document]:
    """Remove ended jobs with all that they left; return `{job_id, forgotten, reason, hint}` of each.

    A session may forget only the jobs that it submitted.
    """
    return [_forget(context, caller, job_id) for job_id in dict.fromkeys(job_ids)]


def _forget(context: Context, caller: Caller, job_id: str) -> Document:
    refusal = _refusal(context, caller, job_id)
    if refusal is None:
        try:
            removal.remove(context, job_id, forgotten_by=caller.name)
        except MamError as error:
            refusal = error.message, error.hint
    reason, hint = refusal or (None, None)
    return {"job_id": job_id, "forgotten": refusal is None, "reason": reason, "hint": hint}


def _refusal(context: Context, caller: Caller, job_id: str) -> tuple[str, str | None] | None:
    """Return why a job is kept, and what helps; None if it can be forgotten."""
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    if job is None:
        return "it is no job of this root", "mam job list shows the jobs"
    if caller.name not in ("user", job.data.get("created_by")):
        return "it was submitted by somebody else", "whoever submitted a job may forget it"
    if job.status not in ENDED:
        return f"it is {job.status}", f"mam job cancel {job_id} ends it"
    if not removal.is_removable(context, job):
        return f"its record lies in {job.data.get('registry_dir')}, which mam does not clean up", None
    return None
