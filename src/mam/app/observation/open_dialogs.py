"""The open dialogs of sessions as mam has recorded them: what they ask, since when, and in which episode.

An episode is one opening of a dialog. Whoever sees a dialog first records its episode: the resident, or
`mam answer`. The record ends when the agent reports anything else, when mam has answered the dialog, or when
a look finds the session without it. Two dialogs with the same words that follow each other between two looks
are one episode if the agent has no hooks.
"""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Screen
from mam.adapters.store.tables import evidence
from mam.app.observation.newest_hook_reports import recorded_reports
from mam.core.activity import UNKNOWN, WAITING
from mam.core.dialog import DialogWords, fingerprint, summary
from mam.core.errors import Unavailable
from mam.core.session_row import launch_of
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from mam.adapters.agents.dialog_options import Choices
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.newest_hook_reports import HookReport
    from mam.core.session_row import Row

# A limit is announced and not asked: nothing can be answered.
_LIMIT = "limit"
# A program may draw a dialog some time after its hook has reported it.
_DRAWS_SECONDS, _AGAIN_SECONDS = 3.0, 0.25
_REPEAT_SECONDS = 60.0
_UNRECORDED = ""


def words_of(name: str, screen: Screen, choices: Choices | None) -> DialogWords:
    """Return the words of the dialog on a screen; `choices` are its options, as the kind reads them."""
    text = choices.text if choices else screen.text.strip()
    return DialogWords(name, text, choices.labels if choices else ())


def recorded(context: Context) -> dict[str, dict[str, Any]]:
    """Return the records of open dialogs by session id."""
    return {key: data for key, (_, data) in evidence.recorded(context.registry, evidence.DIALOG).items()}


def note(context: Context, row: Row, words: DialogWords) -> dict[str, Any]:
    """Record the dialog that a session shows now, and return the record.

    Where nothing can be written, the episode has no name, so that the next look finds the same fingerprint.
    """
    now = context.now()
    if context.root.refusal() is None:
        try:
            record = context.registry.note_without_migration(
                lambda transaction: _note(transaction, row, words, now)
            )
            if record is not None:
                return record
        except Unavailable:
            # A full disk keeps nobody from answering.
            pass
    return _same(recorded(context).get(row["id"]), row, words) or _new(row, words, now, _UNRECORDED)


def is_same_episode(context: Context, row: Row, record: Mapping[str, Any]) -> bool:
    """Tell whether nobody has seen the dialog close since; also if there is no record at all."""
    now = recorded(context).get(row["id"])
    return now is None or now.get("episode") == record.get("episode")


def forget(transaction: Transaction, session_id: str) -> None:
    """End the record of a dialog that was answered."""
    evidence.clear(transaction.connection, session_id, evidence.DIALOG)


def fingerprint_of(row: Row, record: Mapping[str, Any]) -> str:
    """Return the fingerprint of a recorded dialog."""
    return fingerprint(row["id"], str(record.get("launch")), str(record.get("episode")), _words(record))


def as_asks(row: Row, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a person needs to see before they decide."""
    words = _words(record)
    return {
        "session": row["name"],
        "dialog": words.name,
        **summary(words),
        "fingerprint": fingerprint_of(row, record),
        "text": words.text,
        "options": words.options,
        "since": stamp(float(record.get("since") or 0)),
    }


class RecordedDialogs:
    """What sessions ask by the records of a root, which are read when the first session waits."""

    __slots__ = ("_context", "_records")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._records: dict[str, dict[str, Any]] | None = None

    def asks(
        self, row: Row, waiting_for: str | None, since: float, report: HookReport | None
    ) -> dict[str, Any]:
        """Return what a waiting session asks.

        A record from before the agent's last report of a dialog may be of an earlier one. Then only the
        report counts, and there is no fingerprint yet.
        """
        if self._records is None:
            self._records = recorded(self._context)
        record = self._records.get(row.get("id") or "")
        reported = report if report is not None and report.data.get("state") == WAITING else None
        seen = float(record.get("seen") or 0) if record else 0.0
        if record and record.get("launch") == launch_of(row) and (reported is None or seen >= reported.at):
            return as_asks(row, record)
        tool, _, purpose = str(reported.data.get("asks") or "" if reported else "").partition(":")
        return {
            "session": row["name"],
            "dialog": waiting_for,
            "title": tool or None,
            "command": purpose or None,
            "question": None,
            "fingerprint": None,
            "text": None,
            "options": [],
            "since": stamp(since),
        }


def look_at_waiting(context: Context, entries: Sequence[Mapping[str, Any]]) -> float | None:
    """Record the dialogs of the sessions that wait, and end the records of the others.

    `entries` are sessions as `ls` lists them. Returns in how many seconds a session should be looked at
    again, because its dialog was not drawn yet.
    """
    before = recorded(context)
    waiting = [entry for entry in entries if is_asking(entry)]
    ended = [
        entry["id"]
        for entry in entries
        if entry["id"] in before and entry["activity"] not in (WAITING, UNKNOWN)
    ]
    if not waiting and not ended:
        return None
    # The reports are read before the screens: a dialog that is reported meanwhile is looked at once more.
    reports = recorded_reports(context) if waiting else {}
    now = context.now()
    seen, is_undrawn = [], False
    for entry, words in _look(context, waiting):
        if words is None:
            is_undrawn = is_undrawn or entry["activity_age_s"] < _DRAWS_SECONDS
            continue
        record, report = _same(before.get(entry["id"]), entry, words), reports.get(entry["id"])
        looked_at = float(record["seen"]) if record else 0.0
        if record is None or now - looked_at > _REPEAT_SECONDS or (report and report.at > looked_at):
            seen.append((entry, words))
    if seen or ended:
        context.registry.note(lambda transaction: _note_all(transaction, seen, ended, now))
    return _AGAIN_SECONDS if is_undrawn else None


def is_asking(entry: Mapping[str, Any]) -> bool:
    """Tell whether a session waits for an answer; `entry` is a session as `ls` lists it."""
    return entry["activity"] == WAITING and not str(entry.get("waiting_for") or "").startswith(_LIMIT)


def _look(context: Context, entries: Sequence[Mapping[str, Any]]) -> Iterable[tuple[Any, DialogWords | None]]:
    """Return each session with the words of its dialog; one call of tmux for each server."""
    by_server: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        by_server.setdefault(entry["tmux_server"], []).append(entry)
    for server, group in by_server.items():
        try:
            captures = context.tmux(server).screens([entry["pane"]["id"] for entry in group])
        except Unavailable:
            # The pass itself says that this server does not answer.
            continue
        for entry in group:
            capture = captures.get(entry["pane"]["id"])
            if capture is None:
                continue
            kind = context.kind(entry["agent"])
            screen = Screen(capture.captured, capture.cursor_x, capture.cursor_y)
            state = kind.read_screen(screen)
            is_open = state.dialog is not None and state.box is None
            yield entry, words_of(state.dialog or "", screen, kind.choices(screen)) if is_open else None


def _note_all(
    transaction: Transaction, seen: Iterable[tuple[Any, DialogWords]], ended: Iterable[str], now: float
) -> None:
    for session_id in ended:
        forget(transaction, session_id)
    for row, words in seen:
        _note(transaction, row, words, now)


def _note(transaction: Transaction, row: Row, words: DialogWords, now: float) -> dict[str, Any]:
    current = evidence.recorded_in(transaction.connection, row["id"], evidence.DIALOG)
    record = {**(_same(current, row, words) or _new(row, words, now, os.urandom(8).hex())), "seen": now}
    evidence.record(transaction.connection, row["id"], evidence.DIALOG, now, record, transaction.now)
    return record


def _same(record: dict[str, Any] | None, row: Any, words: DialogWords) -> dict[str, Any] | None:
    """Return the record if it is of this dialog of this launch."""
    is_same = record is not None and record.get("launch") == launch_of(row) and words.are(_words(record))
    return record if is_same else None


def _new(row: Row, words: DialogWords, now: float, episode: str) -> dict[str, Any]:
    return {
        "episode": episode,
        "launch": launch_of(row),
        "name": words.name,
        "text": words.text,
        "options": words.options,
        "since": now,
        "seen": now,
    }


def _words(record: Mapping[str, Any]) -> DialogWords:
    return DialogWords(
        str(record.get("name") or ""),
        str(record.get("text") or ""),
        [str(option) for option in record.get("options") or ()],
    )
