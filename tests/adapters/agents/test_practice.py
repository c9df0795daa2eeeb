"""The kind of the practice agent: screens, hooks and transcripts."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.kind import Screen
from mam.adapters.agents.practice import Practice

KIND = Practice()
RULE = "─" * 60
IDLE = f"● done\n\n{RULE} dev ──\n❯ \n{RULE}──\n  ? for help · permissions: ask\n"
BUSY = f"✻ Thinking… (2s · esc to interrupt)\n{IDLE[8:]}"
DRAFT = IDLE.replace("❯ \n", "❯ half a sentence\n  and more\n")
PERMISSION = """\
 Bash command
   make test
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again
   3. No, and tell the agent what to do differently (esc)
 Enter to confirm · Esc to cancel
"""


@pytest.mark.parametrize(
    ("text", "state", "box", "dialog"),
    [
        (IDLE, "idle", "empty", None),
        (BUSY, "working", "empty", None),
        (DRAFT, "idle", "draft", None),
        (PERMISSION, "waiting", None, "permission"),
        (IDLE + "\n" * 30, "idle", "empty", None),
        ("Starting…\n", "booting", None, None),
        ("", "unknown", None, None),
        ("$ ", "unknown", None, None),
        ("❯ \n", "unknown", None, None),
        # A dialog above the input box has ended.
        (PERMISSION + "\n" * 3 + IDLE, "idle", "empty", None),
        # An answer that quotes a dialog is no dialog.
        (IDLE.replace("● done", "● Do you want to proceed?"), "idle", "empty", None),
    ],
)
def test_a_screen(text, state, box, dialog) -> None:
    screen_state = KIND.read_screen(Screen(text))
    assert (screen_state.state, screen_state.box, screen_state.dialog) == (state, box, dialog)


@given(st.text(alphabet=st.sampled_from("❯ ─\nab1.?"), max_size=300))
def test_only_a_prompt_without_text_is_an_empty_box(text) -> None:
    screen_state = KIND.read_screen(Screen(text))
    if screen_state.box == "empty":
        lines = [line.rstrip() for line in text.rstrip().splitlines()]
        assert any(set(line.replace("❯", "").strip()) == set() and line.startswith("❯") for line in lines)


@pytest.mark.parametrize(
    ("event", "state", "waiting_for"),
    [
        ("SessionStart", "idle", None),
        ("UserPromptSubmit", "working", None),
        ("PermissionRequest", "waiting", "permission"),
        ("PostToolUse", "working", None),
        ("Stop", "idle", None),
        ("StopFailure", "idle", None),
        ("SessionEnd", None, None),
    ],
)
def test_a_hook(event, state, waiting_for) -> None:
    hook_event = KIND.read_hook({"hook_event_name": event, "session_id": str(uuid.uuid4())})
    assert hook_event is not None
    assert (hook_event.state, hook_event.waiting_for) == (state, waiting_for)


@given(
    st.dictionaries(
        st.sampled_from(["hook_event_name", "session_id", "prompt"]), st.none() | st.integers() | st.text()
    )
)
def test_any_payload_can_be_read(payload) -> None:
    KIND.read_hook(payload)


def test_a_transcript_with_damaged_lines(tmp_path) -> None:
    conversation = str(uuid.uuid4())
    folder = tmp_path / "mam-practice"
    folder.mkdir()
    stores = {"XDG_DATA_HOME": str(tmp_path)}
    lines = [json.dumps({"type": "user", "text": "hello", "at": ""}), "{", "[1]", "\x00"]
    (folder / f"{conversation}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert KIND.on_disk(conversation, "/w", stores) is True
    assert KIND.has_submitted("hello", conversation, stores, 0) is True
    assert KIND.count_submitted("hello", conversation, stores, 0) == 1
    assert KIND.has_submitted("hello", conversation, stores, 50) is False
    assert [evidence.state for evidence in KIND.read_transcript_evidence(conversation, "/w", stores)] == [
        "working"
    ]


@pytest.mark.parametrize("conversation", ["../../etc/passwd", "", "x", "0" * 36, "a/b"])
def test_only_an_id_names_a_file(tmp_path, conversation) -> None:
    stores = {"XDG_DATA_HOME": str(tmp_path)}
    assert KIND.on_disk(conversation, "/w", stores) is None
    assert KIND.purge_paths(conversation, "/w", stores) == []


def test_the_conversations_of_a_workspace_newest_first(tmp_path) -> None:
    folder = tmp_path / "mam-practice"
    folder.mkdir()
    ids = [str(uuid.uuid4()) for _ in range(4)]
    entries = [("/w", ids[0]), ("/w", ids[1]), ("/other", ids[2]), ("/w", ids[3]), ("/w", ids[0])]
    lines = [json.dumps({"cwd": cwd, "id": ident, "at": ""}) for cwd, ident in entries]
    (folder / "workspaces.jsonl").write_text("\n".join([*lines, "broken"]), encoding="utf-8")
    for ident in ids[:3]:
        (folder / f"{ident}.jsonl").write_text("{}\n", encoding="utf-8")
    assert KIND.conversations("/w", {"XDG_DATA_HOME": str(tmp_path)}) == [ids[0], ids[1]]


def test_the_screen_shows_a_name_and_no_colour() -> None:
    kind = Practice()
    edge = "─" * 20
    screen = Screen(f"{edge} dev-agent ──\n❯ \n{edge}\n")
    assert kind.identity_commands("dev-agent", "green") == ["/color green", "/rename dev-agent"]
    effects = [
        kind.identity_took_effect(command, "", {}, screen)
        for command in ("/color green", "/rename dev-agent", "/rename x")
    ]
    assert effects == [None, True, False]
