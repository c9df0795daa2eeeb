"""Pipes and devices among the files of an agent do not block mam: it takes them for unreadable."""

import os

import pytest

from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.codex.kind import Codex
from mam.adapters.agents.gemini.kind import Gemini
from mam.adapters.agents.hermes.kind import Hermes
from mam.adapters.agents.open_regular import is_regular_file, open_regular_file, read_start
from mam.adapters.agents.opencode.kind import Opencode

ID = "3f2c8c9e-0000-4000-8000-000000000000"


def test_only_regular_files_are_opened(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    with open_regular_file(str(tmp_path / "file")) as file:
        assert file.read() == b"x"
    assert read_start(str(tmp_path / "file"), 0) == b""
    assert read_start(str(tmp_path / "file"), 9) == b"x"
    for name in ("pipe", "link", ""):
        with pytest.raises(OSError, match="regular"):
            open_regular_file(str(tmp_path / name))
        assert not is_regular_file(str(tmp_path / name))
        assert read_start(str(tmp_path / name), 9) == b""
    assert not is_regular_file(str(tmp_path / "gone"))


def make(path, kind):
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_kind_blocks_on_a_pipe_or_device(tmp_path, kind) -> None:
    """Opening a pipe would block for ever, and reading a device would never end."""
    from mam.adapters.agents.claude.files import project_key

    home = tmp_path / "home"
    work = str(tmp_path / "work")
    for path in (
        home / ".claude" / "projects" / project_key(work) / f"{ID}.jsonl",
        home / ".claude" / "sessions" / "77.json",
        home / ".codex" / "config.toml",
        home / ".codex" / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T00-00-00-{ID}.jsonl",
        home / ".gemini" / "projects.json",
        home / ".gemini" / "tmp" / "work" / ".project_root",
        home / ".gemini" / "tmp" / "work" / "logs.json",
        home / ".local" / "share" / "opencode" / "opencode.db",
        home / ".hermes" / "state.db",
        home / ".hermes" / "active_profile",
    ):
        make(path, kind)
    environ = {"HOME": str(home), "XDG_DATA_HOME": str(home / ".local" / "share")}
    for agent in (Claude(), Codex(), Gemini(), Opencode(), Hermes()):
        stores = agent.stores(environ)
        agent.on_disk(ID, work, stores)
        agent.conversations(work, stores)
        assert agent.read_transcript_evidence(ID, work, stores) == []
        assert agent.read_state(77, 1, stores) is None or not agent.has_state_file
        agent.holders(ID, stores)
        assert not agent.has_submitted("x", ID, stores, 0)
        agent.read_transcript(ID, work, stores, 5)
        agent.transcript_size(ID, stores)
        agent.leftovers(work, stores)
