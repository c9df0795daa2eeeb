"""What the agent says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mam.practice.answers import asks_for_history, compose, recall, thinking_words
from mam.practice.tools import run_tool, tool_for

PROMPTS = [
    f"{verb} the {noun}" for verb in ("explain", "fix", "review", "hello", "write") for noun in "abcdefgh"
]


def test_the_same_prompt_has_the_same_answer():
    assert compose("explain this") == compose("explain this")


def test_answers_vary_and_quote_the_prompt():
    answers = {compose(prompt) for prompt in PROMPTS}
    assert len(answers) == len(PROMPTS)
    assert all(prompt in compose(prompt) for prompt in PROMPTS)
    assert any("```" in answer for answer in answers)
    assert any("\n- " in answer for answer in answers)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_an_answer_takes_two_to_four_seconds_at_forty_words(prompt):
    seconds = (thinking_words(prompt) + len(compose(prompt).split(" "))) / 40
    assert 1.5 <= seconds <= 4


@settings(deadline=None)
@given(st.text(max_size=2000))
def test_any_prompt_is_answered(prompt):
    assert compose(prompt)


@pytest.mark.parametrize(
    "prompt", ["what did I say?", "What  did I\nsay before?", "please repeat what I said"]
)
def test_asking_for_history(prompt):
    assert asks_for_history(prompt)


def test_history_is_listed_in_order():
    assert recall(["first", "second\nline"]) == "You said, in this order:\n1. first\n2. second line"
    assert "not said anything" in recall([])
    many = recall([f"message {number}" for number in range(1, 151)]).split("\n")
    assert (many[1], many[2], many[-1]) == (
        "(50 messages before these)",
        "51. message 51",
        "150. message 150",
    )


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ("run the tests", "make test"),
        ("Please build it.", "make build"),
        ("run it", "make run"),
        ("create notes.md please", "touch notes.md"),
        ("create something", "touch notes.txt"),
        ("run `ls -la` for me", "ls -la"),
        ("explain the parser", ""),
        ("a brunch with contestants", ""),
    ],
)
def test_which_tool_a_prompt_calls_for(prompt, command):
    assert tool_for(prompt) == command


def test_touch_is_real(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_tool("touch made") == "ok"
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "..", "-r", "a/b"])
def test_touch_stays_in_the_folder(name, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert run_tool(f"touch {name}").startswith("Error:")
    assert [path.name for path in tmp_path.rglob("*")] == ["in"]


def test_nothing_else_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in ("rm -rf /", "touch a b", "sh -c 'touch x'", "touch"):
        assert run_tool(command) == "ok"
    assert not list(tmp_path.iterdir())
