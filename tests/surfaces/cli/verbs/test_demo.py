"""mam demo: the tour runs to its end and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mam.adapters.tmux.client import Tmux

pytestmark = pytest.mark.starts

COMMAND = [sys.executable, "-m", "mam", "demo"]


@pytest.fixture
def place(home, tmp_path, monkeypatch):
    """A folder for the temporary files of one test."""
    folder = Path(tempfile.mkdtemp(prefix="t-", dir=tmp_path))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def nothing_is_left(place: Path, pid: int) -> bool:
    return not list(place.iterdir()) and Tmux(f"mam-demo-{pid}").server_pid() is None


def test_runs_through_without_a_terminal(place, workspace):
    demo = subprocess.Popen(
        [*COMMAND, "--fast"], cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = demo.communicate(timeout=60)
    assert demo.returncode == 0, err
    assert not err
    for text in (
        "$ mam create --agent practice --role developer",
        "NAME ",
        "s permission",
        "Do you want to proceed?",
        "because ",
        "stopped: docs (practice, writer)",
        "resumed: docs (practice, writer)",
        "❯ describe the API",
    ):
        assert text in out
    assert {role for role in ("developer", "reviewer", "writer") if f" {role} " in out} == {
        "developer",
        "reviewer",
        "writer",
    }
    assert nothing_is_left(place, demo.pid)
    assert list(workspace.iterdir()) == []
    sockets = Path(os.environ["TMUX_TMPDIR"]).glob(f"*/mam-demo-{demo.pid}")
    assert not list(sockets)


def test_answers_with_json(place, run):
    document = run("demo", "--json").json
    assert [step["exit_code"] for step in document["steps"]] == [0] * len(document["steps"])
    assert document["kept"] is False
    assert nothing_is_left(place, os.getpid())
    assert json.dumps(document["steps"][3]).count("running") == 3


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("after", ["review", "stopped: docs"])
def test_a_signal_cleans_up(place, workspace, how, after):
    demo = subprocess.Popen(COMMAND, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in demo.stdout:
        if after in line:
            break
    demo.send_signal(how)
    _, err = demo.communicate(timeout=30)
    assert (demo.returncode, err) == (130, "")
    assert nothing_is_left(place, demo.pid)


def test_a_command_that_fails_ends_the_tour(place, workspace, monkeypatch, run):
    from mam.surfaces.cli import demo_tour

    monkeypatch.setattr(demo_tour, "STEPS", (*demo_tour.STEPS[:1], ("", "read nobody"), *demo_tour.STEPS[1:]))
    answer = run("demo")
    assert answer.code == 1
    assert "mam: no session 'nobody'" in answer.err
    assert "review" not in answer.out
    assert nothing_is_left(place, os.getpid())
    assert os.environ.get("TMUX_SERVER_NAME", "").startswith("mam-test-")


def test_it_can_be_kept(place, run, monkeypatch):
    document = run("demo", "--keep", "--json").json
    assert document["kept"] is True
    monkeypatch.chdir(document["workspace"])
    monkeypatch.delenv("TMUX_SERVER_NAME")
    assert run("ls", "--names", "--status", "running").out.split() == ["dev", "review", "docs"]
    assert run("stop", "--all").code == 0
    assert Tmux(document["server"]).server_pid() is None


class TestOnATerminal:
    def test_offers_the_agents_and_takes_no(self, place, terminal):
        demo = terminal("demo", "--fast")
        demo.sees("q quits")
        demo.type("q\r")
        assert demo.leave() == 0
        assert "The tmux server has ended" in demo.text()
        assert nothing_is_left(place, demo.pid)

    def test_shows_the_agents_side_by_side(self, place, terminal):
        demo = terminal("demo", "--fast", columns=160, rows=50)
        demo.sees("q quits")
        before = len(demo.text())
        demo.type("\r")
        demo.sees("Ctrl-b d comes back")
        for text in ("Do you want to proceed?", "[dev]", "[review]", "[docs]"):
            demo.until(lambda text=text: text in demo.text()[before:], text)
        assert demo.detach() == 0
        assert nothing_is_left(place, demo.pid)

    @pytest.mark.slow
    def test_takes_its_time(self, place, terminal):
        demo = terminal("demo")
        demo.until(lambda: "q quits" in demo.text(), "the end", 120)
        demo.type("\x03")
        assert demo.leave() == 130
        assert nothing_is_left(place, demo.pid)


def test_without_tmux_it_says_where_to_look(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = run("demo")
    assert answer.code == 2
    assert "tmux is not on PATH" in answer.err
    assert (
        answer.out.splitlines()[-1]
        == "The folder is deleted. mam doctor shows what is missing on this machine"
    )
