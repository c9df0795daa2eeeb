"""A git worktree for one session: create makes it, stop keeps it, forget removes it if no work is lost."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.adapters.git.repository import Repository, environment

from mam.adapters.git.worktree import Worktrees
from mam.adapters.store.root_paths import find_root, of_registry
from mam.app.context.context import Context, open_context
from mam.app.sessions import worktree
from mam.app.sessions.worktree import add_worktree, remove_worktree, undo_worktree
from mam.core.errors import InvalidName, InvalidPath, MamError, Refused

QUICK = ["--speed", "0"]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    place = tmp_path_factory.mktemp("first")
    repository = Repository(place / "repo", environment(place))
    repository.commit()
    repository.commit("sub/deep/file")
    return repository.top


@pytest.fixture
def repo(tmp_path, first):
    """A repository with two commits and the directory sub/deep."""
    return Repository(shutil.copytree(first, tmp_path / "repo"), environment(tmp_path))


@pytest.fixture
def context(repo):
    root_context = open_context(workspace=str(repo.top), environ=repo.env)
    yield root_context
    root_context.close()


def row_of(repo: Repository, name: str = "one", below: str = "", number: int = 1) -> dict:
    return {
        "id": f"s_{number:08x}",
        "name": name,
        "agent": "practice",
        "workspace": os.path.normpath(repo.top / below),
        "tmux_server": "none",
    }


def folder_of(repo: Repository) -> Path:
    return repo.top / ".mam-worktrees"


def commit_row(context: Context, row: dict, **fields) -> dict:
    return context.registry.change(
        lambda transaction: transaction.add({**row, "status": "stopped", **fields})
    )


def die_at(word: str, folder: Path, monkeypatch, *, is_after: bool, waits_for: Path | None = None) -> None:
    """Put a git on PATH that kills the mam that called it before or after a command."""
    folder.mkdir()
    git, pause = shutil.which("git"), ""
    if waits_for is not None:
        pause = f"until [ -e {waits_for} ]; do sleep 0.05; done;"
    kill = '[ -n "$DIE_AT" ] && case " $* " in *" $DIE_AT "*) kill -9 $PPID;; esac'
    lines = [f'{pause} {git} "$@"; code=$?', kill] if is_after else [kill, f'{pause} {git} "$@"; code=$?']
    if waits_for is not None:
        lines = [
            f'[ -n "$DIE_AT" ] || exec {git} "$@"',
            f'case " $* " in *" $DIE_AT "*) ;; *) exec {git} "$@";; esac',
            *lines,
        ]
    script = folder / "git"
    script.write_text("\n".join(["#!/bin/sh", *lines, "exit $code", ""]), encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DIE_AT", word)


def create_one(demo: Repository, *words: str) -> "subprocess.CompletedProcess[bytes]":
    options = ["--agent", "practice", "--session", "one", "--no-wait", *words]
    return subprocess.run([sys.executable, "-m", "mam", "create", *options], cwd=demo.top, check=False)


def checks_of_worktrees(fleet) -> list[dict]:
    return [check for check in fleet.monitor.doctor() if check["check"] == "worktree"]


class TestAdd:
    def test_the_row_moves_into_a_worktree(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), None)
        path = folder_of(repo) / "one"
        assert row["workspace"] == str(path)
        assert row["worktree"] == {
            "path": str(path),
            "branch": "mam/one",
            "repo": str(repo.top),
            "base": repo.head(),
            "branch_by": "mam",
        }
        assert (path / "sub" / "deep" / "file").is_file()
        assert repo("symbolic-ref", "HEAD", at=path) == "refs/heads/mam/one"
        assert row["id"] == "s_00000001"

    def test_the_registry_can_hold_the_record(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), None)
        commit_row(context, row)
        assert context.registry.view().find("one")["worktree"] == row["worktree"]

    def test_the_folder_is_kept_out_of_git(self, repo, context) -> None:
        add_worktree(context, row_of(repo), None)
        assert repo("status", "--porcelain", "--untracked-files=all") == ""
        repo("add", "--all")
        assert repo("status", "--porcelain") == ""
        repo("clean", "-q", "-fdx")
        assert (folder_of(repo) / "one" / "file").is_file()

    def test_many_at_once(self, repo, context) -> None:
        with ThreadPoolExecutor(6) as pool:
            rows = [row_of(repo, f"n{number}", number=number) for number in range(6)]
            new_rows = list(pool.map(lambda row: add_worktree(context.for_thread(), row, None), rows))
        assert [row["worktree"]["branch"] for row in new_rows] == [f"mam/n{number}" for number in range(6)]
        assert len(repo.worktrees()) == 6

    def test_an_ignore_file_of_a_person_stays(self, repo, context) -> None:
        folder_of(repo).mkdir()
        (folder_of(repo) / ".gitignore").write_text("*\n# mine\n", encoding="utf-8")
        add_worktree(context, row_of(repo), None)
        assert "# mine" in (folder_of(repo) / ".gitignore").read_text(encoding="utf-8")

    def test_the_root_is_found_from_inside(self, repo, context) -> None:
        commit_row(context, row_of(repo, "other", number=2))
        row = add_worktree(context, row_of(repo, below="sub"), None)
        assert find_root(row["workspace"]) == str(repo.top)

    def test_a_named_branch_is_made(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), "feature/x")
        assert (row["worktree"]["branch"], row["worktree"]["branch_by"]) == ("feature/x", "mam")
        assert row["workspace"] == str(folder_of(repo) / "one")

    def test_a_branch_that_exists_is_used(self, repo, context) -> None:
        repo("branch", "feature", "HEAD~1")
        row = add_worktree(context, row_of(repo), "feature")
        assert row["worktree"]["base"] == repo("rev-parse", "feature") != repo.head()
        assert row["worktree"]["branch_by"] == "user"

    def test_a_branch_of_a_remote_is_used_and_tracked(self, repo, context, tmp_path) -> None:
        repo("clone", "-q", "--bare", str(repo.top), str(tmp_path / "far.git"))
        repo("remote", "add", "origin", str(tmp_path / "far.git"))
        repo("push", "-q", "origin", "HEAD~1:refs/heads/feature")
        repo("fetch", "-q", "origin")
        row = add_worktree(context, row_of(repo), "feature")
        assert row["worktree"]["base"] == repo("rev-parse", "HEAD~1")
        assert repo("rev-parse", "--abbrev-ref", "feature@{upstream}") == "origin/feature"

    def test_a_branch_that_is_checked_out_is_refused(self, repo, context) -> None:
        with pytest.raises(Refused, match="checked out at") as caught:
            add_worktree(context, row_of(repo), "main")
        assert caught.value.hint
        assert repo.worktrees() == []

    @pytest.mark.parametrize("branch", ["--force", "-b", "a..b", "", "a b", "@{-1}"])
    def test_a_bad_branch_name_is_refused_first(self, repo, context, branch) -> None:
        with pytest.raises(InvalidName):
            add_worktree(context, row_of(repo), branch)
        assert not folder_of(repo).exists()

    def test_a_default_name_that_is_taken_gets_a_number(self, repo, context) -> None:
        repo("branch", "mam/one")
        repo("branch", "mam/one-2")
        row = add_worktree(context, row_of(repo), None)
        assert row["worktree"]["branch"] == "mam/one-3"
        assert row["workspace"] == str(folder_of(repo) / "one-3")

    def test_a_branch_called_mam_is_no_obstacle(self, repo, context) -> None:
        repo("branch", "mam")
        assert add_worktree(context, row_of(repo), None)["worktree"]["branch"] == "mam-one"

    def test_a_folder_that_is_taken_gets_a_number(self, repo, context) -> None:
        (folder_of(repo) / "one").mkdir(parents=True)
        assert add_worktree(context, row_of(repo), "x")["workspace"] == str(folder_of(repo) / "one-2")

    def test_a_detached_head(self, repo, context) -> None:
        repo("checkout", "-q", "--detach")
        commit = repo.commit(text="loose\n")
        assert add_worktree(context, row_of(repo), None)["worktree"]["base"] == commit

    def test_without_a_commit(self, context, tmp_path) -> None:
        repository = Repository(tmp_path / "empty", environment(tmp_path))
        with pytest.raises(Refused, match="no commit yet") as caught:
            add_worktree(context, row_of(repository), None)
        assert "git commit" in (caught.value.hint or "")
        assert not folder_of(repository).exists()

    def test_outside_of_a_repository(self, repo, context, tmp_path) -> None:
        with pytest.raises(InvalidPath) as caught:
            add_worktree(context, {**row_of(repo), "workspace": str(tmp_path)}, None)
        assert "--worktree" in (caught.value.hint or "")

    def test_without_git(self, repo, context, tmp_path) -> None:
        context = context.replace(environ={"PATH": str(tmp_path)}, resources=context.resources)
        with pytest.raises(MamError) as caught:
            add_worktree(context, row_of(repo), None)
        assert (caught.value.code, caught.value.exit_code) == ("git_missing", 2)

    def test_the_callers_git_variables_do_not_lead_elsewhere(self, repo, context, tmp_path) -> None:
        variables = {"GIT_DIR": str(tmp_path / "nowhere"), "GIT_INDEX_FILE": "/nowhere"}
        context = context.replace(environ={**context.environ, **variables}, resources=context.resources)
        assert add_worktree(context, row_of(repo), None)["worktree"]["repo"] == str(repo.top)

    @pytest.mark.parametrize("name", ["with space", "#(x)", "new\nline", "'\"$(x)"])
    def test_odd_folders(self, context, first, tmp_path, name) -> None:
        repository = Repository(shutil.copytree(first, tmp_path / name / "repo"), environment(tmp_path))
        row = add_worktree(context, row_of(repository, below="sub"), None)
        assert Path(row["workspace"], "deep", "file").is_file()
        assert remove_worktree(context, row)["branch_deleted"] is True
        assert repository.worktrees() == []

    def test_d5_a_hook_of_the_repository_does_not_run(self, repo, context, tmp_path) -> None:
        repo.hook(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 3\n")
        row = add_worktree(context, row_of(repo), None)
        assert Path(row["workspace"], "file").is_file()
        assert not (tmp_path / "ran").exists()

    def test_a_link_in_place_of_the_folder_is_refused(self, repo, context, tmp_path) -> None:
        (tmp_path / "elsewhere").mkdir()
        folder_of(repo).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(Refused, match="not a directory of its own"):
            add_worktree(context, row_of(repo), None)
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert repo.branches() == {"main"}

    @pytest.mark.parametrize(
        ("number", "code"),
        [(errno.EROFS, "read_only"), (errno.EACCES, "read_only"), (errno.ENOSPC, "disk_full")],
    )
    def test_a_repository_that_cannot_be_written(self, repo, context, monkeypatch, number, code) -> None:
        def mkdir(path) -> None:
            raise OSError(number, os.strerror(number), path)

        monkeypatch.setattr("mam.app.sessions.worktree.os.mkdir", mkdir)
        with pytest.raises(MamError) as caught:
            add_worktree(context, row_of(repo), None)
        assert caught.value.code == code
        assert repo.branches() == {"main"}

    def test_a_file_in_place_of_the_folder_is_refused(self, repo, context) -> None:
        folder_of(repo).touch()
        with pytest.raises(MamError, match=r"\.mam-worktrees"):
            add_worktree(context, row_of(repo), None)


class TestSubdirectory:
    def test_is_the_same_inside(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo, below="sub/deep"), None)
        assert row["workspace"] == str(folder_of(repo) / "one" / "sub" / "deep")
        assert row["worktree"]["path"] == str(folder_of(repo) / "one")

    def test_by_another_way_to_it(self, repo, context, tmp_path) -> None:
        (tmp_path / "short").symlink_to(repo.top / "sub")
        row = add_worktree(context, {**row_of(repo), "workspace": str(tmp_path / "short")}, None)
        assert row["workspace"] == str(folder_of(repo) / "one" / "sub")

    def test_that_is_not_committed_is_refused(self, repo, context) -> None:
        (repo.top / "fresh").mkdir()
        with pytest.raises(Refused, match="no directory 'fresh'") as caught:
            add_worktree(context, row_of(repo, below="fresh"), None)
        assert "commit" in (caught.value.hint or "")
        assert repo.branches() == {"main"}
        assert not folder_of(repo).exists()

    def test_that_the_branch_does_not_have_is_refused(self, repo, context) -> None:
        repo("branch", "early", "HEAD~1")
        with pytest.raises(Refused, match="no directory 'sub'"):
            add_worktree(context, row_of(repo, below="sub"), "early")
        assert repo.worktrees() == []

    def test_that_a_sparse_checkout_leaves_out_is_refused(self, repo, context) -> None:
        repo("sparse-checkout", "set", "--cone", "other")
        (repo.top / "sub").mkdir(exist_ok=True)
        with pytest.raises(Refused, match="no directory 'sub'"):
            add_worktree(context, row_of(repo, below="sub"), None)
        assert repo.worktrees() == []
        assert repo.branches() == {"main"}


class TestInsideOfAWorktree:
    """An agent in a worktree of its own creates a second session with a worktree."""

    def test_the_second_worktree_is_beside_the_first_and_starts_from_its_commit(self, repo, context) -> None:
        first_row = add_worktree(context, row_of(repo), None)
        commit = repo.commit(at=first_row["workspace"], text="work of one\n")
        nested = {**row_of(repo, "two", number=2), "workspace": f"{first_row['workspace']}/sub"}
        second_row = add_worktree(context, nested, None)
        assert second_row["workspace"] == str(folder_of(repo) / "two" / "sub")
        assert second_row["worktree"]["base"] == commit != repo.head()
        assert second_row["worktree"]["repo"] == str(repo.top)

    def test_removing_the_first_leaves_the_second(self, repo, context) -> None:
        first_row = add_worktree(context, row_of(repo), None)
        second_row = add_worktree(
            context, {**row_of(repo, "two", number=2), "workspace": first_row["workspace"]}, None
        )
        Path(second_row["workspace"], "new").touch()
        remove_worktree(context, first_row)
        assert Path(second_row["workspace"], "new").exists()

    def test_of_a_bare_repository(self, repo, context, tmp_path) -> None:
        bare = tmp_path / "bare.git"
        repo("clone", "-q", "--bare", str(repo.top), str(bare))
        repo("worktree", "add", "-q", str(tmp_path / "linked"), "main", at=bare)
        row = add_worktree(context, {**row_of(repo), "workspace": str(tmp_path / "linked" / "sub")}, None)
        assert row["workspace"] == str(bare / ".mam-worktrees" / "one" / "sub")
        assert remove_worktree(context, row)["branch_deleted"] is True


class TestAgain:
    """The create that made the worktree died before its row was committed."""

    def test_an_untouched_one_is_taken(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo, below="sub"), None)
        again = add_worktree(context, row_of(repo, below="sub", number=2), None)
        assert again == {**before, "id": "s_00000002"}
        assert repo.worktrees() == [before["worktree"]["path"]]

    def test_on_a_named_branch_too(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), "feature")
        again = add_worktree(context, row_of(repo), "feature")
        assert again == before
        assert again["worktree"]["branch_by"] == "mam"

    def test_one_that_was_used_is_left_alone(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), None)
        Path(before["workspace"], "new").touch()
        again = add_worktree(context, row_of(repo), None)
        assert again["worktree"]["branch"] == "mam/one-2"
        assert again["workspace"] == str(folder_of(repo) / "one-2")
        assert Path(before["workspace"], "new").exists()

    def test_one_with_a_commit_is_left_alone(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), None)
        repo.commit(at=before["workspace"], text="work\n")
        assert add_worktree(context, row_of(repo), None)["worktree"]["branch"] == "mam/one-2"

    def test_one_at_an_earlier_base_is_left_alone(self, repo, context) -> None:
        add_worktree(context, row_of(repo), None)
        commit = repo.commit(text="more\n")
        again = add_worktree(context, row_of(repo), None)
        assert (again["worktree"]["branch"], again["worktree"]["base"]) == ("mam/one-2", commit)

    def test_one_on_another_branch_is_left_alone(self, repo, context) -> None:
        add_worktree(context, row_of(repo), None)
        again = add_worktree(context, row_of(repo), "feature")
        assert again["workspace"] == str(folder_of(repo) / "one-2")

    def test_one_that_a_renamed_session_has_is_left_alone(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), None)
        commit_row(context, {**before, "name": "renamed"})
        again = add_worktree(context, row_of(repo, number=2), None)
        assert again["workspace"] == str(folder_of(repo) / "one-2")

    def test_one_of_another_root_is_left_alone(self, repo, context, tmp_path) -> None:
        elsewhere = Context(of_registry(str(tmp_path / "other.yaml")), str(repo.top), repo.env)
        before = add_worktree(elsewhere, row_of(repo), None)
        again = add_worktree(context, row_of(repo), None)
        assert again["workspace"] != before["workspace"]

    def test_one_of_another_session_that_is_being_made_is_left_alone(self, repo, context) -> None:
        """A create of `one-2` is running: its worktree exists and its row does not."""
        repo("branch", "mam/one")
        other = add_worktree(context, row_of(repo, "one-2", number=2), None)
        assert other["workspace"] == str(folder_of(repo) / "one-2")
        assert add_worktree(context, row_of(repo), None)["workspace"] == str(folder_of(repo) / "one-3")

    def test_one_without_a_note_is_left_alone(self, repo, context) -> None:
        """The create died between git and the note, or mam did not make the worktree at all."""
        repo("worktree", "add", "-q", "-b", "mam/one", str(folder_of(repo) / "one"))
        assert add_worktree(context, row_of(repo), None)["workspace"] == str(folder_of(repo) / "one-2")

    def test_a_registration_without_a_folder_is_left_alone(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), None)
        shutil.rmtree(before["workspace"])
        assert add_worktree(context, row_of(repo), None)["workspace"] == str(folder_of(repo) / "one-2")

    def test_a_registration_without_a_folder_blocks_no_branch(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), None)
        shutil.rmtree(before["workspace"])
        assert add_worktree(context, row_of(repo), "feature")["workspace"] == str(folder_of(repo) / "one-2")

    def test_a_folder_that_lost_its_link_to_git_is_left_alone(self, repo, context) -> None:
        before = add_worktree(context, row_of(repo), None)
        Path(before["workspace"], ".git").unlink()
        assert add_worktree(context, row_of(repo), None)["workspace"] == str(folder_of(repo) / "one-2")


class TestKept:
    """An ended session that starts again."""

    def test_is_returned_as_it_is(self, repo, context) -> None:
        row = commit_row(context, add_worktree(context, row_of(repo, below="sub"), None))
        Path(row["workspace"], "new").touch()
        assert add_worktree(context, row, None) is row
        assert add_worktree(context, row, "mam/one") is row

    def test_another_branch_is_refused(self, repo, context) -> None:
        row = commit_row(context, add_worktree(context, row_of(repo), None))
        with pytest.raises(Refused, match="'mam/one'") as caught:
            add_worktree(context, row, "feature")
        assert "forget --worktree one" in (caught.value.hint or "")

    def test_without_its_folder_it_is_made_again_on_its_branch(self, repo, context) -> None:
        row = commit_row(context, add_worktree(context, row_of(repo, below="sub"), None))
        commit = repo.commit(at=row["worktree"]["path"], text="work\n")
        shutil.rmtree(row["worktree"]["path"])
        assert add_worktree(context, row, None) == row
        assert repo.head(row["workspace"]) == commit
        assert repo("symbolic-ref", "HEAD", at=row["workspace"]) == "refs/heads/mam/one"

    def test_without_folder_and_branch_it_is_made_again_at_its_base(self, repo, context) -> None:
        row = commit_row(context, add_worktree(context, row_of(repo), None))
        repo("worktree", "remove", row["worktree"]["path"])
        repo("branch", "-D", "mam/one")
        repo.commit(text="more\n")
        assert add_worktree(context, row, None) == row
        assert repo.head(row["workspace"]) == row["worktree"]["base"] != repo.head()

    def test_a_branch_that_is_in_use_elsewhere_is_refused(self, repo, context) -> None:
        row = commit_row(context, add_worktree(context, row_of(repo), None))
        repo("worktree", "remove", row["worktree"]["path"])
        repo("checkout", "-q", "mam/one")
        with pytest.raises(Refused, match="checked out at"):
            add_worktree(context, row, None)

    def test_without_its_repository(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), None)
        shutil.rmtree(repo.top)
        with pytest.raises(InvalidPath, match="does not exist"):
            add_worktree(context, row, None)


class TestTakeBack:
    def test_nothing_is_left(self, repo, context) -> None:
        undo_worktree(context, add_worktree(context, row_of(repo), None))
        assert repo.worktrees() == []
        assert repo.branches() == {"main"}
        assert not (folder_of(repo) / "one").exists()

    def test_repeats_safely(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), "x")
        undo_worktree(context, row)
        undo_worktree(context, row)
        undo_worktree(context, row_of(repo))
        assert repo.branches() == {"main"}

    def test_a_branch_that_was_there_stays(self, repo, context) -> None:
        repo("branch", "feature")
        undo_worktree(context, add_worktree(context, row_of(repo), "feature"))
        assert repo.worktrees() == []
        assert repo.branches() == {"main", "feature"}

    def test_a_worktree_that_the_session_had_before_stays(self, repo, context) -> None:
        row = commit_row(context, add_worktree(context, row_of(repo), None))
        undo_worktree(context, add_worktree(context, row, None))
        assert repo.worktrees() == [row["worktree"]["path"]]

    def test_work_stays(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), None)
        Path(row["workspace"], "new").touch()
        with pytest.raises(Refused, match="1 uncommitted change"):
            undo_worktree(context, row)
        assert Path(row["workspace"], "new").exists()
        assert "mam/one" in repo.branches()

    def test_commits_stay(self, repo, context) -> None:
        row = add_worktree(context, row_of(repo), None)
        repo.commit(at=row["workspace"], text="work\n")
        with pytest.raises(Refused, match="1 commit on 'mam/one'"):
            undo_worktree(context, row)
        assert "mam/one" in repo.branches()

    def test_on_a_detached_head_too(self, repo, context) -> None:
        """The base commit is on no other branch, and still does not count as the worktree's own work."""
        repo("checkout", "-q", "--detach")
        repo.commit(text="loose\n")
        undo_worktree(context, add_worktree(context, row_of(repo), None))
        assert repo.branches() == {"main"}


class TestRemove:
    @pytest.fixture
    def row(self, repo, context):
        return commit_row(context, add_worktree(context, row_of(repo), None))

    def test_untouched(self, repo, context, row) -> None:
        result = remove_worktree(context, row)
        assert result == {"path": row["worktree"]["path"], "branch": "mam/one", "branch_deleted": True}
        assert json.loads(json.dumps(result)) == result
        assert repo.worktrees() == []
        assert repo.branches() == {"main"}

    def test_repeats_safely(self, repo, context, row) -> None:
        remove_worktree(context, row)
        assert remove_worktree(context, row)["branch_deleted"] is False

    def test_finishes_one_that_died_before_the_branch(self, repo, context, row) -> None:
        repo("worktree", "remove", row["worktree"]["path"])
        assert remove_worktree(context, row)["branch_deleted"] is True
        assert repo.branches() == {"main"}

    def test_a_row_without_one(self, repo, context) -> None:
        with pytest.raises(Refused, match="has no worktree"):
            remove_worktree(context, row_of(repo))

    @pytest.mark.parametrize("file", ["file", "new"])
    def test_uncommitted_work_is_refused_and_named(self, repo, context, row, file) -> None:
        Path(row["workspace"], file).write_text("work\n", encoding="utf-8")
        with pytest.raises(Refused, match=rf"1 uncommitted change \({file}\)") as caught:
            remove_worktree(context, row)
        assert "commit" in (caught.value.hint or "")
        assert Path(row["workspace"], file).read_text(encoding="utf-8") == "work\n"
        assert "mam/one" in repo.branches()

    def test_many_changes_are_counted(self, context, row) -> None:
        for number in range(5):
            Path(row["workspace"], f"new{number}").touch()
        with pytest.raises(Refused, match=r"5 uncommitted changes \(new0, new1, new2, …\)"):
            remove_worktree(context, row)

    def test_ignored_files_go_with_it(self, repo, context, row) -> None:
        (repo.top / ".git" / "info").mkdir(exist_ok=True)
        (repo.top / ".git" / "info" / "exclude").write_text("ignored\n", encoding="utf-8")
        Path(row["workspace"], "ignored").touch()
        remove_worktree(context, row)
        assert repo.worktrees() == []

    def test_unmerged_work_is_refused_and_named(self, repo, context, row) -> None:
        repo.commit(at=row["workspace"], text="1\n")
        repo.commit(at=row["workspace"], text="2\n")
        with pytest.raises(Refused, match="2 commits on 'mam/one' and nowhere else") as caught:
            remove_worktree(context, row)
        assert "merge" in (caught.value.hint or "")
        assert Path(row["workspace"]).is_dir()

    def test_merged_work_is_not(self, repo, context, row) -> None:
        repo.commit(at=row["workspace"], text="1\n")
        repo("merge", "-q", "--no-ff", "-m", "take", "mam/one")
        assert remove_worktree(context, row)["branch_deleted"] is True
        assert repo.branches() == {"main"}

    def test_pushed_work_is_not(self, repo, context, row, tmp_path) -> None:
        repo("clone", "-q", "--bare", str(repo.top), str(tmp_path / "far.git"))
        repo("remote", "add", "origin", str(tmp_path / "far.git"))
        commit = repo.commit(at=row["workspace"], text="1\n")
        repo("push", "-q", "-u", "origin", "mam/one", at=row["workspace"])
        assert remove_worktree(context, row)["branch_deleted"] is True
        assert repo("rev-parse", "origin/mam/one") == commit
        assert '"mam/one"' not in (repo.top / ".git" / "config").read_text(encoding="utf-8")

    def test_commits_on_no_branch_are_refused(self, repo, context, row) -> None:
        repo("checkout", "-q", "--detach", at=row["workspace"])
        repo.commit(at=row["workspace"], text="1\n")
        with pytest.raises(Refused, match="1 commit on no branch"):
            remove_worktree(context, row)

    def test_commits_on_its_branch_are_refused_when_it_is_on_another(self, repo, context, row) -> None:
        repo.commit(at=row["workspace"], text="1\n")
        repo("checkout", "-q", "-b", "side", "main", at=row["workspace"])
        with pytest.raises(Refused, match="1 commit on 'mam/one'"):
            remove_worktree(context, row)

    def test_a_branch_that_the_user_made_stays(self, repo, context) -> None:
        repo("branch", "feature")
        row = add_worktree(context, row_of(repo), "feature")
        assert remove_worktree(context, row)["branch_deleted"] is False
        assert repo.branches() == {"main", "feature"}

    def test_a_record_that_does_not_say_whose_the_branch_is(self, repo, context, row) -> None:
        tree = {key: value for key, value in row["worktree"].items() if key != "branch_by"}
        assert remove_worktree(context, {**row, "worktree": tree})["branch_deleted"] is False
        assert "mam/one" in repo.branches()

    def test_commits_that_it_began_with_keep_the_branch_and_not_the_worktree(self, repo, context) -> None:
        repo("checkout", "-q", "--detach")
        commit = repo.commit(text="loose\n")
        row = add_worktree(context, row_of(repo), None)
        repo("checkout", "-q", "main")
        assert remove_worktree(context, row)["branch_deleted"] is False
        assert repo("rev-parse", "mam/one") == commit

    def test_a_folder_that_is_gone(self, repo, context, row) -> None:
        shutil.rmtree(row["worktree"]["path"])
        assert remove_worktree(context, row)["branch_deleted"] is True
        assert repo.worktrees() == []

    def test_a_folder_that_is_gone_keeps_commits(self, repo, context, row) -> None:
        commit = repo.commit(at=row["workspace"], text="1\n")
        shutil.rmtree(row["worktree"]["path"])
        assert remove_worktree(context, row)["branch_deleted"] is False
        assert repo("rev-parse", "mam/one") == commit
        assert repo.worktrees() == []

    def test_a_repository_that_is_gone(self, repo, context, row) -> None:
        context.close()
        shutil.rmtree(repo.top)
        assert remove_worktree(context, row)["branch_deleted"] is False

    def test_a_folder_that_lost_its_link_to_git_is_refused(self, repo, context, row) -> None:
        """git would answer for the clean repository around the folder."""
        Path(row["workspace"], "new").touch()
        Path(row["workspace"], ".git").unlink()
        with pytest.raises(Refused, match="not a git worktree any more"):
            remove_worktree(context, row)
        assert Path(row["workspace"], "new").exists()

    @pytest.mark.parametrize("fields", [{"status": "running"}, {"status": "stopped", "resumable": True}])
    def test_another_session_that_works_in_it_is_named(self, repo, context, row, fields) -> None:
        commit_row(
            context, {**row_of(repo, "two", number=2), "workspace": f"{row['workspace']}/sub"}, **fields
        )
        with pytest.raises(Refused, match="'two' works in this worktree"):
            remove_worktree(context, row)
        assert Path(row["workspace"]).is_dir()

    def test_a_neighbour_does_not_matter(self, repo, context, row) -> None:
        commit_row(
            context, {**row_of(repo, "two", number=2), "workspace": f"{row['workspace']}-2"}, status="running"
        )
        assert remove_worktree(context, row)["branch_deleted"] is True

    def test_a_commit_in_the_last_moment_keeps_the_branch(self, repo, context, row, monkeypatch) -> None:
        really = Worktrees.remove

        def remove(self, top, path) -> None:
            repo.commit(at=path, text="late\n")
            really(self, top, path)

        monkeypatch.setattr(Worktrees, "remove", remove)
        assert remove_worktree(context, row)["branch_deleted"] is False
        assert repo("rev-list", "--count", "main..mam/one") == "1"


class TestVerbs:
    """From end to end, with an agent in a pane."""

    @pytest.fixture
    def demo(self, fleet, workspace, first, monkeypatch, home):
        for key, value in environment(home).items():
            if key != "MAM_STATE_HOME":
                monkeypatch.setenv(key, value)
        shutil.copytree(first, workspace, dirs_exist_ok=True)
        return Repository(workspace, environment(home))

    def test_create_stop_and_forget(self, fleet, demo) -> None:
        session = fleet.sessions.create("practice", name="one", worktree=True, args=QUICK)
        path = folder_of(demo) / "one"
        assert session.row["workspace"] == session.row["pane"]["cwd"] == str(path)
        assert Path(f"/proc/{session.row['pane']['pid']}/cwd").readlink() == path
        session.stop()
        (path / "new").touch()
        with pytest.raises(Refused, match="uncommitted"):
            fleet.sessions.forget("one", worktree=True)
        assert fleet.sessions.get("one").row["worktree"]["branch"] == "mam/one"
        (path / "new").unlink()
        document = fleet.sessions.forget("one", worktree=True)
        assert document["worktree"] == {"path": str(path), "branch": "mam/one", "branch_deleted": True}
        assert demo.worktrees() == []

    def test_a_create_that_fails_leaves_nothing(self, fleet, demo, monkeypatch) -> None:
        monkeypatch.setattr(
            "mam.app.sessions.launch.start_program", lambda *_, **__: (_ for _ in ()).throw(Refused("no"))
        )
        with pytest.raises(Refused, match="no"):
            fleet.sessions.create("practice", name="one", worktree="feature", args=QUICK)
        assert demo.worktrees() == []
        assert demo.branches() == {"main"}

    @pytest.mark.parametrize("word", ["branch --", "worktree add"])
    @pytest.mark.parametrize("is_after", [False, True])
    @pytest.mark.parametrize("branch", [True, "feature", "there"])
    def test_a_create_that_dies_at_git_leaves_nothing(
        self, fleet, demo, tmp_path, monkeypatch, word, is_after, branch
    ) -> None:
        fleet.init()
        demo("branch", "there")
        die_at(word, tmp_path / "bin", monkeypatch, is_after=is_after)
        words = ["--worktree"] if branch is True else ["--worktree", branch]
        died = create_one(demo, *words)
        if (branch, word) == ("there", "branch --"):
            assert died.returncode == 0
            fleet.sessions.stop("one")
            return
        assert died.returncode == -signal.SIGKILL
        monkeypatch.delenv("DIE_AT")
        assert fleet.sessions.ls()["sessions"] == []
        assert demo.worktrees() == []
        assert demo.branches() == {"main", "there"}
        assert checks_of_worktrees(fleet) == []

    def test_recovery_waits_for_the_git_of_a_create_that_died(
        self, fleet, demo, tmp_path, monkeypatch, until
    ) -> None:
        fleet.init()
        die_at("worktree add", tmp_path / "bin", monkeypatch, is_after=False, waits_for=tmp_path / "go")
        assert create_one(demo, "--worktree").returncode == -signal.SIGKILL
        monkeypatch.delenv("DIE_AT")
        monkeypatch.setattr(worktree, "_GIT_SECONDS", 0.0)
        warnings: list[str] = []
        fleet.on_warning(warnings.append)
        fleet.init()
        assert "git still makes the worktree" in warnings[0]
        (tmp_path / "go").touch()

        def is_finished() -> bool:
            fleet.init()
            return fleet._access.context.registry.view().intents == []

        until(is_finished)
        assert (demo.worktrees(), demo.branches()) == ([], {"main"})

    @pytest.mark.parametrize("change", ["work", "commit", "note", "branch"])
    def test_what_somebody_else_has_in_the_place_of_a_create_that_died_stays(
        self, fleet, demo, tmp_path, monkeypatch, change
    ) -> None:
        fleet.init()
        die_at("worktree add", tmp_path / "bin", monkeypatch, is_after=True)
        create_one(demo, "--worktree")
        monkeypatch.delenv("DIE_AT")
        path = folder_of(demo) / "one"
        if change == "work":
            (path / "new").touch()
        elif change == "commit":
            demo.commit(at=path, text="work\n")
        elif change == "note":
            Worktrees().sign(str(path), json.dumps({"registry": "another", "session": "one"}))
        else:
            demo("switch", "-q", "-c", "mine", at=path)
        fleet.init()
        assert demo.worktrees() == [str(path)]
        assert "mam/one" in demo.branches()
        assert fleet._access.context.registry.view().intents == []
        named = [] if change == "note" else [str(path)]
        assert [check["message"].split()[0] for check in checks_of_worktrees(fleet)] == named

    def test_doctor_names_a_worktree_that_no_session_has(self, fleet, demo) -> None:
        fleet.sessions.create("practice", name="one", worktree=True, args=QUICK).stop()
        assert checks_of_worktrees(fleet) == []
        fleet.sessions.forget("one")
        (check,) = checks_of_worktrees(fleet)
        assert (check["ok"], "mam/one" in check["message"]) == (None, True)
        assert check["mend"].endswith(f"worktree remove {folder_of(demo) / 'one'}")

    def test_a_new_start_keeps_the_worktree(self, fleet, demo) -> None:
        before = fleet.sessions.create("practice", name="one", worktree=True, args=QUICK)
        before.stop()
        again = fleet.sessions.create(name="one", worktree=True)
        assert again.row["worktree"] == before.row["worktree"]
        again.stop()
