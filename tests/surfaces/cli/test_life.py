"""The verbs on real sessions: what they print, what they return, and their exit codes."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

QUICK = ("--", "--speed", "0")


@pytest.fixture
def one(run):
    """A practice agent that has said something."""
    assert (
        run(
            "create", "--agent", "practice", "--session", "one", "--role", "dev", "--prompt", "hello", *QUICK
        ).code
        == 0
    )
    # A prompt may be proven by a hook before it is drawn, and the screen be at rest before its turn begins.
    for condition in ("text:hello", "idle"):
        assert run("wait", "one", "--for", condition, "--timeout", "10").code == 0
    return "one"


class TestCreate:
    def test_says_the_name(self, run):
        said = run("create", "--agent", "practice", "--role", "developer", *QUICK)
        assert (said.code, said.out) == (0, "ready: demo-app-creator-practice (practice, developer)\n")
        assert not said.err

    def test_answers_with_the_row(self, run, workspace):
        row = run("--json", "create", "--agent", "practice", "--session", "a", "--env", "K=V=W", *QUICK).json[
            "session"
        ]
        assert (row["name"], row["workspace"], row["status"]) == ("a", str(workspace), "running")
        assert row["start_command"] == ["practice", "--speed", "0"]
        assert "K=V=W" in Path(f"/proc/{row['pane']['pid']}/environ").read_text(encoding="utf-8").split("\0")

    def test_a_dialog_leaves_the_session_and_says_where_it_is(self, run):
        said = run("create", "--agent", "practice", "--session", "a", "--json", "--", "--trust-dialog")
        assert (said.code, said.error["code"]) == (2, "dialog_open")
        assert said.json["session"]["name"] == "a"
        assert run("ls", "--names").out == "a\n"
        assert (
            run("create", "--agent", "practice", "--session", "b", "--trust", "--", "--trust-dialog").code
            == 0
        )

    def test_a_prompt_from_a_file_and_from_stdin(self, run, workspace, monkeypatch, tmp_path):
        (tmp_path / "prompt").write_text("tell me; `more` #{x}\n", encoding="utf-8")
        assert (
            run(
                "create",
                "--agent",
                "practice",
                "--session",
                "a",
                "--prompt-file",
                str(tmp_path / "prompt"),
                *QUICK,
            ).code
            == 0
        )
        with (tmp_path / "prompt").open(encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert (
                run("create", "--agent", "practice", "--session", "b", "--prompt-file", "-", *QUICK).code == 0
            )
        for name in ("a", "b"):
            assert run("wait", name, "--for", "text:tell me; `more` #{x}", "--timeout", "10").code == 0

    def test_a_prompt_that_is_no_text(self, run, workspace, tmp_path):
        (tmp_path / "prompt").write_bytes(b"\xff\xfe")
        said = run("create", "--agent", "practice", "--prompt-file", str(tmp_path / "prompt"), "--json")
        assert (said.code, said.error["code"]) == (64, "invalid_prompt")
        assert list(workspace.iterdir()) == []

    def test_a_missing_program_and_a_taken_name(self, run, one):
        assert run("create", "--agent", "no-such-agent", "--json").error["code"] == "agent_missing"
        said = run("create", "--agent", "practice", "--session", one)
        assert said.code == 1
        assert said.err.startswith("mam: a session named 'one' is running\n  ")

    def test_anew_without_naming_the_agent(self, run, one):
        run("stop", one)
        row = run("create", "--session", one, "--json").json["session"]
        assert (row["status"], row["agent"]) == ("running", "practice")

    def test_without_waiting(self, run):
        said = run("create", "--agent", "practice", "--session", "a", "--no-wait", "--", "--slow-start", "1")
        assert (said.code, said.out) == (0, "started: a (practice)\n")


class TestStopAndResume:
    def test_there_and_back(self, run, one):
        said = run("stop", one, "--reason", "lunch")
        assert (said.code, said.out) == (0, "stopped: one (practice, dev)\n")
        again = run("delete", one)
        assert again.code == 0
        assert again.out.startswith("one: already stopped (")
        assert "lunch" in again.out
        document = run("stop", one, "--json").json
        assert document["session"]["status"] == "stopped"
        assert document["note"].startswith("already stopped (")
        assert run("resume", one).out == "resumed: one (practice, dev)\n"
        assert run("wait", one, "--for", "text:hello", "--timeout", "10").code == 0
        assert run("resume", one).out == "one: already running\n"
        assert run("resume", one, "--json").json["note"] == "already running"

    def test_restart(self, run, one):
        before = run("status", one, "--json").json["session"]
        after = run("restart", one, "--force", "--json").json["session"]
        assert after["pane"]["pid"] != before["pane"]["pid"]
        assert after["resume_count"] == 1

    def test_several_at_once(self, run, one):
        for name in ("b", "c", "d", "e"):
            run("create", "--agent", "practice", "--session", name, *QUICK)
        said = run("stop", "b", "--json", "nobody", "c", "b")
        assert said.code == 1
        assert [result["target"] for result in said.json["results"]] == ["b", "nobody", "c"]
        assert said.json["results"][0]["session"]["status"] == "stopped"
        assert said.json["results"][1]["error"]["code"] == "session_not_found"
        assert said.json["results"][2]["session"]["status"] == "stopped"
        said = run("stop", "--all")
        assert said.code == 0
        assert sorted(said.out.splitlines()) == [
            "stopped: d (practice)",
            "stopped: e (practice)",
            "stopped: one (practice, dev)",
        ]
        assert run("stop", "--all").out == "nothing is running\n"
        assert run("stop", "--all", "--json").json == {"results": []}
        assert run("resume", "--all").out == "nothing to resume\n"
        said = run("resume", "--all", "--stopped", "--json")
        assert said.code == 0
        assert {result["target"] for result in said.json["results"]} == {"one", "b", "c", "d", "e"}

    def test_one_that_fails_stops_no_other(self, run, one):
        said = run("stop", "nobody", one)
        assert said.code == 1
        assert said.out == "stopped: one (practice, dev)\n"
        assert said.err.startswith("mam: no session 'nobody'")

    def test_ctrl_c_ends_it_and_the_next_verb_mends_what_was_begun(self, run, terminal, until):
        for name in ("a", "b"):
            run("create", "--agent", "practice", "--session", name, "--no-wait", "--", "--slow-start", "30")
        run("stop", "--all", "--force")
        resuming = terminal("resume", "a", "b")
        until(lambda: len(run("ls", "--names", "--status", "running").out.split()) == 2)
        resuming.type("\x03")
        assert resuming.leave() == 130
        assert "Traceback" not in resuming.text()
        assert run("stop", "--all", "--force").code == 0
        assert run("doctor").code == 0

    def test_by_kind_and_after_a_death(self, run, one, until):
        run("stop", one)
        run("create", "--agent", "practice", "--session", "b", "--prompt", "hello", *QUICK)
        os.kill(run("status", "b", "--json").json["session"]["pane"]["pid"], signal.SIGKILL)
        until(lambda: run("status", "b", "--json").json["session"]["activity"] == "exited")
        died = run("resume", "--all", "--json").json["results"]
        assert [result["target"] for result in died] == ["b"]
        kind = run("resume", "--agent", "practice", "--json").json["results"]
        assert [result["target"] for result in kind] == ["one"]
        assert run("resume", "--agent", "claude", "--json").code == 1

    def test_a_deletion_needs_a_yes(self, run, one):
        said = run("stop", one, "--purge-conversation", "--json")
        assert (said.code, said.error["code"]) == (64, "needs_confirmation")
        assert run("status", one, "--json").json["session"]["status"] == "running"
        said = run("stop", one, "--purge-conversation", "--yes")
        assert (said.code, said.out) == (0, "purged: one (practice, dev)\n")
        assert run("status", one, "--json").json["session"]["resumable"] is False

    def test_a_person_is_asked(self, run, one, terminal):
        asked = terminal("stop", one, "--purge-conversation")
        asked.sees("Delete the conversation of one for good? [y/N]")
        asked.type("\r")
        assert asked.leave() == 1
        assert "nothing was stopped" in asked.text()
        assert run("status", one, "--json").json["session"]["status"] == "running"
        asked = terminal("stop", one, "--purge-conversation")
        asked.sees("[y/N]")
        asked.type("y\r")
        assert asked.leave() == 0
        assert run("status", one, "--json").json["session"]["status"] == "terminated"

    def test_one_that_is_not_registered(self, run, tmux_server, one):
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "stray", "cat"], check=True)
        assert run("stop", "stray", "--json").error["code"] == "session_not_found"
        said = run("stop", "stray", "--force-no-yaml", "--tmux-server", tmux_server)
        assert (said.code, said.out) == (0, "stopped: stray (was not registered)\n")
        assert run("log", "--json", "--limit", "1").json["entries"][0]["detail"]["name"] == "stray"


class TestLooking:
    def test_a_listing(self, run, one):
        document = run("ls", "--json").json
        assert set(document) == {"schema_version", "root", "sessions"}
        (found,) = document["sessions"]
        assert {
            "activity",
            "activity_source",
            "activity_age_s",
            "waiting_for",
            "tmux_alive",
            "job",
            "drift",
        } <= set(found)
        assert set(found["resume"]) == {"id", "tier", "on_disk"}
        lines = run("ls").out.splitlines()
        assert " ".join(lines[0].split()) == "NAME AGENT ROLE STATUS ACTIVITY TMUX RESUME JOB DRIFT"
        assert lines[1].split()[:5] == ["one", "practice", "dev", "running", "idle"]
        assert lines[1].split()[7:] == [found["resume"]["id"][:8], "t1", "disk", "-", "-"]
        assert run("ls", "--all").out.splitlines()[0] == document["root"]

    def test_filters(self, run, one):
        run("create", "--agent", "human", "--session", "b")
        assert run("ls", "--names").out.split() == ["one", "b"]
        assert run("ls", "--names", "--agent", "human").out.split() == ["b"]
        assert run("ls", "--names", "--role", "dev", "--status", "running").out.split() == ["one"]
        assert run("ls", "--status", "archived").out == "no session fits\n"
        assert run("ls", "--waiting", "--json").json["sessions"] == []
        assert run("ls", "--names", "--json").json == {"names": ["one", "b"]}

    def test_without_a_registry(self, run):
        assert run("ls").code == 0
        assert "mam create" in run("ls").out
        said = run("status")
        assert said.code == 1
        assert "no registry" in said.err
        assert run("status", "--json").error["code"] == "refused"
        assert run("status", "one", "--json").error["code"] == "session_not_found"

    def test_status(self, run, one):
        assert run("status").out.splitlines()[0].startswith("NAME")
        text = run("status", one).out
        assert text.startswith("one\n  status ")
        for word in ("running", "idle", "practice", "dev", "server mam-test-", "disk", "create by user"):
            assert word in text
        row = run("status", "--session", one, "--json").json["session"]
        assert run("status", row["id"], "--json").json["session"]["name"] == one

    def test_read_and_explain(self, run, one):
        assert "❯ hello" in run("read", one).out
        assert len(run("read", one, "--lines", "2").out.splitlines()) == 2
        document = run("read", one, "--scrollback", "--json").json
        assert document["session"] == one
        assert "hello" in document["text"]
        text = run("explain", one).out
        assert text.startswith("one: idle ")
        assert "\nbecause " in text
        assert "SOURCE" in text
        assert set(run("explain", one, "--json").json) >= {"evidence", "rule", "activity", "disagreeing"}

    def test_a_disagreement_is_shown(self, run, until):
        run("create", "--agent", "practice", "--session", "a", "--prompt", "run the tests", *QUICK)
        run("wait", "a", "--for", "waiting", "--timeout", "10")
        document = run("explain", "a", "--json").json
        text = run("explain", "a").out
        assert document["waiting_for"] == "permission"
        assert all(f"!  {source}" in text for source in document["disagreeing"])
        # The hook may still be on its way, and a listing looks at screens only where nobody speaks.
        until(lambda: run("ls", "--waiting", "--names").out == "a\n")

    def test_wait(self, run, one):
        said = run("wait", one, "--for", "idle", "--json")
        assert json.loads(said.out)["session"]["activity"] == "idle"
        assert len(said.out.splitlines()) == 1
        said = run("wait", one, "--for", "waiting", "--timeout", "0.2", "--json")
        assert (said.code, said.error["code"]) == (2, "timeout")
        assert run("wait", one, "--for", "text:hel+o").code == 0
        assert run("wait", one, "--for", "text:(").code == 64
        assert run("wait", one, "--for", "lunch").code == 64
        run("stop", one)
        assert run("wait", one, "--for", "exited").code == 0
        assert run("wait", one, "--for", "idle").code == 2

    def test_log(self, run, one):
        run("stop", one, "--reason", "lunch\x1b[2J")
        entries = run("log", "--json").json["entries"]
        assert [entry["verb"] for entry in entries] == ["create", "send", "stop"]
        lines = run("log", one, "--limit", "1", "--since", "1h").out.splitlines()
        assert len(lines) == 2
        assert lines[1].split()[1:5] == ["user", "stop", "one", "lunch[2J"]
        assert run("log", "nobody", "--json").code in (0, 1)

    def test_doctor(self, run, one, workspace):
        said = run("doctor")
        assert said.code == 0, said
        assert all(line.startswith(("ok ", "unknown ", " ")) for line in said.out.splitlines())
        (workspace / ".mam" / "state.db").chmod(0o644)
        said = run("doctor")
        assert said.code == 1
        assert "problem  " in said.out
        assert any(check["ok"] is False and check["mend"] for check in run("doctor", "--json").json["checks"])


class TestKeeping:
    def test_init(self, run, workspace):
        file = workspace / ".hermes" / "agent-sessions.yaml"
        assert run("init", "--json").json == {"registry": str(file)}
        assert file.exists()
        assert run("init").out.endswith(f"{file}\n")
        assert run("status").code == 0

    def test_rename_archive_and_forget(self, run, one):
        assert run("rename", one, "two").out == "one is two now\n"
        assert run("rename", "--session", "two", "three").code == 0
        assert run("archive", "three", "--json").error["code"] == "illegal_transition"
        run("stop", "three")
        assert run("archive", "three").out == "archived: three (practice, dev)\n"
        assert run("ls", "--status", "archived", "--names").out == "three\n"
        assert run("forget", "three", "--json").json["forgotten"] == "three"
        assert run("ls", "--names").out.strip() == ""

    def test_forgetting_by_age_is_confirmed(self, run, one, terminal):
        run("create", "--agent", "human", "--session", "b")
        run("stop", "--all")
        assert run("forget", "--older-than", "1h").out == "nothing is that old\n"
        said = run("forget", "--older-than", "0s", "--json")
        assert (said.code, said.error["code"]) == (64, "needs_confirmation")
        asked = terminal("forget", "--older-than", "0s")
        asked.sees("Forget 2 sessions? [y/N]")
        asked.type("no\r")
        assert asked.leave() == 1
        assert run("ls", "--names").out.split() == ["one", "b"]
        said = run("forget", "--older-than", "0s", "--yes", "--json")
        assert [result["forgotten"] for result in said.json["results"]] == ["one", "b"]

    def test_a_running_one_is_not_forgotten(self, run, one):
        assert run("forget", one, "--json").error["code"] == "illegal_transition"

    def test_fork(self, run, one):
        row = run("fork", one, "--session", "other", "--role", "critic", "--json").json["session"]
        assert (row["name"], row["role"]) == ("other", "critic")
        assert run("wait", "other", "--for", "text:hello", "--timeout", "10").code == 0
        assert run("fork", one).out == "forked: demo-app-creator-practice (practice, dev)\n"

    def test_adopt(self, run, one, tmux_server):
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "My Work", "cat"], check=True)
        said = run("adopt", "My Work", "--agent", "cat", "--session", "mine")
        assert (said.code, said.out) == (0, "adopted: mine (cat)\n")
        assert run("adopt", "nothing", "--agent", "cat", "--json").error["code"] == "pane_gone"


class TestAttach:
    def test_needs_a_terminal(self, run, one):
        said = run("attach", one)
        assert said.code == 64
        assert "needs a terminal" in said.err

    def test_says_what_it_would_run(self, run, one, tmux_server):
        document = run("attach", "--json").json
        assert set(document) == {"session", "switched", "argv"}
        assert document["session"] == one
        assert tmux_server in document["argv"]

    def test_shows_the_session(self, run, one, terminal):
        shown = terminal("attach", one)
        shown.sees("hello")
        assert shown.detach() == 0
        assert "[detached" in shown.text()

    def test_goes_to_the_next_that_waits(self, run, one, terminal):
        assert run("attach", "--next", "--json").error["code"] == "refused"
        run("create", "--agent", "practice", "--session", "b", "--prompt", "run the tests", *QUICK)
        run("wait", "b", "--for", "waiting", "--timeout", "10")
        shown = terminal("attach", "--next")
        shown.sees("Do you want to proceed?")
        assert shown.detach() == 0


class TestOnATerminal:
    def test_colours_and_width(self, run, one, terminal):
        listed = terminal("ls", columns=70)
        assert listed.leave() == 0
        assert "\x1b[" in listed.read()
        assert max(len(line) for line in listed.text().splitlines()) <= 70

    def test_no_colours_on_request(self, run, one, terminal):
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            listed = terminal("ls", **variables)
            assert listed.leave() == 0
            assert "\x1b" not in listed.read()

    def test_progress_is_gone_afterwards(self, run, terminal):
        created = terminal("create", "--agent", "practice", "--session", "a", *QUICK)
        assert created.leave() == 0
        assert "starting practice as a" in created.text()
        assert created.read().rstrip().endswith("\r\x1b[Kready: a (practice)")

    def test_a_watch_is_repainted_and_gives_the_screen_back(self, run, one, terminal):
        watched = terminal("ls", "--watch")
        watched.sees("q leaves")
        run("create", "--agent", "practice", "--session", "late", *QUICK)
        watched.sees("late")
        watched.type("q")
        assert watched.leave() == 0
        shown = watched.read()
        assert shown.startswith("\x1b[?1049h\x1b[?25l")
        assert shown.endswith("\x1b[?25h\x1b[?1049l")

    @pytest.mark.parametrize("how", ["key", "signal"])
    def test_a_watch_can_be_interrupted(self, run, one, terminal, how):
        watched = terminal("ls", "--watch")
        watched.sees("q leaves")
        if how == "key":
            watched.type("\x03")
        else:
            os.kill(watched.pid, signal.SIGTERM)
        assert watched.leave() == (130 if how == "key" else 143)
        assert watched.read().endswith("\x1b[?25h\x1b[?1049l")


def test_a_watch_prints_an_object_per_change(run, one, workspace):
    watching = subprocess.Popen(
        [sys.executable, "-m", "mam", "ls", "--watch"], cwd=workspace, stdout=subprocess.PIPE, text=True
    )
    too_long = threading.Timer(20, watching.kill)
    too_long.start()
    try:
        assert [session["name"] for session in json.loads(watching.stdout.readline())["sessions"]] == ["one"]
        run("create", "--agent", "human", "--session", "late")
        names = []
        while "late" not in names:
            names = [session["name"] for session in json.loads(watching.stdout.readline())["sessions"]]
    finally:
        too_long.cancel()
        watching.kill()
        watching.wait()
        watching.stdout.close()
