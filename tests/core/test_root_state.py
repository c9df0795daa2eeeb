"""What a root is to this user's mam, by what was observed of it."""

from __future__ import annotations

import pytest

from mam.core.root_state import Arrival, KnownRoot, Place, RootFacts, RootState, judge

HERE, THERE = 11, 22


def known(root_id="a", inode=HERE, **options):
    return KnownRoot(root_id, "/r", "/r/yaml", "/r/.mam", inode, **options)


@pytest.mark.parametrize(
    ("facts", "state", "arrival"),
    [
        pytest.param({"inode": None}, "new", "same", id="nothing there"),
        pytest.param({"inode": HERE, "is_empty": True}, "new", "same", id="an empty folder"),
        pytest.param({"inode": None, "known_here": known()}, "missing", "same", id="its folder is gone"),
        pytest.param(
            {"inode": None, "known_here": known(is_complete=False)}, "new", "same", id="died while making it"
        ),
        pytest.param({"inode": None, "known_without_id": True}, "missing", "same", id="gone, of mam 0.1"),
        pytest.param(
            {"inode": HERE, "has_database": True, "database_id": "a", "known_here": known()},
            "known",
            "same",
            id="the recorded folder",
        ),
        pytest.param(
            {"inode": THERE, "has_database": True, "database_id": "a", "known_here": known()},
            "known",
            "restored",
            id="another folder at the recorded path",
        ),
        pytest.param(
            {"inode": HERE, "has_database": True, "known_here": known(is_complete=False)},
            "known",
            "same",
            id="died before the database had the id",
        ),
        pytest.param(
            {"inode": HERE, "has_database": True, "known_here": known()},
            "foreign",
            "same",
            id="a database without an id in the recorded folder",
        ),
        pytest.param(
            {"inode": HERE, "has_database": True, "database_id": "b", "known_here": known()},
            "foreign",
            "same",
            id="a database with another id in the recorded folder",
        ),
        pytest.param({"inode": HERE, "known_here": known()}, "missing", "same", id="the database was lost"),
        pytest.param(
            {"inode": THERE, "known_here": known()}, "missing", "same", id="another folder, no database"
        ),
        pytest.param(
            {"inode": HERE, "has_database": True, "database_id": "a", "known_by_id": known()},
            "known",
            "moved",
            id="moved",
        ),
        pytest.param(
            {
                "inode": HERE,
                "has_database": True,
                "database_id": "a",
                "known_by_id": known(),
                "other_inode": HERE,
                "same_as_other": True,
            },
            "known",
            "alias",
            id="a second path, such as a bind mount",
        ),
        pytest.param(
            {
                "inode": THERE,
                "has_database": True,
                "database_id": "a",
                "known_by_id": known(),
                "other_inode": HERE,
            },
            "copy",
            "moved",
            id="a copy",
        ),
        pytest.param(
            {
                "inode": HERE,
                "has_database": True,
                "database_id": "a",
                "known_by_id": known(),
                "other_inode": THERE,
            },
            "known",
            "moved",
            id="moved, and something else made in its old place",
        ),
        pytest.param(
            {"inode": HERE, "has_database": True, "known_without_id": True},
            "known",
            "without id",
            id="a root of mam 0.1",
        ),
        pytest.param(
            {"inode": HERE, "has_database": True, "database_id": "a"}, "foreign", "same", id="a clone"
        ),
        pytest.param({"inode": HERE}, "foreign", "same", id="a clone without a database"),
    ],
)
def test_judge(facts, state, arrival) -> None:
    assert judge(RootFacts(**facts)) == (RootState(state), Arrival(arrival))


def test_a_place_is_silent_after_ten_minutes() -> None:
    place = Place("m", "host", None, 1000.0)
    assert not place.is_silent(1599.0)
    assert place.is_silent(1600.0)
    assert place.is_silent(900.0), "a clock that was put back says nothing"
    assert Place.from_json(place.as_json()).as_json() == place.as_json()


@pytest.mark.parametrize(
    "document", [None, 1, [], {}, {"machine": 1}, {"machine": "m", "host": "h", "at": "x"}]
)
def test_a_record_that_names_no_place(document) -> None:
    assert Place.from_json(document) is None


def test_two_containers_of_one_machine_are_two_places() -> None:
    assert not Place("m", "h", 5).is_same(Place("m", "h", 6))
    assert not Place("m", "h", None).is_same(Place("n", "h", None))
    assert Place("m", "h", 5).is_same(Place("m", "another name", 5))
