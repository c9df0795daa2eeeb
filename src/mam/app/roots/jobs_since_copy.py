"""Ends the jobs that are newer than the copy: their files are there, and the copy does not have them."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs import ledger_writer
from mam.app.jobs.foreign_records import read_record
from mam.app.jobs.import_record import facts_of_record
from mam.core import job_event as events
from mam.core.job_event import is_job_id
from mam.core.job_rules import ENDED, OPEN, JobStatus
from mam.core.times import parse_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

    Document = dict[str, Any]

RESTORED = "restored"
_DETAIL = "the state was restored, and does not have this job; its former log is in {}"


def end_jobs_since_copy(context: Context, transaction: Transaction) -> list[str]:
    """Record each open job of this root that only its files know as ended with an error; return their ids.

    Nobody follows such a job any more, and the record says too little to go on with it: an agent may write
    it, so mam believes no command, script or permission in it.
    """
    known = jobs.ids(transaction)
    ended = []
    for job_id in sorted(filter(is_job_id, job_files.record_ids(context.paths.jobs))):
        record = None if job_id in known else read_record(context, job_id, context.paths.jobs)
        if record is None or record["root"] != context.paths.root or record["status"] in ENDED:
            continue
        _end(context, transaction, record)
        ended.append(job_id)
    return ended


def _end(context: Context, transaction: Transaction, record: Document) -> None:
    job_id, folder = record["job_id"], context.paths.jobs
    facts = facts_of_record(context, record, folder)
    audit = os.path.join(facts["logs_dir"], job_id)
    logs = (os.path.join(audit, "events.ndjson"), os.path.join(folder, f"{job_id}.events.log"))
    # An entry whose number these logs have already would not be written into them.
    jobs.continue_after(transaction, max(map(job_files.last_number, logs)))
    created = parse_stamp(record["created_at"])
    job = jobs.add(
        transaction,
        job_id,
        record["prompt"],
        facts,
        status=record["status"] if record["status"] in OPEN else JobStatus.RUNNING,
        attempt=record["attempt"],
        last_seq=record["last_seq"],
        created_at=transaction.now if created is None else created,
    )
    token = job_files.signing_token(folder, job_id)
    data = {"by": "mam", "reason": RESTORED}
    ledger_writer.emit(transaction, job, events.ERROR, token, _DETAIL.format(audit), data=data)
