"""The state of a root is found from folders below, and is never written through a link."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.adapters.store.making import FIRST, Store, check_invariants, new_row

from mam.adapters.store import root_paths
from mam.adapters.store.files import hook_spool
from mam.adapters.store.yaml import projection
from mam.core.errors import InvalidPath, MamError, NotAllowed, ReadOnly, RegistryBusy, Unavailable


class TestLinks:
    """A link at any name that mam writes: mam never touches its target."""

    @pytest.fixture
    def outside(self, tmp_path):
        path = tmp_path / "outside"
        path.write_text("precious", encoding="utf-8")
        yield path
        assert path.read_text(encoding="utf-8") == "precious"
        assert path.stat().st_nlink == 1

    NAMES = (".agent-sessions.yaml.tmp", "agent-sessions.yaml.bak")

    @pytest.mark.parametrize("name", [*NAMES, ".agent-sessions.yaml.tmp.old"])
    @pytest.mark.parametrize("kind", ["symlink", "dangling", "hard link", "fifo"])
    def test_at_a_name_beside_the_file(self, three, outside, name, kind, tmp_path, monkeypatch):
        if name.endswith(".old"):
            monkeypatch.setattr(projection, "swap", lambda *_names: False)
        planted = three.yaml.parent / name
        planted.unlink(missing_ok=True)
        precious = three.root / "other"
        precious.write_text("precious", encoding="utf-8")
        if kind == "hard link":
            os.link(precious, planted)
        elif kind == "fifo":
            os.mkfifo(planted)
        else:
            planted.symlink_to(outside if kind == "symlink" else tmp_path / "nowhere")
        three.put(FIRST, delegate_job_id="job-1")
        check_invariants(three)
        assert three.backup.is_file()
        assert not three.backup.is_symlink()
        assert not (tmp_path / "nowhere").exists()
        assert precious.read_text(encoding="utf-8") == "precious"

    @pytest.mark.parametrize("name", NAMES)
    def test_a_folder_at_a_name_beside_the_file_is_reported(self, three, name):
        planted = three.yaml.parent / name
        planted.unlink(missing_ok=True)
        planted.mkdir()
        with pytest.raises(Unavailable):
            three.put(FIRST, delegate_job_id="job-1")
        planted.rmdir()
        three.touch()
        assert three.rows()[FIRST]["delegate_job_id"] == "job-1"
        check_invariants(three)

    def test_at_the_file_itself(self, three, tmp_path):
        """mam reads the link as the file, leaves its target alone, and replaces the link by a file."""
        target = tmp_path / "target.yaml"
        before = three.yaml.read_bytes()
        target.write_bytes(before)
        three.yaml.unlink()
        three.yaml.symlink_to(target)
        three.put(FIRST, delegate_job_id="job-1")
        assert target.read_bytes() == before
        assert not three.yaml.is_symlink()
        check_invariants(three)

    def test_at_the_file_to_something_else(self, three, outside):
        three.yaml.unlink()
        three.yaml.symlink_to(outside)
        with pytest.raises(MamError):
            three.touch()

    def test_in_a_circle(self, three):
        three.yaml.unlink()
        three.yaml.symlink_to(three.yaml)
        for attempt in (three.again().view, three.registry.is_edited, three.touch):
            with pytest.raises(Unavailable):
                attempt()

    def test_at_the_database(self, store, outside):
        Path(store.paths.state).mkdir()
        store.db.symlink_to(outside)
        with pytest.raises(NotAllowed, match="symbolic link"):
            store.add(new_row(1))

    @pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
    @pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
    def test_something_else_in_the_place_of_the_database(self, three, kind, suffix):
        """The way on is not that mam makes its own: the state would be gone then."""
        path = Path(three.paths.db + suffix)
        three.registry.close()
        path.unlink(missing_ok=True)
        if kind == "link":
            path.symlink_to("/precious/x")
        else:
            {"pipe": os.mkfifo, "folder": os.mkdir}[kind](path)
        with pytest.raises(NotAllowed) as refused:
            three.touch()
        words = {"pipe": "is a named pipe", "folder": "is a directory", "link": "is a symbolic link"}
        assert f"{path} {words[kind]}" in refused.value.message
        assert "creates its own" not in refused.value.hint
        assert ("mam restore" in refused.value.hint) is (not suffix)
        assert ("/precious/x" in refused.value.hint) is (kind == "link" and not suffix)

    def test_at_the_ignore_file(self, store, outside):
        store.yaml.parent.mkdir()
        (store.yaml.parent / ".gitignore").symlink_to(outside)
        store.add(new_row(1))

    def test_a_folder_in_the_place_of_the_file(self, three):
        three.yaml.unlink()
        three.yaml.mkdir()
        with pytest.raises(InvalidPath, match="regular file"):
            three.touch()

    def test_a_pipe_in_the_place_of_the_file(self, three):
        three.yaml.unlink()
        os.mkfifo(three.yaml)
        with pytest.raises(InvalidPath, match="regular file"):
            three.put(FIRST, delegate_job_id="job-1")
        assert three.yaml.is_fifo()


@pytest.mark.parametrize(("kind", "words"), [("file", "is a file"), ("pipe", "is a named pipe")])
def test_a_file_in_the_place_of_the_state(store, kind, words):
    path = Path(store.paths.state)
    if kind == "file":
        path.touch()
    else:
        os.mkfifo(path)
    with pytest.raises(NotAllowed) as refused:
        store.paths.check()
    assert f"{path} {words}, and not the folder" in refused.value.message
    assert f"mv {path} {path}.aside" in refused.value.hint
    assert "mam restore" in refused.value.hint


class TestFinding:
    def test_the_nearest_ancestor_with_state(self, tmp_path):
        inner = tmp_path / "a" / "b"
        inner.mkdir(parents=True)
        assert root_paths.find_root(str(inner)) == str(inner)
        (tmp_path / ".mam").mkdir()
        assert root_paths.find_root(str(inner)) == str(tmp_path)
        (tmp_path / "a" / ".hermes").mkdir()
        assert root_paths.find_root(str(inner)) == str(tmp_path)
        (tmp_path / "a" / ".hermes" / "agent-sessions.yaml").touch()
        assert root_paths.find_root(str(inner)) == str(tmp_path / "a")

    def test_a_directory_that_is_gone(self, tmp_path):
        with pytest.raises(InvalidPath):
            root_paths.find_root(str(tmp_path / "nowhere"))

    def test_a_named_file_keeps_its_state_beside_itself(self, tmp_path):
        named = root_paths.of_registry(str(tmp_path / "my.yaml"))
        assert (named.yaml, named.state) == (str(tmp_path / "my.yaml"), str(tmp_path / "my.yaml.mam"))

    @pytest.mark.parametrize("name", ["x" * 252, "x" * 5000, "a\0b"], ids=["its state", "itself", "NUL"])
    def test_a_named_file_that_cannot_have_its_name_is_refused(self, tmp_path, name):
        with pytest.raises(InvalidPath, match="path of a registry"):
            root_paths.of_registry(str(tmp_path / name))

    def test_a_state_folder_that_cannot_be_looked_at_is_an_error_of_mam(self, monkeypatch, tmp_path):
        def look(path):
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(root_paths.os, "lstat", look)
        with pytest.raises(ReadOnly, match="cannot be written or read"):
            root_paths.of_root(str(tmp_path)).check_state_folder()

    def test_a_named_file_that_is_a_roots_own_means_the_root(self, tmp_path):
        link = tmp_path / "link"
        (tmp_path / "r").mkdir()
        link.symlink_to(tmp_path / "r")
        named = root_paths.of_registry(str(link / ".hermes" / "agent-sessions.yaml"))
        assert (named.root, named.state) == (str(tmp_path / "r"), str(tmp_path / "r" / ".mam"))


class TestOddFolders:
    @pytest.mark.parametrize("name", ["a b", "ünï", "x#(touch y)", "q?mode=ro", "100%", "a\nb", "'\"", "-x"])
    def test_names(self, quick_path, name):
        root = quick_path / name
        root.mkdir()
        store = Store(root)
        store.add(new_row(1))
        store.put(FIRST, role="x")
        assert len(store.again().view().rows) == 1
        check_invariants(store)
        store.registry.close()

    def test_a_name_that_is_not_unicode(self, quick_path):
        root = Path(os.fsdecode(os.fsencode(quick_path) + b"/\xff"))
        root.mkdir()
        store = Store(root)
        store.add(new_row(1))
        store.edit("role: null", "role: 5")
        with pytest.raises(MamError):
            store.touch()
        store.registry.close()

    def test_git_never_sees_the_state(self, quick_path):
        subprocess.run(["git", "init", "-q", str(quick_path)], check=True)
        store = Store(quick_path)
        store.add(new_row(1))
        store.put(FIRST, role="x")
        status = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=all"],
            cwd=quick_path,
            capture_output=True,
            check=True,
        )
        assert status.stdout == b""
        store.registry.close()


class TestSpool:
    def test_only_whole_files_in_the_order_of_time(self, tmp_path):
        for number, name in enumerate(["s_00000001.5.b.json", "s_00000001.5.a.json"]):
            (tmp_path / name).write_text('{"x": 1}', encoding="utf-8")
            os.utime(tmp_path / name, ns=(number, number))
        (tmp_path / ".s_00000001.5.c.json").write_text("half", encoding="utf-8")
        (tmp_path / "s_00000001.5.d.tmp").write_text("half", encoding="utf-8")
        payloads = hook_spool.pending(str(tmp_path))
        assert [Path(payload.path).name for payload in payloads] == [
            "s_00000001.5.b.json",
            "s_00000001.5.a.json",
        ]
        assert (payloads[0].session_id, payloads[0].pid, payloads[0].data) == ("s_00000001", "5", {"x": 1})

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b"5", b"[" * 100_000])
    def test_what_is_no_payload_is_an_empty_one(self, tmp_path, content):
        (tmp_path / "s_00000001.5.x.json").write_bytes(content)
        assert hook_spool.pending(str(tmp_path))[0].data == {}

    @pytest.mark.parametrize(
        "name", ["package.json", "s_1.5.x.json", "s_00000001.x.y.json", "s_00000001.5.json"]
    )
    def test_what_no_hook_of_ours_wrote_is_left_alone(self, tmp_path, name):
        (tmp_path / name).write_text("{}", encoding="utf-8")
        assert hook_spool.pending(str(tmp_path)) == []

    def test_what_is_no_file_is_left_alone(self, tmp_path):
        (tmp_path / "s_00000001.5.folder.json").mkdir()
        os.mkfifo(tmp_path / "s_00000001.5.pipe.json")
        (tmp_path / "s_00000001.5.link.json").symlink_to("/dev/zero")
        assert hook_spool.pending(str(tmp_path)) == []
        assert hook_spool.pending(str(tmp_path / "nowhere")) == []


def test_a_lock_that_is_held_is_reported_and_not_waited_for_for_ever(three, monkeypatch):
    from mam.adapters.store import database

    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    other = Store(three.root)
    connection = other.registry.writer()
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(RegistryBusy) as caught:
        three.again().change(lambda transaction: None)
    assert caught.value.retryable
    assert len(three.registry.view().rows) == 3
    connection.execute("ROLLBACK")
    three.touch()
    other.registry.close()
