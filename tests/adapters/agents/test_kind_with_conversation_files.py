"""The base class of the kinds that keep one file per conversation."""

from pathlib import Path

import pytest

from mam.adapters.agents.kind import Transcript, Turn, add_turn
from mam.adapters.agents.kind_with_conversation_files import KindWithConversationFiles, config_folder


class Parrot(KindWithConversationFiles):
    """A kind with one file per id in a folder, and one prompt per line."""

    name = "parrot"
    config_variable = "PARROT_HOME"

    def find_record(self, conversation, stores):
        if conversation == "secret":
            raise PermissionError
        path = Path(config_folder(stores, "PARROT_HOME", ".parrot") or "", conversation)
        return str(path) if path.exists() else None

    def has_prompt(self, text, conversation, path, since):
        return text in Path(path).read_text(encoding="utf-8")[since:].splitlines()

    def read_turns(self, path, turns):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return Transcript([Turn("user", line, None) for line in lines[-turns:]])


KIND = Parrot()


@pytest.fixture
def stores(tmp_path):
    (tmp_path / "one").write_text("hello\nagain\n", encoding="utf-8")
    return {"PARROT_HOME": str(tmp_path)}


def test_the_variable_is_kept_only_if_the_caller_sets_it(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    assert KIND.stores({"HOME": "/h", "PARROT_HOME": "there"}) == {"PARROT_HOME": str(tmp_path / "there")}
    assert KIND.stores({"HOME": "/h", "PARROT_HOME": ""}) == {"HOME": "/h"}
    assert KIND.stores({}) == {"HOME": str(Path("~").expanduser())}


def test_the_folder_of_the_configuration() -> None:
    assert config_folder({"PARROT_HOME": "/p", "HOME": "/h"}, "PARROT_HOME", ".parrot") == "/p"
    assert config_folder({"HOME": "/h"}, "PARROT_HOME", ".parrot") == "/h/.parrot"
    assert config_folder({}, "PARROT_HOME", ".parrot") is None


def test_a_prompt_counts_only_beyond_the_earlier_size(stores) -> None:
    assert KIND.has_submitted("hello", "one", stores, 0) is True
    assert KIND.has_submitted("hello", "one", stores, 6) is False
    assert KIND.has_submitted("again", "one", stores, 6) is True
    assert KIND.count_submitted("again", "one", stores, 6) == 1
    assert KIND.transcript_size("one", stores) == 12


def test_the_transcript_has_the_last_turns(stores) -> None:
    assert [turn.text for turn in KIND.read_transcript("one", "/", stores, 1).turns] == ["again"]


def test_a_conversation_without_a_file_has_no_transcript(stores) -> None:
    assert KIND.has_submitted("hello", "two", stores, 0) is False
    assert KIND.read_transcript("two", "/", stores, 1) is None
    assert KIND.transcript_size("two", stores) == 0


def test_an_unreadable_file_is_unknown(stores) -> None:
    assert KIND.has_submitted("hello", "secret", stores, 0) is None
    assert KIND.read_transcript("secret", "/", stores, 1) is None
    assert KIND.transcript_size("secret", stores) == 0


def test_the_parts_of_an_answer_are_one_turn() -> None:
    turns: list[Turn] = []
    for role, text, at in (
        ("user", "a", "t1"),
        ("user", "b", 7),
        ("assistant", "c", "t3"),
        ("assistant", "d", "t4"),
    ):
        add_turn(turns, role, text, at)
    assert [(turn.role, turn.text, turn.at) for turn in turns] == [
        ("user", "a", "t1"),
        ("user", "b", None),
        ("assistant", "c\nd", "t3"),
    ]
