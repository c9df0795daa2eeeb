"""The incarnation of a database: an id that a restored database gets anew.

A restore goes back to smaller numbers. Whoever compares the numbers of a job elsewhere therefore compares
only those of one incarnation (`core/job_event.py`). Of two incarnations of a database the later one has the
greater text: it begins with the time, and a clock that was set back does not matter.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction

KEY = "incarnation"
_TIME_DIGITS, _RANDOM_BYTES = 12, 8
_FORM = re.compile(r"[0-9a-f]{28}\Z")


def current(transaction: Transaction) -> str:
    """Return the incarnation; a database of an older mam gets one now."""
    known = transaction.meta(KEY)
    return known if isinstance(known, str) else renew(transaction)


def renew(transaction: Transaction, *former: object) -> str:
    """Give the database an incarnation that comes after the one that it has, and after `former` ones."""
    fit = [text for text in (transaction.meta(KEY), *former) if isinstance(text, str) and _FORM.match(text)]
    after = max((int(text[:_TIME_DIGITS], 16) + 1 for text in fit), default=0)
    moment = max(after, int(transaction.now * 1000)) % 16**_TIME_DIGITS
    incarnation = f"{moment:0{_TIME_DIGITS}x}{os.urandom(_RANDOM_BYTES).hex()}"
    transaction.set_meta(KEY, incarnation)
    return incarnation
