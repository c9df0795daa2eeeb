"""Deleting files of an agent: only below the store, and without following links."""

import os
import threading

import pytest

from mam.adapters.agents.delete_files import remove
from mam.core.errors import NotAllowed


@pytest.fixture
def store(tmp_path):
    place = tmp_path / "store"
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/file").write_text("x", encoding="utf-8")
    (place / "a/b/other").write_text("x", encoding="utf-8")
    return place


def test_a_file_is_deleted(store) -> None:
    assert remove(str(store), "a/b/file") is True
    assert not (store / "a/b/file").exists()
    assert (store / "a/b/other").exists()


def test_a_missing_file_is_no_error(store) -> None:
    assert remove(str(store), "a/b/nothing") is False
    assert remove(str(store), "a/x/nothing") is False
    assert remove(str(store / "gone"), "a") is False


def test_a_folder_with_links_inside_loses_the_links_only(store, tmp_path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x", encoding="utf-8")
    (store / "a/b/link").symlink_to(precious)
    assert remove(str(store), "a/b") is True
    assert (precious / "file").exists()
    assert not (store / "a/b").exists()


@pytest.mark.parametrize("path", ["../precious", "a/../../precious", "/etc", "a//b", "", "."])
def test_a_path_out_of_the_store_is_refused(store, path) -> None:
    with pytest.raises(NotAllowed):
        remove(str(store), path)


@pytest.mark.parametrize("linked", ["a", "a/b", "a/b/file"])
def test_a_link_in_the_path_is_refused(store, tmp_path, linked) -> None:
    real = tmp_path / "elsewhere"
    (store / linked).rename(real)
    (store / linked).symlink_to(real)
    with pytest.raises(NotAllowed, match="link"):
        remove(str(store), "a/b/file")
    assert real.exists()


def test_a_link_that_replaces_a_folder_meanwhile_is_not_followed(store, tmp_path) -> None:
    precious = tmp_path / "precious"
    (precious / "b").mkdir(parents=True)
    (precious / "b/file").write_text("x", encoding="utf-8")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            os.rename(store / "a", store / "hidden")  # noqa: PTH104
            (store / "a").symlink_to(precious)
            (store / "a").unlink()
            os.rename(store / "hidden", store / "a")  # noqa: PTH104

    worker = threading.Thread(target=swap)
    worker.start()
    try:
        for _ in range(1000):
            try:
                remove(str(store), "a/b/file")
            except NotAllowed:
                continue
    finally:
        over.set()
        worker.join()
    assert (precious / "b/file").exists()
