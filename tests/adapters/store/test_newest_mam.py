"""The record of the newest mam that changed a database."""

from __future__ import annotations

import pytest

from mam.adapters.store.newest_mam import ThisMam


class Meta:
    """The table `meta` alone."""

    def __init__(self, recorded=None) -> None:
        self.recorded = recorded

    def meta(self, _key):
        return self.recorded

    def set_meta(self, _key, value) -> None:
        self.recorded = value


@pytest.fixture
def packages(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_newer_mam_replaces_the_record_and_an_older_one_keeps_it(packages) -> None:
    old = ThisMam("0.2.0", str(packages / "old"))
    new = ThisMam("0.3.0", str(packages / "new"))
    meta = Meta()
    old.note(meta)
    assert (meta.recorded["version"], old.newer(meta), new.newer(meta)) == ("0.2.0", None, None)
    new.note(meta)
    old.note(meta)
    assert meta.recorded["version"] == "0.3.0"
    assert (old.newer(meta), new.newer(meta)) == ("0.3.0", None)


@pytest.mark.parametrize("how", ["removed", "replaced in its place"])
def test_a_newer_mam_that_is_not_installed_any_more_does_not_count(packages, how) -> None:
    new = ThisMam("0.3.0", str(packages / "new"))
    meta = Meta()
    new.note(meta)
    if how == "removed":
        (packages / "new").rmdir()
        old = ThisMam("0.2.0", str(packages / "old"))
    else:
        old = ThisMam("0.2.0", new.package)
    assert old.newer(meta) is None
    old.note(meta)
    assert meta.recorded["version"] == "0.2.0"


def test_a_development_version_is_older_than_its_release(packages) -> None:
    meta = Meta()
    ThisMam("0.2.0", str(packages / "new")).note(meta)
    assert ThisMam("0.2.0.dev0", str(packages / "old")).newer(meta) == "0.2.0"


@pytest.mark.parametrize("recorded", [None, 1, "x", [], {}, {"version": 7, "package": "/"}])
def test_a_record_that_says_nothing_is_replaced(packages, recorded) -> None:
    meta = Meta(recorded)
    mine = ThisMam("0.2.0", str(packages / "old"))
    assert mine.newer(meta) is None
    mine.note(meta)
    assert meta.recorded["version"] == "0.2.0"


def test_two_mams_of_one_version_do_not_take_turns(packages) -> None:
    meta = Meta()
    ThisMam("0.2.0", str(packages / "old")).note(meta)
    first = meta.recorded
    ThisMam("0.2.0", str(packages / "new")).note(meta)
    assert meta.recorded == first
