"""Telling a person: once per episode, also after a restart, on the desktop and by the user's command."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.app.environment import use_environment

import mam
from mam.adapters.agents.practice import Practice
from mam.adapters.tmux.client import Tmux
from mam.app.monitor import notify
from mam.app.observation.newest_hook_reports import newest_reports
from mam.app.sessions import reconcile
from mam.core.settings import Settings


@pytest.fixture
def pass_on(fleet):
    """Make a pass as a resident that has just started does, so many seconds from now; return what is news."""

    def pass_on(seconds=0.0):
        with mam.open(fleet.root) as new:
            new._access.context = new._access.context.replace(clock=lambda: time.time() + seconds)
            result = reconcile.reconcile(new._access.context, new.caller)
            return notify.new_notices(
                new._access.context, new._access.context.registry.view(), result.snapshot.listings
            )

    return pass_on


def ask(fleet, session, until) -> None:
    """Let the agent ask, and wait for dialog and hook: only the hook knows since when it waits."""
    context = fleet._access.context

    def asked_at():
        report = newest_reports(context, [session.row]).get(session.id)
        return report.at if report is not None and report.data["state"] == "waiting" else 0.0

    before = asked_at()
    tmux = context.tmux(session.row["tmux_server"])
    tmux.paste(session.row["pane"]["id"], "run ls", mark=session.id, enter=True)
    until(lambda: asked_at() > before)
    session.wait("waiting", timeout=10)


@pytest.fixture
def asking(fleet, until):
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"])
    ask(fleet, session, until)
    return session


def kinds(notices):
    return [(notice["session"], notice["kind"]) for notice in notices[0]]


def test_waiting_is_told_once_per_episode(fleet, asking, pass_on, until) -> None:
    announced, due = pass_on()
    assert announced == []
    assert 100 < due <= 120
    assert kinds(pass_on(125)) == [("one", "waiting")]
    assert kinds(pass_on(126)) == [], "another resident, the same episode"
    assert fleet.sessions.ls()["sessions"][0]["attention"] is None
    tmux = fleet._access.context.tmux(asking.row["tmux_server"])
    tmux.keys(asking.row["pane"]["id"], ["Escape"], mark=asking.id)
    asking.wait("idle", timeout=10)
    assert kinds(pass_on(130)) == []
    ask(fleet, asking, until)
    assert kinds(pass_on(125)) == [("one", "waiting")], "a new episode"


def test_the_users_command_and_the_desktop(fleet, tmp_path, monkeypatch) -> None:
    log = tmp_path / "said"
    for name in ("told", "notify-send"):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\nprintf "%s\\n" "{name}" "$@" "$MAM_NOTICE_SESSION" >> {log}\n')
        script.chmod(0o755)
    settings = Settings()
    settings.apply({"notify_command": [str(tmp_path / "told"), "-x"]}, "here")
    fleet._access.context._settings["loaded"] = settings
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DISPLAY": ":0"}
    use_environment(fleet, environ)
    notify.announce(
        fleet._access.context, {"session": "one", "text": "it waits; $(touch x)", "kind": "waiting"}
    )
    lines = log.read_text(encoding="utf-8").splitlines()
    assert lines == [
        "notify-send",
        "--app-name=mam",
        "--",
        "mam",
        "one: it waits; $(touch x)",
        "one",
        "told",
        "-x",
        "one: it waits; $(touch x)",
        "one",
    ]


def test_a_command_that_fails_is_a_warning(fleet, monkeypatch) -> None:
    settings = Settings()
    settings.apply({"notify_command": ["/bin/false"], "notify_desktop": False}, "here")
    fleet._access.context._settings["loaded"] = settings
    warned = []
    fleet.on_warning(warned.append)
    notify.announce(fleet._access.context, {"session": "one", "text": "x", "kind": "waiting"})
    assert warned == ["/bin/false could not show the notice: 1"]
    assert json.dumps(warned)


@pytest.fixture
def unasked(fleet):
    """A session with a dialog that no hook reports."""
    return fleet.sessions.create("practice", name="one", args=["--trust-dialog"], wait=False)


def sees(fleet, state):
    return lambda: fleet.sessions.ls()["sessions"][0]["activity"] == state


def test_a_dialog_that_only_the_screen_shows(fleet, unasked, pass_on, until) -> None:
    until(sees(fleet, "waiting"))
    announced, due = pass_on()
    assert (announced, round(due)) == ([], 120)
    announced, due = pass_on(60)
    assert announced == []
    assert due < 70, "it has waited since it was first seen"
    assert kinds(pass_on(125)) == [("one", "waiting")]
    assert kinds(pass_on(126)) == [], "the same episode"
    with mam.open(fleet.root) as reader:
        reader._access.context = reader._access.context.replace(clock=lambda: time.time() + 127)
        assert reader.sessions.ls()["sessions"][0]["attention"] == "it has waited for a person for 2m (trust)"
    assert kinds(pass_on(1000)) == [], "nobody looked for too long: who knows what was in between"
    unasked.answer("allow")
    until(sees(fleet, "idle"))
    assert kinds(pass_on(1001)) == []
    assert fleet.sessions.ls()["sessions"][0]["attention"] is None


def test_a_server_that_does_not_answer_ends_no_episode(fleet, unasked, pass_on, tmux_server, until) -> None:
    until(sees(fleet, "waiting"))
    pass_on()
    assert kinds(pass_on(125)) == [("one", "waiting")]
    server = Tmux(tmux_server).panes().server_pid
    os.kill(server, signal.SIGSTOP)
    try:
        assert kinds(pass_on(130)) == []
    finally:
        os.kill(server, signal.SIGCONT)
    assert kinds(pass_on(145)) == [], "told before"


def test_a_command_that_hangs_holds_up_nothing(fleet, tmp_path, until) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "mam/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'notify_command = ["/bin/cat", "{pipe}"]\nnotify_desktop = false\n', encoding="utf-8")
    thread = notify.announce_in_thread(
        fleet._access.context, [{"session": "one", "text": "x", "kind": "waiting"}]
    )
    assert thread.is_alive(), "the command waits for somebody to write, and nobody waits for the command"
    pipe.write_text("", encoding="utf-8")
    until(lambda: not thread.is_alive())


def test_a_limit_is_told_although_the_hook_says_that_the_turn_is_over(fleet, pass_on, until) -> None:
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"])
    tmux = fleet._access.context.tmux(session.row["tmux_server"])
    tmux.paste(session.row["pane"]["id"], "/limit", mark=session.id, enter=True)
    until(lambda: "StopFailure" in [item["detail"] for item in session.explain()["evidence"]])
    # While the hook is fresh a listing does not look at the screen.
    until(lambda: fleet.sessions.ls()["sessions"][0]["attention"] == "it hit a limit: limit, resets 6pm")
    assert kinds(pass_on()) == [("one", "limit")]
    assert kinds(pass_on(1)) == []


def test_work_without_hooks_is_wedged_once_its_record_has_long_not_grown(
    fleet, pass_on, until, monkeypatch
) -> None:
    monkeypatch.setattr(Practice, "has_hooks", False)
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"], prompt="hello")
    fleet.messages.send(session.id, "/hang", command=True)
    until(sees(fleet, "working"))
    looks = [pass_on(240 * number) for number in range(1, 10)]
    assert [kinds(look) for look in looks[:-1]] == [[]] * 8
    assert kinds(looks[-1]) == [("one", "wedged")], "half an hour after it was first seen"


def test_work_whose_record_grows_is_not_wedged(fleet, pass_on, until, monkeypatch) -> None:
    monkeypatch.setattr(Practice, "has_hooks", False)
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"], prompt="hello")
    fleet.messages.send(session.id, "/hang", command=True)
    until(sees(fleet, "working"))
    own = fleet.sessions.get("one").row["practice_session_id_own"]
    record = Path(os.environ["XDG_DATA_HOME"]) / "mam-practice" / f"{own}.jsonl"
    for number in range(1, 12):
        with record.open("a", encoding="utf-8") as file:
            file.write('{"type": "assistant", "text": "step"}\n')
        assert kinds(pass_on(240 * number)) == []
