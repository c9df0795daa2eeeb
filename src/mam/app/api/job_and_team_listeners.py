"""The listeners to session events: jobs and teams. Their code is loaded when an event happens."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.session_event import SessionEvent


def _tell_jobs(context: Context, transaction: Transaction, event: SessionEvent) -> None:
    from mam.app.jobs.session_events import on_session_event

    on_session_event(context, transaction, event)


def _tell_teams(context: Context, transaction: Transaction, event: SessionEvent) -> None:
    from mam.app.teams.session_events import on_session_event

    on_session_event(context, transaction, event)


LISTENERS = (_tell_jobs, _tell_teams)
