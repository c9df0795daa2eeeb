"""A file that is truncated at any byte: no session is lost, no value changes, and all errors are mam's own.

An editor on a full disk, an interrupted copy and a power failure can leave a prefix of the file. Even if the
prefix is valid YAML, mam refuses it or treats it as no edit.
"""

from __future__ import annotations

import pytest
from tests.adapters.store.making import FIRST, check_invariants, new_row

from mam.core.errors import Damaged


@pytest.fixture
def full(store):
    """Three sessions with a person's keys in every place where a cut could change one."""
    store.add(
        new_row(1, role="developer", zz_note="first"),
        new_row(2, status="stopped", claude_session_id_own="c-2", zz_list=["one", "two", "three"]),
        new_row(3, status="terminated", resumable=False, zz_last="a b c d", zz_number=12345),
    )
    store.edit("schema_version", "team: blue green\nschema_version")
    store.touch()
    return store


def cut(store, text: bytes, length: int, before: dict) -> str:
    """Write a prefix, read and change the registry, and return whether mam refused the prefix."""
    store.yaml.write_bytes(text[:length])
    try:
        rows = store.registry.view().rows
    except Damaged:
        rows = None
    assert rows in (None, list(before.values())), f"a reader believes a file of {length} bytes"
    try:
        store.touch()
    except Damaged as error:
        assert error.exit_code == 65
        assert store.yaml.read_bytes() == text[:length], f"cut at {length}"
        outcome = "refused"
    else:
        outcome = "no edit"
    assert store.rows() == before, f"cut at {length}"
    return outcome


@pytest.mark.promise("P3")
@pytest.mark.slow
def test_a_file_cut_at_every_byte(full):
    text = full.yaml.read_bytes()
    before = full.rows()
    outcomes = [cut(full, text, length, before) for length in range(len(text) + 1)]
    assert set(outcomes) == {"refused", "no edit"}
    # A cut before the list has no sessions, and a cut after the last letter of the last value loses nothing.
    inside = outcomes[text.index(b"tmux_sessions:") + 20 : text.index(b"\n# end of sessions")]
    assert "no edit" not in inside
    assert outcomes[0] == outcomes[-1] == "no edit"
    full.write(text)
    full.touch()
    check_invariants(full)


def test_a_file_cut_at_every_line_while_a_change_waits_for_it(full, monkeypatch):
    """The same while the file is older than the database."""
    text = full.yaml.read_bytes()
    monkeypatch.setattr(type(full.registry), "project", lambda *_arguments: None)
    full.put(FIRST, delegate_job_id="job-1")
    full.add(new_row(4))
    before = full.rows()
    for length in (number for number, byte in enumerate(text) if byte == ord("\n")):
        cut(full, text, length, before)
    monkeypatch.undo()
    full.write(text)
    full.touch()
    check_invariants(full)


def test_a_cut_after_the_last_row_of_a_file_that_a_person_wrote_below(full):
    full.write(full.text() + "below: [1, 2, 3]\n")
    full.touch()
    full.put(FIRST, delegate_job_id="job-1")
    text = full.yaml.read_bytes()
    before = full.rows()
    for length in range(text.index(b"below:"), len(text)):
        cut(full, text, length, before)
    full.write(text)
    full.touch()
    assert b"below: [1, 2, 3]\n" in full.yaml.read_bytes()
