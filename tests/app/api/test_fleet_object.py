"""Opening fleets: of one root, and of every root of the user."""

from __future__ import annotations

import shutil

import mam


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


def test_without_any_root_there_is_nothing(home):
    with mam.open_all() as fleets:
        assert (list(fleets), fleets.missing) == ([], ())
