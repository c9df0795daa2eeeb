"""The plugin inside opencode: one file per event that says something, and never a word or an error."""

import json
import os
import shutil
import subprocess

import pytest

from mam.adapters.agents.opencode.kind import PLUGIN
from mam.adapters.store.tables import evidence

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
        done = subprocess.run(
            [NODE, str(tmp_path / "driver.mjs")],
            env={"PATH": os.environ["PATH"], "EVENTS": json.dumps(events)}
            | {name: value for name, value in environ.items() if value is not None},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.strip(), evidence.pending(str(spool))

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


def told(payloads):
    return [(one.data["event"], one.data.get("status") or one.data.get("waiting_for")) for one in payloads]


def test_a_turn_in_the_order_of_its_events(run) -> None:
    text = {"type": "text", "text": "hello"}
    pid, found = run(
        created(MAIN),
        message(MAIN, text, {"type": "text", "text": "by itself", "synthetic": True}, {"type": "file"}),
        *[status(MAIN, "busy")] * 3,
        ["message.part.updated", {"part": {"sessionID": MAIN}}],
        status(MAIN, "retry", attempt=1, message="x" * 5000),
        status(MAIN, "retry", attempt=2, action={"reason": "account_rate_limit"}),
        status(MAIN, "idle"),
        ["session.idle", {"sessionID": MAIN}],
    )
    assert told(found) == [
        ("session.created", None),
        ("chat.message", None),
        ("session.status", "busy"),
        ("session.status", "retry"),
        ("session.status", "retry"),
        ("session.status", "idle"),
    ]
    assert {(one.session_id, one.pid, one.data["session"]) for one in found} == {(SESSION, pid, MAIN)}
    assert found[1].data["prompt"] == "hello"
    assert len(found[3].data["message"]) == 500
    assert found[4].data["reason"] == "account_rate_limit"
    assert {oct(path.stat().st_mode & 0o777) for path in run.spool.iterdir()} == {"0o600"}
    assert not [path for path in run.spool.iterdir() if path.name.startswith(".")]


def test_a_subagent_is_heard_only_where_it_asks(run) -> None:
    text = {"type": "text", "text": "do it"}
    _, found = run(
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
    assert told(found) == [
        ("asked", "permission"),
        ("asked", "question"),
        # The other one is still open.
        ("replied", "question"),
        ("replied", None),
    ]
    assert {one.data["session"] for one in found} == {MAIN}


def test_a_subagent_that_is_taken_up_again_is_known_by_its_update(run) -> None:
    _, found = run(["session.updated", {"info": {"id": SUB, "parentID": MAIN}}], status(SUB, "idle"))
    assert found == []


def test_an_error_is_told_also_without_a_state(run) -> None:
    _, found = run(
        status(MAIN, "idle"),
        ["session.error", {"sessionID": MAIN, "error": {"name": "E", "data": {"message": "no such model"}}}],
        ["session.error", {}],
        status(MAIN, "idle"),
    )
    assert told(found) == [("session.status", "idle"), ("session.error", None), ("session.status", "idle")]
    assert found[1].data["message"] == "no such model"


def test_the_end_of_a_session_in_the_background_is_no_news(run) -> None:
    text = {"type": "text", "text": "hello"}
    _, found = run(
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
    assert [(one.data["session"], one.data["event"]) for one in found] == [
        *((MAIN, event) for event in ("session.created", "chat.message", "session.status")),
        *((OTHER, event) for event in ("session.created", "chat.message", "session.status")),
        *((OTHER, event) for event in ("asked", "replied", "session.status")),
        *((MAIN, event) for event in ("chat.message", "session.status")),
    ]


def test_a_subagent_that_is_known_late_does_not_silence_its_parent(run) -> None:
    text = {"type": "text", "text": "hello"}
    _, found = run(
        message(MAIN, text),
        status(MAIN, "busy"),
        message(SUB, text),
        created(SUB, MAIN),
        status(MAIN, "idle"),
    )
    assert (found[-1].data["session"], found[-1].data.get("status")) == (MAIN, "idle")


def test_a_prompt_too_large_to_be_read_is_left_out(run, tmp_path) -> None:
    # Each becomes six bytes of JSON; a variable of the environment holds less than that.
    driver = (tmp_path / "driver.mjs").read_text(encoding="utf-8")
    large = driver.replace("await hooks[", "data[1].parts[0].text = '\\u0001'.repeat(1e6); await hooks[")
    (tmp_path / "driver.mjs").write_text(
        large.replace('if (kind === "chat") ', 'if (kind === "chat") { ').replace(
            "(...data)\n", "(...data) }\n"
        ),
        encoding="utf-8",
    )
    _, found = run(message(MAIN, {"type": "text", "text": ""}))
    assert told(found) == [("chat.message", None)]
    assert "prompt" not in found[0].data


@pytest.mark.parametrize(
    "environ", [{"MAM_SESSION": None}, {"MAM_SPOOL": None}, {"MAM_SPOOL": "/nonexistent/spool"}]
)
def test_without_a_session_or_a_spool_nothing_happens(run, environ) -> None:
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
def test_an_event_of_another_shape_is_no_error(run, event) -> None:
    _, found = run(event, status(MAIN, "idle"))
    assert told(found) == [("session.status", "idle")]
