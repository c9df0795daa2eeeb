"""mam send, broadcast, inbox, keys, interrupt and answer: what they print, and their exit codes."""

import io

import pytest


@pytest.fixture
def one(run):
    assert run("create", "--agent", "practice", "--session", "one", "--", "--speed", "0").code == 0
    return "one"


def test_words_and_their_receipt(run, one, tmp_path):
    said = run("send", one, "/help is a word")
    assert said.code == 0
    assert said.out.startswith("submitted: m_")
    assert said.out.rstrip().endswith("), with a space before it")
    assert run("wait", one, "--for", "idle", "--timeout", "20").code == 0
    path = tmp_path / "words.md"
    path.write_text("a\tb", encoding="utf-8")
    done = run("send", "--session", one, "--file", str(path), "--timeout", "10", "--json").json
    assert (done["state"], done["carrier"], done["added"]) == ("submitted", "file", None)
    found = run("inbox", one).out.splitlines()
    assert [line.split()[1] for line in found] == ["submitted", "submitted"]
    for words in ((), (one,), (one, "a", "b"), (one, "a", "--file", str(path))):
        assert run("send", *words).code == 64


def test_the_ends_of_lines_are_kept(run, one, tmp_path, workspace, monkeypatch):
    path = tmp_path / "words.md"
    path.write_bytes(b"a\r\nb\r\n")
    done = run("send", one, "--file", str(path), "--timeout", "10", "--json").json
    assert (workspace / ".mam-mail" / f"{done['message_id']}.md").read_bytes() == b"a\r\nb\r\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"c\r\nd"), encoding="utf-8"))
    done = run("send", one, "-", "--timeout", "10", "--json").json
    assert (workspace / ".mam-mail" / f"{done['message_id']}.md").read_bytes() == b"c\r\nd"
    path.write_bytes(b"\xff")
    assert run("send", one, "--file", str(path)).code == 64


def test_a_dialog_from_the_shell(run, one, workspace):
    assert run("answer", one).code == 1
    assert run("send", one, "--command", "/ask touch foo").code == 0
    assert run("wait", one, "--for", "waiting", "--timeout", "20").code == 0
    shown = run("answer", one, "--json").json
    assert "touch foo" in run("answer", one).out
    held = run("send", one, "hello", "--json")
    assert (held.code, held.json["state"]) == (4, "held")
    assert run("keys", one, "Enter").code == 2
    assert run("interrupt", one).code == 2
    assert run("answer", one, "allow", "--expect", "00000000").code == 1
    said = run("answer", one, "allow", "--expect", shown["fingerprint"])
    assert (said.code, said.out) == (0, "answered the permission dialog of one: Yes\n")
    assert run("wait", one, "--for", "idle", "--timeout", "20").code == 0
    assert (workspace / "foo").exists()
    assert run("interrupt", one).out in ("one was not working\n", "interrupted: one\n")
    assert run("inbox", one, "--json").json["messages"][-1]["state"] in ("submitted", "queued"), (
        "it went out with the next verb"
    )


def test_broadcast_and_withdraw(run, one):
    assert run("broadcast", "hello").code == 64
    assert run("broadcast", "--all", "--role", "x", "hello").code == 64
    said = run("broadcast", "--all", "hello", "--json")
    assert (said.code, [done["state"] for done in said.json["results"]]) == (0, ["submitted"])
    assert run("stop", one).code == 0
    assert run("broadcast", "--all", "hello").code == 1
    kept = run("send", one, "later", "--json").json["message_id"]
    assert run("inbox", "--withdraw", kept).code == 0
    again = run("inbox", "--withdraw", kept)
    assert again.code == 1
    assert again.out == f"not withdrawn: {kept} is not held any more, or never was; see mam inbox --sent\n"
    assert run("inbox", one, "--json").json["messages"][-1]["reason"] == "it was withdrawn"


def test_keys_from_the_shell(run, one):
    assert run("keys", one, "y", "n").out == "pressed in one: y n\n"
    assert run("keys", one, "F13").code == 64
    assert run("keys").code == 64
