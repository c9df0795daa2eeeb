"""Antigravity as a kind: what is known of its files, and that nothing else is claimed."""

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
    """A home with Antigravity's folder in it."""

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

    def remember(self, known):
        return self.file(
            "cache/last_conversations.json", known if isinstance(known, str) else json.dumps(known)
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
        code = "import sys; held = [open(one) for one in sys.argv[1:]]; print(flush=True); sys.stdin.read()"
        one = subprocess.Popen(
            [sys.executable, "-c", code, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
        )
        one.stdout.readline()
        running.append(one)
        return one.pid

    yield start
    for one in running:
        one.communicate()


def start_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])


def launch(*args, **facts):
    return KIND.launch(Request(command=["agy", *args], program="/bin/agy", environ={}, **facts)).argv


def test_only_a_resume_adds_a_word() -> None:
    assert launch("-x") == ["/bin/agy", "-x"]
    assert launch("-x", conversation="N", resume=True) == ["/bin/agy", "--conversation", "N", "-x"]
    assert launch(conversation="N") == ["/bin/agy"], "an id cannot be chosen"


@pytest.mark.parametrize("words", [["--conversation", "N"], ["--conversation=N"]])
def test_a_conversation_of_the_callers_is_refused(words) -> None:
    with pytest.raises(Usage, match="--conversation is for mam"):
        launch(*words)


def test_nothing_of_its_screen_is_claimed() -> None:
    look = KIND.look(Screen("This is agy\n> \n"))
    assert (look.state, look.dialog, look.box) == ("unknown", None, None)
    assert not KIND.reads_screen
    assert KIND.exit_word == "Exit"


def test_a_conversation_is_on_disk_with_its_database(store) -> None:
    ident = store.conversation()
    assert KIND.on_disk(ident, "/w", store.stores) is True
    assert KIND.on_disk(str(uuid.uuid4()), "/w", store.stores) is False
    assert KIND.on_disk("../../x", "/w", store.stores) is None
    assert KIND.on_disk(ident, "/w", {}) is None


def test_the_map_names_the_last_one_of_a_workspace(store) -> None:
    ident = store.conversation()
    store.remember({"/w": ident, "/gone": str(uuid.uuid4()), "/odd": 3, "/path": "../x"})
    assert KIND.conversations("/w", store.stores) == [ident]
    for other in ("/gone", "/odd", "/path", "/other"):
        assert KIND.conversations(other, store.stores) == []


@pytest.mark.parametrize("broken", ["", "{", "[]", "[" * 100_000, "null", '{"/w": {"id": 1}}'])
def test_a_broken_map_says_nothing(store, broken) -> None:
    store.remember(broken)
    assert KIND.conversations("/w", store.stores) == []


class TestProof:
    def test_the_open_database_is_the_sessions_own(self, store, holding) -> None:
        mine, sibling = store.conversation(), store.conversation()
        pid, other = holding(store.database(mine)), holding(store.database(sibling))
        store.remember({str(Path.cwd()): sibling})
        evidence, found = KIND.read_state(pid, start_of(pid), store.stores)
        assert (evidence.state, found) == ("unknown", mine)
        assert KIND.read_state(other, start_of(other), store.stores)[1] == sibling

    def test_the_map_alone_proves_nothing(self, store, holding) -> None:
        pid = holding()
        store.remember({str(Path.cwd()): store.conversation()})
        assert KIND.read_state(pid, start_of(pid), store.stores) is None

    def test_of_several_the_map_names_the_one(self, store, holding) -> None:
        one, two = store.conversation(), store.conversation()
        pid = holding(store.database(one), store.database(two))
        assert KIND.read_state(pid, start_of(pid), store.stores) is None
        store.remember({str(Path.cwd()): store.conversation()})
        assert KIND.read_state(pid, start_of(pid), store.stores) is None, "the map names a sibling's"
        store.remember({str(Path.cwd()): two})
        assert KIND.read_state(pid, start_of(pid), store.stores)[1] == two

    def test_another_process_with_the_pid_or_another_store_says_nothing(
        self, store, holding, tmp_path
    ) -> None:
        pid = holding(store.database(store.conversation()))
        assert KIND.read_state(pid, start_of(pid) + 1, store.stores) is None
        assert KIND.read_state(pid, start_of(pid), {"HOME": str(tmp_path / "other")}) is None
        assert KIND.read_state(2**22 + 1, 1, store.stores) is None

    def test_who_holds_it(self, store, holding) -> None:
        ident = store.conversation()
        assert KIND.holders(ident, store.stores) == []
        pid = holding(store.database(ident))
        assert KIND.holders(ident, store.stores) == [(pid, start_of(pid))]

    def test_a_child_of_a_holder_belongs_to_it(self, store, holding) -> None:
        ident = store.conversation()
        with Path(store.database(ident)).open(encoding="utf-8"):
            holding(store.database(ident))
            assert KIND.holders(ident, store.stores) == [(os.getpid(), start_of(os.getpid()))]


class TestPurge:
    def purge(self, store, ident):
        return [path for folder, path in KIND.purge_paths(ident, "/w", store.stores) if remove(folder, path)]

    def test_just_one_conversation_and_not_the_map(self, store) -> None:
        mine, other = store.conversation(), store.conversation()
        store.file(f"conversations/{mine}.db-wal")
        store.file(f"conversations/{mine}.db-shm")
        known = store.remember({"/w": mine})
        assert len(self.purge(store, mine)) == 4
        left = sorted(path.name for path in store.folder.rglob("*") if path.is_file())
        assert left == sorted([f"{other}.db", "task.md", known.name])

    def test_nothing_through_a_link(self, store, tmp_path) -> None:
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
    def test_what_is_no_id_names_no_path(self, store, ident) -> None:
        assert KIND.purge_paths(ident, "/w", store.stores) == []
