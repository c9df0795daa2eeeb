"""Owners of files and members of groups, as the system has them."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.other_user import STRANGER, give, needs_root

from mam.adapters.system import owners
from mam.core.owner_rule import ABOVE, FILE, FOLDER, LINK


@pytest.fixture
def users(monkeypatch):
    """A password database with me, bob, and a second name of root; me is also in the group of bob."""
    monkeypatch.setattr(owners, "_others", {})
    entries = [("root", 0, 0), ("toor", 0, 0), ("me", 1000, 1000), ("bob", 1001, 1001), ("eve", 1002, 100)]
    people = [SimpleNamespace(pw_name=name, pw_uid=uid, pw_gid=gid) for name, uid, gid in entries]
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: next(entry for entry in people if entry.pw_uid == uid))
    groups = {0: ["toor"], 1000: [], 1001: ["me"], 100: [], 2000: ["me", "root", "bob", "eve"]}

    def getgrgid(gid):
        return SimpleNamespace(gr_name=f"g{gid}", gr_mem=groups[gid])

    monkeypatch.setattr(grp, "getgrgid", getgrgid)


@pytest.mark.parametrize(
    ("gid", "expected"),
    [(1000, []), (0, []), (1001, ["bob"]), (100, ["eve"]), (2000, ["bob", "eve"]), (3000, [])],
)
def test_the_others_in_a_group(users, gid, expected) -> None:
    assert owners.others_in_group(gid, 1000) == expected


def test_a_link_is_followed_with_the_folders_above_its_target(tmp_path) -> None:
    target = tmp_path / "there" / "file"
    target.parent.mkdir()
    target.touch()
    link = tmp_path / "link"
    link.symlink_to(target)
    found = [(owned.path, owned.role) for owned in owners.look_through(str(link))]
    assert found[:3] == [(str(link), LINK), (str(target), FILE), (str(target.parent), ABOVE)]
    assert found[-1] == ("/", ABOVE)
    assert [owned.role for owned in owners.look_through(str(tmp_path))] == [FOLDER]
    assert list(owners.look_through(str(tmp_path / "nothing"))) == []


@needs_root
def test_the_sentence_names_the_path_and_its_owner(tmp_path) -> None:
    file = tmp_path / "a file"
    file.touch()
    give(file)
    danger = owners.danger_of(owners.look_through(str(file)))
    assert danger is not None
    assert owners.sentence(danger) == (
        f"{file} belongs to user {STRANGER}, and mam runs as {pwd.getpwuid(os.geteuid()).pw_name}",
        f"sudo chown {os.geteuid()} '{file}'",
    )


@pytest.mark.skipif(not Path("/proc/self/uid_map").exists(), reason="no user namespaces here")
def test_this_user_namespace_knows_its_users() -> None:
    assert not any(owners.is_unmapped(uid) for uid in (0, os.geteuid(), 65534))


def test_another_user_namespace_does_not_know_root() -> None:
    """A sandbox such as that of Codex maps its own user alone."""
    code = "from mam.adapters.system import owners; print(owners.is_unmapped(65534), owners.is_unmapped(0))"
    command = ["unshare", "--user", "--map-user=0", sys.executable, "-c", code]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if answer.returncode and "unshare" in answer.stderr:
        pytest.skip(f"this machine makes no user namespaces: {answer.stderr.strip()}")
    assert answer.stdout.split() == ["True", "False"], answer.stderr
