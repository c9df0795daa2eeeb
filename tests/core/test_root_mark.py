"""The text by which a pane names its root."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mam.core.root_mark import directory_of, id_of, is_same_root, root_mark

ID, OTHER = "0123456789abcdef", "fedcba9876543210"
DIRECTORIES = st.text(min_size=1).map(lambda text: "/" + text)


@given(DIRECTORIES)
def test_a_mark_names_id_and_directory(directory) -> None:
    mark = root_mark(ID, directory)
    assert (id_of(mark), directory_of(mark)) == (ID, directory)


@given(DIRECTORIES)
def test_a_mark_of_mam_0_1_names_the_directory_alone(directory) -> None:
    assert root_mark(None, directory) == directory
    assert (id_of(directory), directory_of(directory)) == (None, directory)


def test_one_root() -> None:
    assert is_same_root(root_mark(ID, "/a"), root_mark(ID, "/moved"))
    assert not is_same_root(root_mark(ID, "/a"), root_mark(OTHER, "/a"))
    assert is_same_root("/a", root_mark(ID, "/a"))
    assert not is_same_root("/b", root_mark(ID, "/a"))
