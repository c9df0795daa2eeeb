"""The verb `status`: what it adds to a session as `ls` lists it."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from tests.adapters.git.repository import Repository, environment

import mam
from mam.app.observation import git_summaries


@pytest.fixture
def repo(workspace, tmp_path, monkeypatch):
    """A repository with one commit in the workspace."""
    env = environment(tmp_path)
    for key in env:
        if key.startswith("GIT_"):
            monkeypatch.setenv(key, env[key])
    made = Repository(workspace, env)
    made.commit()
    return made


def git_of(session: mam.Session) -> dict | None:
    return session.status()["git"]


def test_the_branch_and_the_changed_files_of_the_workspace(fleet, repo) -> None:
    session = fleet.sessions.create("human", name="one")
    changed = git_of(session)["changed_files"]
    (repo.top / "new").touch()
    assert git_of(session) == {
        "branch": "main",
        "detached": False,
        "changed_files": changed + 1,
        "changed_more": False,
    }
    json.dumps(session.status())
    assert "git" not in fleet.sessions.ls()["sessions"][0]


def test_a_worktree_counts_for_its_session(fleet, repo) -> None:
    (repo.top / "sub").mkdir()
    repo.commit("sub/file")
    (repo.top / "new").touch()
    fleet.init()
    with mam.open(str(repo.top / "sub")) as below:
        session = below.sessions.create("practice", name="one", worktree=True, args=["--speed", "0"])
        assert session.row["workspace"] == f"{session.row['worktree']['path']}/sub"
        assert git_of(session) == {
            "branch": "mam/one",
            "detached": False,
            "changed_files": 0,
            "changed_more": False,
        }
        shutil.rmtree(session.row["workspace"])
        assert git_of(session)["changed_files"] == 1


def test_without_a_work_tree_it_is_none(fleet) -> None:
    assert git_of(fleet.sessions.create("human", name="one")) is None


def test_a_directory_that_is_gone_is_none(fleet, repo) -> None:
    fleet.init()
    (repo.top / "sub").mkdir()
    with mam.open(str(repo.top / "sub")) as below:
        session = below.sessions.create("human", name="one")
        assert git_of(session)["branch"] == "main"
        (repo.top / "sub").rmdir()
        assert git_of(session) is None


def test_a_git_that_hangs_leaves_the_branch(fleet, repo, tmp_path, monkeypatch) -> None:
    session = fleet.sessions.create("human", name="one")
    (tmp_path / "fake").mkdir()
    fake = tmp_path / "fake" / "git"
    fake.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr(git_summaries, "SECONDS", 0.2)
    environ = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    with mam.open(fleet.root, environ=environ) as own:
        assert own.sessions.status(session.name)["git"] == {
            "branch": "main",
            "detached": False,
            "changed_files": None,
            "changed_more": False,
        }


def test_in_a_foreign_root_git_is_not_asked(home, tmux_server, repo, tmp_path) -> None:
    theirs = {**os.environ, "MAM_STATE_HOME": str(tmp_path / "theirs")}
    with mam.open(str(repo.top), environ=theirs) as made:
        made.sessions.create("human", name="one")
        assert made.sessions.status("one")["git"]["branch"] == "main"
    with mam.open(str(repo.top)) as foreign:
        assert foreign.sessions.ls()["root_state"] == "foreign"
        assert foreign.sessions.status("one")["git"] is None
