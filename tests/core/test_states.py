"""The values of states stand in databases, files and documents that others read: they never change."""

from __future__ import annotations

import json
import sqlite3

import pytest

from mam.core.activity import ActivityState
from mam.core.job import JobStatus
from mam.core.liveness import Liveness
from mam.core.message import MessageState
from mam.core.session_row import Status

VALUES = {
    Status: {
        "RUNNING": "running",
        "STOPPED": "stopped",
        "TERMINATED": "terminated",
        "ARCHIVED": "archived",
    },
    Liveness: {"ALIVE": "alive", "DEAD": "dead", "GONE": "gone", "LOOSE": "loose", "UNKNOWN": "unknown"},
    ActivityState: {
        "BOOTING": "booting",
        "IDLE": "idle",
        "WORKING": "working",
        "WAITING": "waiting",
        "EXITED": "exited",
        "UNKNOWN": "unknown",
    },
    MessageState: {
        "SUBMITTED": "submitted",
        "QUEUED": "queued",
        "HELD": "held",
        "TYPING": "typing",
        "UNCONFIRMED": "unconfirmed",
        "FAILED": "failed",
    },
    JobStatus: {
        "PENDING": "pending",
        "RUNNING": "running",
        "CHECKING": "checking",
        "COMPLETED": "completed",
        "ERROR": "error",
        "CANCELLED": "cancelled",
    },
}
every_enum = pytest.mark.parametrize("states", VALUES, ids=lambda states: states.__name__)


@every_enum
def test_the_values_are_these(states):
    assert {one.name: one.value for one in states} == VALUES[states]


@every_enum
def test_a_state_is_its_text_wherever_it_goes(states):
    for one in states:
        text = VALUES[states][one.name]
        assert (one, hash(one), f"{one:<3}", str(one)) == (text, hash(text), f"{text:<3}", text)
        assert json.dumps({one: one}, indent=1) == json.dumps({text: text}, indent=1)
        assert json.dumps({one: one}) == json.dumps({text: text})
        with sqlite3.connect(":memory:") as connection:
            (found,) = connection.execute("SELECT ? || typeof(?1)", (one,)).fetchone()
        connection.close()
        assert found == f"{text}text"
