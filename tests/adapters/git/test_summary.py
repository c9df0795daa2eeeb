"""The branch and the number of changed files: as git says, in a short time, and nothing is written or run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.adapters.git.repository import Repository
from tests.adapters.git.test_hostile_repository import Attack, by_diff, by_pager_editor_and_alias
from tests.processes import is_running
from tests.waiting import SECONDS, wait_until

from mam.adapters.git import summary as module
from mam.adapters.git.summary import MOST_FILES, Summary, summary


@pytest.fixture
def look(env):
    """Return the summary of a directory, with more time than any machine needs."""
    return lambda directory, **more: summary(str(directory), env, **{"seconds": 10 * SECONDS, **more})


@pytest.fixture
def attack(repo, tmp_path):
    return Attack(repo, tmp_path)


def of_main(count: int | None = 0, *, more: bool = False) -> Summary:
    return Summary("main", False, count, more)


def make_files(folder: Path, count: int, name: str = "new") -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{name}{number}").touch()


def contents(top: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file below a folder, with its content and its time."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in top.rglob("*") if path.is_file()
    }


class TestBranch:
    def test_of_a_repository_and_from_below(self, repo, look) -> None:
        (repo.top / "sub").mkdir()
        assert look(repo.top) == look(repo.top / "sub") == of_main()

    def test_without_a_commit(self, env, look, tmp_path) -> None:
        new = Repository(tmp_path / "new", env)
        (new.top / "file").touch()
        assert look(new.top) == of_main(1)

    def test_a_detached_head_is_its_commit(self, repo, look) -> None:
        repo("checkout", "-q", "--detach")
        assert look(repo.top) == Summary(repo.head()[:7], True, 0, False)

    def test_a_worktree(self, repo, look, trees, tmp_path) -> None:
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        (tmp_path / "w" / "new").touch()
        assert look(tmp_path / "w") == Summary("x", False, 1, False)
        assert look(repo.top) == of_main()

    def test_an_odd_name_is_safe_for_a_line(self, repo, look) -> None:
        repo("checkout", "-q", "-b", "a\u202eb")
        assert look(repo.top).branch == "ab"

    def test_a_name_that_is_no_text(self, repo, look) -> None:
        (repo.top / ".git" / "HEAD").write_bytes(b"ref: refs/heads/\xff\n")
        assert look(repo.top).branch == "?"


class TestWithoutAnAnswer:
    def test_a_plain_folder_starts_no_git(self, tmp_path, monkeypatch) -> None:
        (tmp_path / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
        (tmp_path / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert summary(str(tmp_path), seconds=SECONDS) is None
        assert not (tmp_path / "started").exists()
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        summary(str(tmp_path), seconds=SECONDS)
        assert (tmp_path / "started").exists()

    def test_a_bare_repository(self, env, look, tmp_path) -> None:
        bare = Repository(tmp_path / "bare", env, "--bare").top
        assert look(bare) is None
        around = Repository(tmp_path / "around", env)
        shutil.copytree(bare, around.top / "bare")
        assert look(around.top / "bare") is None

    def test_the_git_folder_itself(self, repo, look) -> None:
        assert look(repo.top / ".git") is None

    def test_a_broken_repository(self, repo, look) -> None:
        (repo.top / ".git" / "config").write_text("[broken\n", encoding="utf-8")
        assert look(repo.top) is None

    def test_a_broken_index(self, repo, look) -> None:
        (repo.top / ".git" / "index").write_bytes(b"DIRC" + bytes(100))
        assert look(repo.top) is None

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    def test_a_repository_of_another_user(self, repo, look) -> None:
        os.chown(repo.top, 12345, 12345)
        assert look(repo.top) is None

    def test_without_git(self, repo, tmp_path) -> None:
        assert summary(str(repo.top), {"PATH": str(tmp_path)}, seconds=SECONDS) is None

    def test_where_git_cannot_be_started(self, repo, monkeypatch) -> None:
        monkeypatch.setattr(os, "devnull", "/gone")
        assert summary(str(repo.top), seconds=SECONDS) is None


class TestChangedFiles:
    def test_changed_staged_deleted_untracked_and_ignored(self, repo, look) -> None:
        for name in ("changed", "staged", "deleted"):
            repo.commit(name)
        repo.commit(".gitignore", "ignored\n")
        (repo.top / "changed").write_text("other\n", encoding="utf-8")
        (repo.top / "staged").write_text("other\n", encoding="utf-8")
        repo("add", "staged")
        (repo.top / "deleted").unlink()
        (repo.top / "ignored").touch()
        make_files(repo.top / "folder", 3)
        assert look(repo.top) == look(repo.top / "folder") == of_main(6)

    def test_a_conflict_counts_once(self, repo, look) -> None:
        repo("checkout", "-q", "-b", "x")
        repo.commit("file", "theirs\n")
        repo("checkout", "-q", "main")
        repo.commit("file", "ours\n")
        subprocess.run(
            ["git", "-C", str(repo.top), "merge", "-q", "x"], env=repo.env, capture_output=True, check=False
        )
        assert look(repo.top) == of_main(1)

    def test_a_renamed_file_counts_as_two(self, repo, look) -> None:
        repo("mv", "file", "other")
        assert look(repo.top) == of_main(2)

    @pytest.mark.parametrize(
        ("key", "value"),
        [("status.showUntrackedFiles", "no"), ("status.renames", "true"), ("status.showStash", "true")],
    )
    def test_settings_change_nothing(self, repo, look, key, value) -> None:
        repo("config", key, value)
        repo("mv", "file", "other")
        (repo.top / "new").touch()
        assert look(repo.top) == of_main(3)

    @pytest.mark.parametrize(("count", "more"), [(MOST_FILES, False), (1500, True)])
    def test_a_thousand_are_counted(self, repo, look, count, more) -> None:
        make_files(repo.top / "folder", count)
        assert look(repo.top) == of_main(MOST_FILES, more=more)

    def test_an_answer_that_is_too_long_is_counted_as_far_as_it_was_read(
        self, repo, look, monkeypatch
    ) -> None:
        make_files(repo.top, 300, "n" * 100)
        headers = f"# branch.oid {repo.head()}\0# branch.head main\0"
        entries = [f"? {path.name}\0" for path in sorted(repo.top.glob("n*"))]
        monkeypatch.setattr(module, "_MOST_BYTES", len(headers + "".join(entries[:17])) + 5)
        assert look(repo.top) == of_main(17, more=True)

    def test_a_submodule_is_not_entered_and_counts_if_its_commit_differs(
        self, repo, env, look, tmp_path
    ) -> None:
        inner = Repository(tmp_path / "inner", env)
        inner.commit()
        repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
        repo("commit", "-q", "-m", "sub")
        make_files(repo.top / "sub", 5)
        assert look(repo.top) == of_main(0)
        assert look(repo.top / "sub") == of_main(5)
        repo.commit("other", at=repo.top / "sub")
        assert look(repo.top) == of_main(1)


class TestWritesNothing:
    def test_neither_the_index_nor_anything_else(self, repo, look) -> None:
        """`git status` would renew the times in the index here."""
        repo("config", "core.untrackedCache", "true")
        (repo.top / "file").write_text("text\n", encoding="utf-8")
        os.utime(repo.top / "file", (1, 1))
        before = contents(repo.top)
        assert look(repo.top) == of_main()
        assert contents(repo.top) == before
        repo("status")
        assert contents(repo.top) != before

    def test_a_lock_of_another_git_is_not_in_the_way(self, repo, look) -> None:
        lock = repo.top / ".git" / "index.lock"
        lock.write_bytes(b"other")
        (repo.top / "new").touch()
        before = contents(repo.top)
        assert look(repo.top) == of_main(1)
        assert contents(repo.top) == before


class TestLimits:
    @pytest.fixture
    def hanging(self, tmp_path, env):
        """An environment with a fake git that starts another process and does not end."""
        folder = tmp_path / "fake"
        folder.mkdir()
        (folder / "git").write_text(
            f"#!/bin/sh\nsleep 600 &\necho $! > {folder}/child\necho $$ > {folder}/pid\nwait\n",
            encoding="utf-8",
        )
        (folder / "git").chmod(0o755)
        return {**env, "PATH": f"{folder}:{env['PATH']}"}

    @staticmethod
    def wait_for_the_end(folder: Path) -> None:
        for name in ("pid", "child"):
            pid = int((folder / name).read_text(encoding="utf-8"))
            wait_until(lambda pid=pid: not is_running(pid), f"the end of {name}")

    @pytest.mark.parametrize("detached", [False, True])
    def test_a_git_that_hangs_leaves_the_branch_and_no_process(
        self, repo, hanging, tmp_path, detached
    ) -> None:
        if detached:
            repo("checkout", "-q", "--detach")
        branch = repo.head()[:7] if detached else "main"
        assert summary(str(repo.top), hanging, seconds=0.5) == Summary(branch, detached, None, False)
        self.wait_for_the_end(tmp_path / "fake")

    def test_a_branch_that_only_git_can_read_is_not_guessed(self, repo, hanging) -> None:
        (repo.top / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n", encoding="utf-8")
        assert summary(str(repo.top), hanging, seconds=0.5) is None

    def test_a_closed_descriptor_ends_git(self, repo, hanging, tmp_path) -> None:
        cancel, end = os.pipe()
        os.close(end)
        found = summary(str(repo.top), hanging, seconds=3600, cancel=cancel)
        os.close(cancel)
        assert found == of_main(None)

    @pytest.mark.parametrize("path", [".gitignore", ".git/config", ".git/index"])
    def test_a_pipe_in_the_repository_is_not_waited_for_long(self, repo, look, path) -> None:
        (repo.top / path).unlink(missing_ok=True)
        os.mkfifo(repo.top / path)
        assert look(repo.top, seconds=0.5) in (of_main(None), of_main(1), None)


def has_changes(attack) -> None:
    """Let git compare the content of a file."""
    (attack.repo.top / "file").write_text("TEXT\n", encoding="utf-8")


def by_clean_filter(attack) -> None:
    attack.repo.commit(".gitattributes", "* filter=evil\n")
    attack.set("filter.evil.clean")
    has_changes(attack)


def by_filter_process(attack) -> None:
    attack.repo.commit(".gitattributes", "* filter=evil\n")
    attack.set("filter.evil.process")
    has_changes(attack)


def by_attributes_of_the_git_folder(attack) -> None:
    (attack.repo.top / ".git" / "info").mkdir(exist_ok=True)
    (attack.repo.top / ".git" / "info" / "attributes").write_text("* filter=evil\n", encoding="utf-8")
    attack.set("filter.evil.clean")
    has_changes(attack)


def by_file_monitor(attack) -> None:
    attack.set("core.fsmonitor")


def by_file_monitor_of_a_worktree(attack) -> None:
    attack.set("extensions.worktreeConfig", "true")
    attack.repo("config", "--worktree", "core.fsmonitor", str(attack.program))


def by_hook(attack) -> None:
    attack.repo.hook(attack.program.read_text(encoding="utf-8"), "post-index-change")
    (attack.repo.top / "file").write_text("text\n", encoding="utf-8")
    os.utime(attack.repo.top / "file", (1, 1))


def by_submodule(attack) -> None:
    inner = Repository(attack.repo.top.parent / "inner", attack.repo.env)
    inner.commit()
    attack.repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
    attack.repo("config", "core.fsmonitor", str(attack.program), at=attack.repo.top / "sub")


def by_git_file(attack) -> None:
    """`.git` names a git folder that lies in the files of the repository."""
    (attack.repo.top / ".git").rename(attack.repo.top / "data")
    (attack.repo.top / ".git").write_text("gitdir: data\n", encoding="utf-8")
    attack.set("core.fsmonitor")


ATTACKS = {
    "a clean filter": by_clean_filter,
    "a filter process": by_filter_process,
    "attributes of the git folder": by_attributes_of_the_git_folder,
    "a file monitor": by_file_monitor,
    "a file monitor of a worktree": by_file_monitor_of_a_worktree,
    "a hook": by_hook,
    "a file monitor of a submodule": by_submodule,
    "a git file": by_git_file,
}


@pytest.mark.promise("P38")
@pytest.mark.parametrize("name", ATTACKS)
def test_d5_a_summary_runs_nothing_that_a_repository_names(attack, look, name) -> None:
    ATTACKS[name](attack)
    attack.marker.unlink(missing_ok=True)
    assert look(attack.repo.top).branch == "main"
    assert not attack.has_run()
    subprocess.run(
        ["git", "-C", str(attack.repo.top), "status"], env=attack.repo.env, capture_output=True, check=False
    )
    assert attack.has_run()


def by_ssh_and_fetch(attack) -> None:
    attack.set("core.sshCommand")
    attack.set("extensions.partialClone", "origin")
    attack.set("remote.origin.promisor", "true")
    attack.set("remote.origin.url", "ssh://localhost/nowhere")
    tree = attack.repo("rev-parse", "HEAD^{tree}")
    (attack.repo.top / ".git" / "objects" / tree[:2] / tree[2:]).unlink()


@pytest.mark.parametrize("prepare", [by_diff, by_pager_editor_and_alias, by_ssh_and_fetch])
def test_d5_a_summary_runs_nothing_else_either(attack, look, prepare) -> None:
    prepare(attack)
    has_changes(attack)
    attack.marker.unlink(missing_ok=True)
    look(attack.repo.top)
    assert not attack.has_run()


def test_d5_settings_that_cannot_be_switched_off_leave_no_answer(attack, look) -> None:
    attack.repo.commit(".gitattributes", "* filter=a=b\n")
    attack.set("filter.a=b.clean")
    has_changes(attack)
    assert look(attack.repo.top) is None
    assert not attack.has_run()


def test_d5_too_many_settings_leave_no_answer(attack, look, monkeypatch) -> None:
    """A filter that is not seen would run."""
    monkeypatch.setattr("mam.adapters.git.run_git._MOST_SETTINGS", 1000)
    attack.repo.commit(".gitattributes", "* filter=evil\n")
    with (attack.repo.top / ".git" / "config").open("a", encoding="utf-8") as file:
        file.writelines(f'[filter "x{number}"]\nclean = cat\n' for number in range(100))
        file.write(f'[filter "evil"]\nclean = {attack.program}\n')
    has_changes(attack)
    attack.marker.unlink(missing_ok=True)
    assert look(attack.repo.top) is None
    assert not attack.has_run()


def test_d5_a_bare_repository_in_a_repository(attack, look) -> None:
    """A clone can hold the files of a bare repository, which git takes for one."""
    bare = attack.repo.top / "folder"
    attack.repo("clone", "-q", "--bare", str(attack.repo.top), str(bare))
    for key, value in (
        ("core.fsmonitor", str(attack.program)),
        ("core.bare", "false"),
        ("core.worktree", ".."),
    ):
        attack.repo("config", "--file", str(bare / "config"), key, value)
    look(bare)
    assert not attack.has_run()
