"""A root that another user could have written is not read; on a network it is read and not changed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.adapters.store.making import FIRST, Store, new_row
from tests.other_user import NOBODY, STRANGER, as_nobody, give, needs_root

from mam.adapters.store import root_paths
from mam.adapters.store.root_safety import RootSafety
from mam.adapters.system import mounts, owners
from mam.core.errors import MamError, NotAllowed, RootOnNetwork, RootUnsafe


def attempts(store):
    """A read and a change, each by a registry that has not looked yet."""
    return (store.again().view, lambda: store.again().change(lambda transaction: None))


def refusals(store) -> list[RootUnsafe]:
    """Return the errors of a read and of a change; the file stays as it is."""
    store.registry.close()
    text, found = store.text(), []
    for attempt in attempts(store):
        with pytest.raises(RootUnsafe) as caught:
            attempt()
        found.append(caught.value)
    assert store.text() == text
    return found


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720, 0o1777])
def test_state_that_others_may_write_is_refused(three, mode):
    Path(three.paths.state).chmod(mode)
    for error in refusals(three):
        assert f"chmod 700 {three.paths.state}" in (error.hint or "")
        assert (error.code, error.exit_code) == ("root_unsafe", 1)


@needs_root
@pytest.mark.parametrize("name", [".mam", ".hermes", ".hermes/agent-sessions.yaml", "mam.toml", "."])
def test_what_belongs_to_another_user_is_refused(three, name):
    place = three.root / name
    if name == "mam.toml":
        place.touch()
    os.chown(place, STRANGER, STRANGER)
    for error in refusals(three):
        assert f"{place} belongs to user {STRANGER}" in error.message
        assert "safe_roots" in (error.hint or "")


@needs_root
def test_a_folder_above_that_belongs_to_another_user_is_refused(tmp_path):
    (tmp_path / "theirs" / "deep" / "app").mkdir(parents=True)
    store = Store(tmp_path / "theirs" / "deep" / "app")
    store.add(new_row(1))
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    for error in refusals(store):
        assert f"{tmp_path / 'theirs'} belongs to" in error.message


@pytest.mark.promise("P40")
@pytest.mark.parametrize("name", [".hermes", ".hermes/agent-sessions.yaml", "mam.toml", "."])
def test_what_everybody_may_write_is_refused(three, name):
    place = three.root / name
    place.touch()
    place.chmod(0o777)
    for error in refusals(three):
        assert f"every user can write to {place}" in error.message
        assert f"chmod go-w {place}" in (error.hint or "")


def test_a_group_with_others_may_not_write(three, monkeypatch):
    three.root.chmod(0o775)
    monkeypatch.setattr(owners, "_others", {(three.root.stat().st_gid, os.geteuid()): ["bob", "eve"]})
    for error in refusals(three):
        assert f"can write to {three.root}: bob, eve" in error.message
        assert f"chmod g-w {three.root}" in (error.hint or "")


@needs_root
def test_the_target_of_a_link_counts(three, tmp_path):
    shutil.move(three.yaml, tmp_path / "file.yaml")
    three.yaml.symlink_to(tmp_path / "file.yaml")
    assert len(three.again().view().rows) == 3
    os.chown(tmp_path / "file.yaml", STRANGER, STRANGER)
    for error in refusals(three):
        assert f"{tmp_path / 'file.yaml'} belongs to" in error.message


@needs_root
def test_a_folder_of_another_user_without_a_root_is_not_read_and_gets_none(tmp_path):
    give(tmp_path)
    store = Store(tmp_path)
    assert store.registry.view().rows == []
    refusal = RootSafety(store.paths).refusal_of_change()
    assert isinstance(refusal, RootUnsafe) and str(tmp_path) in refusal.message


class TestSafeRoots:
    @needs_root
    @pytest.mark.parametrize("form", ["{}", "{}/", "{parent}/*", "{link}", "{link}/"])
    def test_names_a_root(self, three, tmp_path, form):
        (tmp_path / "link").symlink_to(three.root)
        entry = form.format(three.root, parent=three.root.parent, link=tmp_path / "link")
        give(three.root)
        with pytest.raises(RootUnsafe):
            RootSafety(three.paths).check()
        safety = RootSafety(three.paths, lambda: (entry,))
        safety.check()
        assert safety.refusal_of_change() is None

    def test_does_not_name_a_link_in_the_place_of_the_state(self, store, tmp_path):
        Path(store.paths.state).symlink_to(tmp_path)
        with pytest.raises(NotAllowed, match="symbolic link"):
            RootSafety(store.paths, lambda: (str(store.root),)).check()

    def test_is_not_read_where_nothing_is_wrong(self, three):
        def fail():
            raise AssertionError

        safety = RootSafety(three.paths, fail)
        safety.check()
        assert safety.refusal_of_change() is None


class TestNetwork:
    def test_a_change_is_refused_and_reading_works(self, three, monkeypatch):
        monkeypatch.setattr(mounts, "_linux_mounts", lambda: [("/", "ext4"), (str(three.root), "nfs4")])
        safety = RootSafety(three.paths)
        safety.check()
        refusal = safety.refusal_of_change()
        assert isinstance(refusal, RootOnNetwork)
        assert (refusal.code, refusal.exit_code) == ("root_network", 1)
        assert "nfs4" in refusal.message and f'safe_roots = ["{three.root}"]' in (refusal.hint or "")
        assert RootSafety(three.paths, lambda: (str(three.root),)).refusal_of_change() is None


@needs_root
class TestAnotherUser:
    """What a user gets in a root of root: reading is well, a change fails for want of rights."""

    @pytest.fixture
    def place(self):
        # Every user may look into it, unlike the folders of pytest and of ./dev.
        folder = Path(tempfile.mkdtemp(prefix="mam-t-", dir="/tmp"))
        folder.chmod(0o755)
        yield folder
        shutil.rmtree(folder)

    def test_a_root_of_root(self, place):
        store = Store(place)
        store.add(new_row(1))
        store.registry.close()
        for folder in (place / ".mam", place / ".hermes"):
            folder.chmod(0o755)
        for file in (store.yaml, store.db):
            file.chmod(0o644)

        def change():
            try:
                store.put(FIRST, role="x")
            except MamError as error:
                return error.code
            return "written"

        assert as_nobody(lambda: len(store.again().view().rows)) == 1
        assert as_nobody(change) == "read_only"

    def test_a_root_of_a_third_user(self, place):
        give(place, STRANGER)
        paths = root_paths.of_root(str(place))
        (place / ".mam").mkdir()
        os.chown(place / ".mam", NOBODY, NOBODY)

        def check():
            try:
                RootSafety(paths).check()
            except RootUnsafe as error:
                return error.message
            return "read"

        assert as_nobody(check).startswith(f"{place} belongs to user {STRANGER}, and mam runs as ")
