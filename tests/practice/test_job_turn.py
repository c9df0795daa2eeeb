"""The practice agent and jobs: it finds the report commands in its message, and runs no others."""

from __future__ import annotations

import sys

import pytest

from mam.core import job_rules as rules
from mam.practice.job_turn import job_of, message_in, report

COMMAND = "/somewhere/bin/mam job event --workspace '/a b' --job 1f00ab42 --attempt 1"


def told(task):
    return rules.prompt(rules.instructions("1f00ab42", COMMAND), task)


@pytest.mark.parametrize(
    ("task", "ended"),
    [
        ("write it", "--event completed --detail 'done as asked'"),
        ("please fail", "--event error --detail 'practice error'"),
        (rules.review("x", "y", 1), "--event completed --detail 'PASS: nothing to add'"),
        (rules.review("pass in round 2", "y", 1), "--detail 'FAIL: one more round, please'"),
        (rules.review("pass in round 2", "y", 2), "--detail 'PASS: nothing to add'"),
    ],
)
def test_a_job_and_its_end(task, ended):
    job = job_of(told(task))
    assert job is not None
    assert job.task == task
    assert job.started() == f"{COMMAND} --event started"
    assert job.ended().startswith(COMMAND)
    assert job.ended().endswith(ended)


def test_a_reminder_is_a_job_without_a_task():
    job = job_of(rules.nudge("1f00ab42", COMMAND))
    assert job is not None
    assert (job.command, job.is_unreported) == (COMMAND, False)
    again = job_of(rules.nudge("1f00ab42", COMMAND), ["x", told("never report it")])
    assert again is not None
    assert again.is_unreported


def test_other_words_are_no_job():
    assert job_of("run the tests") is None
    assert job_of("is a job event --job something?") is None


def test_a_message_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.md").write_text("do it", encoding="utf-8")
    assert message_in("Read the file m.md: it holds message m_1 for you. Do what it says.") == "do it"
    missing = "Read the file n.md: it holds message m_1 for you. Do what it says."
    assert message_in(missing) == missing


def test_nothing_else_is_run(tmp_path):
    harm = tmp_path / "harm"
    for command in (f"touch {harm}", f"touch {harm} job event", f"sh -c 'touch {harm}' job event --job x"):
        assert report(command).startswith("Error: the command does not report")
    line = report(f"{sys.executable} -c print(1) job event --job 1f00ab42 --attempt 1 --event started")
    assert line == "1"
    assert not harm.exists()
