"""The kind of Antigravity: mam knows its files and nothing else."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from mam.adapters.agents.agy import Agy
from mam.adapters.agents.delete_files import remove
from mam.adapters.agents.kind import Request, Screen
from mam.core.errors import NotAllowed, Usage

KIND = Agy()


class Store:
    """A home with the folder of Antigravity."""

    def __init__(self, home):
        self.home = home
        self.folder = home / ".gemini" / "antigravity-cli"
        self.stores = {"HOME": str(home)}

    def conversation(self):
        ident = str(uuid.uuid4())
        self.file(f"conversations/{ident}.db")
        self.file(f"brain/{ident}/task.md")
        return ident

    def file(self, name, content="x"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    def write_map(self, content):
        return self.file(
            "cache/last_conversations.json", content if isinstance(content, str) else json.dumps(content)
        )

    def database(self, ident):
        return str(self.folder / "conversations" / f"{ident}.db")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def holding():
    """Start processes that have files open."""
    running = []

    def start(*paths, cwd=None):
        code = (
            "import sys; files = [open(path) for path in sys.argv[1:]]; print(flush=True); sys.stdin.read()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
        )
        process.stdout.readline()
        running.append(process)
        return process.pid

    yield start
    for process in running:
        process.communicate()


def start_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])


def launch(*args, **facts):
    return KIND.launch(Request(command=["agy", *args], program="/bin/agy", environ={}, **facts)).argv


def test_only_a_resume_adds_an_argument() -> None:
    assert launch("-x") == ["/bin/agy", "-x"]
    assert launch("-x", conversation="N", resume=True) == ["/bin/agy", "--conversation", "N", "-x"]
    assert launch(conversation="N") == ["/bin/agy"], "agy does not take the id of a new conversation"


@pytest.mark.parametrize("args", [["--conversation", "N"], ["--conversation=N"]])
def test_mam_refuses_a_conversation_of_the_caller(args) -> None:
    with pytest.raises(Usage, match="only mam may pass --conversation"):
        launch(*args)


def test_mam_does_not_read_its_screen() -> None:
    screen_state = KIND.read_screen(Screen("This is agy\n> \n"))
    assert (screen_state.state, screen_state.dialog, screen_state.box) == ("unknown", None, None)
    assert not KIND.reads_screen
    assert KIND.exit_word == "Exit"


def test_a_conversation_is_on_disk_with_its_database(store) -> None:
    ident = store.conversation()
    assert KIND.on_disk(ident, "/w", store.stores) is True
    assert KIND.on_disk(str(uuid.uuid4()), "/w", store.stores) is False
    assert KIND.on_disk("../../x", "/w", store.stores) is None
    assert KIND.on_disk(ident, "/w", {}) is None


def test_the_map_names_the_last_conversation_of_a_workspace(store) -> None:
    ident = store.conversation()
    store.write_map({"/w": ident, "/gone": str(uuid.uuid4()), "/odd": 3, "/path": "../x"})
    assert KIND.conversations("/w", store.stores) == [ident]
    for other in ("/gone", "/odd", "/path", "/other"):
        assert KIND.conversations(other, store.stores) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, "null", '{"/w": {"id": 1}}'])
def test_a_damaged_map_names_nothing(store, content) -> None:
    store.write_map(content)
    assert KIND.conversations("/w", store.stores) == []


class TestProof:
    def test_the_open_database_is_that_of_the_session(self, store, holding) -> None:
        own, sibling = store.conversation(), store.conversation()
        pid, other = holding(store.database(own)), holding(store.database(sibling))
        store.write_map({str(Path.cwd()): sibling})
        evidence, conversation = KIND.read_state(pid, start_of(pid), store.stores)
        assert (evidence.state, conversation) == ("unknown", own)
        assert KIND.read_state(other, start_of(other), store.stores)[1] == sibling

    def test_the_map_alone_proves_nothing(self, store, holding) -> None:
        pid = holding()
        store.write_map({str(Path.cwd()): store.conversation()})
        assert KIND.read_state(pid, start_of(pid), store.stores) is None

    def test_of_several_open_databases_the_map_names_the_present_one(self, store, holding) -> None:
        old, new = store.conversation(), store.conversation()
        pid = holding(store.database(old), store.database(new))
        assert KIND.read_state(pid, start_of(pid), store.stores) is None
        store.write_map({str(Path.cwd()): store.conversation()})
        assert KIND.read_state(pid, start_of(pid), store.stores) is None, (
            "the map names a conversation of another session"
        )
        store.write_map({str(Path.cwd()): new})
        assert KIND.read_state(pid, start_of(pid), store.stores)[1] == new

    def test_another_process_with_the_pid_and_another_store_name_nothing(
        self, store, holding, tmp_path
    ) -> None:
        pid = holding(store.database(store.conversation()))
        assert KIND.read_state(pid, start_of(pid) + 1, store.stores) is None
        assert KIND.read_state(pid, start_of(pid), {"HOME": str(tmp_path / "other")}) is None
        assert KIND.read_state(2**22 + 1, 1, store.stores) is None

    def test_a_process_with_the_open_database_is_a_holder(self, store, holding) -> None:
        ident = store.conversation()
        assert KIND.holders(ident, store.stores) == []
        pid = holding(store.database(ident))
        assert KIND.holders(ident, store.stores) == [(pid, start_of(pid))]

    def test_a_child_of_a_holder_is_no_other_holder(self, store, holding) -> None:
        ident = store.conversation()
        with Path(store.database(ident)).open(encoding="utf-8"):
            holding(store.database(ident))
            assert KIND.holders(ident, store.stores) == [(os.getpid(), start_of(os.getpid()))]


class TestPurge:
    def purge(self, store, ident):
        return [path for folder, path in KIND.purge_paths(ident, "/w", store.stores) if remove(folder, path)]

    def test_a_purge_deletes_one_conversation_and_not_the_map(self, store) -> None:
        own, other = store.conversation(), store.conversation()
        store.file(f"conversations/{own}.db-wal")
        store.file(f"conversations/{own}.db-shm")
        map_file = store.write_map({"/w": own})
        assert len(self.purge(store, own)) == 4
        remaining = sorted(path.name for path in store.folder.rglob("*") if path.is_file())
        assert remaining == sorted([f"{other}.db", "task.md", map_file.name])

    def test_a_purge_follows_no_link(self, store, tmp_path) -> None:
        ident = store.conversation()
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "task.md").write_text("x", encoding="utf-8")
        brain = store.folder / "brain" / ident
        (brain / "task.md").unlink()
        brain.rmdir()
        brain.symlink_to(precious)
        with pytest.raises(NotAllowed, match="link"):
            self.purge(store, ident)
        assert (precious / "task.md").exists()

    @pytest.mark.parametrize("ident", ["", "..", "../..", "x/y", "A" * 36])
    def test_only_an_id_has_paths(self, store, ident) -> None:
        assert KIND.purge_paths(ident, "/w", store.stores) == []
