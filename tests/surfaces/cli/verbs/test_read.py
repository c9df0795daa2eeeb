"""mam read --parsed and what status shows of a conversation: words, model, tokens, version."""

import pytest

from mam.adapters.agents import practice
from mam.adapters.agents.kind import Transcript, Turn
from mam.surfaces.cli.render_sessions import figures

FIGURES = {"model": "opus", "tokens_in": 21_400, "tokens_out": 950, "context": 22_000, "window": 200_000}


@pytest.fixture
def talked(run):
    assert (
        run(
            "create", "--agent", "practice", "--session", "one", "--prompt", "hello", "--", "--speed", "0"
        ).code
        == 0
    )
    assert run("wait", "one", "--for", "idle").code == 0
    return "one"


def test_the_conversation_in_words(run, talked) -> None:
    said = run("read", talked, "--parsed")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("user  2")
    assert lines[1] == "hello"
    assert any(line.startswith("assistant") for line in lines)


def test_json_and_how_many(run, talked) -> None:
    found = run("read", talked, "--parsed", "--lines", "1", "--json").json
    assert [turn["role"] for turn in found["turns"]] == ["assistant"]
    assert found["session"] == "one"
    assert found["model"] is None


def test_what_the_record_holds_cannot_reach_the_terminal(run, talked, monkeypatch) -> None:
    nasty = Transcript([Turn("user\x1b[31m", "a\x1b]0;x\x07b\nc")], **FIGURES)
    monkeypatch.setattr(practice.Practice, "read_transcript", lambda *args: nasty)
    said = run("read", talked, "--parsed")
    assert "\x1b" not in said.out
    assert "opus, 21.4k tokens in, 950 out, context 11 %" in said.out
    shown = run("status", talked)
    assert "opus, 21.4k tokens in, 950 out, context 11 %" in shown.out


def test_nothing_to_read(run) -> None:
    run("create", "--agent", "human", "--session", "one")
    said = run("read", "one", "--parsed")
    assert said.code == 1
    assert said.err.startswith("mam: no record of a conversation of 'one' can be read")
    assert run("read", "one", "--parsed", "--scrollback").code == 64


def test_an_untested_version_is_shown(run, talked, monkeypatch) -> None:
    monkeypatch.setattr(practice.Practice, "known_versions", ("0.0.1",))
    assert run("status", talked, "--json").json["session"]["version_tested"] is False
    assert "(mam was not tested with it)" in run("status", talked).out


def test_figures_that_are_not_known() -> None:
    assert figures({}) == ""
    assert figures({"model": "opus"}) == "opus"
    assert figures({"tokens_in": 0, "tokens_out": None}) == "0 tokens in, 0 out"
