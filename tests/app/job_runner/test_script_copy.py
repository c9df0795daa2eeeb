"""The script of a job runs only as it was when the job was submitted."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mam.adapters.store.files import script_file
from mam.adapters.store.tables import jobs
from mam.app.job_runner import script_copy
from mam.app.jobs import ledger_writer
from mam.app.jobs.write_job_files import write_files
from mam.core.errors import InvalidPath


@pytest.fixture
def submitted(fleet, workspace, tmp_path):
    """Return a function that submits a job with a script, and one that reports and waits."""

    def submit(text="exit 0\n", mode=0o644):
        script = workspace / "check.sh"
        script.write_text(text, encoding="utf-8")
        script.chmod(mode)
        return script, fleet.jobs.submit("x", agent="human", validate="check.sh")["job_id"]

    return submit


def end(fleet, job):
    fleet.jobs.event(job, "completed", detail="mine")
    (result,) = fleet.jobs.wait([job], timeout=60)
    return result


def copies(fleet):
    with sqlite3.connect(fleet._access.context.user_state.path) as database:
        return database.execute("SELECT job_id, path, content FROM scripts").fetchall()


def leftovers(fleet):
    folder = Path(fleet._access.context.user_state.folder, "scripts")
    return list(folder.iterdir()) if folder.is_dir() else []


def output(fleet, job):
    log = Path(fleet._access.context.paths.jobs, f"{job}.validation.log")
    return log.read_text(encoding="utf-8").strip()


@pytest.mark.promise("P36")
def test_d7_a_script_that_was_changed_after_the_submission_does_not_run(
    fleet, workspace, tmp_path, submitted, until
) -> None:
    script, job = submitted()
    script.write_text(f"touch {tmp_path}/ran\n", encoding="utf-8")
    result = end(fleet, job)
    assert (result["status"], result["reason"]) == ("error", "validate_changed")
    assert "it was changed after the job was submitted" in result["terminal_detail"]
    assert not (tmp_path / "ran").exists()
    last = fleet.jobs.logs(job)["events"][-1]
    assert (last["event"], last["data"]["reason"]) == ("error", "validate_changed")
    until(lambda: copies(fleet) == [])


def test_d7_a_script_that_is_gone_does_not_pass(fleet, submitted) -> None:
    script, job = submitted()
    script.unlink()
    assert end(fleet, job)["reason"] == "validate_changed"


def test_d7_a_link_to_another_script_does_not_run(fleet, workspace, tmp_path, submitted) -> None:
    script, job = submitted()
    other = workspace / "other.sh"
    other.write_text(f"touch {tmp_path}/ran\n", encoding="utf-8")
    script.unlink()
    script.symlink_to(other)
    assert end(fleet, job)["reason"] == "validate_changed"
    assert not (tmp_path / "ran").exists()


def test_d7_a_script_is_not_changed_while_it_runs(fleet, workspace, tmp_path, submitted) -> None:
    """A shell reads its script bit by bit; the script itself writes to the place where it was."""
    script, job = submitted(f'echo "touch {tmp_path}/ran" >>check.sh\n: {"x" * 100_000}\n')
    result = end(fleet, job)
    assert result["status"] == "completed"
    assert script.read_text(encoding="utf-8").endswith("/ran\n")
    assert not (tmp_path / "ran").exists()


def test_d1_a_job_that_came_along_never_runs_its_validate(fleet, tmp_path, submitted) -> None:
    _, job = submitted(f"touch {tmp_path}/ran\n")
    with sqlite3.connect(fleet._access.context.user_state.path) as database:
        database.execute("DELETE FROM scripts")
    result = end(fleet, job)
    assert result["reason"] == "validate_changed"
    assert "did not see it when the job was submitted" in result["terminal_detail"]
    assert not (tmp_path / "ran").exists()


def test_d1_a_validate_that_the_record_names_anew_does_not_run(fleet, workspace, tmp_path, submitted) -> None:
    script, job = submitted()
    other = workspace / "other.sh"
    other.write_text(script.read_text(encoding="utf-8"), encoding="utf-8")
    with sqlite3.connect(fleet._access.context.paths.db) as database:
        database.execute("UPDATE jobs SET data=json_set(data, '$.validate', ?)", [str(other)])
    assert end(fleet, job)["reason"] == "validate_changed"


@pytest.mark.parametrize(
    ("text", "mode", "seen"),
    [
        ('echo "${0##*/} $# ${BASH_VERSION:+bash} $PWD"\n', 0o644, "check.sh 0 bash {workspace}"),
        ('#!/bin/sh\necho "${0##*/} $PWD"\n', 0o755, "check.sh {workspace}"),
        ("#! /bin/sh -e\nfalse\necho on\n", 0o755, ""),
        ("#!/usr/bin/env cat\nhello", 0o755, "#!/usr/bin/env cat\nhello"),
        ('echo "plain ${0##*/}"\n', 0o755, "plain check.sh"),
    ],
)
def test_the_copy_runs_as_the_script_would(fleet, workspace, submitted, until, text, mode, seen) -> None:
    _, job = submitted(text, mode)
    assert [(entry[0], entry[2]) for entry in copies(fleet)] == [(job, text.encode())]
    end(fleet, job)
    assert output(fleet, job) == seen.format(workspace=workspace)
    until(lambda: (copies(fleet), leftovers(fleet)) == ([], []))


def test_the_copy_is_private_while_it_runs(fleet, submitted) -> None:
    _, job = submitted('stat -c %a "$0" "${0%/*}" "${0%/*/*}"\n')
    end(fleet, job)
    assert output(fleet, job).split() == ["700", "700", "700"]


def test_copies_of_ended_jobs_are_forgotten(fleet, submitted) -> None:
    _, cancelled = submitted()
    fleet.jobs.cancel(cancelled)
    assert copies(fleet) == []
    context = fleet._access.context
    context.user_state.note_script(context.root_id, "0badcafe", "/x", b"left by a crash")
    _, job = submitted()
    assert [entry[0] for entry in copies(fleet)] == [job]


def test_a_parked_job_keeps_its_copy(fleet, submitted) -> None:
    _, parked = submitted()

    def park(transaction):
        ledger_writer.park(transaction, jobs.find(transaction, parked), "for a test")

    fleet._access.context.registry.note(park)
    write_files(fleet._access.context, parked)
    _, other = submitted()
    assert {entry[0] for entry in copies(fleet)} == {parked, other}


def test_what_a_killed_check_left_is_replaced(fleet, submitted, until) -> None:
    _, job = submitted("exit 0\n")
    context = fleet._access.context
    folder = Path(context.user_state.folder, "scripts", f"{context.root_id}-{job}")
    folder.mkdir(parents=True)
    (folder / "check.sh").write_text("exit 1\n", encoding="utf-8")
    assert end(fleet, job)["status"] == "completed"
    until(lambda: leftovers(fleet) == [])


def test_a_script_that_is_too_large_is_refused(fleet, workspace, monkeypatch) -> None:
    monkeypatch.setattr(script_copy, "LARGEST", 10)
    (workspace / "check.sh").write_text("exit 0 # and more\n", encoding="utf-8")
    with pytest.raises(InvalidPath, match="mam cannot copy the script") as caught:
        fleet.jobs.submit("x", agent="human", validate="check.sh")
    assert caught.value.hint
    assert fleet.jobs.list() == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"#!/bin/sh", ["/bin/sh"]),
        (b"#! /bin/sh -e -u \nx", ["/bin/sh", "-e -u"]),
        (b"#!\nx", []),
        (b"echo\n", []),
        (b"", []),
    ],
)
def test_the_interpreter_is_read_as_the_kernel_reads_it(line, words) -> None:
    assert script_file.interpreter(line) == words
