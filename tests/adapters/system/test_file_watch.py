"""Watched folders: each change is reported with the tag of its folder, and nothing else is."""

import select

import pytest

from mam.adapters.system.file_watch import FileWatch


@pytest.fixture
def watch():
    file_watch = FileWatch()
    yield file_watch
    file_watch.close()


def changed_tags(watch):
    ready, _, _ = select.select([watch], [], [], 5.0)
    assert ready, "no change was reported"
    return watch.poll()


def test_what_is_made_written_moved_and_deleted(watch, tmp_path) -> None:
    watch.keep({str(tmp_path): "watched"})
    path = tmp_path / "one"
    for change in (
        path.touch,
        lambda: path.write_text("x", encoding="utf-8"),
        lambda: path.rename(tmp_path / "two"),
        (tmp_path / "two").unlink,
    ):
        change()
        assert changed_tags(watch) == {"watched"}
    assert watch.poll() == set()


def test_only_names(watch, tmp_path) -> None:
    watch.keep({str(tmp_path): "watched"}, [str(tmp_path)])
    path = tmp_path / "one"
    path.touch()
    assert changed_tags(watch) == {"watched"}
    with path.open("a", encoding="utf-8") as file:
        file.write("x")
    assert watch.poll() == set()


def test_several_folders(watch, tmp_path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    watch.keep({str(folder): folder.name for folder in folders[:2]})
    folders[2].joinpath("x").touch()
    folders[1].joinpath("x").touch()
    assert changed_tags(watch) == {"b"}
    watch.keep({str(folder): folder.name for folder in folders[1:]})
    folders[0].joinpath("x").touch()
    folders[2].joinpath("y").touch()
    assert changed_tags(watch) == {"c"}


def test_a_folder_that_goes_and_comes_back(watch, tmp_path) -> None:
    folder = tmp_path / "a"
    watch.keep({str(folder): "a"})
    assert len(watch) == 0
    folder.mkdir()
    watch.keep({str(folder): "a"})
    folder.rmdir()
    assert changed_tags(watch) == {"a"}
    assert len(watch) == 0
    folder.mkdir()
    watch.keep({str(folder): "a"})
    (folder / "x").touch()
    assert changed_tags(watch) == {"a"}


def test_a_link_is_not_followed(watch, tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    watch.keep({str(tmp_path / "link"): "link"})
    assert len(watch) == 0
