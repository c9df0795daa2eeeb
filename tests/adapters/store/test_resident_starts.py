"""The starts of a resident in the user state: after a quick death the next one waits."""

from __future__ import annotations

import pytest

from mam.adapters.store.user_state import UserState

ROOT = "0123456789abcdef"


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def user(tmp_path, clock):
    made = UserState(str(tmp_path / "user"), lambda: clock[0])
    yield made
    made.close()


def test_e2_each_start_that_nobody_calls_good_doubles_the_pause(user, clock) -> None:
    pauses = []
    for _ in range(12):
        assert user.begin_resident_start(ROOT)
        assert not user.begin_resident_start(ROOT), "two processes do not start one at once"
        pauses.append(user.resident_starts(ROOT).next_at - clock[0])
        clock[0] = user.resident_starts(ROOT).next_at
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    assert user.begin_resident_start("another root")
    user.note_good_resident(ROOT)
    assert user.resident_starts(ROOT) is None
    assert user.begin_resident_start(ROOT)
    assert user.resident_starts(ROOT).count == 1


def test_a_clock_that_was_put_back_does_not_prolong_a_pause(user, clock) -> None:
    assert user.begin_resident_start(ROOT)
    clock[0] -= 86400
    assert user.begin_resident_start(ROOT)
