"""The conversation on disk."""

from __future__ import annotations

import json
import os
import re

import pytest

from mam.practice.options import parse
from mam.practice.transcript import Conversation, Refused, is_uuid, new_id, open_conversation

ID = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "mam-practice"


def said(ident: str, *texts: str) -> Conversation:
    conversation = Conversation(ident)
    for text in texts:
        conversation.append("user", text, "/w")
    return conversation


def test_nothing_exists_before_the_first_message(data):
    assert not Conversation(ID).is_saved()
    assert not data.exists()


def test_lines_keys_and_modes(data):
    previous = os.umask(0)
    try:
        said(ID, " exact\n\ttext \x1b[m\u2028é ")
    finally:
        os.umask(previous)
    raw = (data / f"{ID}.jsonl").read_text("utf-8")
    assert raw.count("\n") == 1 == len(raw.splitlines())
    turn = json.loads(raw)
    assert list(turn) == ["type", "text", "at"]
    assert (turn["type"], turn["text"]) == ("user", " exact\n\ttext \x1b[m\u2028é ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", turn["at"])
    assert data.stat().st_mode & 0o777 == 0o700
    assert (data / f"{ID}.jsonl").stat().st_mode & 0o777 == 0o600
    assert (data / "workspaces.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_folder_is_noted_once(data):
    said(ID, "one", "two").append("assistant", "three", "/w")
    note = json.loads((data / "workspaces.jsonl").read_text())
    assert sorted(note) == ["at", "cwd", "id"]
    assert (note["cwd"], note["id"]) == ("/w", ID)


def test_a_folder_with_foreign_bytes_is_noted(data):
    Conversation(ID).append("user", "x", "/w\udcff")
    assert json.loads((data / "workspaces.jsonl").read_bytes())["cwd"] == "/w\udcff"


def test_resume_skips_what_is_broken_and_starts_a_fresh_line(data):
    said(ID, "before")
    path = data / f"{ID}.jsonl"
    with path.open("ab") as file:
        file.write(
            b'\xff\xfe\n[]\nnull\n{"type":"user"}\n{"type":"user","text":5}\n' + b"[" * 100_000 + b"\n"
        )
        file.write(b'{"type":"user","text":"torn')
    conversation = open_conversation(parse(["--resume", ID]))
    assert conversation.user_messages() == ["before"]
    conversation.append("user", "after", "/w")
    assert open_conversation(parse(["--resume", ID])).user_messages() == ["before", "after"]


def test_fork_copies_with_the_first_message(data):
    said(ID, "before")
    path = data / f"{ID}.jsonl"
    path.write_bytes(path.read_bytes() + b"broken\n")
    fork = open_conversation(parse(["--resume", ID, "--fork-session", "--session-id", OTHER]))
    assert fork.id == OTHER
    assert not fork.is_saved()
    fork.append("user", "after", "/w")
    copied = (data / f"{OTHER}.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"] for line in copied] == ["before", "after"]
    assert open_conversation(parse(["--resume", ID])).user_messages() == ["before"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--session-id", ID], f"Error: Session ID {ID} is already in use."),
        (["--resume", OTHER], f"No conversation found with session ID: {OTHER}"),
        (["--resume", "../x"], "No conversation found with session ID: ../x"),
        (["--session-id", "../x"], "Error: Invalid session ID. Must be a valid UUID."),
        (
            ["--resume", ID, "--fork-session", "--session-id", ID],
            f"Error: Session ID {ID} is already in use.",
        ),
    ],
)
def test_refusals(arguments, reason):
    said(ID, "taken")
    with pytest.raises(Refused, match=re.escape(reason)):
        open_conversation(parse(arguments))


def test_ids():
    assert is_uuid(new_id())
    assert new_id() != new_id()
    assert new_id()[14] == "4"
    assert not is_uuid(ID + "\n")
    assert not is_uuid("g" + ID[1:])


def test_a_relative_data_home_counts_as_none(monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/h")
    assert Conversation(ID).path == f"/h/.local/share/mam-practice/{ID}.jsonl"
