"""Edits of the file by a person: the next change records an edit, or refuses it and keeps the file."""

from __future__ import annotations

import json

import pytest
import yaml
from tests.adapters.store.making import FIRST, check_invariants, file_rows, new_row

import mam
from mam.adapters.store.yaml import yaml_text
from mam.core.errors import Damaged, EditRefused, MamError, RegistryCorrupt, SchemaTooNew
from mam.core.session_row import DEFAULTS

SECOND, THIRD = "s_00000002", "s_00000003"


def line_of(text: bytes, piece: str, first: bool = False) -> int:
    """Return the number of the last or the first line that holds a piece of text."""
    content = text.decode()
    return content.count("\n", 0, content.index(piece) if first else content.rindex(piece)) + 1


def refuse(store, edited: bytes, kind=Damaged, confirm=None) -> MamError:
    """Check that mam refuses a change and that nothing has changed."""
    before, backup = store.dump(), store.backup.read_bytes()
    with pytest.raises(kind) as caught:
        store.again().change(lambda transaction: transaction.log("user", "test", None), confirm)
    assert caught.value.exit_code == 65
    assert str(store.yaml) in str(caught.value)
    assert store.yaml.read_bytes() == edited
    assert store.dump() == before
    assert store.backup.read_bytes() == backup
    assert not store.strays()
    return caught.value


ALLOWED = {
    "role of a row without one": ("  role: null", "  role: tester", SECOND, {"role": "tester"}),
    "start_command": (
        "start_command: [claude]",
        "start_command: claude --model 'my model'",
        FIRST,
        {"start_command": ["claude", "--model", "my model"]},
    ),
    "own id": ("_own: c-2", "_own: c-3", SECOND, {"claude_session_id_own": "c-3"}),
    "unknown key changed": ("note: mine", "note: [1, true, null]", SECOND, {"note": [1, True, None]}),
    "unknown key added": ("note: mine", "note: mine\n  more: {a: b}", SECOND, {"more": {"a": "b"}}),
    "unquoted time": ("note: mine", "note: 2026-11-15T08:00:00Z", SECOND, {"note": "2026-11-15T08:00:00Z"}),
    "number with underscores": ("note: mine", "note: 1_000", SECOND, {"note": 1000}),
    "sexagesimal is text": ("note: mine", "note: 1:30", SECOND, {"note": "1:30"}),
    "unicode": ("note: mine", "note: 'ünï ☂ 𝄞'", SECOND, {"note": "ünï ☂ 𝄞"}),
    "block text": (
        "note: mine",
        "note: |\n    # end of sessions\n    b",
        SECOND,
        {"note": "# end of sessions\nb\n"},
    ),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_an_allowed_edit_is_taken_in(three, case):
    old, new, session_id, fields = ALLOWED[case]
    three.edit(old, new)
    assert fields.items() <= three.again().view().find(session_id).items()
    three.touch()
    row = three.rows()[session_id]
    assert fields.items() <= row.items()
    assert row["last_action"]["verb"] == "edit"
    assert row["version"] == 2
    assert three.log() == ["edit"]
    check_invariants(three)


def test_an_edit_is_taken_in_before_the_change_that_found_it(three):
    three.edit("note: mine", "note: yours")
    note = three.registry.change(lambda transaction: transaction.get(SECOND)["note"])
    assert note == "yours"


def test_an_unknown_key_may_be_removed(three):
    three.edit("  note: mine\n", "")
    three.touch()
    assert "note" not in three.rows()[SECOND]
    check_invariants(three)


def test_an_ended_row_may_be_removed(three):
    text = three.text()
    three.write(text.replace(three.blocks()[1], ""))
    assert [row["id"] for row in three.again().view().rows] == [FIRST, THIRD]
    three.touch()
    assert list(three.rows()) == [FIRST, THIRD]
    assert three.log() == ["forget"]
    check_invariants(three)


def test_rows_may_be_put_in_another_order(three):
    first, second, third = three.blocks()
    text = three.text()
    edited = text.replace(first + second + third, third + first + second)
    assert edited != text
    three.write(edited)
    three.touch()
    assert list(three.rows()) == [THIRD, FIRST, SECOND]
    assert three.text() == edited
    three.put(SECOND, note="x")
    assert [row["id"] for row in file_rows(three.yaml)] == [THIRD, FIRST, SECOND]


def test_top_level_keys_of_a_person_survive(three):
    three.edit("schema_version", "team: blue  # ours\nschema_version")
    three.touch()
    three.put(FIRST, delegate_job_id="job-1")
    assert "team: blue  # ours\n" in three.text()
    three.edit("team: blue", "team: [red]")
    three.put(FIRST, delegate_job_id="job-2")
    assert yaml.safe_load(three.text())["team"] == ["red"]
    check_invariants(three)


REFUSED = {
    "name": ("name: demo-app-2-creator-claude", "name: other", "name: other", "only mam writes it"),
    "id": ("id: s_00000002", "id: s_0000000f", "id: s_0000000f", "only mam writes it"),
    "role": ("role: developer", "role: tester", "role: tester", "never changes once set"),
    "workspace": ("workspace: /abs/demo/app", "workspace: /else", "workspace: /else", "only mam writes it"),
    "version": ("version: 1\n  note", "version: 7\n  note", "version: 7", "only mam writes it"),
    "pane": ("{id: '%2'", "{id: '%9'", "{id: '%9'", "only mam writes it"),
    "status of no kind": ("status: stopped", "status: paused", "status: paused", "must be one of"),
    "duplicate key": ("note: mine", "note: mine\n  note: x", "note: x", "twice"),
    "duplicate id": ("id: s_00000002", "id: s_00000001", "id: s_00000001", "twice"),
    "a tag": ("note: mine", "note: !!python/object:os.system x", "note: !!", "not allowed"),
    "a local tag": ("note: mine", "note: !mine x", "note: !mine", "not allowed"),
    "a tag on a mapping": ("note: mine", "note: !!set {a}", "note: !!set", "not allowed"),
    "binary": ("note: mine", "note: !!binary aGk=", "note: !!", "not allowed"),
    "a merge key": ("note: mine", "note: &a {b: 1}\n  more: {<<: *a}", "more: {<<", "plain text"),
    "a key that is a list": ("note: mine", "? [a, b]\n  : mine", "? [a", "plain text"),
    "an alias of nothing": ("note: mine", "note: *nobody", "note: *nobody", "names nothing"),
    "a loop of aliases": ("note: mine", "note: &a [*a]", "note: &a", "names nothing"),
    "broken indentation": ("  note: mine", "   note: mine", None, "line"),
    "an open quote": ("note: mine", "note: 'mine", None, "line"),
    "a tab": ("  note: mine", "\tnote: mine", None, "line"),
    "a control character": ("note: mine", "note: mi\x07ne", None, ""),
    "a second document": ("# end of sessions", "---\na: b", "---", "second document"),
    "identities": ("agent_identities: {}", "agent_identities: {claude: {session_id: x}}", None, "only mam"),
    "identities of a wrong kind": (
        "agent_identities: {}",
        "agent_identities: 5",
        "agent_identities",
        "mapping",
    ),
    "a row that is no mapping": (
        "- id: s_00000002",
        "- 5\n- id: s_00000002",
        "tmux_sessions",
        "number 2 is not",
    ),
    "the list is no list": ("tmux_sessions:\n", "tmux_sessions: 5\nx:\n", "tmux_sessions", "must be a list"),
}


@pytest.mark.promise("P4")
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_edit_names_line_and_reason(three, case):
    old, new, place, reason = REFUSED[case]
    before = three.text()
    edited = three.edit(old, new)
    error = refuse(three, edited)
    assert reason in str(error)
    if place is not None:
        assert f"line {line_of(edited, place)}: " in str(error)
    if case != "identities":
        with pytest.raises(Damaged):
            three.again().view()
    three.write(before)
    three.touch()
    check_invariants(three)


def test_an_added_row_is_refused(three):
    edited = three.edit("- id: s_00000002", "- name: new\n  status: stopped\n- id: s_00000002")
    assert f"line {line_of(edited, '- name: new')}: the session 'new' is not in the registry" in str(
        refuse(three, edited)
    )


def test_a_running_row_may_not_be_removed(three):
    edited = three.write(three.text().replace(three.blocks()[0], ""))
    assert "is running and was removed" in str(refuse(three, edited))


def test_a_newer_file_is_left_alone(three):
    edited = three.edit("schema_version: 2", "schema_version: 99")
    assert isinstance(refuse(three, edited), SchemaTooNew)


@pytest.mark.parametrize("text", [b"\xff\xfe\x00bad", b"\x00", b"a: \xc3\x28\n", b"5", b"- a\n", b"'text'"])
def test_something_else_altogether(three, text):
    refuse(three, three.write(text), RegistryCorrupt)


class TestStatus:
    @pytest.mark.parametrize(
        ("confirmed", "reason"), [(False, "not what was observed"), (None, "not be confirmed")]
    )
    def test_a_status_that_is_not_confirmed_is_refused(self, three, confirmed, reason):
        edited = three.edit("status: running", "status: stopped")
        error = refuse(three, edited, confirm=lambda *_arguments: confirmed)
        assert reason in str(error)
        assert f"line {line_of(edited, 'status: stopped', first=True)}: " in str(error)

    def test_without_a_confirmation_it_is_refused(self, three):
        refuse(three, three.edit("status: running", "status: stopped"))

    def test_a_confirmed_one_is_taken_in(self, three):
        three.edit("status: running", "status: stopped")
        questions = []

        def confirm(row, status):
            questions.append((row["id"], status))
            return True

        three.touch(confirm)
        assert questions == [(FIRST, "stopped")]
        row = three.rows()[FIRST]
        assert (row["status"], row["stop_reason"]) == ("stopped", "edited by hand")
        check_invariants(three)

    def test_reading_does_not_believe_it_yet(self, three):
        three.edit("status: running", "status: stopped")
        assert three.again().view().find(FIRST)["status"] == "running"


class TestBombs:
    def bomb(self) -> str:
        lines = ["  bomb0: &b0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"  bomb{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 10)}]" for n in range(1, 12)]
        return "\n".join(lines)

    def test_billion_laughs(self, three):
        edited = three.edit("  note: mine", self.bomb())
        assert "beyond any registry" in str(refuse(three, edited))

    @pytest.mark.parametrize("depth", [101, 10_000, 300_000])
    @pytest.mark.parametrize("opening", ["[", "{a: "])
    def test_depth(self, three, depth, opening):
        """PyYAML alone overflows the C stack at about ten thousand levels, which kills the process."""
        edited = three.edit("note: mine", "note: " + opening * depth)
        assert "beyond any registry" in str(refuse(three, edited))

    def test_depth_in_block_style(self, three):
        edited = three.edit("  note: mine", "  note:" + "".join(f"\n{' ' * n}-" for n in range(3, 150)))
        assert "beyond any registry" in str(refuse(three, edited))

    def test_size(self, three):
        edited = three.write(three.text().encode() + b"# padding\n" * 7_000_000)
        assert len(edited) > yaml_text.LARGEST
        assert "larger than 64 MB" in str(refuse(three, edited))


STYLES = {
    "flow": lambda rows: yaml.safe_dump({"tmux_sessions": rows}, default_flow_style=True),
    "indented list": lambda rows: (
        "tmux_sessions:\n" + "".join("  " + line for line in yaml.safe_dump(rows).splitlines(keepends=True))
    ),
    "anchors": lambda rows: yaml.safe_dump(
        {"tmux_sessions": [{**row, "shared": rows[0]["pane"]} for row in rows]}
    ),
    "json": lambda rows: json.dumps({"tmux_sessions": rows}),
    "dash alone": lambda rows: (
        "tmux_sessions:\n"
        + "".join("-\n" + "".join(f"  {line}\n" for line in yaml.safe_dump(row).splitlines()) for row in rows)
    ),
}


class TestStyle:
    """mam renders a file completely, once, if its style does not allow copying parts."""

    @pytest.mark.parametrize("style", STYLES)
    def test_rendered_whole_and_kept_in_pieces_from_then_on(self, three, style):
        rows = [dict(row) for row in three.rows().values()]
        three.write(STYLES[style](rows))
        three.touch()
        check_invariants(three)
        assert three.blocks()
        before = three.blocks()
        three.put(FIRST, delegate_job_id="job-1")
        assert three.blocks()[1:] == before[1:]

    def test_windows_line_ends(self, three):
        three.write(three.text().replace("\n", "\r\n"))
        three.touch()
        three.put(FIRST, delegate_job_id="job-1")
        check_invariants(three)

    def test_no_line_break_at_the_end(self, three):
        three.write(three.text().removesuffix("\n"))
        three.touch()
        three.edit("note: mine", "note: yours")
        three.write(three.text().removesuffix("\n"))
        three.put(FIRST, delegate_job_id="job-1")
        assert three.rows()[SECOND]["note"] == "yours"
        check_invariants(three)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-le"])
    def test_other_encodings(self, three, encoding):
        data = three.text().encode(encoding)
        three.write(data)
        try:
            three.touch()
        except RegistryCorrupt:
            assert three.yaml.read_bytes() == data
            return
        three.put(FIRST, delegate_job_id="job-1")
        check_invariants(three)


NASTY = [
    True,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "--x",
    "../../x",
    "a b",
    "s_00000001",
    "\x1b[2J",
    "\0",
    "é" * 3,
    [],
    ["x"],
    [1],
    [[]],
    [{}],
    [None],
    {},
    {"id": 5},
    {"pid": "x"},
    {"pid": -1},
    {"pid": True},
    {"cwd": 5},
    {"id": ["x"]},
    {"XDG_DATA_HOME": 5},
    {"by": 5},
    "#(touch x)",
    "x;y",
    "/" * 200,
]


@pytest.mark.starts
@pytest.mark.parametrize("key", [*DEFAULTS, "claude_session_id_own"])
def test_a_foreign_registry_with_a_wrong_value_is_named_or_works(store, key):
    """A value from a cloned repository or an older system must not break a verb or reach a program."""
    for value in NASTY:
        row = {**new_row(1, status="stopped"), key: value}
        store.registry.close()
        for path in store.db.parent.glob("state.db*"):
            path.unlink()
        store.write(yaml.safe_dump({"tmux_sessions": [row]}))
        fleet = mam.open(str(store.root))
        try:
            fleet.sessions.ls()
            fleet._access.context.registry.change(lambda transaction: None)
            for session in fleet.sessions.list():
                fleet.sessions.status(session.id)
                fleet.sessions.forgettable(older_than=5)
                fleet.sessions.resumable()
        except EditRefused as error:
            assert "line" in str(error)
        except MamError as error:
            assert error.exit_code in (1, 2, 65), (key, value, error)
        finally:
            fleet.close()


@pytest.mark.parametrize("has_state", (False, True), ids=("no folder", "an empty database"))
@pytest.mark.parametrize(
    "text", ("tmux_sessions:\n- [broken\n", "tmux_sessions:\n- {name: a}\n"), ids=("not YAML", "a bad row")
)
def test_nobody_is_told_to_move_away_the_only_copy(store, has_state, text) -> None:
    """Before mam has recorded the file, nothing could write it again."""
    store.yaml.parent.mkdir(exist_ok=True)
    store.yaml.write_text(text, encoding="utf-8")
    if has_state:
        store.registry.ensure_exists()
    for attempt in (store.registry.view, lambda: store.again().change(lambda _transaction: None)):
        with pytest.raises(Damaged) as caught:
            attempt()
        assert caught.value.hint == "correct the line; keep the file: mam has not recorded it yet"
    store.backup.write_text("tmux_sessions: []\n", encoding="utf-8")
    with pytest.raises(Damaged) as caught:
        store.again().view()
    assert str(store.backup) in (caught.value.hint or "")


def test_a_recorded_registry_may_be_moved_away(three) -> None:
    three.yaml.write_text("tmux_sessions:\n- [broken\n", encoding="utf-8")
    with pytest.raises(Damaged) as caught:
        three.again().change(lambda _transaction: None)
    assert "move the file away" in (caught.value.hint or "")
    three.yaml.rename(three.root / "away.yaml")
    three.again().change(lambda _transaction: None)
    assert len(file_rows(three.yaml)) == 3
