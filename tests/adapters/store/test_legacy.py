"""A registry of the original system: mam reads it, changes nothing by reading, and completes a changed row.

These tests use only fields that its documents show: rows without id and version, `start_command` as one
string, unquoted times, and identities of two kinds.
"""

from __future__ import annotations

import re

import pytest
import yaml
from tests.adapters.store.making import check_invariants

from mam.adapters.store.yaml import document
from mam.core.errors import EditRefused
from mam.core.session_row import DEFAULTS

CLAUDE, AGY, OTHER = (
    "lab-landing-page-creator-claude",
    "lab-paper-pdf2md-creator-agy",
    "lab-old-creator-claude",
)
LEGACY = f"""\
# agent sessions of the lab
agent_identities:
  agy:
    conversation_id: 5f0e1d2c-3b4a-4968-8776-655443322110
    project_cwd: /home/lab/paper-pdf2md
  claude:
    project_cwd: /home/lab/landing-page
    session_id: 87dc548e-0000-4000-8000-000000000000
owner: godopu  # not one of the system's own keys
tmux_sessions:
- claude_session_id_own: null
  delegate_job_id: null
  last_visible_status: running
  name: {CLAUDE}
  pane:
    cmd: claude
    cwd: /home/lab/landing-page
    mcp_attachments: []
    pid: 4201132
  start_command: claude --model opus 'first prompt'
  status: running
  tmux_server: multi-agent-canary
# kept for the paper
- agy_conversation_id_own: 5f0e1d2c-3b4a-4968-8776-655443322110
  favourite: [yes, 1:30]
  name: {AGY}
  pane:
    cmd: agy
    cwd: /home/lab/paper-pdf2md
    pid: 4201133
  resumable: true
  start_command: agy
  status: stopped
  stop_reason: api_error
  stopped_at: 2026-06-19T23:41:05Z
  stopped_at_epoch: 1781912465
  termination_mode: graceful
  tmux_server: default
- claude_session_id_own: 87dc548e-0000-4000-8000-000000000000
  name: {OTHER}
  pane: {{cmd: claude, cwd: /home/lab/old, mcp_attachments: [], pid: 4201134}}
  resumable: false
  start_command: claude
  status: terminated
  terminated_at: 2026-06-20T08:00:00Z
  terminated_at_epoch: 1781942400
  termination_mode: purge
updated_at: 2026-06-20T08:00:00Z
"""


@pytest.fixture
def legacy(store):
    store.write(LEGACY)
    return store


def test_it_loads(legacy):
    rows = legacy.registry.view().rows
    assert [row["name"] for row in rows] == [CLAUDE, AGY, OTHER]
    assert [row["agent"] for row in rows] == ["claude", "agy", "claude"]
    assert rows[0]["start_command"] == ["claude", "--model", "opus", "first prompt"]
    assert rows[0]["workspace"] == "/home/lab/landing-page"
    assert rows[1]["agy_conversation_id_own"] == "5f0e1d2c-3b4a-4968-8776-655443322110"
    assert rows[1]["stopped_at"] == "2026-06-19T23:41:05Z"
    assert rows[1]["favourite"] == [True, "1:30"]
    assert (rows[0]["resumable"], rows[1]["resumable"], rows[2]["resumable"]) == (False, True, False)
    assert legacy.registry.view().identities["claude"]["project_cwd"] == "/home/lab/landing-page"


def test_reading_makes_no_state_and_leaves_the_file_alone(legacy):
    before = legacy.yaml.stat()
    legacy.registry.view()
    legacy.registry.is_edited()
    assert not legacy.db.exists()
    after = legacy.yaml.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_change_elsewhere_leaves_its_rows_to_the_byte(legacy):
    before = legacy.blocks()
    legacy.registry.change(lambda transaction: transaction.put({**transaction.named(AGY), "favourite": 5}))
    after = legacy.blocks()
    assert (after[0], after[2]) == (before[0], before[2])
    row = yaml.safe_load(after[1])[0]
    assert re.fullmatch(r"s_[0-9a-f]{8}", row["id"])
    assert set(DEFAULTS) <= set(row)
    assert (row["version"], row["favourite"], row["start_command"]) == (1, 5, ["agy"])
    assert row["stopped_at"] == "2026-06-19T23:41:05Z"
    assert legacy.log() == ["import"]


def test_what_is_not_a_session_survives(legacy):
    legacy.registry.change(lambda transaction: transaction.put({**transaction.named(AGY), "favourite": 5}))
    text = legacy.text()
    assert "owner: godopu  # not one of the system's own keys\n" in text
    assert "# agent sessions of the lab\n" in text
    plain = yaml.safe_load(text)
    assert plain["agent_identities"] == yaml.safe_load(LEGACY)["agent_identities"]
    assert isinstance(plain["updated_at"], str)
    assert text.count("updated_at:") == 1
    assert text.startswith(document.FIRST_LINE)
    assert text.endswith(document.LAST_LINE)


def test_ids_are_given_once(legacy):
    legacy.touch()
    ids = list(legacy.rows())
    assert [row["id"] for row in legacy.again().view().rows] == ids
    for name in (CLAUDE, AGY, OTHER):
        legacy.registry.change(
            lambda transaction, name=name: transaction.put({**transaction.named(name), "touched": True})
        )
    assert list(legacy.rows()) == ids
    check_invariants(legacy)


def test_every_row_changed_is_a_registry_of_today(legacy):
    for name in (CLAUDE, AGY, OTHER):
        legacy.registry.change(
            lambda transaction, name=name: transaction.put({**transaction.named(name), "touched": True})
        )
    check_invariants(legacy)
    for path in legacy.db.parent.glob("state.db*"):
        path.unlink()
    rows = legacy.again().view().rows
    assert [row["name"] for row in rows] == [CLAUDE, AGY, OTHER]


def test_hand_edits_of_rows_without_an_id(legacy):
    legacy.touch()
    legacy.edit("favourite: [yes, 1:30]", "favourite: none\n  role: reviewer")
    legacy.touch()
    row = next(row for row in legacy.rows().values() if row["name"] == AGY)
    assert (row["favourite"], row["role"]) == ("none", "reviewer")
    legacy.edit(f"name: {OTHER}", "name: renamed")
    with pytest.raises(EditRefused):
        legacy.touch()


def test_an_ended_row_without_an_id_may_be_removed(legacy):
    legacy.touch()
    legacy.write(legacy.text().replace(legacy.blocks()[2], ""))
    legacy.touch()
    assert [row["name"] for row in legacy.rows().values()] == [CLAUDE, AGY]


def test_the_original_may_go_on_writing_it(legacy):
    """Its scripts load and dump the complete file: comments are lost, times are unquoted, values stay."""
    legacy.registry.change(lambda transaction: transaction.put({**transaction.named(AGY), "favourite": 5}))
    plain = yaml.safe_load(legacy.text())
    for row in plain["tmux_sessions"]:
        row["seen_by_script"] = True
    legacy.write(yaml.safe_dump(plain))
    legacy.touch()
    assert all(row["seen_by_script"] for row in legacy.rows().values())
    check_invariants(legacy)


@pytest.mark.parametrize(
    "text",
    [
        "tmux_sessions: []\n",
        "tmux_sessions:\n",
        "tmux_sessions: null\nagent_identities: null\n",
        "agent_identities: {}\n",
        "tmux_sessions:\n- {name: x, status: stopped}\n",
        "tmux_sessions:\n  - name: x-creator-claude\n    status: stopped\n",
    ],
)
def test_the_smallest_registries(store, text):
    store.write(text)
    count = text.count("name: x")
    assert len(store.registry.view().rows) == count
    store.touch()
    assert len(store.rows()) == count
    store.again()
    for session_id in store.rows():
        store.put(session_id, role="x")
    check_invariants(store)
