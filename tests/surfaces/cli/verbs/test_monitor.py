"""mam monitor --once: what it prints for people."""

import io
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from mam.core.errors import Usage
from mam.surfaces.cli import parser
from mam.surfaces.cli.style import Paint
from mam.surfaces.cli.verbs import monitor
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


@pytest.mark.parametrize(
    ("name", "is_new", "is_written", "words"),
    [
        ("A", True, True, ""),
        ("A", True, False, "  (not written)"),
        ("D", True, False, "  (reported only)"),
        ("D", False, False, "  (reported only, known already)"),
    ],
)
def test_a_line_says_what_became_of_the_difference(name, is_new, is_written, words) -> None:
    drift = {"class": name, "message": "one is gone", "new": is_new, "written": is_written}
    document = {"drifts": [drift], "servers": {}, "tmux_sessions_alive": [], "duration_ms": 1.0}
    assert show(document, Paint(io.StringIO()))[0] == f"{name}  one is gone{words}"


def parsed(*arguments: str):
    return parser.parse(parser.build("monitor", monitor), arguments)


def test_s001_35_the_times_of_a_subscription(monkeypatch) -> None:
    monkeypatch.setattr(monitor, "_mcp_task", lambda _call: nullcontext())
    times = []
    group = SimpleNamespace(run_subscribed=lambda *_, **given: times.append(given))
    fleet = SimpleNamespace(monitor=group, root="/w")
    for arguments in ((), ("--timeout", "3600", "--idle-timeout", "300"), ("--idle-timeout", "0")):
        call = SimpleNamespace(
            options=parsed("--subscribe", *arguments),
            fleet=fleet,
            show_progress=lambda _text: None,
            show_note=lambda _text: None,
        )
        monitor._subscribe(call)
    assert [(given["timeout"], given["idle_timeout"]) for given in times] == [
        (0.0, 600.0),
        (3600.0, 300.0),
        (0.0, 0.0),
    ]


def test_a_monitor_that_ends_says_why_in_a_line_that_stays(run) -> None:
    run("init")
    assert run("monitor", "--timeout", "0.1").err == "mam: the monitor has ended: the timeout was reached\n"


def test_without_a_broker_the_hint_names_the_setting(run) -> None:
    run("init")
    answer = run("monitor", "--subscribe", "--json")
    assert (answer.code, answer.error["code"]) == (64, "invalid_settings")
    assert "[broker]" in answer.error["hint"] and "--broker" in answer.error["hint"]


@pytest.mark.parametrize(
    ("was_connected", "line"),
    [
        (True, "host is lost: no broker listens"),
        (False, "host cannot be reached: no broker listens; the monitor looks by itself meanwhile"),
    ],
)
def test_a_broker_that_was_never_reached_is_not_lost(was_connected, line) -> None:
    error = {"message": "no broker listens"}
    broker = {"address": "host", "state": "lost", "was_connected": was_connected, "error": error}
    assert monitor._of_broker({"broker": broker}, Paint(io.StringIO())) == [line]


def test_s001_37_the_option_of_the_card_is_named_to_who_looks_for_another() -> None:
    with pytest.raises(Usage) as refused:
        parsed("--comment-card", "t_1")
    assert refused.value.hint == "did you mean --card?"
    assert parsed("--card", "t_1", "--workspace", "/w").card == "t_1"


@pytest.mark.parametrize(
    ("code", "meaning", "arguments"),
    [
        (1, "no registry", ("--once",)),
        (1, "no such card", ("--once", "--card", "t_00000000")),
        (2, "failed", ("--dispatch",)),
        (64, "wrong usage", ("--once", "--worker")),
        (65, "cannot be read", ("--once",)),
        (65, "cannot be read", ("--once", "--dry-run")),
        (65, "cannot be read", ("--timeout", "1")),
        (65, "cannot be read", ("--once", "--card", "new")),
    ],
)
def test_s001_47_the_exit_codes_are_those_of_the_help(run, workspace, monkeypatch, code, meaning, arguments):
    monkeypatch.setenv("PATH", "/nonexistent")
    if meaning != "no registry":
        run("init")
    if code == 65:
        (workspace / ".hermes" / "agent-sessions.yaml").write_text("tmux_sessions: [\n", encoding="utf-8")
    assert run("monitor", *arguments).code == code
    text = " ".join(run("monitor", "--help").out.partition("Exit code")[2].split())
    assert meaning in text.partition(f"{code} ")[2].partition(";")[0]
    assert run("board", "list", "--json").json["cards"] == [], "what failed leaves no card"
