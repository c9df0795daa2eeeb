"""mam board: its subcommands, and the cards that they print."""

import io

import pytest

from mam.surfaces.cli import parser
from mam.surfaces.cli.verbs import board


@pytest.fixture
def card(run):
    return run("--json", "board", "create", "watch the deploy", "--body", "all of it").json["card"]["id"]


def test_s001_17_from_card_to_done(run, card):
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
    beat = run("board", "heartbeat", card, "--as", "me", "--note", "1 of 2", "--json").json["card"]
    assert beat["heartbeat_note"] == "1 of 2"
    assert f"{beat['heartbeat_at']}  1 of 2" in run("board", "show", card).out
    refused = run("board", "claim", card, "--as", "you", "--json")
    assert (refused.code, refused.error["code"]) == (1, "conflict")
    assert "blocked" in run("board", "block", card, "which one?").out
    completed = run("board", "complete", card, "--summary", "deployed", "--json").json["card"]
    assert (completed["status"], completed["summary"]) == ("done", "deployed")
    output = run("board", "show", card).out
    assert all(text in output for text in ("done", "deployed", "all of it", "hello"))


def test_options_may_stand_before_and_after(run, card, workspace):
    for arguments in (("--json", "board", "list"), ("board", "--json", "list"), ("board", "list", "--json")):
        assert [listed_card["id"] for listed_card in run(*arguments).json["cards"]] == [card], arguments
    parent = ("--workspace", str(workspace.parent))
    for arguments in ((*parent, "board", "list", "--json"), ("board", "list", *parent, "--json")):
        assert run(*arguments).json["cards"] == [], arguments


def test_what_is_no_word(run):
    for arguments, answer in (
        ((), "COMMAND"),
        (("dance",), "dance"),
        (("show",), "CARD"),
        (("list", "--x"), "--x"),
    ):
        refused = run("board", *arguments, "--json")
        assert (refused.code, refused.error["code"]) == (64, "usage")
        assert answer in refused.error["message"]


def test_what_is_not_there(run, card):
    refused = run("board", "show", "t_00000000", "--json")
    assert (refused.code, refused.error["code"]) == (1, "card_not_found")


def test_the_exit_codes_are_those_of_the_help(run, card, workspace, monkeypatch):
    run("board", "claim", card, "--as", "me")
    codes = {
        0: ("list",),
        1: ("claim", card, "--as", "you"),
        2: ("list", "--board", "hermes"),
        64: ("create", ""),
    }
    for code, arguments in codes.items():
        assert run("board", *arguments).code == code
    (workspace / ".mam" / "state.db").write_bytes(b"not a database, but long enough to be looked at" * 40)
    for rest in (workspace / ".mam").glob("state.db-*"):
        rest.unlink()
    assert run("board", "list").code == 65
    text = " ".join(run("board", "--help").out.partition("Exit code")[2].split())
    meanings = {0: "success", 1: "somebody else", 2: "cannot be reached", 64: "usage", 65: "damaged"}
    for code, meaning in meanings.items():
        assert meaning in text.partition(f"{code} ")[2].partition(";")[0]


def test_no_cards(run):
    assert run("board", "list").out.startswith("no cards on ")


def test_a_body_comes_from_stdin(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"line one\nline two\n"), encoding="utf-8"))
    assert (
        run("board", "create", "title", "--body", "-", "--json").json["card"]["body"]
        == "line one\nline two\n"
    )


def test_a_goal(run, tmp_path):
    arguments = (
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
    card = run("board", "create", "title", *arguments, "--json").json["card"]
    assert (card["goal_mode"], card["goal_max_turns"], card["max_runtime"]) == (True, 9, 28800)
    assert card["workspace"] == str(tmp_path)


@pytest.mark.parametrize("option", ["--place", "--workspace"])
def test_s001_23_the_options_of_the_document(run, workspace, option):
    """mam's own --workspace names a directory; the words of Hermes are a place."""
    words = ("--branch", "wt/monitor", "--skill", "tmux-agent-orchestrate-monitor", "--skill", "other")
    card = run("board", "create", "title", option, "worktree", *words, "--json").json["card"]
    assert (card["workspace_kind"], card["workspace"], card["branch"]) == ("worktree", None, "wt/monitor")
    assert card["skills"] == ["tmux-agent-orchestrate-monitor", "other"]
    output = run("board", "show", card["id"]).out
    for text in ("worktree", "wt/monitor", "tmux-agent-orchestrate-monitor, other"):
        assert text in output
    there = run("board", "create", "title", option, "worktree:sub", "--json").json["card"]
    assert there["workspace"] == str(workspace / "sub")
    assert run("board", "create", "t", option, "dir:/w", "--json").json["card"]["workspace_kind"] == "dir"
    assert run("board", "create", "t", option, "scratch", "--json").json["card"]["workspace"] is None


def test_s001_23_a_place_and_the_directory_of_the_command(run, workspace):
    (workspace / "worktree").mkdir()
    arguments = ("--place", "worktree", "--workspace", str(workspace))
    assert run("board", "create", "title", *arguments, "--json").json["card"]["workspace_kind"] == "worktree"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--branch", "x"),
        ("--place", "cloud"),
        ("--place", "dir:"),
        ("--place", "worktree", "--dir", "/w"),
        ("--skill", "a,b"),
    ],
)
def test_s001_23_what_is_no_place(run, arguments):
    refused = run("board", "create", "title", *arguments, "--json")
    assert (refused.code, refused.error["code"]) == (64, "usage")
    assert refused.error["hint"]


def test_nothing_of_a_card_reaches_the_terminal_as_a_control(run):
    card = run("board", "create", "a\x1b[31m", "--body", "b\x1b]0;x\x07", "--json").json["card"]["id"]
    run("board", "comment", card, "c\x1b[2J", "--author", "d\x1b[1m")
    for answer in (run("board", "show", card), run("board", "list")):
        assert "\x1b" not in answer.out
        assert "\x07" not in answer.out


@pytest.mark.parametrize("subcommand", board.SUBCOMMANDS)
def test_every_word_explains_itself(run, subcommand):
    answer = run("board", subcommand, "--help")
    assert answer.code == 0
    assert f"mam board {subcommand}" in answer.out.partition("examples:\n")[2]
    assert max(map(len, answer.out.splitlines())) <= 100
    assert "--json" in answer.out


def test_the_words_are_completed(run):
    answer = run("completion", "bash").out
    assert all(f"_mam_board_{subcommand}" in answer.replace("_shtab", "") for subcommand in board.SUBCOMMANDS)
    options = parser.build_all().parse_args(["board", "block", "t_1", "why", "--json"])
    assert (options.subcommand, options.reason, options.json) == ("block", "why", True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dispatch", "--worker"),
        ("--worker", "--once"),
        ("--dispatch", "--card", "new"),
        ("--worker", "--timeout", "5"),
        ("--dispatch", "--board", "ours"),
        ("--card", "new", "--once", "--dry-run"),
    ],
)
def test_what_does_not_go_together(run, arguments):
    run("init")
    refused = run("monitor", *arguments, "--json")
    assert (refused.code, refused.error["code"]) == (64, "usage")
    assert run("board", "list", "--json").json["cards"] == []


def test_a_pass_with_a_card(run):
    run("init")
    answer = run("monitor", "--once", "--card", "new")
    assert answer.out.splitlines()[0].endswith(" is ready")
    card = run("board", "list", "--json").json["cards"][0]["id"]
    run("board", "comment", card, "stop")
    report = run("monitor", "--emit-diff", "--card", card).json
    assert report["ended"].startswith("stop-requested by user at ")
    assert report["card"]["status"] == "blocked"


def test_s001_22_the_options_of_a_card(run):
    words = ("--goal", "--goal-max-turns", "100", "--max-runtime", "8h", "--max-retries", "1")
    arguments = ("agent-sessions monitor", "--assignee", "default", *words, "--body", "until noon")
    card = run("board", "create", *arguments, "--json").json["card"]
    fields = ("title", "assignee", "goal_mode", "goal_max_turns", "max_runtime", "body")
    assert [card[field] for field in fields] == [
        "agent-sessions monitor",
        "default",
        True,
        100,
        28800,
        "until noon",
    ]
