"""Parsing the output and the errors of git."""

import pytest

from mam.adapters.git import error_translation, parse
from mam.core.errors import DiskFull, InvalidPath, NotAllowed, ReadOnly, Refused, Unavailable

LISTED = (
    b"worktree /a b\nc\0HEAD 1111\0branch refs/heads/main\0\0"
    b"worktree /d\0HEAD 2222\0detached\0locked why\nso\0\0"
    b"worktree /e\0HEAD 3333\0branch refs/heads/mam/x\0prunable gone\0\0"
)


def test_entries() -> None:
    main, detached, prunable = parse.entries(LISTED)
    assert main == parse.Entry("/a b\nc", "1111", "main")
    assert detached == parse.Entry("/d", "2222", None, locked=True)
    assert prunable == parse.Entry("/e", "3333", "mam/x", prunable=True)


def test_a_bare_repository_has_no_branch() -> None:
    assert parse.entries(b"worktree /r.git\0bare\0\0") == [parse.Entry("/r.git", bare=True)]


def test_entries_by_line() -> None:
    listed = b"worktree /a b\nHEAD 1111\nbranch refs/heads/main\n\nworktree /d\nHEAD 2222\ndetached\n\n"
    assert [entry.path for entry in parse.entries(listed, b"\n")] == ["/a b", "/d"]


def test_a_path_that_is_not_text_comes_back_as_it_was() -> None:
    (entry,) = parse.entries(b"worktree /a\xff\0HEAD 1\0\0")
    assert entry.path.encode("utf-8", "surrogateescape") == b"/a\xff"


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"HEAD 1\0\0", b"rubbish"])
def test_what_names_no_worktree_is_none(answer) -> None:
    assert parse.entries(answer) == []


STATUS = (
    b"# branch.oid 1111\0# branch.head a b\0# branch.upstream origin/x\0# branch.ab +1 -0\0"
    b"1 .M N... 100644 100644 100644 1111 2222 a b\0"
    b"u UU N... 100644 100644 100644 100644 1111 2222 3333 c d\0"
    b"? e\nf/\0"
)


def test_status() -> None:
    assert parse.status(STATUS) == ("1111", "a b", ("a b", "c d", "e\nf/"))


def test_status_without_commit_and_without_branch() -> None:
    assert parse.status(b"# branch.oid (initial)\0# branch.head main\0") == (None, "main", ())
    assert parse.status(b"# branch.oid 1111\0# branch.head (detached)\0") == ("1111", None, ())


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        ("fatal: not a git repository (or any of the parent directories): .git", InvalidPath),
        ("fatal: this operation must be run in a work tree", InvalidPath),
        ("fatal: cannot change to '/x': No such file or directory", InvalidPath),
        ("fatal: detected dubious ownership in repository at '/x'", NotAllowed),
        ("error: unable to write file a\nfatal: cannot write: No space left on device", DiskFull),
        ("fatal: could not create leading directories of '/x/.git': Permission denied", ReadOnly),
        ("fatal: could not create leading directories of '/x/.git': Read-only file system", ReadOnly),
        ("fatal: Unable to create '/x/.git/index.lock': File exists.\n\nAnother git process", Unavailable),
        ("fatal: '/x' contains modified or untracked files, use --force to delete it", Refused),
        ("fatal: something new", Refused),
        ("", Refused),
    ],
)
def test_failures(stderr, error) -> None:
    assert type(error_translation.from_stderr(stderr, "/x")) is error


def test_a_failure_never_advises_force_for_uncommitted_work() -> None:
    error = error_translation.from_stderr(
        "fatal: '/x' contains modified or untracked files, use --force to delete it", "/x"
    )
    assert "force" not in error.message + (error.hint or "")


def test_the_reason_is_the_line_that_says_why() -> None:
    assert error_translation.reason("Preparing\nwarning: no\nfatal: because\nuse it") == "because"
    assert error_translation.reason("one\nerror: two\nthree") == "two"
    assert error_translation.reason("one\n\x1b[31mtwo\n") == "[31mtwo"
    assert error_translation.reason("\n") == "git gave no reason"
