"""A job with a real agent: the agent itself runs the commands that it was told, as a tool of its own."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from tests.conformance.desk import Desk, wait_for
from tests.conformance.program import taking_part
from tests.conformance.replies import Say, Shell

from mam.app.job_runner import submit
from mam.core.errors import TimedOut

pytestmark = [pytest.mark.slow, pytest.mark.starts]


@pytest.fixture(params=taking_part("jobs"))
def kind(request):
    return request.param


@pytest.fixture
def desk(fresh_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    # Without it Claude Code refuses as root what a job runs with.
    monkeypatch.setenv("IS_SANDBOX", "1")
    return fresh_desk


def delegate(desk: Desk, monkeypatch: pytest.MonkeyPatch, job_id: str, *events: str, **options: Any) -> Any:
    """Submit a job whose agent reports these events: the model speaks the commands that it was told."""
    monkeypatch.setattr(submit, "new_id", lambda: job_id)
    args = desk.arguments()
    given = {"agent": desk.kind, "args": args, "timeout": 180, **options}
    told = desk.fleet.jobs.preview("write proof.txt", **given)["instructions"]
    command = re.search(r"^  (.*) --event started$", told, re.MULTILINE)
    assert command is not None
    work = [Shell("touch proof.txt", asks=False)]
    said = [Shell(f"{command[1]} --event {event}", asks=False) for event in events]
    desk.model.answer(*said[:1], *work, *said[1:], Say("All of it is done."))
    return desk.fleet.jobs.submit("write proof.txt", **given)


def test_s002_19_the_agent_reports_its_own_job_and_its_start_is_logged_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("started", "progress --detail '1 of 1'", "completed --detail 'it is \"written\"'")
    job = delegate(desk, monkeypatch, "1f00ab42", *words, expect=["proof.txt"])
    heard: list[Any] = []
    (done,) = desk.fleet.jobs.wait([job["job_id"]], heard.append, from_start=True, timeout=180)
    assert (done["status"], done["terminal_detail"]) == ("completed", 'it is "written"'), heard
    own = [one for one in heard if one["data"].get("by") == done["session_id"]]
    assert [one["event"] for one in own][-2:] == ["progress", "checking"]
    assert [one["event"] for one in heard].count("started") == 1
    assert [one["event"] for one in heard][-1] == "completed"
    assert desk.model.saw("write proof.txt")


def test_an_agent_that_forgets_is_reminded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = delegate(desk, monkeypatch, "5d2c0e91", idle_timeout=60)
    told = desk.fleet.jobs.instructions(job["job_id"])
    command = re.search(r"^  (.*) --event started$", told, re.MULTILINE)
    assert command is not None
    heard: list[Any] = []

    def hear(entry: Any) -> None:
        heard.append(entry)
        if (
            entry["data"].get("turn_ended")
            and len([one for one in heard if one["data"].get("turn_ended")]) == 1
        ):
            desk.model.answer(
                Shell(f"{command[1]} --event completed --detail late", asks=False), Say("Reported.")
            )

    (done,) = desk.fleet.jobs.wait([job["job_id"]], hear, from_start=True, timeout=180)
    assert (done["status"], done["terminal_detail"]) == ("completed", "late"), heard
    assert desk.model.saw("is still open")


def test_s002_20_a_permission_is_reported_by_the_agents_hooks_with_its_tool(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.model.answer(Shell("touch asked.txt"), Say("Done."))
    args = desk.arguments()
    job = desk.fleet.jobs.submit(
        "write asked.txt", agent=desk.kind, args=args, permissions=desk.program.permissions, idle_timeout=0
    )["job_id"]
    heard: list[Any] = []
    wait_for(lambda: _hears(desk, job, heard, "permission_required"), lambda: heard, 60)
    asked = [one["detail"] for one in heard if one["event"] == "permission_required"]
    # Codex runs no hooks unless its user allows them; then the screen tells of the permission.
    assert asked == (["Bash:touch asked.txt"] if desk.kind == "claude" else ["permission"])
    assert next(one["event"] for one in heard if one["data"].get("by") == "hook") == "started"
    desk.fleet.jobs.cancel(job, stop=True)
    assert not (desk.workspace / "asked.txt").exists()


HEADLESS = {
    "claude": lambda arguments: ["claude", "-p", *arguments],
    "codex": lambda arguments: ["codex", "exec", "--skip-git-repo-check", *arguments, "-"],
}
BY_ARGUMENT = {
    "claude": lambda arguments: ["claude", *arguments, "-p", "{prompt}"],
    "codex": lambda arguments: ["codex", "exec", "--skip-git-repo-check", *arguments, "{prompt}"],
}


def test_s002_5_the_program_without_its_screen_does_a_job(desk: Desk) -> None:
    """The same program as a command: it ends by itself, and its exit status is the end of the job."""
    prompt = "say the word xylophone\nand nothing else"
    for commands in (HEADLESS, BY_ARGUMENT):
        desk.model.answer(Say("It is xylophone."))
        command = commands[desk.kind](desk.arguments())
        job = desk.fleet.jobs.submit(prompt, command=command, timeout=120)
        (done,) = desk.fleet.jobs.wait([job["job_id"]], timeout=180)
        output = desk.fleet.jobs.output(job["job_id"])["output"].decode()
        assert done["status"] == "completed", output
        assert "It is xylophone." in output
        assert desk.model.saw("and nothing else")
    assert done["agent"] == "exec"
    refused = desk.fleet.jobs.submit("x", command=[desk.kind, "--no-such-option"], timeout=120)
    (failed,) = desk.fleet.jobs.wait([refused["job_id"]], timeout=180)
    assert (failed["status"], failed["reason"]) == ("error", "exit status")


def _hears(desk: Desk, job: str, heard: list[Any], name: str) -> bool:
    with suppress(TimedOut):
        desk.fleet.jobs.wait([job], timeout=0.5)
    heard[:] = desk.fleet.jobs.logs(job)["events"]
    return any(one["event"] == name for one in heard)
