"""The values of states never change: they are stored in databases and files that other programs read."""

from __future__ import annotations

import json
import sqlite3

import pytest

from mam.core.activity import ActivityState
from mam.core.job_rules import JobStatus
from mam.core.liveness_values import Liveness
from mam.core.message_rules import MessageState
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
        "PARKED": "parked",
    },
    JobStatus: {
        "PENDING": "pending",
        "RUNNING": "running",
        "CHECKING": "checking",
        "COMPLETED": "completed",
        "ERROR": "error",
        "CANCELLED": "cancelled",
        "PARKED": "parked",
    },
}
every_enum = pytest.mark.parametrize("states", VALUES, ids=lambda states: states.__name__)


@every_enum
def test_the_values_are_these(states):
    assert {state.name: state.value for state in states} == VALUES[states]


@every_enum
def test_a_state_is_its_text_wherever_it_goes(states):
    for state in states:
        text = VALUES[states][state.name]
        assert (state, hash(state), f"{state:<3}", str(state)) == (text, hash(text), f"{text:<3}", text)
        assert json.dumps({state: state}, indent=1) == json.dumps({text: text}, indent=1)
        assert json.dumps({state: state}) == json.dumps({text: text})
        with sqlite3.connect(":memory:") as connection:
            (parsed,) = connection.execute("SELECT ? || typeof(?1)", (state,)).fetchone()
        connection.close()
        assert parsed == f"{text}text"
