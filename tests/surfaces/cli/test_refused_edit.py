"""A registry file with an edit that mam refuses: verbs that look go on and warn, verbs that change refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

QUICK = ("--", "--speed", "0")
EDITS = {
    "refused": lambda text: text.replace("permissions: default", "permissions: skip"),
    "not yaml": lambda text: text + "\n  - [\n",
    "cut short": lambda text: text[: len(text) // 2],
    "no text": lambda text: "\0",
}
LOOKS = [
    "ls",
    "ls --waiting",
    "ls --all",
    "ls --names",
    "ls --names --status running",
    "status",
    "status one",
    "explain one",
    "read one",
    "read one --parsed",
    "log",
    "log one",
    "inbox one",
    "inbox one --sent",
    "wait one --for idle --timeout 20",
    "job list",
    "task list",
    "team list",
    "board list",
]
CHANGES = [
    "create --agent practice --session two",
    "stop one",
    "stop --all",
    "restart one",
    "rename one two",
    "send one hello",
    "keys one Escape",
    "interrupt one",
    "fork one",
]


def document(answer):
    """Return the JSON document of an answer; the warnings are on stderr as well."""
    return json.loads(answer.out)


@pytest.fixture
def broken(run, workspace):
    """Return a function that edits the registry file of a root with one session."""
    assert run("create", "--agent", "practice", "--session", "one", "--prompt", "hello", *QUICK).code == 0
    assert run("wait", "one", "--for", "idle", "--timeout", "20").code == 0
    file = workspace / ".hermes" / "agent-sessions.yaml"

    def edit(name: str) -> bytes:
        file.write_text(EDITS[name](file.read_text(encoding="utf-8")), encoding="utf-8")
        return file.read_bytes()

    return edit


@pytest.mark.parametrize("line", LOOKS)
def test_a_verb_that_looks_shows_the_records(broken, run, line) -> None:
    before = document(run(*line.split(), "--json"))
    broken("refused")
    answer = run(*line.split())
    assert (answer.code, answer.out) != (65, "")
    assert answer.code == 0
    answer = run(*line.split(), "--json")
    assert answer.code == 0
    assert set(document(answer)) - {"warnings"} == set(before)


@pytest.mark.parametrize("name", EDITS)
def test_the_listing_warns_once_and_names_the_way_out(broken, run, name) -> None:
    text = broken(name)
    answer = run("ls")
    assert (answer.code, len(answer.out.splitlines())) == (0, 2)
    assert answer.err.count("mam: warning: ") == 1
    assert "agent-sessions.yaml" in answer.err and "refuses changes" in answer.err
    listing = document(run("ls", "--json"))
    assert [session["name"] for session in listing["sessions"]] == ["one"]
    (warning,) = listing["warnings"]
    assert "refuses changes" in warning
    assert document(run("status", "one", "--json"))["warnings"] == [warning]
    assert run("stop", "one", "--json").code == 65
    assert (
        Path(
            document(run("status", "one", "--json"))["session"]["workspace"], ".hermes/agent-sessions.yaml"
        ).read_bytes()
        == text
    )


@pytest.mark.parametrize("line", CHANGES)
def test_a_verb_that_changes_refuses(broken, run, line) -> None:
    text = broken("refused")
    answer = run(*line.split(), "--json")
    assert answer.code == 65
    session = document(run("status", "one", "--json"))["session"]
    assert (session["name"], session["status"], session["tmux_alive"]) == ("one", "running", True)
    assert Path(session["workspace"], ".hermes/agent-sessions.yaml").read_bytes() == text


def test_a_mended_file_is_taken_in_without_a_warning(broken, run, workspace) -> None:
    file = workspace / ".hermes" / "agent-sessions.yaml"
    before = file.read_text(encoding="utf-8")
    broken("refused")
    assert "warnings" in document(run("ls", "--json"))
    file.write_text(before.replace("role: null", "role: tester"), encoding="utf-8")
    listing = document(run("ls", "--json"))
    assert ("warnings" in listing, listing["sessions"][0]["role"]) == (False, "tester")


def test_a_file_that_mam_has_never_taken_in_has_nothing_to_show(run, workspace) -> None:
    file = workspace / ".hermes" / "agent-sessions.yaml"
    file.parent.mkdir()
    file.write_text("tmux_sessions: [\n", encoding="utf-8")
    assert run("ls", "--json").code == 65


def test_a_caller_inside_tmux_looks_as_well(broken, run, monkeypatch) -> None:
    broken("refused")
    monkeypatch.setenv("TMUX_PANE", "%999")
    assert run("inbox", "--sent", "--json").code == 0
    assert run("stop", "one", "--json").code == 65


def test_the_usual_listing_imports_no_yaml(broken, run, workspace) -> None:
    script = "\n".join(
        [
            "import sys",
            "from mam.surfaces.cli.main import main",
            "main(['ls'])",
            "print('yaml' in sys.modules, file=sys.stderr)",
        ]
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=workspace, capture_output=True, text=True, check=True
    )
    assert result.stderr.splitlines()[-1] == "False"
