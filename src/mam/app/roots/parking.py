"""Parks what could act by itself in a root: its open jobs, its held messages, and what it would publish."""

from __future__ import annotations

from mam.adapters.store.tables import jobs, outbox
from mam.app.jobs import ledger_writer
from mam.app.messages.parking import park_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.tables.messages import Message


class Parked:
    """What was parked, and how many events are not published any more."""

    __slots__ = ("events", "jobs", "messages")

    def __init__(self, parked_jobs: list[Job], parked_messages: list[Message], events: int) -> None:
        self.jobs = parked_jobs
        self.messages = parked_messages
        self.events = events


def park_everything(transaction: Transaction, reason: str) -> Parked:
    """Park every open job and every message that is held or being typed, and empty the outbox."""
    parked_jobs = [
        ledger_writer.park(transaction, job, reason) for job in jobs.listed(transaction, only_open=True)
    ]
    return Parked(parked_jobs, park_messages(transaction, reason), outbox.empty(transaction))
