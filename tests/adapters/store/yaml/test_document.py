"""The parts of the file: unchanged parts are copied byte for byte, with their comments."""

from __future__ import annotations

import pytest
import yaml
from tests.adapters.store.making import FIRST, check_invariants, new_row

from mam.adapters.store.yaml import document

SECOND, THIRD = "s_00000002", "s_00000003"
HEAD = "# top of the file\n\nteam: blue  # ours\n"
TAIL = "\n# below the sessions\nafter: {x: 1}  # last\n"


@pytest.fixture
def commented(three):
    """A file with comments in all places."""
    text = three.text().replace("schema_version", f"{HEAD}schema_version", 1)
    text = text.replace("- id: s_00000001", "# above the first\n- id: s_00000001  # beside the first")
    text = text.replace("- id: s_00000002", "# above the second\n# in two lines\n- id: s_00000002")
    text = text.replace("  note: mine", "  # inside the second\n  note: mine  # beside a key")
    text = text.replace("- id: s_00000003", "# above the third\n- id: s_00000003")
    text = text.replace(document.LAST_LINE, f"{document.LAST_LINE}{TAIL}")
    three.write(text)
    three.touch()
    assert three.text() == text, "an edit of comments alone leaves the file as it is"
    return three


def outside(text: str, blocks: list[str]) -> str:
    for block in blocks:
        text = text.replace(block, "")
    return text


def test_comments_survive_a_change_of_another_row(commented):
    before = commented.blocks()
    commented.put(FIRST, delegate_job_id="job-1")
    after = commented.blocks()
    assert after[1:] == before[1:]
    assert "# inside the second\n  note: mine  # beside a key\n" in after[1]
    assert after[1].startswith("# above the second\n# in two lines\n")
    assert after[2].startswith("# above the third\n")
    check_invariants(commented)


def test_head_and_tail_survive_every_change(commented):
    commented.put(SECOND, note="x")
    commented.add(new_row(4))
    commented.registry.change(lambda transaction: transaction.remove(THIRD))
    text = commented.text()
    assert HEAD in text
    assert TAIL.strip() in text
    assert text.endswith(document.LAST_LINE)
    assert text.count(document.LAST_LINE) == 1
    assert yaml.safe_load(text)["after"] == {"x": 1}
    check_invariants(commented)


def test_head_and_tail_survive_new_identities(commented):
    commented.registry.change(lambda transaction: transaction.set_identity("claude", {"session_id": "a"}))
    text = commented.text()
    assert HEAD in text
    assert TAIL.strip() in text
    plain = yaml.safe_load(text)
    assert plain["agent_identities"] == {"claude": {"session_id": "a"}}
    commented.registry.change(lambda transaction: transaction.set_identity("claude", None))
    assert yaml.safe_load(commented.text())["agent_identities"] == {}
    assert HEAD in commented.text()
    check_invariants(commented)


def test_the_changed_row_loses_its_comments_as_the_first_line_says(commented):
    commented.put(SECOND, note="x")
    assert "inside the second" not in commented.text()
    assert "until their session changes" in document.FIRST_LINE


def test_an_added_row_leaves_every_other_byte(commented):
    before = commented.blocks()
    commented.add(new_row(4))
    assert commented.blocks()[:3] == before


def test_the_mark_of_the_end_never_stays_in_the_middle(three):
    """After an edit and a new last row, mam must still recognize a file that is truncated after a row."""
    three.edit("note: mine", "note: yours")
    three.touch()
    three.add(new_row(4, status="stopped"), new_row(5, status="stopped"))
    text = three.text()
    assert text.count(document.LAST_LINE) == 1
    assert text.endswith(document.LAST_LINE)


@pytest.mark.parametrize(
    "time",
    [
        "updated_at: 2026-01-01T00:00:00Z",
        "updated_at: '2026-01-01T00:00:00Z'  # a note",
        'updated_at: "2026-01-01"',
        "updated_at: |\n  several\n  lines",
        "updated_at:\n  - a list\n- of two",
        "updated_at: null",
        "'updated_at': x",
        "note: \"a\n  updated_at: 'x'\n  b\"",
        "",
    ],
)
@pytest.mark.parametrize("where", ["head", "tail"])
def test_the_time_is_renewed_however_it_was_written(three, time, where):
    line = "updated_at: '2026-11-15T12:00:00Z'\n"
    if time.startswith("updated_at:\n"):
        time = "updated_at:\n  - a list\n  - of two"
    text = three.text().replace(line, f"{time}\n" if where == "head" else "")
    three.write(text if where == "head" else text + f"{time}\n")
    three.put(FIRST, delegate_job_id="job-1")
    plain = yaml.safe_load(three.text())
    assert plain["updated_at"] == "2026-11-15T12:00:00Z"
    if time.startswith("note"):
        assert "updated_at: 'x'" in plain["note"]
    check_invariants(three)


def parts_of(text: str):
    content = document.read(text.encode(), "f.yaml")
    return content and content.parts


def test_the_parts_of_a_file_are_the_file():
    text = "a: 1\ntmux_sessions:\n- name: x\n  status: stopped\n# c\n- name: y\n  status: stopped\nb: 2\n"
    parts = parts_of(text)
    assert parts.head == "a: 1\n"
    assert parts.blocks == ["- name: x\n  status: stopped\n", "# c\n- name: y\n  status: stopped\n"]
    assert parts.tail == "b: 2\n"
    assert document.join(parts).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        "tmux_sessions: [{name: x}]\n",
        "tmux_sessions:\n  - name: x\n",
        "tmux_sessions:\n-\n  name: x\n",
        "tmux_sessions:\n- &a {name: x}\n- more: *a\n",
        "{tmux_sessions: [{name: x}]}\n",
        "other: &a 5\ntmux_sessions:\n- name: x\n  more: *a\n",
        "? tmux_sessions\n: - name: x\n",
        "tmux_sessions: !!seq\n- name: x\n" if False else "tmux_sessions: # c\n  - name: x\n",
    ],
)
def test_a_file_that_cannot_be_split_has_no_parts(text):
    assert parts_of(text) is None


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "null\n", "~\n", "---\n...\n"])
def test_nothing_is_none(text):
    assert document.read(text.encode(), "f.yaml") is None
