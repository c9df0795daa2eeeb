"""The kind of a row that does not name it: a row of the original system with a name of its own."""

import pytest

from mam.adapters.agents.catalogue import BUILT_IN
from mam.core.names import KNOWN_KINDS
from mam.core.session_row import own_id, own_id_field, with_all_fields

KINDS = {
    "own id": ({"claude_session_id_own": "c-1"}, "claude"),
    "own id of agy": ({"agy_conversation_id_own": "c-1"}, "agy"),
    "own id before the command": ({"claude_session_id_own": "c-1", "start_command": "agy"}, "claude"),
    "command as a string": ({"start_command": "claude"}, "claude"),
    "command with arguments": ({"start_command": "claude --model opus 'first prompt'"}, "claude"),
    "command as a path": ({"start_command": "/opt/my tools/bin/claude --resume"}, "unknown"),
    "command as a quoted path": ({"start_command": "'/opt/my tools/bin/claude' --resume"}, "claude"),
    "command as a list": ({"start_command": ["/usr/local/bin/codex", "--yolo"]}, "codex"),
    "command with variables": ({"start_command": "env -u X A=1 B=2 claude"}, "unknown"),
    "command behind env": ({"start_command": "A=1 exec env B=2 claude"}, "claude"),
    "command by an alias": ({"start_command": "antigravity"}, "agy"),
    "command that cannot be split": ({"start_command": "claude 'x"}, "unknown"),
    "command before the pane": ({"start_command": "codex", "pane": {"cmd": "claude"}}, "codex"),
    "pane": ({"start_command": "./run.sh", "pane": {"cmd": "claude"}}, "claude"),
    "pane with a path": ({"pane": {"cmd": "/usr/bin/agy"}}, "agy"),
    "placeholder of an own id": ({"claude_session_id_own": None, "start_command": "./run.sh"}, "claude"),
    "placeholder after the command": ({"claude_session_id_own": None, "start_command": "agy"}, "agy"),
    "two own ids and a command": (
        {"claude_session_id_own": "a", "agy_conversation_id_own": "b", "start_command": "agy"},
        "agy",
    ),
    "two own ids": ({"claude_session_id_own": "a", "agy_conversation_id_own": "b"}, "unknown"),
    "a program without a kind": ({"start_command": "vim", "pane": {"cmd": "vim"}}, "unknown"),
    "an own id of no kind": ({"vim_session_id_own": "a"}, "unknown"),
    "nothing": ({"start_command": [], "pane": {}}, "unknown"),
    "nothing at all": ({"start_command": None, "pane": None}, "unknown"),
    "a kind that was not known": ({"agent": "unknown", "start_command": "claude"}, "claude"),
    "a kind": ({"agent": "codex", "claude_session_id_own": "a"}, "codex"),
    "a program": ({"agent": "vim", "pane": {"cmd": "claude"}}, "vim"),
    "an alias": ({"agent": "claude-code"}, "claude"),
}


@pytest.mark.parametrize("case", KINDS)
def test_s000_29_the_kind_of_a_row_with_a_name_of_its_own(case) -> None:
    fields, kind = KINDS[case]
    row = with_all_fields({"name": "my-api-work", "status": "stopped", **fields})
    assert row["agent"] == kind
    assert own_id_field(kind) in row


def test_s000_29_such_a_row_is_resumable_by_its_id() -> None:
    row = with_all_fields(
        {
            "name": "my-api-work",
            "status": "stopped",
            "claude_session_id_own": "c-1",
            "start_command": "claude",
        }
    )
    assert (own_id(row), row["resumable"]) == ("c-1", True)


def test_a_name_of_the_pattern_names_the_kind() -> None:
    row = {"name": "lab-page-creator-agy", "status": "stopped", "start_command": "claude"}
    assert with_all_fields(row)["agent"] == "agy"
    assert with_all_fields({**row, "name": "lab-page-creator-antigravity"})["agent"] == "agy"


def test_the_known_kinds_are_those_of_the_catalogue() -> None:
    assert set(KNOWN_KINDS) == set(BUILT_IN)
