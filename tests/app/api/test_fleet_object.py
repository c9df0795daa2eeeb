"""Opening fleets: of one root, and of every root of the user."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

import mam
from mam.core.errors import InvalidPath, RegistryCorrupt


def test_open_all_gives_every_root_and_names_those_that_are_gone(home, tmux_server, tmp_path):
    roots = [tmp_path / name for name in ("one", "two", "gone")]
    for root in roots:
        root.mkdir()
        with mam.open(str(root)) as fleet:
            fleet.sessions.create("sleep", name=f"in-{root.name}", args=["1000"]).stop()
    shutil.rmtree(roots[2])
    with mam.open_all() as fleets:
        assert len(fleets) == 2
        assert [(fleet.root, fleet.sessions.names()) for fleet in fleets] == [
            (str(roots[0]), ["in-one"]),
            (str(roots[1]), ["in-two"]),
        ]
        assert fleets.missing == (str(roots[2]),)


def test_a_fleet_of_open_all_changes_its_own_root(home, tmux_server, tmp_path, monkeypatch):
    root = tmp_path / "one"
    root.mkdir()
    with mam.open(str(root)) as fleet:
        fleet.sessions.create("sleep", name="one", args=["1000"])
    monkeypatch.chdir(tmp_path)
    with mam.open_all() as fleets:
        (fleet,) = fleets
        assert fleet.sessions.stop("one").session.row["status"] == "stopped"
    assert not (tmp_path / ".mam").exists()


@pytest.mark.parametrize(("root", "registry"), [("a\0b", None), (None, "a\0b")])
def test_a_path_with_a_nul_is_refused(home, root, registry):
    with pytest.raises(InvalidPath):
        mam.open(root, registry=registry)


def test_a_user_state_with_a_value_of_another_type_is_damaged(home, tmp_path):
    """SQLite takes one, and no verb expects it."""
    with mam.open(str(tmp_path)) as fleet:
        fleet.init()
        path = fleet._access.context.user_state.path
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO roots VALUES(x'00', 'r', 1.0)")
    with pytest.raises(RegistryCorrupt, match=r"user\.db is damaged"), mam.open(str(tmp_path)) as fleet:
        fleet.sessions.ls(all_roots=True)


def test_without_any_root_there_is_nothing(home):
    with mam.open_all() as fleets:
        assert (list(fleets), fleets.missing) == ([], ())


def test_the_folder_of_a_roots_jobs_means_that_root(home, tmp_path, monkeypatch):
    root, other_root = tmp_path / "one", tmp_path / "two"
    for path in (root, other_root):
        path.mkdir()
        with mam.open(str(path)) as fleet:
            registry = fleet.init()
    monkeypatch.chdir(other_root)
    with mam.open(records_folder="../one/.mam/jobs") as fleet:
        assert (fleet.root, fleet.jobs.folder) == (str(root), str(root / ".mam" / "jobs"))
    with mam.open(records_folder=str(root / ".mam" / "jobs"), registry=registry) as fleet:
        assert (fleet.root, fleet.jobs.folder) == (str(other_root), str(other_root / ".mam" / "jobs"))


def test_any_other_folder_of_records_is_used_by_the_jobs_of_the_fleet(home, tmp_path, monkeypatch):
    root, folder = tmp_path / "one", tmp_path / "records"
    root.mkdir()
    monkeypatch.chdir(tmp_path)
    with mam.open(str(root), records_folder="records") as fleet:
        assert (fleet.root, fleet.jobs.folder) == (str(root), str(folder))
        job = fleet.in_directory(".").jobs.submit("x", agent="human")["job_id"]
        assert (folder / f"{job}.json").exists()
        own = fleet.jobs.submit("x", agent="human", folder=str(root / ".mam" / "jobs"))["job_id"]
        assert [listed["job_id"] for listed in fleet.jobs.list()] == [job]
    with mam.open(str(root)) as fleet:
        assert {listed["job_id"] for listed in fleet.jobs.list()} == {job, own}
