"""mam send, broadcast, inbox, keys, interrupt and answer: what they print, and their exit codes."""

import io

import pytest


@pytest.fixture
def session(run):
    assert run("create", "--agent", "practice", "--session", "one", "--", "--speed", "0").code == 0
    return "one"


def test_words_and_their_receipt(run, session, tmp_path):
    answer = run("send", session, "/help is a word")
    assert answer.code == 0
    assert answer.out.startswith("submitted: m_")
    assert answer.out.rstrip().endswith(
        "), with a space before it; sent as text; a command of the program: --command"
    )
    assert run("wait", session, "--for", "idle", "--timeout", "20").code == 0
    path = tmp_path / "words.md"
    path.write_text("a\tb", encoding="utf-8")
    receipt = run("send", "--session", session, "--file", str(path), "--timeout", "10", "--json").json
    assert (receipt["state"], receipt["carrier"], receipt["added"]) == ("submitted", "file", None)
    inbox = run("inbox", session).out.splitlines()
    assert [line.split()[1] for line in inbox] == ["submitted", "submitted"]
    for arguments in ((), (session,), (session, "a", "b"), (session, "a", "--file", str(path))):
        assert run("send", *arguments).code == 64


def test_the_ends_of_lines_are_kept(run, session, tmp_path, workspace, monkeypatch):
    path = tmp_path / "words.md"
    path.write_bytes(b"a\r\nb\r\n")
    receipt = run("send", session, "--file", str(path), "--timeout", "10", "--json").json
    assert (workspace / ".mam-mail" / f"{receipt['message_id']}.md").read_bytes() == b"a\r\nb\r\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"c\r\nd"), encoding="utf-8"))
    receipt = run("send", session, "-", "--timeout", "10", "--json").json
    assert (workspace / ".mam-mail" / f"{receipt['message_id']}.md").read_bytes() == b"c\r\nd"
    path.write_bytes(b"\xff")
    assert run("send", session, "--file", str(path)).code == 64


def test_a_dialog_from_the_shell(run, session, workspace):
    assert run("answer", session).code == 1
    assert run("send", session, "--command", "/ask touch foo").code == 0
    assert run("wait", session, "--for", "waiting", "--timeout", "20").code == 0
    dialog = run("answer", session, "--json").json
    assert "touch foo" in run("answer", session).out
    held = run("send", session, "hello", "--json")
    assert (held.code, held.json["state"], held.err) == (4, "held", "")
    held = run("send", session, "hello")
    assert held.err == f"mam: mam answer {session} shows what it asks; mam answer {session} allow|deny\n"
    assert run("keys", session, "Enter").code == 2
    assert run("interrupt", session).code == 2
    assert run("answer", session, "allow", "--expect", "00000000").code == 1
    answer = run("answer", session, "allow", "--expect", dialog["fingerprint"])
    assert (answer.code, answer.out) == (0, "answered the permission dialog of one: Yes\n")
    assert run("wait", session, "--for", "idle", "--timeout", "20").code == 0
    assert (workspace / "foo").exists()
    assert run("interrupt", session).out in ("one was not working\n", "interrupted: one\n")
    assert run("inbox", session, "--json").json["messages"][-1]["state"] in ("submitted", "queued"), (
        "it went out with the next verb"
    )


def test_broadcast_and_withdraw(run, session):
    assert run("broadcast", "hello").code == 64
    assert run("broadcast", "--all", "--role", "x", "hello").code == 64
    answer = run("broadcast", "--all", "hello", "--json")
    assert (answer.code, [receipt["state"] for receipt in answer.json["results"]]) == (0, ["submitted"])
    assert run("stop", session).code == 0
    assert run("broadcast", "--all", "hello").code == 1
    message_id = run("send", session, "later", "--json").json["message_id"]
    assert run("inbox", "--withdraw", message_id).code == 0
    again = run("inbox", "--withdraw", message_id)
    assert again.code == 1
    assert again.out == f"not withdrawn: {message_id} is not held; see mam inbox --sent\n"
    assert run("inbox", session, "--json").json["messages"][-1]["reason"] == "the message was withdrawn"


def test_keys_from_the_shell(run, session):
    assert run("keys", session, "y", "n").out == "pressed in one: y n\n"
    assert run("keys", session, "F13").code == 64
    assert run("keys").code == 64
