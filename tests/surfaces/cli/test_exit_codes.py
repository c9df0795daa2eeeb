"""The exit codes that skills and help texts name are those of the commands."""

import re

import pytest

from mam.app.agent_tools.skills import shipped
from mam.surfaces.cli import verb_table

QUICK = ("--", "--speed", "0")
CREATE = ("create", "--agent", "practice", "--session")


def named_codes(skill: str) -> dict[int, str]:
    """Return what the section on exit codes of a skill says of each code."""
    text = shipped()[f"tmux-agent-orchestrate-{skill}"]["SKILL.md"]
    text = text.decode() if isinstance(text, bytes) else text
    section = text.partition("## Exit codes\n")[2].partition("\n## ")[0]
    return {
        int(code): " ".join(said.split())
        for code, said in re.findall(r"^- (\d+): (.*(?:\n  .*)*)", section, re.M)
    }


@pytest.fixture
def one(run):
    """The name of a session that runs."""
    assert run(*CREATE, "one", *QUICK).code == 0
    return "one"


def test_s002_26_those_of_the_create_skill(run, one) -> None:
    codes = named_codes("create")
    assert "ready" in codes[0]
    assert "name is in use" in codes[1]
    assert run(*CREATE, "one", *QUICK).code == 1
    assert "program is missing" in codes[2] and "question about trust" in codes[2]
    assert run("create", "--agent", "no-such-program").code == 2
    assert run(*CREATE, "two", "--", "--trust-dialog").code == 2
    assert run("status", "two").code == 0, "the session stays"
    assert "wrong usage" in codes[64]
    assert run("create", "--no-such-option").code == 64


def test_those_of_the_stop_skill(run, one) -> None:
    codes = named_codes("stop")
    assert run("stop", "one").code == 0
    assert "has ended already" in codes[0]
    assert run("stop", "one").code == 0
    assert "not registered" in codes[1]
    assert run("stop", "nobody").code == 1
    assert "--yes" in codes[64]
    assert run("stop", "one", "--purge-conversation").code == 64
    assert set(codes) == {0, 1, 2, 3, 64, 65}


def test_those_of_the_status_skill(run, one) -> None:
    codes = named_codes("status")
    assert run("status", "one").code == 0
    assert "not registered" in codes[1]
    for verb in ("status", "explain", "read", "log", "inbox"):
        assert run(verb, "nobody").code == 1
    assert "not find it out" in codes[2]
    assert run("wait", "one", "--for", "working", "--timeout", "0.1").code == 2
    assert run("status", "--no-such-option").code == 64


def test_that_of_the_resume_skill(run, home) -> None:
    """The conversation is gone."""
    assert run(*CREATE, "one", "--prompt", "hello", *QUICK).code == 0
    run("stop", "one")
    for transcript in (home / ".local/share/mam-practice").glob("*-*.jsonl"):
        transcript.unlink()
    assert run("resume", "one").code == 1


def test_those_of_the_help_texts(run, one) -> None:
    assert "Exit code 2 after the timeout, or if the session has ended" in verb_table.load("wait").DESCRIPTION
    assert run("answer", "one", "allow").code == 1
    assert run("stop", "one").code == 0
    assert run("wait", "one", "--for", "idle", "--timeout", "1").code == 2
    assert run("interrupt", "one").code == 2


def test_a_wrong_setting_does_not_hide_that_there_is_no_such_session(run, workspace, monkeypatch) -> None:
    run("init")
    # The setting tmux_server would count.
    monkeypatch.delenv("TMUX_SERVER_NAME")
    (workspace / "mam.toml").write_text('keep_log = "1h"\n', encoding="utf-8")
    for verb in (["stop"], ["read"], ["send", "nobody", "hello"]):
        answer = run(*verb, *(["nobody"] if len(verb) == 1 else []))
        assert answer.code == 1
        assert "no session 'nobody'" in answer.err
