"""Whether a root needs a resident, by its tables."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction

# How long a resident keeps running for what is to be published; anybody publishes the rest on the way.
WORTH_SECONDS = 3600.0
# One query without `tables.jobs`, which is slow to import: every changing verb asks this at its end.
_QUERY = """
SELECT EXISTS(SELECT 1 FROM sessions WHERE status='running')
  OR EXISTS(SELECT 1 FROM jobs WHERE status IN ('pending', 'running', 'checking'))
  OR EXISTS(SELECT 1 FROM outbox WHERE published_at IS NULL AND created_at >= ?)
"""


def needs_resident(transaction: Transaction) -> bool:
    """Tell whether a session runs, a job is open, or events wait for a broker.

    A held message needs no resident by itself: its session runs, or has ended, and then the message waits for
    a resume.
    """
    found = transaction.connection.execute(_QUERY, (transaction.now - WORTH_SECONDS,)).fetchone()
    return bool(found[0])
