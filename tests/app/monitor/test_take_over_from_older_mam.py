"""The new resident waits for the end of the older one, also while the lock says nothing."""

from __future__ import annotations

import pytest

import mam
from mam.adapters.system import process
from mam.app.monitor.take_over_from_older_mam import take_over

OLDER = {**process.me().as_json(), "start": 1, "version": "0.1.5"}
OTHER = {**process.me().as_json(), "version": "99.0.0"}


class Lock:
    """A lock that says one thing after the other about its holder."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)

    def holder(self):
        return self.answers.pop(0)

    def take(self) -> bool:
        return not self.answers


@pytest.fixture
def context(quick_path, home):
    with mam.open(str(quick_path)) as fleet:
        fleet.init()
        yield fleet._access.context


@pytest.mark.parametrize(
    ("answers", "is_taken"),
    [
        # The process has ended, and the kernel still has to release what it held.
        ((OLDER, OLDER, {}, {}), True),
        ((OLDER, None), True),
        # Another one was faster.
        ((OLDER, {}, OTHER), False),
        (({},), False),
        ((OTHER,), False),
    ],
)
def test_who_takes_over(context, answers, is_taken) -> None:
    lock = Lock(*answers)
    assert take_over(context, lock, lock.take) is is_taken
    assert lock.answers == []
