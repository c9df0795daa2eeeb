"""Git repositories for tests."""

from __future__ import annotations

import shutil

import pytest
from tests.adapters.git.repository import Repository, environment

from mam.adapters.git.worktree import Worktrees


@pytest.fixture
def env(tmp_path):
    return environment(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A repository with one commit; copying it is faster than four calls of git."""
    place = tmp_path_factory.mktemp("first")
    original = Repository(place / "repo", environment(place))
    original.commit()
    return original.top


@pytest.fixture
def repo(tmp_path, env, first):
    """A repository with one commit."""
    return Repository(shutil.copytree(first, tmp_path / "repo"), env)


@pytest.fixture
def trees(env):
    return Worktrees(env)
