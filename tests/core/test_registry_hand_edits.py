"""Edits of the registry file: every kind of edit is in the table of allowed or of refused edits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mam.core import registry_hand_edits
from mam.core.errors import EditRefused
from mam.core.registry_hand_edits import KnownRow
from mam.core.session_row import DEFAULTS, STATUSES, own_id_field, with_all_fields

ACTION = {"by": "user", "verb": "edit", "at_epoch": 1794729600}
GONE = object()


class Parsed(dict):
    """A row as the parser of the file returns it, with the line of each key."""

    def __init__(self, values, line=10):
        super().__init__(values)
        self.line = line
        self.lines = {key: line + number for number, key in enumerate(values)}


def row(number=1, **fields):
    return with_all_fields(
        {
            "id": f"s_{number:08x}",
            "name": f"demo-{number}",
            "agent": "claude",
            "workspace": "/w",
            "status": "stopped",
            "start_command": ["claude"],
            "version": 4,
            "mine": "x",
            **fields,
        }
    )


def known(*rows, written=None):
    return [KnownRow(row["id"], row, row if written is None else written) for row in rows]


def plan(rows, file_rows, *, forgotten=(), complete=True):
    parsed = [Parsed(row) if isinstance(row, dict) else row for row in file_rows]
    return registry_hand_edits.plan_edit(rows, forgotten, parsed, path="f.yaml", complete=complete)


def changed(row, **fields):
    result = {**row, **fields}
    return {key: value for key, value in result.items() if value is not GONE}


# A row whose kind mam does not know.
NO_KIND = {"start_command": ["./run.sh"], "agent": "unknown"}
ALLOWED = {
    "role of a row that has none": ({}, {"role": "tester"}),
    "start_command as a list": ({}, {"start_command": ["claude", "--model", "x"]}),
    "start_command as a string": ({}, {"start_command": "claude --model x"}),
    "own id set": ({}, {"claude_session_id_own": "0d0e-1"}),
    "own id changed": ({"claude_session_id_own": "a"}, {"claude_session_id_own": "b"}),
    "own id cleared": ({"claude_session_id_own": "a"}, {"claude_session_id_own": None}),
    "own id of another kind": ({}, {"agy_conversation_id_own": "b"}),
    "unknown key added": ({}, {"note": {"deep": [1]}}),
    "unknown key changed": ({}, {"mine": "y"}),
    "unknown key changed in kind only": ({"mine": [1]}, {"mine": [True]}),
    "unknown key set to null": ({}, {"mine": None}),
    "unknown key removed": ({}, {"mine": GONE}),
}

# A person may say the kind of a row whose kind mam does not know.
ALLOWED["s000_29 kind of a row that has none"] = (NO_KIND, {"agent": "claude"})

NO_EDIT = {
    "nothing": ({}, {}),
    "a default left out": ({}, {"parent": GONE, "conversations": GONE, "resume_count": GONE}),
    "a time written in another way": (
        {"stopped_at": "2026-11-15T08:00:00Z"},
        {"stopped_at": "2026-11-15 08:00:00+00:00"},
    ),
    "the null own id left out": ({}, {"claude_session_id_own": GONE}),
}

_WRITTEN_BY_MAM = {
    "id": "s_0000ffff",
    "name": "other",
    "agent": "codex",
    "workspace": "/elsewhere",
    "resumable": True,
    "tmux_server": "other",
    "tmux_session_id": "$9",
    "permissions": "skip",
    "model": "large",
    "pane": {"id": "%9"},
    "conversations": [{"id": "a", "source": "hand", "since": "x"}],
    "stores": {"CLAUDE_CONFIG_DIR": "/x"},
    "worktree": {"path": "/x"},
    "delegate_job_id": "job-9",
    "parent": "s_00000009",
    "last_visible_status": "archived",
    "last_visible_note": "x",
    "exit_status": 9,
    "created_at": "2026-11-15T08:00:00Z",
    "created_at_epoch": 9,
    "resumed_at": "2026-11-15T08:00:00Z",
    "resume_count": 9,
    "resume_tier": 1,
    "stopped_at": "2026-11-15T08:00:00Z",
    "stopped_at_epoch": 9,
    "stop_reason": "x",
    "terminated_at": "2026-11-15T08:00:00Z",
    "terminated_at_epoch": 9,
    "termination_mode": "forced",
    "last_action": {"by": "me", "verb": "x", "at_epoch": 1},
    "version": 9,
}
REFUSED = {
    **{
        f"{key} changed": ({}, {key: value}, key, "only mam writes it")
        for key, value in _WRITTEN_BY_MAM.items()
    },
    "a time that is another": (
        {"stopped_at": "2026-11-15T08:00:00Z"},
        {"stopped_at": "2026-11-15 08:00:01+00:00"},
        "stopped_at",
        "only mam writes it",
    ),
    "version removed": ({}, {"version": GONE}, None, "was removed"),
    "id removed": ({}, {"id": GONE}, None, "was removed"),
    "role changed": ({"role": "developer"}, {"role": "tester"}, "role", "never changes once set"),
    "role removed": ({"role": "developer"}, {"role": GONE}, None, "never changes once set"),
    "role emptied": ({"role": "developer"}, {"role": " "}, "role", "not empty"),
    "role of a wrong kind": ({}, {"role": 5}, "role", "must be"),
    "start_command removed": ({}, {"start_command": GONE}, None, "was removed"),
    "start_command emptied": ({}, {"start_command": []}, "start_command", "was removed"),
    "start_command of a wrong kind": ({}, {"start_command": [1]}, "start_command", "must be"),
    "own id of a wrong kind": ({}, {"claude_session_id_own": 5}, "claude_session_id_own", "must be"),
    "own id like an option": ({}, {"claude_session_id_own": "--yolo"}, "claude_session_id_own", "must be"),
    "own id like a path": ({}, {"claude_session_id_own": "../x"}, "claude_session_id_own", "must be"),
    "own id removed": ({"claude_session_id_own": "a"}, {"claude_session_id_own": GONE}, None, "must be"),
    "status of no kind": ({}, {"status": "paused"}, "status", "must be one of"),
    "name removed": ({}, {"name": GONE}, None, "must be a text"),
    "s000_29 kind that mam does not know": (
        NO_KIND,
        {"agent": "claud"},
        "agent",
        "'agent' must be one of agy, claude, codex",
    ),
    "s000_29 kind of a wrong form": (NO_KIND, {"agent": "--x"}, "agent", "must be"),
    "s000_29 kind removed": (NO_KIND, {"agent": GONE}, None, "must be one of"),
    "s000_29 kind made unknown": ({}, {"agent": "unknown"}, "agent", "only mam writes it"),
}


def test_every_field_is_in_a_table():
    editable = {"role", "start_command", "status"}
    assert set(DEFAULTS) == set(_WRITTEN_BY_MAM) | editable


@pytest.mark.parametrize("case", ALLOWED)
def test_allowed(case):
    before, fields = ALLOWED[case]
    session = row(**before)
    edit = plan(known(session), [changed(session, **fields)])
    assert not edit.is_empty()
    taken = registry_hand_edits.take_in(
        edit, {session["id"]: session}, ACTION, path="f", confirm=lambda *_: None
    )[session["id"]]
    for key, value in fields.items():
        assert taken.get(key, GONE) == value, key
    assert taken["last_action"] == ACTION


@pytest.mark.parametrize("case", NO_EDIT)
def test_no_edit(case):
    before, fields = NO_EDIT[case]
    session = row(**before)
    assert plan(known(session), [changed(session, **fields)]).is_empty()


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_line_and_reason(case):
    before, fields, key, reason = REFUSED[case]
    session = row(**before)
    file_row = Parsed(changed(session, **fields))
    with pytest.raises(EditRefused) as caught:
        plan(known(session), [file_row])
    line = file_row.lines.get(key, file_row.line)
    assert str(caught.value).startswith(f"f.yaml, line {line}: ")
    assert reason in str(caught.value)
    assert caught.value.exit_code == 65
    assert caught.value.hint


def test_an_own_id_of_another_session_is_refused():
    """Otherwise a purge of one session would delete the conversation of the other."""
    session = row()
    other = row(id="s_00000002", name="other", claude_session_id_own="c-2")
    file_row = Parsed(changed(session, claude_session_id_own="c-2"))
    with pytest.raises(EditRefused, match=r"'c-2' belongs to the session 'other'") as caught:
        plan([*known(session), *known(other)], [file_row, Parsed(other)])
    assert f"line {file_row.lines['claude_session_id_own']}:" in str(caught.value)


def test_an_own_id_may_move_to_another_session():
    session, other = row(), row(id="s_00000002", name="other", claude_session_id_own="c-2")
    moved = [changed(session, claude_session_id_own="c-2"), changed(other, claude_session_id_own=None)]
    assert set(plan([*known(session), *known(other)], moved).changes) == {session["id"], "s_00000002"}


def test_an_own_id_joins_the_conversations_and_makes_the_row_resumable():
    session = row(resumable=False)
    edit = plan(known(session), [changed(session, claude_session_id_own="b")])
    taken = registry_hand_edits.take_in(
        edit, {session["id"]: session}, ACTION, path="f", confirm=lambda *_: None
    )[session["id"]]
    assert [entry["id"] for entry in taken["conversations"]] == ["b"]
    assert taken["conversations"][0]["source"] == "hand"
    assert taken["resumable"] is True


def test_s000_29_a_corrected_kind_brings_its_own_id():
    session = {**row(**NO_KIND, resumable=False), "claude_session_id_own": "c-1"}
    edit = plan(known(session), [changed(session, agent="claude-code")])
    taken = registry_hand_edits.take_in(
        edit, {session["id"]: session}, ACTION, path="f", confirm=lambda *_: None
    )[session["id"]]
    assert (taken["agent"], taken["claude_session_id_own"], taken["resumable"]) == ("claude", "c-1", True)
    assert "unknown_session_id_own" not in taken
    edit = plan(known(session), [changed(session, agent="codex")])
    taken = registry_hand_edits.take_in(
        edit, {session["id"]: session}, ACTION, path="f", confirm=lambda *_: None
    )[session["id"]]
    assert (taken["agent"], taken["codex_session_id_own"], taken["resumable"]) == ("codex", None, False)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"claude_session_id_own": "c-1"}, "claude"),
        ({"start_command": "/usr/bin/codex --x"}, "codex"),
        ({"mine": "y"}, "unknown"),
    ],
)
def test_s000_29_an_edit_that_shows_the_kind_is_enough(fields, kind):
    session = row(**NO_KIND)
    edit = plan(known(session), [changed(session, **fields)])
    taken = registry_hand_edits.take_in(
        edit, {session["id"]: session}, ACTION, path="f", confirm=lambda *_: None
    )[session["id"]]
    assert taken["agent"] == kind
    assert taken[own_id_field(kind)] == fields.get(own_id_field(kind))


class TestWhileTheFileIsBehind:
    """A change is committed and not yet in the file: the file may show either state of each field."""

    def test_the_old_state_is_no_edit(self):
        old, now = row(delegate_job_id="a"), row(delegate_job_id="b", version=5)
        assert plan(known(now, written=old), [old]).is_empty()

    def test_the_new_state_is_no_edit(self):
        old, now = row(delegate_job_id="a"), row(delegate_job_id="b", version=5)
        assert plan(known(now, written=old), [now]).is_empty()

    def test_an_edit_beside_it_is_found(self):
        old, now = row(delegate_job_id="a"), row(delegate_job_id="b", version=5)
        edit = plan(known(now, written=old), [changed(old, mine="y")])
        assert edit.changes == {now["id"]: {"mine": "y"}}

    def test_a_row_that_was_never_in_the_file_was_not_removed(self):
        session = row()
        assert plan([KnownRow(session["id"], session, None)], []).is_empty()

    def test_a_forgotten_row_that_is_still_in_the_file_is_no_addition(self):
        assert plan([], [row()], forgotten=[row()]).is_empty()

    def test_a_forgotten_row_whose_name_was_given_again(self):
        new = row(2, name="demo-1")
        assert plan([KnownRow(new["id"], new, None)], [row(1)], forgotten=[row(1)]).is_empty()


class TestRows:
    def test_an_ended_row_may_be_removed(self):
        edit = plan(known(row(1), row(2)), [row(2)])
        assert edit.removals == ["s_00000001"]

    @pytest.mark.parametrize("status", sorted(set(STATUSES) - {"running"}))
    def test_whatever_its_end(self, status):
        assert plan(known(row(1, status=status)), []).removals == ["s_00000001"]

    def test_a_running_row_may_not(self):
        with pytest.raises(EditRefused, match="is running and was removed"):
            plan(known(row(1, status="running")), [])

    def test_order_is_free(self):
        edit = plan(known(row(1), row(2)), [row(2), row(1)])
        assert edit.is_empty()
        assert edit.order == ["s_00000002", "s_00000001"]

    def test_rows_are_not_added_by_hand(self):
        with pytest.raises(EditRefused, match=r"is not in the registry$") as refused:
            plan(known(row(1)), [row(1), row(2)])
        assert refused.value.hint.endswith("add sessions with mam create or mam adopt")

    def test_only_the_hint_names_the_command_that_renames(self):
        with pytest.raises(EditRefused, match=r"only mam writes it$") as refused:
            plan(known(row(1)), [changed(row(1), name="other")])
        assert refused.value.hint.endswith("mam rename demo-1 renames it")

    def test_a_row_stands_once(self):
        with pytest.raises(EditRefused, match="twice"):
            plan(known(row(1)), [row(1), row(1)])

    def test_a_row_is_a_mapping(self):
        with pytest.raises(EditRefused, match="must be a mapping"):
            plan(known(row(1)), ["demo"])

    @pytest.mark.parametrize("fields", [{"mine": "y"}, {"mine": GONE}, {"status": "archived"}])
    def test_nothing_is_believed_of_a_file_without_its_end(self, fields):
        with pytest.raises(EditRefused, match="ends early"):
            plan(known(row(1)), [changed(row(1), **fields)], complete=False)

    def test_nor_a_removal(self):
        with pytest.raises(EditRefused, match="ends early"):
            plan(known(row(1), row(2)), [row(1)], complete=False)

    def test_a_missing_end_alone_is_no_edit(self):
        assert plan(known(row(1)), [row(1)], complete=False).is_empty()


def claim(before, status, is_confirmed):
    session = row(status=before)
    edit = plan(known(session), [changed(session, status=status)])
    return registry_hand_edits.take_in(
        edit, {session["id"]: session}, ACTION, path="f.yaml", confirm=lambda *_: is_confirmed
    )[session["id"]]


class TestStatus:
    @pytest.mark.parametrize(
        ("before", "status"),
        [
            ("running", "stopped"),
            ("running", "terminated"),
            ("stopped", "terminated"),
            ("stopped", "archived"),
            ("terminated", "archived"),
            ("stopped", "running"),
            ("terminated", "running"),
            ("archived", "running"),
        ],
    )
    def test_what_an_observation_confirms_is_taken_in(self, before, status):
        assert claim(before, status, True)["status"] == status

    @pytest.mark.parametrize(
        ("is_confirmed", "reason"), [(False, "not what was observed"), (None, "not be confirmed")]
    )
    def test_what_is_not_confirmed_is_refused(self, is_confirmed, reason):
        with pytest.raises(EditRefused, match=reason) as caught:
            claim("running", "stopped", is_confirmed)
        assert "line 15" in str(caught.value)

    @pytest.mark.parametrize(
        ("before", "status"), [("running", "archived"), ("terminated", "stopped"), ("archived", "stopped")]
    )
    def test_a_way_that_the_lifecycle_does_not_have_is_refused_with_its_line(self, before, status):
        with pytest.raises(EditRefused, match="line 15"):
            claim(before, status, True)


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=5,
)


@given(key=some.sampled_from([*DEFAULTS, "claude_session_id_own", "mine", "new"]), value=json_values)
def test_any_value_in_any_field_is_taken_in_or_refused(key, value):
    session = row()
    try:
        edit = plan(known(session), [{**session, key: value}])
        taken = registry_hand_edits.take_in(
            edit, {session["id"]: session}, ACTION, path="f", confirm=lambda *_: True
        )
    except EditRefused:
        return
    for result in taken.values():
        assert result is None or list(with_all_fields(result))[:3] == ["id", "name", "agent"]
