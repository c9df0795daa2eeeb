"""mam read --parsed, and what mam status shows of a conversation: turns, model, tokens, version."""

import pytest

from mam.adapters.agents import practice
from mam.adapters.agents.kind import Transcript, Turn
from mam.surfaces.cli.render_sessions import figures

FIGURES = {"model": "opus", "tokens_in": 21_400, "tokens_out": 950, "context": 22_000, "window": 200_000}


@pytest.fixture
def session(run):
    assert (
        run(
            "create", "--agent", "practice", "--session", "one", "--prompt", "hello", "--", "--speed", "0"
        ).code
        == 0
    )
    assert run("wait", "one", "--for", "idle").code == 0
    return "one"


def test_the_conversation_in_words(run, session) -> None:
    answer = run("read", session, "--parsed")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].startswith("user  2")
    assert lines[1] == "hello"
    assert any(line.startswith("assistant") for line in lines)


def test_json_and_how_many(run, session) -> None:
    transcript = run("read", session, "--parsed", "--lines", "1", "--json").json
    assert [turn["role"] for turn in transcript["turns"]] == ["assistant"]
    assert transcript["session"] == "one"
    assert transcript["model"] is None


def test_what_the_record_holds_cannot_reach_the_terminal(run, session, monkeypatch) -> None:
    nasty = Transcript([Turn("user\x1b[31m", "a\x1b]0;x\x07b\nc")], **FIGURES)
    monkeypatch.setattr(practice.Practice, "read_transcript", lambda *args: nasty)
    answer = run("read", session, "--parsed")
    assert "\x1b" not in answer.out
    assert "opus, 21.4k tokens in, 950 out, context 11 %" in answer.out
    status = run("status", session)
    assert "opus, 21.4k tokens in, 950 out, context 11 %" in status.out


def test_nothing_to_read(run) -> None:
    run("create", "--agent", "human", "--session", "one")
    answer = run("read", "one", "--parsed")
    assert answer.code == 1
    assert answer.err.startswith("mam: 'one' has no transcript that mam can read")
    assert run("read", "one", "--parsed", "--scrollback").code == 64


def test_an_untested_version_is_shown(run, session, monkeypatch) -> None:
    monkeypatch.setattr(practice.Practice, "known_versions", ("0.0.1",))
    assert run("status", session, "--json").json["session"]["version_tested"] is False
    assert "unknown  (mam may not be tested with it)" in run("status", session).out


def test_figures_that_are_not_known() -> None:
    assert figures({}) == ""
    assert figures({"model": "opus"}) == "opus"
    assert figures({"tokens_in": 0, "tokens_out": None}) == "0 tokens in, 0 out"
