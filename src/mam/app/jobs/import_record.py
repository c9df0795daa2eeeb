"""Brings a foreign record into the ledger, with its token and its log."""

from __future__ import annotations

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs.find import not_found
from mam.app.jobs.foreign_records import folder_with, log_in, read_record
from mam.app.jobs.write_job_files import audit_root, write_files
from mam.core.errors import NotAllowed
from mam.core.job_event import NAMES
from mam.core.job_file_format import DEFAULTS
from mam.core.job_rules import ENDED
from mam.core.times import parse_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

    Document = dict[str, Any]

# A repository can contain a foreign record. These fields would let it run, start, write or publish something
# on this machine, so mam does not take them from a foreign record.
_NOT_TAKEN = (
    "broker",
    "command",
    "logs_dir",
    "max_rounds",
    "permissions",
    "registry_dir",
    "reviewer",
    "reviewer_session",
    "root",
    "type",
    "validate",
)


def ensure_in_ledger(context: Context, job_id: str, folder: str | None = None) -> None:
    """Ensure that a job is in the ledger; import a foreign record with its token and its log."""
    if not context.paths.exists() and not read_record(context, job_id, folder):
        raise not_found(context, job_id)
    if context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None) is not None:
        return
    # A record in a root of somebody else is not imported: nothing is written there.
    record_document = read_record(context, job_id, folder) if context.root.verdict().is_ours else None
    if record_document is None:
        raise not_found(context, job_id)
    if record_document["root"] not in (None, context.paths.root):
        raise NotAllowed(
            f"job {job_id} belongs to the root {record_document['root']}",
            hint=f"--workspace {record_document['root']}",
        )
    # Before the token is written: mam writes nothing into a root that it may not change.
    context.registry.ensure_exists()
    token = record_document.pop("auth_token")
    if token:
        job_files.new_token(context.paths.jobs, job_id, token)
    source = folder_with(context, job_id, folder)
    log = job_files.read_log(log_in(source, job_id))
    facts = facts_of_record(context, record_document, source)
    context.registry.note(lambda transaction: _add_record(transaction, record_document, facts, log))
    write_files(context, job_id)


def facts_of_record(context: Context, record_document: Document, source: str) -> Document:
    """Return what mam takes from a foreign record in the folder `source`."""
    facts = {**DEFAULTS, **{key: record_document[key] for key in DEFAULTS if key not in _NOT_TAKEN}}
    return facts | {"registry_dir": source, "root": context.paths.root, "logs_dir": audit_root(context)}


def _add_record(
    transaction: Transaction, record_document: Document, facts: Document, log: list[Document]
) -> None:
    if jobs.find(transaction, record_document["job_id"]) is not None:
        return
    created = parse_stamp(record_document["created_at"])
    job = jobs.add(
        transaction,
        record_document["job_id"],
        record_document["prompt"],
        facts,
        status=record_document["status"],
        attempt=record_document["attempt"],
        last_seq=record_document["last_seq"],
        ended_seq=record_document["last_seq"] if record_document["status"] in ENDED else None,
        created_at=transaction.now if created is None else created,
    )
    for event in log:
        if event.get("event") in NAMES and isinstance(event.get("data"), dict):
            jobs.add_entry(transaction, job.id, event["event"], {**event, "seq": 0}, attempt=job.attempt)
