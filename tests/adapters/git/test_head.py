"""HEAD of a directory, read without git: as git says, and nothing from a folder that is made to harm."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.adapters.git.repository import Repository

from mam.adapters.git.head import Head, head, parse_git_file, parse_head

COMMIT = "1f00" * 10


@pytest.fixture
def place(tmp_path) -> Path:
    """A folder with a git folder that holds nothing."""
    (tmp_path / "place" / ".git").mkdir(parents=True)
    return tmp_path / "place"


class TestOfARepository:
    def test_a_branch(self, repo) -> None:
        assert head(str(repo.top)) == Head("main", None)

    def test_from_below(self, repo) -> None:
        (repo.top / "sub" / "deep").mkdir(parents=True)
        assert head(str(repo.top / "sub" / "deep")) == Head("main", None)

    def test_a_branch_with_an_odd_name(self, repo) -> None:
        repo("checkout", "-q", "-b", "wörk/a-{x}'$(y)")
        assert head(str(repo.top)) == Head("wörk/a-{x}'$(y)", None)

    @pytest.mark.parametrize("name", ["main", "new/branch"])
    def test_a_branch_without_a_commit(self, env, tmp_path, name) -> None:
        repo = Repository(tmp_path / "new", env)
        repo("symbolic-ref", "HEAD", f"refs/heads/{name}")
        assert head(str(repo.top)) == Head(name, None)

    @pytest.mark.parametrize("form", ["sha1", "sha256"])
    def test_a_detached_head(self, env, tmp_path, form) -> None:
        repo = Repository(tmp_path / form, env, f"--object-format={form}")
        commit = repo.commit()
        repo("checkout", "-q", "--detach")
        assert head(str(repo.top)) == Head(None, commit)

    def test_a_worktree(self, repo, trees, tmp_path) -> None:
        trees.add(str(repo.top), str(tmp_path / "w"), "x")
        assert head(str(tmp_path / "w")) == Head("x", None)

    def test_a_submodule_with_a_path_that_is_relative(self, repo, env, tmp_path) -> None:
        inner = Repository(tmp_path / "inner", env)
        inner.commit()
        repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
        assert (repo.top / "sub" / ".git").read_text("utf-8") == "gitdir: ../.git/modules/sub\n"
        assert head(str(repo.top / "sub")) == Head("main", None)

    def test_a_git_folder_elsewhere(self, env, tmp_path) -> None:
        repo = Repository(tmp_path / "work", env, f"--separate-git-dir={tmp_path}/data")
        assert head(str(repo.top)) == Head("main", None)

    def test_a_link_to_the_git_folder_is_followed_as_git_does(self, repo) -> None:
        (repo.top / ".git").rename(repo.top.parent / "data")
        (repo.top / ".git").symlink_to(repo.top.parent / "data")
        assert repo("branch", "--show-current") == "main"
        assert head(str(repo.top)) == Head("main", None)

    def test_a_bare_one_has_no_work_tree(self, env, tmp_path) -> None:
        assert head(str(Repository(tmp_path / "bare", env, "--bare").top)) is None


class TestOfNoRepository:
    def test_a_plain_folder(self, tmp_path) -> None:
        assert head(str(tmp_path)) is None
        assert head("/") is None

    @pytest.mark.parametrize("path", ["gone", "file", "file/below", "a\0b"])
    def test_what_is_no_folder(self, tmp_path, path) -> None:
        (tmp_path / "file").touch()
        assert head(str(tmp_path / path)) is None

    def test_an_empty_git_folder_is_passed_over_as_git_does(self, repo) -> None:
        (repo.top / "sub" / ".git").mkdir(parents=True)
        assert repo("branch", "--show-current", at=repo.top / "sub") == "main"
        assert head(str(repo.top / "sub")) == Head("main", None)


def in_place_of(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        elsewhere = path.parent.parent / "elsewhere"
        elsewhere.write_text("ref: refs/heads/main\n", encoding="utf-8")
        path.symlink_to(elsewhere)
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "huge":
        with path.open("wb") as file:
            file.write(b"ref: refs/heads/main" + b"\n" * 10_000)
            file.truncate(1 << 33)
    elif kind == "closed":
        path.write_text("ref: refs/heads/main\n", encoding="utf-8")
        path.chmod(0)


def answer_of(directory: Path) -> Head | None:
    """Return the HEAD; fail if the call blocks."""
    answers: list[Head | None] = []
    thread = threading.Thread(target=lambda: answers.append(head(str(directory))), daemon=True)
    thread.start()
    thread.join(60)
    assert answers, "blocked"
    return answers[0]


KINDS = ["pipe", "folder", "link", "link to itself", "device", "huge"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_strange_head_is_none_and_ends_the_search(repo, kind) -> None:
    """git waits for a pipe there for ever, so it must not be started for the repository around it either."""
    inner = repo.top / "inner"
    (inner / ".git").mkdir(parents=True)
    in_place_of(inner / ".git" / "HEAD", kind)
    assert answer_of(inner) is None


def test_a_pipe_with_a_writer(place) -> None:
    os.mkfifo(place / ".git" / "HEAD")
    with (place / ".git" / "HEAD").open("r+b", buffering=0) as writer:
        writer.write(b"ref: refs/heads/main\n")
        assert answer_of(place) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_head_that_may_not_be_read(place) -> None:
    in_place_of(place / ".git" / "HEAD", "closed")
    assert answer_of(place) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_something_strange_in_place_of_the_git_folder(tmp_path, kind) -> None:
    (tmp_path / "place").mkdir()
    in_place_of(tmp_path / "place" / ".git", kind)
    assert answer_of(tmp_path / "place") is None


@pytest.mark.parametrize("named", [".git", "pipe", "gone", "/dev/zero", "/", "", "\0", "loop", "x" * 4000])
def test_a_git_file_that_names_something_strange(repo, named) -> None:
    inner = repo.top / "inner"
    inner.mkdir()
    os.mkfifo(inner / "pipe")
    (inner / "loop").symlink_to("loop")
    (inner / ".git").write_text(f"gitdir: {named}\n", encoding="utf-8")
    assert answer_of(inner) is None


def test_a_git_file_that_names_a_folder_with_a_pipe(tmp_path) -> None:
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "data" / "HEAD")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / ".git").write_text("gitdir: ../data\n", encoding="utf-8")
    assert answer_of(tmp_path / "place") is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"ref: refs/heads/main\n", Head("main", None)),
        (b"ref:refs/heads/a/b", Head("a/b", None)),
        (f"{COMMIT}\n".encode(), Head(None, COMMIT)),
        (b"ref: refs/heads/\xff\n", Head("\udcff", None)),
        (b"", None),
        (b"ref: refs/heads/\n", None),
        (b"ref: refs/remotes/origin/main\n", None),
        (b"ref: main\n", None),
        (b"ref: refs/heads/a\nb", None),
        (b"ref: refs/heads/a\0b", None),
        (COMMIT[:-1].encode(), None),
        (COMMIT.upper().encode(), None),
        (b"root:x:0:0:root:/root:/bin/sh", None),
    ],
)
def test_contents_of_head(content, expected) -> None:
    assert parse_head(content) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"gitdir: /a/b\n", b"/a/b"),
        (b"gitdir: ../a b", b"../a b"),
        (b"gitdir: a\r\n", b"a"),
        (b"gitdir: \n", None),
        (b"gitdir:a", None),
        (b"/a/b", None),
        (b"", None),
    ],
)
def test_contents_of_a_git_file(content, expected) -> None:
    assert parse_git_file(content) == expected
