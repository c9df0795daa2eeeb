"""The plugin of opencode writes one file per event that matters, and never prints or fails."""

import json
import os
import shutil
import subprocess

import pytest

from mam.adapters.agents.opencode.kind import PLUGIN
from mam.adapters.store.files import hook_spool

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node to run the plugin outside of opencode")
MAIN, SUB, OTHER = "ses_main00001", "ses_sub000001", "ses_other0001"
SESSION = "s_0123abcd"
DRIVER = """
import { mam } from "./plugin.mjs"
const hooks = await mam({})
for (const [kind, ...data] of JSON.parse(process.env.EVENTS)) {
  if (kind === "chat") await hooks["chat.message"]?.(...data)
  else await hooks.event?.({ event: { type: kind, properties: data[0] } })
}
console.log(process.pid)
"""


@pytest.fixture
def run(tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    shutil.copy(PLUGIN, tmp_path / "plugin.mjs")
    (tmp_path / "driver.mjs").write_text(DRIVER, encoding="utf-8")

    def play(*events, **environ):
        environ = {"MAM_SESSION": SESSION, "MAM_SPOOL": str(spool)} | environ
        result = subprocess.run(
            [NODE, str(tmp_path / "driver.mjs")],
            env={"PATH": os.environ["PATH"], "EVENTS": json.dumps(events)}
            | {name: value for name, value in environ.items() if value is not None},
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stderr == ""
        return result.stdout.strip(), hook_spool.pending(str(spool))

    play.spool = spool
    return play


def created(session, parent=None):
    return [
        "session.created",
        {"sessionID": session, "info": {"id": session, "parentID": parent, "title": "t"}},
    ]


def status(session, kind, **facts):
    return ["session.status", {"sessionID": session, "status": {"type": kind} | facts}]


def message(session, *parts):
    return ["chat", {"sessionID": session}, {"parts": list(parts)}]


def events_of(payloads):
    return [
        (payload.data["event"], payload.data.get("status") or payload.data.get("waiting_for"))
        for payload in payloads
    ]


def test_a_turn_in_the_order_of_its_events(run) -> None:
    text = {"type": "text", "text": "hello"}
    pid, payloads = run(
        created(MAIN),
        message(MAIN, text, {"type": "text", "text": "by itself", "synthetic": True}, {"type": "file"}),
        *[status(MAIN, "busy")] * 3,
        ["message.part.updated", {"part": {"sessionID": MAIN}}],
        status(MAIN, "retry", attempt=1, message="x" * 5000),
        status(MAIN, "retry", attempt=2, action={"reason": "account_rate_limit"}),
        status(MAIN, "idle"),
        ["session.idle", {"sessionID": MAIN}],
    )
    assert events_of(payloads) == [
        ("session.created", None),
        ("chat.message", None),
        ("session.status", "busy"),
        ("session.status", "retry"),
        ("session.status", "retry"),
        ("session.status", "idle"),
    ]
    assert {(payload.session_id, payload.pid, payload.data["session"]) for payload in payloads} == {
        (SESSION, pid, MAIN)
    }
    assert payloads[1].data["prompt"] == "hello"
    assert len(payloads[3].data["message"]) == 500
    assert payloads[4].data["reason"] == "account_rate_limit"
    assert {oct(path.stat().st_mode & 0o777) for path in run.spool.iterdir()} == {"0o600"}
    assert not [path for path in run.spool.iterdir() if path.name.startswith(".")]


def test_of_a_subagent_only_its_questions_are_reported(run) -> None:
    text = {"type": "text", "text": "do it"}
    _, payloads = run(
        created(SUB, MAIN),
        message(SUB, text),
        status(SUB, "busy"),
        ["permission.asked", {"id": "p1", "sessionID": SUB}],
        ["question.asked", {"id": "q1", "sessionID": SUB}],
        ["permission.replied", {"requestID": "p1", "sessionID": SUB}],
        ["question.rejected", {"requestID": "q1", "sessionID": SUB}],
        ["session.error", {"sessionID": SUB}],
        status(SUB, "idle"),
    )
    assert events_of(payloads) == [
        ("asked", "permission"),
        ("asked", "question"),
        # The question is still open.
        ("replied", "question"),
        ("replied", None),
    ]
    assert {payload.data["session"] for payload in payloads} == {MAIN}


def test_an_update_identifies_a_resumed_subagent(run) -> None:
    _, payloads = run(["session.updated", {"info": {"id": SUB, "parentID": MAIN}}], status(SUB, "idle"))
    assert payloads == []


def test_an_error_is_reported_after_an_equal_status(run) -> None:
    _, payloads = run(
        status(MAIN, "idle"),
        ["session.error", {"sessionID": MAIN, "error": {"name": "E", "data": {"message": "no such model"}}}],
        ["session.error", {}],
        status(MAIN, "idle"),
    )
    assert events_of(payloads) == [
        ("session.status", "idle"),
        ("session.error", None),
        ("session.status", "idle"),
    ]
    assert payloads[1].data["message"] == "no such model"


def test_a_session_in_the_background_is_not_reported(run) -> None:
    text = {"type": "text", "text": "hello"}
    _, payloads = run(
        created(MAIN),
        message(MAIN, text),
        status(MAIN, "busy"),
        created(OTHER),
        message(OTHER, text),
        status(OTHER, "busy"),
        ["permission.asked", {"id": "p1", "sessionID": MAIN}],
        ["question.asked", {"id": "q1", "sessionID": OTHER}],
        ["permission.replied", {"requestID": "p1", "sessionID": MAIN}],
        ["session.error", {"sessionID": MAIN}],
        status(MAIN, "idle"),
        ["question.replied", {"requestID": "q1", "sessionID": OTHER}],
        status(OTHER, "idle"),
        message(MAIN, text),
        status(MAIN, "busy"),
    )
    assert [(payload.data["session"], payload.data["event"]) for payload in payloads] == [
        *((MAIN, event) for event in ("session.created", "chat.message", "session.status")),
        *((OTHER, event) for event in ("session.created", "chat.message", "session.status")),
        *((OTHER, event) for event in ("asked", "replied", "session.status")),
        *((MAIN, event) for event in ("chat.message", "session.status")),
    ]


def test_a_subagent_that_is_identified_late_does_not_hide_its_parent(run) -> None:
    text = {"type": "text", "text": "hello"}
    _, payloads = run(
        message(MAIN, text),
        status(MAIN, "busy"),
        message(SUB, text),
        created(SUB, MAIN),
        status(MAIN, "idle"),
    )
    assert (payloads[-1].data["session"], payloads[-1].data.get("status")) == (MAIN, "idle")


def test_a_prompt_that_mam_could_not_read_is_left_out(run, tmp_path) -> None:
    # Each sign becomes six bytes of JSON. An environment variable is too small, so the driver makes the text.
    driver = (tmp_path / "driver.mjs").read_text(encoding="utf-8")
    large = driver.replace("await hooks[", "data[1].parts[0].text = '\\u0001'.repeat(1e6); await hooks[")
    (tmp_path / "driver.mjs").write_text(
        large.replace('if (kind === "chat") ', 'if (kind === "chat") { ').replace(
            "(...data)\n", "(...data) }\n"
        ),
        encoding="utf-8",
    )
    _, payloads = run(message(MAIN, {"type": "text", "text": ""}))
    assert events_of(payloads) == [("chat.message", None)]
    assert "prompt" not in payloads[0].data


@pytest.mark.parametrize(
    "environ", [{"MAM_SESSION": None}, {"MAM_SPOOL": None}, {"MAM_SPOOL": "/nonexistent/spool"}]
)
def test_without_a_session_or_a_spool_nothing_is_written(run, environ) -> None:
    run(created(MAIN), status(MAIN, "busy"), **environ)
    assert list(run.spool.iterdir()) == []


@pytest.mark.parametrize(
    "event",
    [
        ["session.created", None],
        ["session.status", {}],
        ["permission.asked", None],
        ["chat", None, None],
        ["x", 1],
    ],
)
def test_an_event_of_another_form_is_no_error(run, event) -> None:
    _, payloads = run(event, status(MAIN, "idle"))
    assert events_of(payloads) == [("session.status", "idle")]
