"""Records a new job: its token and its row. Both exist before an agent hears of the job."""

from __future__ import annotations

import secrets

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs import clock_jump, ledger_writer
from mam.app.jobs.write_job_files import audit_root, write_files
from mam.core import job_event as events
from mam.core.errors import MamError
from mam.core.job_file_format import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller

_ID_BYTES = 4


def new_id() -> str:
    """Return a new random id."""
    return secrets.token_hex(_ID_BYTES)


def record_job(context: Context, caller: Caller, job_id: str, prompt: str, **facts: Any) -> Job:
    """Record a job and its token; return the job. Adjust the other open jobs to a clock that was set.

    The token is written before the row, because nobody could report on a job without a token.
    """
    data = {
        **DEFAULTS,
        "created_by": caller.name,
        "workdir": context.workspace,
        "registry_dir": context.paths.jobs,
        "logs_dir": audit_root(context),
        "root": context.paths.root,
        **{key: value for key, value in facts.items() if value is not None},
    }
    context.registry.ensure_exists()
    job_files.new_token(context.paths.jobs, job_id)

    def work(transaction: Transaction) -> Job:
        # If somebody set the clock, the times of the other open jobs are adjusted before this job exists: its
        # own times come from the new clock, and a later adjustment would move them too.
        clock_jump.adjust_times(context, transaction)
        job = jobs.add(transaction, job_id, prompt, data)
        transaction.log(data["created_by"], "job submit", None, None, job=job_id, agent=data["agent"])
        return ledger_writer.enter(
            transaction, job, events.REGISTERED, "", agent=data["agent"], type=data["type"]
        )

    try:
        job = context.registry.note(work)
    except MamError:
        # Nobody can report on a job that does not exist.
        job_files.remove_token(context.paths.jobs, job_id)
        raise
    write_files(context, job_id)
    return job
