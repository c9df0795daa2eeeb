"""Running git: its environment, its deadline, and that no process is left."""

import os
import signal
import threading
from pathlib import Path

import pytest
from tests.processes import is_running
from tests.waiting import SECONDS, wait_until

from mam.adapters.git.error_translation import GitMissing
from mam.adapters.git.run_git import Program, clean_environment
from mam.core.errors import InvalidPath, Refused, TimedOut, Unavailable


def script(folder: Path, text: str) -> dict[str, str]:
    """Return an environment whose git is this script."""
    file = folder / "git"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_foreign_repository_in_the_environment_is_not_used(repo, env, tmp_path) -> None:
    foreign = {
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_TRACE": "1",
    }
    answer = Program({**env, **foreign}).ask(str(repo.top), "rev-parse", "--show-toplevel")
    assert (answer.line, answer.err) == (str(repo.top), "")


def test_git_prints_english_and_asks_for_no_password() -> None:
    env = clean_environment({"LC_ALL": "de_DE.UTF-8", "GIT_AUTHOR_NAME": "kept"})
    assert env == {
        "LC_ALL": "C",
        "GIT_AUTHOR_NAME": "kept",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
    }


def test_without_git(tmp_path) -> None:
    with pytest.raises(GitMissing) as caught:
        Program({"PATH": str(tmp_path)}).ask("/", "version")
    assert isinstance(caught.value, Unavailable)
    assert caught.value.hint


def test_a_git_that_cannot_be_run(tmp_path) -> None:
    env = script(tmp_path, "exit 0")
    (tmp_path / "git").write_bytes(b"\0\0\0\0")
    with pytest.raises(Unavailable, match="cannot be started"):
        Program({**env, "PATH": str(tmp_path)}).ask("/", "version")


def test_a_directory_that_is_gone(env, tmp_path) -> None:
    with pytest.raises(InvalidPath, match="does not exist"):
        Program(env).ask(str(tmp_path / "gone"), "rev-parse", "HEAD")


def test_a_deadline_ends_git_and_what_it_started(tmp_path) -> None:
    env = script(
        tmp_path, f'case "$*" in *config*) exit 1; esac; sleep 60 & echo $! > {tmp_path}/child; wait'
    )
    with pytest.raises(TimedOut, match="worktree add"):
        Program(env, write_seconds=0.3).run("/", ("worktree", "add"))
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    wait_until(lambda: not is_running(child), "the end of what git started")


def test_git_is_asked_to_end_before_it_is_killed(tmp_path) -> None:
    env = script(tmp_path, f"trap 'touch {tmp_path}/asked; exit 1' TERM; sleep 60 & wait")
    with pytest.raises(TimedOut):
        Program(env, read_seconds=0.3).ask("/", "status")
    assert (tmp_path / "asked").exists()


def test_an_interrupt_ends_git(tmp_path) -> None:
    env = script(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60")

    def interrupt() -> None:
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text("utf-8").strip())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Program(env).run("/", ("status",))
    thread.join()
    assert not Path("/proc", (tmp_path / "pid").read_text(encoding="utf-8").strip()).exists()


IN_THE_WAY = "fatal: failed to read .git/worktrees/x/commondir: Success"


def test_another_git_in_the_way_is_waited_for(tmp_path) -> None:
    count = f'echo >> {tmp_path}/calls; [ "$(wc -l < {tmp_path}/calls)" -gt 2 ]'
    env = script(tmp_path, f"{count} && echo done && exit 0; echo '{IN_THE_WAY}' >&2; exit 128")
    assert Program(env).ask("/", "worktree", "list").out == b"done\n"


def test_another_git_that_stays_in_the_way_is_reported(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("mam.adapters.git.run_git._LONGEST_PAUSE", 0.01)
    env = script(tmp_path, f"echo >> {tmp_path}/calls; echo '{IN_THE_WAY}' >&2; exit 128")
    with pytest.raises(Refused, match="failed to read"):
        Program(env).ask("/", "worktree", "list")
    assert len((tmp_path / "calls").read_text(encoding="utf-8").splitlines()) == 3


def test_another_failure_is_reported_at_once(tmp_path) -> None:
    env = script(tmp_path, f"echo >> {tmp_path}/calls; echo 'fatal: no' >&2; exit 128")
    with pytest.raises(Refused, match="no"):
        Program(env).ask("/", "worktree", "list")
    assert (tmp_path / "calls").read_text(encoding="utf-8") == "\n"


def test_what_stays_in_the_background_is_not_waited_for(tmp_path) -> None:
    env = script(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; echo done")
    assert Program(env).ask("/", "status").out == b"done\n"
    child = int((tmp_path / "child").read_text(encoding="utf-8"))
    assert is_running(child)
    os.kill(child, signal.SIGKILL)


class TestRead:
    """The first bytes of a command that only reads."""

    def test_all_or_the_first_bytes(self, repo, env) -> None:
        def read(most):
            return Program(env).read(str(repo.top), "cat-file", "-p", "HEAD:file", seconds=SECONDS, most=most)

        assert [read(5), read(4), read(0)] == [(b"text\n", False), (b"text", True), (b"", True)]

    def test_a_failure_is_an_error_of_ours(self, repo, env, tmp_path) -> None:
        for place in (repo.top, tmp_path / "gone"):
            with pytest.raises(Refused):
                Program(env).read(str(place), "rev-parse", "gone", seconds=SECONDS, most=100)
        with pytest.raises(GitMissing):
            Program({"PATH": str(tmp_path)}).read(str(repo.top), "status", seconds=SECONDS, most=100)

    @pytest.mark.parametrize("slow", ["config", "status"])
    def test_the_time_is_for_both_runs_of_git(self, tmp_path, slow) -> None:
        run = f"sleep 60 & echo $! > {tmp_path}/child; wait"
        env = script(tmp_path, f'case "$*" in *{slow}*) {run};; *config*) exit 1;; esac')
        with pytest.raises(TimedOut, match=rf"^git {slow} did not end within 0.3 s$"):
            Program(env).read("/", "status", seconds=0.3, most=100)
        child = int((tmp_path / "child").read_text(encoding="utf-8"))
        wait_until(lambda: not is_running(child), "the end of what git started")

    def test_what_is_printed_without_end_is_cut(self, tmp_path) -> None:
        env = script(tmp_path, 'case "$*" in *config*) exit 1; esac; exec cat /dev/zero')
        assert Program(env).read("/", "status", seconds=SECONDS, most=10) == (bytes(10), True)

    def test_settings_without_end_are_an_error(self, tmp_path) -> None:
        """A filter that is not seen would run."""
        env = script(tmp_path, f'case "$*" in *config*) exec cat /dev/zero; esac; touch {tmp_path}/ran')
        with pytest.raises(Refused, match="too many programs"):
            Program(env).read("/", "status", seconds=SECONDS, most=10)
        assert not (tmp_path / "ran").exists()

    def test_errors_without_end_are_not_kept(self, tmp_path) -> None:
        env = script(tmp_path, "yes fatal: no | head -n 100000 >&2; exit 128")
        with pytest.raises(Refused, match="git gave no reason"):
            Program(env).read("/", "status", seconds=SECONDS, most=10)
