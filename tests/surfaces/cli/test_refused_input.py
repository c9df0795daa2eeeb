"""Wrong input on the command line: the exit code, and a hint that names a way out. Nothing is started."""

import os

import pytest
from tests.surfaces.cli.calling import call

BYTES = os.fsdecode(b"\xff")


@pytest.fixture
def run(home, workspace, monkeypatch, capsys):
    """Run a command in a root with a registry."""
    monkeypatch.chdir(workspace)
    (workspace / "large.md").write_text("x" * 3 * 1024 * 1024, encoding="utf-8")
    (workspace / "empty.md").touch()
    (workspace / "latin.md").write_bytes(b"\xff")
    assert call(capsys, ["init"]).code == 0
    return lambda *words: call(capsys, [*words, "--json"])


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("job", "submit", "--prompt", ""), 64, "what the agent should do"),
        (("job", "submit", "--prompt", BYTES), 64, "UTF-8"),
        (("job", "submit", "--prompt-file", "empty.md"), 64, "what the agent should do"),
        (("job", "submit", "--prompt-file", "large.md"), 64, "names a file"),
        (("job", "submit", "--prompt-file", "latin.md"), 64, "iconv"),
        (("job", "submit", "--prompt-file", "nowhere.md"), 64, "a text file that you can read"),
        (("job", "submit", "--prompt", "x", "--expect", ""), 64, "--expect report.md"),
        (("job", "submit", "--prompt", "x", "--session", "nobody"), 1, "mam ls"),
        (("job", "submit", "--prompt", "x", "--timeout", "9" * 20 + "w"), 64, "5m"),
        (("job", "submit", "--prompt", "x", "--max-rounds", "0"), 64, "1, 2"),
        (("job", "event", "--event", "progress", "--data", "{"), 64, "--data"),
        (("create", "--agent", "practice", "--prompt", ""), 64, "what the agent should do"),
        (("create", "--agent", "practice", "--prompt", BYTES), 64, "UTF-8"),
        (("create", "--agent", "practice", "--prompt-file", "large.md"), 64, "names a file"),
        (("task", "add", "", "--role", "dev"), 64, "what its role should do"),
        (("task", "add", "x" * 100_000, "--role", "dev"), 64, "names a file"),
        (("board", "create", ""), 64, "body"),
        (("board", "create", BYTES), 64, "UTF-8"),
        (("board", "create", "card", "--body", BYTES), 64, "UTF-8"),
        (("board", "create", "card", "--skill", ""), 64, "leave it out"),
        (("board", "comment", "t_1", ""), 64, "mam board comment"),
        (("skills", "install", "--dir", ""), 64, "--dir"),
        (("skills", "install", "--dir", "/etc/passwd"), 1, "--dir"),
        (("send", "one"), 64, "--file"),
    ],
)
def test_it_is_refused_with_a_way_out(run, words, code, hint) -> None:
    answer = run(*words)
    assert (answer.code, hint in (answer.error["hint"] or "")) == (code, True), answer
    assert run("job", "list").json["jobs"] == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (("",), "what the agent should do"),
        ((BYTES,), "UTF-8"),
        (("--file", "large.md"), "names a file"),
        (("--file", "empty.md"), "what the agent should do"),
    ],
)
def test_a_message_is_refused_by_the_same_rule(run, monkeypatch, text, hint) -> None:
    """The session is registered and does not run, so nothing would be typed."""
    from mam.adapters.store.registry import View

    monkeypatch.setattr(View, "find", lambda _view, name: {"id": "s_00000001", "name": name})
    answer = run("send", "one", *text)
    assert (answer.code, answer.error["code"]) == (64, "invalid_prompt"), answer
    assert hint in answer.error["hint"]
