"""Setting an item aside that mam cannot work on: its reason is kept, and everything else goes on.

An item is an intent, a job, a message, a payload, a card or a team. It is set aside if an error comes from
the item itself: from its data, or from a mistake of mam with it. A disk that is full, a program that does not
answer or a database that cannot be read says nothing about the item.
"""

from __future__ import annotations

import errno
import sqlite3
from contextlib import contextmanager

import mam
from mam.adapters.store.tables import set_aside
from mam.core.errors import Broken, MamError
from mam.core.mam_version import is_newer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

INTENT, JOB, MESSAGE, PAYLOAD = "intent", "job", "message", "payload"
TEAM, MEMBER, CARD = "team", "member", "card"
# Errors of the machine that pass; they say nothing about the item that mam worked on.
_PASSING = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
        errno.EIO,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
    )
)
# Errors of SQLite about the values that mam gave it.
_OF_VALUES = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError, sqlite3.DataError)
_LONGEST_REASON = 300


class Flawed(Exception):
    """The record of an item is not what mam writes."""


def is_of_item(error: BaseException) -> bool:
    """Tell whether an error comes from the item that mam worked on, and not from the machine around it."""
    if isinstance(error, MamError):
        return isinstance(error, Broken) or isinstance(error.__cause__, _OF_VALUES)
    if isinstance(error, OSError):
        return error.errno not in _PASSING
    return isinstance(error, Exception) and not isinstance(error, MemoryError)


def reason_of(error: BaseException) -> str:
    """Return an unexpected error as one short line: its type, and what it says. A flaw needs no type."""
    text = " ".join(str(error).split())
    if isinstance(error, Flawed):
        return text[:_LONGEST_REASON]
    return f"{type(error).__name__}: {text}"[:_LONGEST_REASON] if text else type(error).__name__


def record(transaction: Transaction, kind: str, key: str, reason: str, **data: Any) -> bool:
    """Record that an item is set aside; tell whether that is news."""
    return set_aside.add(transaction, kind, key, reason, mam.__version__, data)


def note(context: Context, kind: str, key: str, error: BaseException, told: str, **data: Any) -> None:
    """Record that an item is set aside and warn of it, once for each reason."""
    reason = reason_of(error)
    if context.registry.note(lambda transaction: record(transaction, kind, key, reason, **data)):
        context.warn(f"{told}: {reason}; it is set aside, see mam doctor")


@contextmanager
def isolated(transaction: Transaction, kind: str, key: str, **data: Any) -> Iterator[None]:
    """Do the part of a transaction that concerns one item.

    An error of the item undoes this part and is recorded, and the rest of the transaction goes on.
    """
    try:
        with transaction.part():
            yield
    except Exception as error:
        if not is_of_item(error):
            raise
        record(transaction, kind, key, reason_of(error), **data)


def is_left(item: set_aside.SetAside | None, stamp: object) -> bool:
    """Tell whether an item stays set aside: neither it nor mam is another one than when mam gave up.

    `stamp` is the item's `stamp` now. It was recorded among the data of the item, and changes with the item.
    """
    if item is None or item.data.get("stamp") != stamp:
        return False
    return not is_newer(mam.__version__, item.version)


def take_up(context: Context, kind: str, key: str) -> None:
    """Remove an item that mam could work on again."""
    context.registry.note(lambda transaction: set_aside.take_up(transaction, kind, key))


def is_by_another_version(context: Context, kind: str) -> bool:
    """Tell whether another version of mam has set an item of this kind aside."""
    return context.registry.peek(
        lambda transaction: set_aside.is_by_another_version(transaction, kind, mam.__version__), False
    )
