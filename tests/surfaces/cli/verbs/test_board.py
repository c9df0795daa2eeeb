"""mam board: a word, a card, and what the board shows afterwards."""

import io

import pytest

from mam.surfaces.cli import parser
from mam.surfaces.cli.verbs import board


@pytest.fixture
def card(run):
    return run("--json", "board", "create", "watch the deploy", "--body", "all of it").json["card"]["id"]


def test_from_card_to_done(run, card):
    assert run("board", "list").out.splitlines()[1].split() == [
        card,
        "ready",
        "-",
        "0",
        "watch",
        "the",
        "deploy",
    ]
    assert run("board", "comment", card, "hello").code == 0
    assert "running" in run("board", "claim", card, "--as", "me", "--ttl", "30m").out
    assert run("board", "heartbeat", card, "--as", "me", "--note", "1 of 2").code == 0
    refused = run("board", "claim", card, "--as", "you", "--json")
    assert (refused.code, refused.error["code"]) == (1, "conflict")
    assert "blocked" in run("board", "block", card, "which one?").out
    done = run("board", "complete", card, "--summary", "deployed", "--json").json["card"]
    assert (done["status"], done["summary"]) == ("done", "deployed")
    shown = run("board", "show", card).out
    assert all(text in shown for text in ("done", "deployed", "all of it", "hello"))


def test_options_may_stand_before_and_after(run, card, workspace):
    for words in (("--json", "board", "list"), ("board", "--json", "list"), ("board", "list", "--json")):
        assert [one["id"] for one in run(*words).json["cards"]] == [card], words
    there = ("--workspace", str(workspace.parent))
    for words in ((*there, "board", "list", "--json"), ("board", "list", *there, "--json")):
        assert run(*words).json["cards"] == [], words


def test_what_is_no_word(run):
    for words, said in (((), "WORD"), (("dance",), "dance"), (("show",), "CARD"), (("list", "--x"), "--x")):
        refused = run("board", *words, "--json")
        assert (refused.code, refused.error["code"]) == (64, "usage")
        assert said in refused.error["message"]


def test_what_is_not_there(run, card):
    refused = run("board", "show", "t_00000000", "--json")
    assert (refused.code, refused.error["code"]) == (1, "card_not_found")


def test_no_cards(run):
    assert run("board", "list").out.startswith("no cards on ")


def test_a_body_comes_from_stdin(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("line one\nline two\n"))
    assert (
        run("board", "create", "title", "--body", "-", "--json").json["card"]["body"]
        == "line one\nline two\n"
    )


def test_a_goal(run, tmp_path):
    words = (
        "--goal",
        "--goal-max-turns",
        "9",
        "--max-runtime",
        "8h",
        "--max-retries",
        "1",
        "--dir",
        str(tmp_path),
    )
    card = run("board", "create", "title", *words, "--json").json["card"]
    assert (card["goal_mode"], card["goal_max_turns"], card["max_runtime"]) == (True, 9, 28800)
    assert card["workspace"] == str(tmp_path)


def test_nothing_of_a_card_reaches_the_terminal_as_a_control(run):
    card = run("board", "create", "a\x1b[31m", "--body", "b\x1b]0;x\x07", "--json").json["card"]["id"]
    run("board", "comment", card, "c\x1b[2J", "--author", "d\x1b[1m")
    for said in (run("board", "show", card), run("board", "list")):
        assert "\x1b" not in said.out
        assert "\x07" not in said.out


@pytest.mark.parametrize("word", board.WORDS)
def test_every_word_explains_itself(run, word):
    said = run("board", word, "--help")
    assert said.code == 0
    assert f"mam board {word}" in said.out.partition("examples:\n")[2]
    assert max(map(len, said.out.splitlines())) <= 100
    assert "--json" in said.out


def test_the_words_are_completed(run):
    said = run("completion", "bash").out
    assert all(f"_mam_board_{word}" in said.replace("_shtab", "") for word in board.WORDS)
    options = parser.build_all().parse_args(["board", "block", "t_1", "why", "--json"])
    assert (options.word, options.reason, options.json) == ("block", "why", True)


@pytest.mark.parametrize(
    "words",
    [
        ("--dispatch", "--worker"),
        ("--worker", "--once"),
        ("--dispatch", "--card", "new"),
        ("--worker", "--timeout", "5"),
        ("--dispatch", "--board", "ours"),
        ("--card", "new", "--once", "--dry-run"),
    ],
)
def test_what_does_not_go_together(run, words):
    run("init")
    refused = run("monitor", *words, "--json")
    assert (refused.code, refused.error["code"]) == (64, "usage")
    assert run("board", "list", "--json").json["cards"] == []


def test_a_pass_with_a_card(run):
    run("init")
    said = run("monitor", "--once", "--card", "new")
    assert said.out.splitlines()[0].endswith(" is ready")
    card = run("board", "list", "--json").json["cards"][0]["id"]
    run("board", "comment", card, "stop")
    report = run("monitor", "--emit-diff", "--card", card).json
    assert report["ended"].startswith("stop-requested by user at ")
    assert report["card"]["status"] == "blocked"
