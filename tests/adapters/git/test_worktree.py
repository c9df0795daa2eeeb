"""Worktrees of real repositories."""

import os
import signal
from pathlib import Path

import pytest
from tests.adapters.git.repository import Repository
from tests.processes import is_running

from mam.adapters.git.branches import is_free
from mam.adapters.git.worktree import Worktrees
from mam.core.errors import InvalidName, InvalidPath, Refused, TimedOut

BAD_NAMES = [
    "", "-", "-b", "--force", "--detach", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a",
    "a/", "a//b", "a.lock", "a.", ".a", "a/.b", "@", "HEAD", "@{-1}", "a@{1}", "a\nb", "a\0b", "a\x1b[31m",
    "a\u202eb", "a\ud800b",
]  # fmt: skip
ODD_FOLDERS = ["with space", "#(x)", "new\nline", "-$(x)'\" ümlaut"]


class TestToplevel:
    def test_from_below(self, repo, trees) -> None:
        (repo.top / "a" / "b").mkdir(parents=True)
        assert trees.toplevel(str(repo.top / "a" / "b")) == str(repo.top)

    def test_outside_there_is_none(self, trees, tmp_path) -> None:
        assert trees.toplevel(str(tmp_path)) is None

    def test_inside_of_the_git_folder_there_is_none(self, repo, trees) -> None:
        assert trees.toplevel(str(repo.top / ".git")) is None

    @pytest.mark.parametrize("name", ODD_FOLDERS)
    def test_odd_folders(self, env, trees, tmp_path, name) -> None:
        repository = Repository(tmp_path / name, env)
        assert trees.toplevel(str(repository.top)) == str(repository.top)

    def test_a_folder_that_is_gone(self, trees, tmp_path) -> None:
        with pytest.raises(InvalidPath):
            trees.toplevel(str(tmp_path / "gone"))


class TestMain:
    def test_of_the_main_worktree_and_of_a_linked_one(self, repo, trees, tmp_path) -> None:
        repo("worktree", "add", "-q", "-b", "x", str(tmp_path / "linked"))
        assert trees.main(str(repo.top)) == str(repo.top)
        assert trees.main(str(tmp_path / "linked")) == str(repo.top)

    def test_of_a_bare_repository(self, repo, trees, tmp_path) -> None:
        repo("clone", "-q", "--bare", str(repo.top), str(tmp_path / "bare.git"))
        repo("worktree", "add", "-q", str(tmp_path / "linked"), "main", at=tmp_path / "bare.git")
        assert trees.main(str(tmp_path / "linked")) == str(tmp_path / "bare.git")

    def test_with_the_git_folder_elsewhere(self, env, trees, tmp_path) -> None:
        repository = Repository(tmp_path / "top", env, f"--separate-git-dir={tmp_path / 'store'}")
        repository.commit()
        assert trees.main(str(repository.top)) == str(repository.top)

    def test_of_a_worktree_of_a_submodule(self, repo, env, trees, tmp_path) -> None:
        inner = Repository(tmp_path / "inner", env)
        inner.commit()
        repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
        repo("worktree", "add", "-q", "-b", "x", str(tmp_path / "linked"), at=repo.top / "sub")
        assert trees.main(str(repo.top / "sub")) == str(repo.top / "sub")
        assert trees.main(str(tmp_path / "linked")) == str(repo.top / "sub")


class TestAdd:
    def test_on_a_new_branch(self, repo, trees, tmp_path) -> None:
        assert trees.add(str(repo.top), str(tmp_path / "w"), "x/y")
        assert repo("symbolic-ref", "HEAD", at=tmp_path / "w") == "refs/heads/x/y"
        assert repo.head(tmp_path / "w") == repo.head()
        assert trees.is_registered(str(repo.top), str(tmp_path / "w"))

    def test_on_a_branch_that_exists(self, repo, trees, tmp_path) -> None:
        repo("branch", "x")
        repo.commit(text="more\n")
        assert not trees.add(str(repo.top), str(tmp_path / "w"), "x")
        assert repo.head(tmp_path / "w") == repo("rev-parse", "x") != repo.head()

    def test_a_tag_of_the_same_name_does_not_matter(self, repo, trees, tmp_path) -> None:
        repo("tag", "x")
        repo("branch", "x")
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        assert repo("symbolic-ref", "HEAD", at=tmp_path / "w") == "refs/heads/x"

    def test_at_a_base(self, repo, trees, tmp_path) -> None:
        first = repo.head()
        repo.commit(text="more\n")
        trees.add(str(repo.top), str(tmp_path / "w"), "x", base=first)
        assert repo.head(tmp_path / "w") == first

    @pytest.mark.parametrize("name", ODD_FOLDERS)
    def test_odd_folders(self, env, trees, tmp_path, name) -> None:
        repository = Repository(tmp_path / name / "repo", env)
        repository.commit()
        path = tmp_path / name / "w"
        trees.add(str(repository.top), str(path), "x")
        assert (path / "file").is_file()
        assert trees.is_registered(str(repository.top), str(path))
        assert not trees.state(str(path)).uncommitted
        trees.remove(str(repository.top), str(path))
        assert not path.exists()
        assert repository.worktrees() == []

    @pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
    def test_bad_names(self, trees, name) -> None:
        with pytest.raises(InvalidName) as caught:
            trees.add("/", "/nowhere", name)
        assert caught.value.hint

    @pytest.mark.parametrize("name", ["a", "a/b", "a-b", "ümlaut", "mam/x-2", "a@b", "#(x)", "a;b", "$(x)"])
    def test_names(self, trees, name) -> None:
        assert trees.branches.check(name) == name

    @pytest.mark.parametrize("name", ["-b", "--force", "@", "a\0b"])
    def test_git_does_not_even_see_an_option(self, tmp_path, name) -> None:
        with pytest.raises(InvalidName):
            Worktrees({"PATH": str(tmp_path)}).branches.check(name)

    def test_a_name_that_stands_for_another_is_none(self, tmp_path) -> None:
        """`check-ref-format --branch @{-1}` prints the branch that was checked out before."""
        (tmp_path / "git").write_text("#!/bin/sh\necho main\n", encoding="utf-8")
        (tmp_path / "git").chmod(0o755)
        branches = Worktrees({"PATH": str(tmp_path)}).branches
        assert branches.check("main") == "main"
        with pytest.raises(InvalidName):
            branches.check("@{-1}")

    def test_outside_of_a_repository(self, trees, tmp_path) -> None:
        with pytest.raises(InvalidPath, match="working tree"):
            trees.add(str(tmp_path), str(tmp_path / "w"), "x")

    def test_without_a_commit(self, env, trees, tmp_path) -> None:
        repository = Repository(tmp_path / "empty", env)
        for branch in ("x", "main"):
            with pytest.raises(Refused, match="no commit yet") as caught:
                trees.add(str(repository.top), str(tmp_path / "w"), branch)
            assert "git commit" in (caught.value.hint or "")
        assert not (tmp_path / "w").exists()

    def test_on_a_detached_head(self, repo, trees, tmp_path) -> None:
        repo("checkout", "-q", "--detach")
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        assert repo.head(tmp_path / "w") == repo.head()

    @pytest.mark.parametrize("kind", ["folder", "file", "link"])
    def test_a_path_that_exists(self, repo, trees, tmp_path, kind) -> None:
        path = tmp_path / "w"
        {"folder": path.mkdir, "file": path.touch, "link": lambda: path.symlink_to("nowhere")}[kind]()
        with pytest.raises(Refused, match="exists already"):
            trees.add(str(repo.top), str(path), "x")
        assert repo.branches() == {"main"}

    def test_a_branch_that_is_checked_out(self, repo, trees, tmp_path) -> None:
        with pytest.raises(Refused, match="checked out at") as caught:
            trees.add(str(repo.top), str(tmp_path / "w"), "main")
        assert "another branch" in (caught.value.hint or "")
        assert not (tmp_path / "w").exists()

    def test_a_branch_whose_worktree_was_deleted_by_hand(self, repo, trees, tmp_path) -> None:
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        (tmp_path / "w").rename(tmp_path / "moved")
        with pytest.raises(Refused) as caught:
            trees.add(str(repo.top), str(tmp_path / "other"), "x")
        assert "worktree prune" in (caught.value.hint or "")

    def test_a_branch_that_clashes_with_another(self, repo, trees, tmp_path) -> None:
        with pytest.raises(Refused, match="cannot lock ref"):
            trees.add(str(repo.top), str(tmp_path / "w"), "main/x")
        assert repo.branches() == {"main"}

    def test_a_failed_add_keeps_a_branch_that_was_there(self, repo, trees, tmp_path) -> None:
        repo("branch", "x")
        (tmp_path / "file").touch()
        with pytest.raises(Refused):
            trees.add(str(repo.top), str(tmp_path / "file" / "w"), "x")
        assert repo.branches() == {"main", "x"}


class TestFilterOfTheUser:
    """The filters of the user's own settings run, as that of git-lfs must."""

    @pytest.fixture
    def filtered(self, repo, env, tmp_path):
        """Return a function that gives the user a smudge filter for `file`, and returns the environment."""
        repo.commit(".gitattributes", "file filter=own\n")

        def give(command, **settings):
            script = tmp_path / "smudge"
            script.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
            script.chmod(0o755)
            lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
            config = tmp_path / "gitconfig"
            config.write_text(f'[filter "own"]\nsmudge = {script}\n{lines}', encoding="utf-8")
            return {**env, "GIT_CONFIG_GLOBAL": str(config)}

        return give

    def test_runs(self, repo, filtered, tmp_path) -> None:
        Worktrees(filtered("tr a-z A-Z")).add(str(repo.top), str(tmp_path / "w"), "x")
        assert (tmp_path / "w" / "file").read_text(encoding="utf-8") == "TEXT\n"

    def test_runs_as_the_user_says_where_the_repository_has_one_of_that_name(
        self, repo, filtered, tmp_path
    ) -> None:
        repo("config", "filter.own.smudge", f"touch {tmp_path}/ran; cat")
        repo("config", "filter.own.required", "true")
        Worktrees(filtered("tr a-z A-Z")).add(str(repo.top), str(tmp_path / "w"), "x")
        assert (tmp_path / "w" / "file").read_text(encoding="utf-8") == "TEXT\n"
        assert not (tmp_path / "ran").exists()

    def test_that_fails_leaves_nothing(self, repo, filtered, tmp_path) -> None:
        trees = Worktrees(filtered("exit 1", required="true"))
        with pytest.raises(Refused, match="smudge filter own failed"):
            trees.add(str(repo.top), str(tmp_path / "w"), "x")
        assert not (tmp_path / "w").exists()
        assert repo.worktrees() == []
        assert repo.branches() == {"main"}

    def test_that_hangs_leaves_nothing(self, repo, filtered, tmp_path) -> None:
        with pytest.raises(TimedOut):
            Worktrees(filtered("exec sleep 60"), write_seconds=1).add(str(repo.top), str(tmp_path / "w"), "x")
        assert not (tmp_path / "w").exists()
        assert repo.worktrees() == []
        assert repo.branches() == {"main"}

    def test_that_leaves_something_running_is_not_waited_for(self, repo, filtered, tmp_path) -> None:
        trees = Worktrees(filtered(f"sleep 600 >/dev/null & echo $! > {tmp_path}/child; cat"))
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        child = int((tmp_path / "child").read_text(encoding="utf-8"))
        assert is_running(child)
        os.kill(child, signal.SIGKILL)


class TestState:
    @pytest.fixture
    def path(self, repo, trees, tmp_path):
        repo.commit(".gitignore", "ignored\n")
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        return tmp_path / "w"

    def test_untouched(self, repo, trees, path) -> None:
        state = trees.state(str(path))
        assert (state.branch, state.head, state.uncommitted, state.unmerged) == ("x", repo.head(), False, 0)

    def test_ignored_files_do_not_count(self, trees, path) -> None:
        (path / "ignored").touch()
        assert not trees.state(str(path)).uncommitted

    def test_changed_staged_deleted_and_untracked(self, repo, trees, path) -> None:
        (path / "file").write_text("changed\n", encoding="utf-8")
        assert trees.state(str(path)).changes == ("file",)
        repo("add", "file", at=path)
        assert trees.state(str(path)).changes == ("file",)
        repo("reset", "-q", "--hard", at=path)
        (path / "file").unlink()
        assert trees.state(str(path)).changes == ("file",)
        repo("reset", "-q", "--hard", at=path)
        assert not trees.state(str(path)).uncommitted
        (path / "new\nline").touch()
        assert trees.state(str(path)).changes == ("new\nline",)

    def test_a_rename_is_named_by_both_paths(self, repo, trees, path) -> None:
        repo("mv", "file", "moved", at=path)
        assert set(trees.state(str(path)).changes) == {"file", "moved"}

    def test_settings_that_hide_untracked_files_do_not(self, repo, trees, path) -> None:
        repo("config", "status.showUntrackedFiles", "no")
        (path / "new").touch()
        assert trees.state(str(path)).uncommitted

    def test_commits_of_its_own(self, repo, trees, path) -> None:
        repo.commit(at=path, text="1\n")
        repo.commit(at=path, text="2\n")
        state = trees.state(str(path))
        assert (state.uncommitted, state.unmerged) == (False, 2)

    def test_commits_that_are_on_another_branch(self, repo, trees, path) -> None:
        repo.commit(at=path, text="1\n")
        repo("branch", "other", "x")
        assert trees.state(str(path)).unmerged == 0
        repo.commit(at=path, text="2\n")
        assert trees.state(str(path)).unmerged == 1

    def test_commits_that_are_on_a_remote(self, repo, trees, path, tmp_path) -> None:
        repo("clone", "-q", "--bare", str(repo.top), str(tmp_path / "remote.git"))
        repo("remote", "add", "origin", str(tmp_path / "remote.git"))
        repo.commit(at=path, text="1\n")
        assert trees.state(str(path)).unmerged == 1
        repo("push", "-q", "origin", "x", at=path)
        assert trees.state(str(path)).unmerged == 0

    def test_a_branch_whose_name_begins_the_same_counts_as_another(self, repo, trees, path) -> None:
        repo.commit(at=path, text="1\n")
        repo("branch", "x-2", "x")
        assert trees.state(str(path)).unmerged == 0

    def test_commits_on_a_detached_head(self, repo, trees, path) -> None:
        repo("checkout", "-q", "--detach", at=path)
        repo.commit(at=path, text="1\n")
        state = trees.state(str(path))
        assert (state.branch, state.unmerged) == (None, 1)

    def test_a_branch_without_a_commit(self, repo, trees, path) -> None:
        repo("checkout", "-q", "--orphan", "fresh", at=path)
        state = trees.state(str(path))
        assert (state.branch, state.head, state.unmerged, state.uncommitted) == ("fresh", None, 0, True)

    def test_writes_nothing(self, repo, trees, path) -> None:
        index = Path(repo("rev-parse", "--absolute-git-dir", at=path)) / "index"
        os.utime(path / "file", (1, 1))
        before = index.stat()
        trees.state(str(path))
        assert (index.stat().st_ino, index.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_does_not_answer_for_the_repository_around(self, repo, trees) -> None:
        path = repo.top / "inside"
        trees.add(str(repo.top), str(path), "x")
        (path / ".git").unlink()
        with pytest.raises(Refused, match="not a git worktree any more"):
            trees.state(str(path))

    def test_a_folder_that_is_gone(self, trees, tmp_path) -> None:
        with pytest.raises(Refused, match="not a git worktree any more"):
            trees.state(str(tmp_path / "gone"))


class TestRemove:
    @pytest.fixture
    def path(self, repo, trees, tmp_path):
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        return tmp_path / "w"

    def test_a_clean_one(self, repo, trees, path) -> None:
        trees.remove(str(repo.top), str(path))
        assert not path.exists()
        assert repo.worktrees() == []
        assert repo.branches() == {"main", "x"}

    def test_repeats_safely(self, repo, trees, path) -> None:
        trees.remove(str(repo.top), str(path))
        trees.remove(str(repo.top), str(path))

    @pytest.mark.parametrize("file", ["file", "new"])
    def test_never_with_changes(self, repo, trees, path, file) -> None:
        repo("config", "status.showUntrackedFiles", "no")
        (path / file).write_text("work\n", encoding="utf-8")
        with pytest.raises(Refused, match="uncommitted"):
            trees.remove(str(repo.top), str(path))
        assert (path / file).read_text(encoding="utf-8") == "work\n"

    def test_never_a_locked_one(self, repo, trees, path) -> None:
        repo("worktree", "lock", str(path))
        with pytest.raises(Refused, match="locked") as caught:
            trees.remove(str(repo.top), str(path))
        assert "unlock" in (caught.value.hint or "")
        assert path.exists()

    def test_never_the_main_one(self, repo, trees) -> None:
        with pytest.raises(Refused, match="main working tree"):
            trees.remove(str(repo.top), str(repo.top))
        assert (repo.top / "file").exists()

    def test_never_a_folder_that_is_none(self, repo, trees, tmp_path) -> None:
        """git itself would read the last part of the path as the name of a worktree."""
        other = tmp_path / "elsewhere" / "w"
        other.mkdir(parents=True)
        with pytest.raises(Refused, match="is not a worktree"):
            trees.remove(str(repo.top), str(other))
        assert other.exists()

    def test_never_what_a_link_leads_to(self, repo, trees, path, tmp_path) -> None:
        (tmp_path / "link").symlink_to(path)
        with pytest.raises(Refused, match="is not a worktree"):
            trees.remove(str(repo.top), str(tmp_path / "link"))
        with pytest.raises(Refused, match="not a git worktree"):
            trees.state(str(tmp_path / "link"))
        assert path.exists()

    def test_the_registration_alone_and_no_other(self, repo, trees, path, tmp_path) -> None:
        trees.add(str(repo.top), str(tmp_path / "on-a-stick"), "y")
        (tmp_path / "on-a-stick").rename(tmp_path / "unplugged")
        path.rename(tmp_path / "gone")
        trees.remove(str(repo.top), str(path))
        assert repo.worktrees() == [str(tmp_path / "on-a-stick")]


class TestBranches:
    def test_a_deletion_needs_the_commit_that_was_seen(self, repo, trees) -> None:
        first = repo.head()
        repo("branch", "x", repo.commit(text="more\n"))
        assert not trees.delete_branch(str(repo.top), "x", first)
        assert trees.delete_branch(str(repo.top), "x", repo.head())
        assert repo.branches() == {"main"}

    def test_a_branch_in_use_is_not_deleted(self, repo, trees) -> None:
        assert not trees.delete_branch(str(repo.top), "main", repo.head())
        assert repo.branches() == {"main"}

    def test_settings_go_with_the_branch(self, repo, trees) -> None:
        repo("branch", "x")
        repo("config", "branch.x.description", "about")
        trees.delete_branch(str(repo.top), "x", repo.head())
        assert "branch.x" not in (repo.top / ".git" / "config").read_text(encoding="utf-8")
        assert '[branch "x"]' not in (repo.top / ".git" / "config").read_text(encoding="utf-8")

    def test_which_names_can_be_made(self) -> None:
        taken = {"main", "a/b"}
        assert [
            name
            for name in ("main", "main/x", "a", "a/b", "a/b/c", "a/c", "mai", "b")
            if is_free(name, taken)
        ] == [
            "a/c",
            "mai",
            "b",
        ]

    def test_of_a_remote(self, repo, trees) -> None:
        repo("update-ref", "refs/remotes/origin/x", "HEAD")
        assert trees.branches.on_remote(str(repo.top), "x") == "refs/remotes/origin/x"
        assert trees.branches.on_remote(str(repo.top), "y") is None
        repo("update-ref", "refs/remotes/fork/x", "HEAD")
        with pytest.raises(Refused, match="more than one remote"):
            trees.branches.on_remote(str(repo.top), "x")


def test_git_before_2_36_lists_by_line(repo, env, tmp_path) -> None:
    """Its `worktree list` has no -z."""
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        '#!/bin/sh\nfor word; do [ "$word" != -z ] || [ "$3" != worktree ] || exit 129; done\n'
        f'PATH="{env["PATH"]}" exec git "$@"\n',
        encoding="utf-8",
    )
    old.chmod(0o755)
    trees = Worktrees({**env, "PATH": f"{old.parent}:{env['PATH']}"})
    trees.add(str(repo.top), str(tmp_path / "w"), "x")
    assert [entry.branch for entry in trees.entries(str(repo.top))] == ["main", "x"]


def test_a_note_beside_a_worktree_goes_with_it(repo, trees, tmp_path) -> None:
    path = str(tmp_path / "w")
    trees.add(str(repo.top), path, "x")
    assert trees.signature(path) is None
    trees.sign(path, "ours")
    assert trees.signature(path) == "ours"
    assert not trees.state(path).uncommitted
    trees.remove(str(repo.top), path)
    trees.add(str(repo.top), path, "x")
    assert trees.signature(path) is None
