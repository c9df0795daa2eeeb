"""Make a job: its token and its row, before anything else happens."""

from __future__ import annotations

import secrets

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs import clock_jump, ledger
from mam.app.jobs.logs import audit_root
from mam.app.jobs.write_files import show
from mam.core import job_event as events
from mam.core.job_record import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller

_ID_BYTES = 4


def new_id() -> str:
    """Return an id that no job has had."""
    return secrets.token_hex(_ID_BYTES)


def register(context: Context, caller: Caller, job_id: str, prompt: str, **facts: Any) -> Job:
    """Record a job and its token; return it. The token is there before the row: a row without one is dead."""
    data = {
        **DEFAULTS,
        "created_by": caller.name,
        "workdir": context.workspace,
        "registry_dir": context.paths.jobs,
        "logs_dir": audit_root(context),
        "root": context.paths.root,
        **{key: value for key, value in facts.items() if value is not None},
    }
    context.registry.writer()
    job_files.new_token(context.paths.jobs, job_id)

    def work(draft: Transaction) -> Job:
        clock_jump.settle(context, draft)
        job = jobs.add(draft, job_id, prompt, data)
        draft.log(data["created_by"], "job submit", None, None, job=job_id, agent=data["agent"])
        return ledger.enter(draft, job, events.REGISTERED, "", agent=data["agent"], type=data["type"])

    job = context.registry.note(work)
    show(context, job_id)
    return job
