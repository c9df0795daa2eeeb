"""A purge: it deletes the conversation and proves it, or it refuses before anything happens."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mam.adapters.agents.claude import files
from mam.core.errors import EditRefused, Refused, Unconfirmed

CONVERSATION = "87dc548e-0000-4000-8000-000000000000"
ORIGINAL = """\
tmux_sessions:
- claude_session_id_own: {conversation}
  delegate_job_id: null
  name: my-api-work
  pane:
    cmd: {command}
    cwd: {workspace}
    mcp_attachments: []
    pid: 4194000
  resumable: true
  start_command: {command}
  status: {status}
  tmux_server: {server}
updated_at: 2026-06-20T08:00:00Z
"""


@pytest.fixture
def original(fleet, home, workspace, tmux_server):
    """Write a registry of the original system and the conversation of its row; return the conversation."""

    def write(command="claude --model opus", *, status="stopped", conversation=CONVERSATION):
        file = Path(fleet.registry_file)
        file.parent.mkdir(exist_ok=True)
        text = ORIGINAL.format(
            conversation=conversation,
            command=command,
            workspace=workspace,
            status=status,
            server=tmux_server,
        )
        file.write_text(text, encoding="utf-8")
        stores = {"CLAUDE_CONFIG_DIR": str(home / ".claude")}
        transcript = Path(files.transcript(CONVERSATION, str(workspace), stores))
        transcript.parent.mkdir(parents=True, exist_ok=True)
        transcript.write_text('{"type":"user","message":{"role":"user","content":"hi"}}\n', encoding="utf-8")
        return transcript

    return write


def rows(fleet):
    return yaml.safe_load(Path(fleet.registry_file).read_text(encoding="utf-8"))["tmux_sessions"]


@pytest.mark.parametrize("status", ["stopped", "running"])
def test_s000_29_a_purge_of_an_original_row_deletes_its_file(fleet, original, status) -> None:
    transcript = original(status=status)
    (session,) = fleet.sessions.ls()["sessions"]
    assert (session["agent"], session["resume"]["id"], session["resume"]["on_disk"]) == (
        "claude",
        CONVERSATION,
        True,
    )
    outcome = fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert (outcome.session.row["status"], outcome.session.row["termination_mode"]) == ("terminated", "purge")
    assert outcome.session.row["claude_session_id_own"] is None
    assert not transcript.exists()
    removed = fleet.sessions.log("my-api-work")[-1]["detail"]["removed"]
    # The log does not name what is gone.
    assert any(path.endswith("/*.jsonl") for path in removed)


@pytest.mark.parametrize("status", ["stopped", "running"])
def test_s000_29_a_purge_without_a_kind_is_refused_before_anything_happens(fleet, original, status) -> None:
    transcript = original("./run.sh", status=status)
    file = Path(fleet.registry_file)
    file.write_text(
        file.read_text(encoding="utf-8").replace("claude_session", "other_session"), encoding="utf-8"
    )
    with pytest.raises(Refused, match=r"'my-api-work' has no agent kind.*nothing was stopped") as caught:
        fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert caught.value.exit_code == 1
    assert "'agent:'" in (caught.value.hint or "") and str(file) in (caught.value.hint or "")
    row = fleet.sessions.get("my-api-work").row
    assert (row["status"], row["agent"], row["other_session_id_own"]) == (status, "unknown", CONVERSATION)
    assert transcript.exists()
    assert fleet._access.context.registry.view().intents == []
    assert fleet.sessions.stop("my-api-work").session.row["status"] == "stopped", (
        "a stop without a purge works"
    )


def test_s000_29_a_person_corrects_the_kind_and_the_purge_deletes(fleet, original) -> None:
    transcript = original("./run.sh", conversation="null")
    file = Path(fleet.registry_file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("claude_session_id_own: null", "mine: 1"), encoding="utf-8")
    fleet.sessions.stop("my-api-work")
    assert fleet.sessions.get("my-api-work").row["agent"] == "unknown"
    text = file.read_text(encoding="utf-8")

    def edit(kind: str) -> None:
        correction = f"agent: {kind}\n  claude_session_id_own: {CONVERSATION}"
        file.write_text(
            text.replace("name: my-api-work", f"name: my-api-work\n  {correction}"), encoding="utf-8"
        )

    edit("claud")
    with pytest.raises(EditRefused, match=r"'agent' must be one of agy, claude"):
        fleet.sessions.stop("my-api-work", purge_conversation=True)
    edit("claude")
    assert fleet.sessions.get("my-api-work").row["agent"] == "claude", "a reader shows the edit at once"
    assert fleet.sessions.stop("my-api-work", purge_conversation=True).session.row["agent"] == "claude"
    assert not transcript.exists()
    (row,) = rows(fleet)
    assert (row["agent"], row["claude_session_id_own"]) == ("claude", None)
    assert "unknown_session_id_own" not in row


def test_s000_29_a_program_without_a_kind_keeps_a_conversation_that_mam_cannot_delete(
    fleet, original
) -> None:
    original("./run.sh")
    file = Path(fleet.registry_file)
    file.write_text(
        file.read_text(encoding="utf-8").replace("  name: my", "  agent: vim\n  name: my"), encoding="utf-8"
    )
    with pytest.raises(Refused, match="does not know where vim keeps"):
        fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert fleet.sessions.get("my-api-work").row["claude_session_id_own"] == CONVERSATION


def test_s000_29_a_purge_says_when_there_was_nothing_to_delete(fleet, original) -> None:
    original().unlink()
    outcome = fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert (outcome.changed, outcome.note) == (True, f"conversation {CONVERSATION} was not on disk")
    outcome = fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert outcome.note == "it had no conversation"


def test_s000_29_a_file_that_stays_is_reported(fleet, original, monkeypatch) -> None:
    from mam.adapters.agents.claude.kind import Claude

    transcript = original()
    monkeypatch.setattr(Claude, "purge_paths", lambda *_arguments: [])
    with pytest.raises(Unconfirmed, match="is still on disk"):
        fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert transcript.exists()
    assert fleet.sessions.get("my-api-work").row["claude_session_id_own"] == CONVERSATION


def test_s000_29_a_conversation_in_the_folder_of_another_path_is_deleted(
    fleet, original, workspace, tmp_path
) -> None:
    """The original recorded the directory as the shell named it; Claude Code files it by its real path."""
    transcript = original()
    link = tmp_path / "link"
    link.symlink_to(workspace)
    file = Path(fleet.registry_file)
    file.write_text(
        file.read_text(encoding="utf-8").replace(f"cwd: {workspace}", f"cwd: {link}"), encoding="utf-8"
    )
    outcome = fleet.sessions.stop("my-api-work", purge_conversation=True)
    assert (outcome.note, transcript.exists()) == (None, False)
