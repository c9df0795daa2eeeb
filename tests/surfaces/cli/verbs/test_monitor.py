"""mam monitor --once: what it prints for people."""

import io

from mam.surfaces.cli.style import Paint
from mam.surfaces.cli.verbs.monitor import show


def test_a_card_that_had_ended_is_named_once() -> None:
    document = {
        "drifts": [],
        "servers": {},
        "tmux_sessions_alive": [],
        "duration_ms": 1.0,
        "card": {"id": "t_1", "status": "done"},
        "ended": "card t_1 is done",
    }
    assert show(document, Paint(io.StringIO()))[0] == "card t_1 is done"
    document["card"]["status"], document["ended"] = "blocked", "its time is over"
    assert show(document, Paint(io.StringIO()))[0] == "card t_1 is blocked: its time is over"


def test_a_server_that_does_not_answer_is_no_difference() -> None:
    document = {
        "drifts": [],
        "servers": {"one": {"confirmed": False, "error": "it hangs"}},
        "tmux_sessions_alive": ["a"],
        "duration_ms": 1.0,
    }
    assert show(document, Paint(io.StringIO())) == [
        "mam could not ask tmux server one: it hangs",
        "no difference, 1 tmux session, 1 ms",
    ]
