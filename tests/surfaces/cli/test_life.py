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
def session(run):
    """The name of a session: a practice agent that has answered a prompt."""
    assert (
        run(
            "create", "--agent", "practice", "--session", "one", "--role", "dev", "--prompt", "hello", *QUICK
        ).code
        == 0
    )
    # A hook may prove a prompt before the screen shows it. The screen may look idle before the turn begins.
    for condition in ("text:hello", "idle"):
        assert run("wait", "one", "--for", condition, "--timeout", "10").code == 0
    return "one"


class TestCreate:
    def test_says_the_name(self, run):
        answer = run("create", "--agent", "practice", "--role", "developer", *QUICK)
        assert (answer.code, answer.out) == (0, "ready: demo-app-creator-practice (practice, developer)\n")
        assert not answer.err

    def test_answers_with_the_row(self, run, workspace):
        row = run("--json", "create", "--agent", "practice", "--session", "a", "--env", "K=V=W", *QUICK).json[
            "session"
        ]
        assert (row["name"], row["workspace"], row["status"]) == ("a", str(workspace), "running")
        assert row["start_command"] == ["practice", "--speed", "0"]
        assert "K=V=W" in Path(f"/proc/{row['pane']['pid']}/environ").read_text(encoding="utf-8").split("\0")

    def test_a_dialog_leaves_the_session_and_says_where_it_is(self, run):
        answer = run("create", "--agent", "practice", "--session", "a", "--json", "--", "--trust-dialog")
        assert (answer.code, answer.error["code"]) == (2, "dialog_open")
        assert answer.json["session"]["name"] == "a"
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
        answer = run("create", "--agent", "practice", "--prompt-file", str(tmp_path / "prompt"), "--json")
        assert (answer.code, answer.error["code"]) == (64, "invalid_prompt")
        assert list(workspace.iterdir()) == []

    def test_a_missing_program_and_a_taken_name(self, run, session):
        assert run("create", "--agent", "no-such-agent", "--json").error["code"] == "agent_missing"
        answer = run("create", "--agent", "practice", "--session", session)
        assert answer.code == 1
        assert answer.err.startswith("mam: a session named 'one' is running\n  ")

    def test_anew_without_naming_the_agent(self, run, session):
        run("stop", session)
        row = run("create", "--session", session, "--json").json["session"]
        assert (row["status"], row["agent"]) == ("running", "practice")

    def test_without_waiting(self, run):
        answer = run(
            "create", "--agent", "practice", "--session", "a", "--no-wait", "--", "--slow-start", "1"
        )
        assert (answer.code, answer.out) == (0, "started: a (practice)\n")


class TestStopAndResume:
    def test_there_and_back(self, run, session):
        answer = run("stop", session, "--reason", "lunch")
        assert (answer.code, answer.out) == (0, "stopped: one (practice, dev)\n")
        again = run("delete", session)
        assert again.code == 0
        assert again.out.startswith("one: already stopped (")
        assert "lunch" in again.out
        document = run("stop", session, "--json").json
        assert document["session"]["status"] == "stopped"
        assert document["note"].startswith("already stopped (")
        assert run("resume", session).out == "resumed: one (practice, dev)\n"
        assert run("wait", session, "--for", "text:hello", "--timeout", "10").code == 0
        assert run("resume", session).out == "one: already running\n"
        assert run("resume", session, "--json").json["note"] == "already running"

    def test_restart(self, run, session):
        before = run("status", session, "--json").json["session"]
        after = run("restart", session, "--force", "--json").json["session"]
        assert after["pane"]["pid"] != before["pane"]["pid"]
        assert after["resume_count"] == 1

    def test_restart_of_all_that_run(self, run, session):
        assert "name sessions, or give --all" in run("restart").err
        assert run("restart", session, "--all").code == 64
        run("create", "--agent", "practice", "--session", "ended", *QUICK)
        run("stop", "ended")
        results = run("restart", "--all", "--force", "--json").json["results"]
        assert [result["target"] for result in results] == [session]
        assert results[0]["session"]["resume_count"] == 1
        run("stop", "--all")
        assert run("restart", "--all").out == "no session is running\n"

    def test_several_at_once(self, run, session):
        for name in ("b", "c", "d", "e"):
            run("create", "--agent", "practice", "--session", name, *QUICK)
        answer = run("stop", "b", "--json", "nobody", "c", "b")
        assert answer.code == 1
        assert [result["target"] for result in answer.json["results"]] == ["b", "nobody", "c"]
        assert answer.json["results"][0]["session"]["status"] == "stopped"
        assert answer.json["results"][1]["error"]["code"] == "session_not_found"
        assert answer.json["results"][2]["session"]["status"] == "stopped"
        answer = run("stop", "--all")
        assert answer.code == 0
        assert sorted(answer.out.splitlines()) == [
            "stopped: d (practice)",
            "stopped: e (practice)",
            "stopped: one (practice, dev)",
        ]
        assert run("stop", "--all").out == "no session is running\n"
        assert run("stop", "--all", "--json").json == {"results": []}
        assert run("resume", "--all").out == "nothing to resume\n"
        answer = run("resume", "--all", "--stopped", "--json")
        assert answer.code == 0
        assert {result["target"] for result in answer.json["results"]} == {"one", "b", "c", "d", "e"}

    def test_one_that_fails_stops_no_other(self, run, session):
        answer = run("stop", "nobody", session)
        assert answer.code == 1
        assert answer.out == "stopped: one (practice, dev)\n"
        assert answer.err.startswith("mam: no session 'nobody'")

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

    def test_by_kind_and_after_a_death(self, run, session, until):
        run("stop", session)
        run("create", "--agent", "practice", "--session", "b", "--prompt", "hello", *QUICK)
        os.kill(run("status", "b", "--json").json["session"]["pane"]["pid"], signal.SIGKILL)
        until(lambda: run("status", "b", "--json").json["session"]["activity"] == "exited")
        died = run("resume", "--all", "--json").json["results"]
        assert [result["target"] for result in died] == ["b"]
        kind = run("resume", "--agent", "practice", "--json").json["results"]
        assert [result["target"] for result in kind] == ["one"]
        assert run("resume", "--agent", "claude", "--json").code == 1

    def test_a_deletion_needs_a_yes(self, run, session):
        answer = run("stop", session, "--purge-conversation", "--json")
        assert (answer.code, answer.error["code"]) == (64, "needs_confirmation")
        assert run("status", session, "--json").json["session"]["status"] == "running"
        answer = run("stop", session, "--purge-conversation", "--yes")
        assert (answer.code, answer.out) == (0, "purged: one (practice, dev)\n")
        assert run("status", session, "--json").json["session"]["resumable"] is False

    def test_a_person_is_asked(self, run, session, terminal):
        dialog = terminal("stop", session, "--purge-conversation")
        dialog.sees("Delete the conversation of one for good? [y/N]")
        dialog.type("\r")
        assert dialog.leave() == 1
        assert "mam has not stopped anything" in dialog.text()
        assert run("status", session, "--json").json["session"]["status"] == "running"
        dialog = terminal("stop", session, "--purge-conversation")
        dialog.sees("[y/N]")
        dialog.type("y\r")
        assert dialog.leave() == 0
        assert run("status", session, "--json").json["session"]["status"] == "terminated"

    def test_one_that_is_not_registered(self, run, tmux_server, session):
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "stray", "cat"], check=True)
        answer = run("stop", "stray", "--force-no-yaml", "--tmux-server", tmux_server)
        assert (answer.code, answer.out) == (0, "stopped: stray (it was not registered)\n")
        assert run("log", "--json", "--limit", "1").json["entries"][0]["detail"]["name"] == "stray"

    def test_s000_14_the_hint_names_the_way_to_stop_one_that_is_not_registered(
        self, run, tmux_server, session
    ):
        plain = run("stop", "stray", "--json")
        assert (plain.code, plain.error["code"]) == (1, "session_not_found")
        assert "--force-no-yaml" not in plain.error["hint"], "there is no such tmux session"
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "stray-2", "cat"], check=True)
        assert "--force-no-yaml" not in run("stop", "stray", "--json").error["hint"], (
            "only this very name counts"
        )
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "stray", "cat"], check=True)
        answer = run("stop", "stray", "--json")
        assert (answer.code, answer.error["code"]) == (1, "session_not_found")
        assert "mam stop stray --force-no-yaml ends it" in answer.error["hint"]
        assert "mam stop stray --force-no-yaml ends it" in run("stop", "stray", session).err

    def test_s000_14_the_hint_names_the_server_where_it_is_another(
        self, run, tmux_server, session, monkeypatch
    ):
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "stray", "cat"], check=True)
        monkeypatch.setenv("TMUX_SERVER_NAME", f"{tmux_server}-other")
        command = f"mam stop stray --force-no-yaml --tmux-server {tmux_server}"
        answer = run("stop", "stray", "--json")
        assert f"{command} ends it" in answer.error["hint"]
        assert run(*command.split()[1:]).code == 0


class TestLooking:
    def test_a_listing(self, run, session):
        document = run("ls", "--json").json
        assert set(document) == {"schema_version", "root", "root_state", "resident", "sessions"}
        assert document["resident"] == {
            **dict.fromkeys(("version", "since", "reason", "next_start_at")),
            "state": "off",
        }
        (entry,) = document["sessions"]
        assert {
            "activity",
            "activity_source",
            "activity_age_s",
            "waiting_for",
            "tmux_alive",
            "job",
            "drift",
        } <= set(entry)
        assert set(entry["resume"]) == {"id", "tier", "on_disk"}
        lines = run("ls").out.splitlines()
        assert " ".join(lines[0].split()) == "NAME AGENT ROLE STATUS ACTIVITY TMUX RESUME JOB DRIFT"
        assert lines[1].split()[:5] == ["one", "practice", "dev", "running", "idle"]
        assert lines[1].split()[7:] == [entry["resume"]["id"][:8], "t1", "disk", "-", "-"]
        assert run("ls", "--all").out.splitlines()[0] == document["root"]

    def test_filters(self, run, session):
        run("create", "--agent", "human", "--session", "b")
        assert run("ls", "--names").out.split() == ["one", "b"]
        assert run("ls", "--names", "--agent", "human").out.split() == ["b"]
        assert run("ls", "--names", "--role", "dev", "--status", "running").out.split() == ["one"]
        assert run("ls", "--status", "archived").out == "no session matches\n"
        assert run("ls", "--waiting", "--json").json["sessions"] == []
        assert run("ls", "--names", "--json").json == {"names": ["one", "b"]}

    def test_without_a_registry(self, run):
        assert run("ls").code == 0
        assert "mam create" in run("ls").out
        answer = run("status")
        assert answer.code == 1
        assert "no registry" in answer.err
        assert run("status", "--json").error["code"] == "refused"
        assert run("status", "one", "--json").error["code"] == "session_not_found"

    def test_status(self, run, session):
        assert run("status").out.splitlines()[0].startswith("NAME")
        text = run("status", session).out
        assert text.startswith("one\n  status ")
        for part in ("running", "idle", "practice", "dev", "server mam-test-", "disk", "create by user"):
            assert part in text
        row = run("status", "--session", session, "--json").json["session"]
        assert run("status", row["id"], "--json").json["session"]["name"] == session

    def test_read_and_explain(self, run, session):
        assert "❯ hello" in run("read", session).out
        assert len(run("read", session, "--lines", "2").out.splitlines()) == 2
        document = run("read", session, "--scrollback", "--json").json
        assert document["session"] == session
        assert "hello" in document["text"]
        text = run("explain", session).out
        assert text.startswith("one: idle ")
        assert "\nbecause " in text
        assert "SOURCE" in text
        assert set(run("explain", session, "--json").json) >= {"evidence", "rule", "activity", "disagreeing"}

    def test_a_disagreement_is_shown(self, run, until):
        run("create", "--agent", "practice", "--session", "a", "--prompt", "run the tests", *QUICK)
        run("wait", "a", "--for", "waiting", "--timeout", "10")
        document = run("explain", "a", "--json").json
        text = run("explain", "a").out
        assert document["waiting_for"] == "permission"
        assert all(f"!  {source}" in text for source in document["disagreeing"])
        # The hook may arrive late, and a listing reads the screen only if no cheaper source reports a state.
        until(lambda: run("ls", "--waiting", "--names").out == "a\n")

    def test_wait(self, run, session):
        answer = run("wait", session, "--for", "idle", "--json")
        assert json.loads(answer.out)["session"]["activity"] == "idle"
        assert len(answer.out.splitlines()) == 1
        answer = run("wait", session, "--for", "waiting", "--timeout", "0.2", "--json")
        assert (answer.code, answer.error["code"]) == (2, "timeout")
        assert run("wait", session, "--for", "text:hel+o").code == 0
        assert run("wait", session, "--for", "text:(").code == 64
        assert run("wait", session, "--for", "lunch").code == 64
        run("stop", session)
        assert run("wait", session, "--for", "exited").code == 0
        assert run("wait", session, "--for", "idle").code == 2

    def test_log(self, run, session):
        run("stop", session, "--reason", "lunch\x1b[2J")
        entries = run("log", "--json").json["entries"]
        assert [entry["verb"] for entry in entries] == ["create", "send", "stop"]
        lines = run("log", session, "--limit", "1", "--since", "1h").out.splitlines()
        assert len(lines) == 2
        assert lines[1].split()[1:5] == ["user", "stop", "one", "lunch[2J"]
        assert run("log", "nobody", "--json").code in (0, 1)

    def test_doctor(self, run, session, workspace):
        answer = run("doctor")
        assert answer.code == 0, answer
        assert all(line.startswith(("ok ", "unknown ", " ")) for line in answer.out.splitlines())
        (workspace / ".mam" / "state.db").chmod(0o644)
        answer = run("doctor")
        assert answer.code == 1
        assert "problem  " in answer.out
        assert any(check["ok"] is False and check["mend"] for check in run("doctor", "--json").json["checks"])


class TestKeeping:
    def test_init(self, run, workspace):
        file = workspace / ".hermes" / "agent-sessions.yaml"
        assert run("init", "--json").json == {"registry": str(file)}
        assert file.exists()
        assert run("init").out == f"this directory is a root already; its registry is {file}\n"
        below = workspace / "below"
        below.mkdir()
        new = run("init", "--workspace", str(below))
        assert new.out == (
            f"this directory is now a root; its registry is {below}/.hermes/agent-sessions.yaml\n"
        )
        assert run("status").code == 0

    def test_rename_archive_and_forget(self, run, session):
        assert run("rename", session, "two").out == "one is now two\n"
        assert run("rename", "--session", "two", "three").code == 0
        assert run("archive", "three", "--json").error["code"] == "illegal_transition"
        run("stop", "three")
        assert run("archive", "three").out == "archived: three (practice, dev)\n"
        assert run("ls", "--status", "archived", "--names").out == "three\n"
        assert run("forget", "three", "--json").json["forgotten"] == "three"
        assert run("ls", "--names").out.strip() == ""

    def test_forgetting_by_age_is_confirmed(self, run, session, terminal):
        run("create", "--agent", "human", "--session", "b")
        run("stop", "--all")
        assert run("forget", "--older-than", "1h").out == "no session is that old\n"
        answer = run("forget", "--older-than", "0s", "--json")
        assert (answer.code, answer.error["code"]) == (64, "needs_confirmation")
        dialog = terminal("forget", "--older-than", "0s")
        dialog.sees("Forget 2 sessions? [y/N]")
        dialog.type("no\r")
        assert dialog.leave() == 1
        assert run("ls", "--names").out.split() == ["one", "b"]
        answer = run("forget", "--older-than", "0s", "--yes", "--json")
        assert [result["forgotten"] for result in answer.json["results"]] == ["one", "b"]

    def test_a_running_one_is_not_forgotten(self, run, session):
        assert run("forget", session, "--json").error["code"] == "illegal_transition"

    def test_fork(self, run, session):
        row = run("fork", session, "--session", "other", "--role", "critic", "--json").json["session"]
        assert (row["name"], row["role"]) == ("other", "critic")
        assert run("wait", "other", "--for", "text:hello", "--timeout", "10").code == 0
        assert run("fork", session).out == "forked: demo-app-creator-practice (practice, dev)\n"

    def test_adopt(self, run, session, tmux_server):
        subprocess.run(["tmux", "-L", tmux_server, "new-session", "-d", "-s", "My Work", "cat"], check=True)
        answer = run("adopt", "My Work", "--agent", "cat", "--session", "mine")
        assert (answer.code, answer.out) == (0, "adopted: mine (cat)\n")
        assert run("adopt", "nothing", "--agent", "cat", "--json").error["code"] == "pane_gone"


class TestAttach:
    def test_needs_a_terminal(self, run, session):
        answer = run("attach", session)
        assert answer.code == 64
        assert "needs a terminal" in answer.err

    def test_says_what_it_would_run(self, run, session, tmux_server):
        document = run("attach", "--json").json
        assert set(document) == {"session", "switched", "argv"}
        assert document["session"] == session
        assert tmux_server in document["argv"]

    def test_shows_the_session(self, run, session, terminal):
        screen = terminal("attach", session)
        screen.sees("hello")
        assert screen.detach() == 0
        assert "[detached" in screen.text()

    def test_goes_to_the_next_that_waits(self, run, session, terminal):
        assert run("attach", "--next", "--json").error["code"] == "refused"
        run("create", "--agent", "practice", "--session", "b", "--prompt", "run the tests", *QUICK)
        run("wait", "b", "--for", "waiting", "--timeout", "10")
        screen = terminal("attach", "--next")
        screen.sees("Do you want to proceed?")
        assert screen.detach() == 0


class TestOnATerminal:
    def test_colours_and_width(self, run, session, terminal):
        listing = terminal("ls", columns=70)
        assert listing.leave() == 0
        assert "\x1b[" in listing.read()
        assert max(len(line) for line in listing.text().splitlines()) <= 70

    def test_no_colours_on_request(self, run, session, terminal):
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            listing = terminal("ls", **variables)
            assert listing.leave() == 0
            assert "\x1b" not in listing.read()

    def test_progress_is_gone_afterwards(self, run, terminal):
        created = terminal("create", "--agent", "practice", "--session", "a", *QUICK)
        assert created.leave() == 0
        assert "starting practice as a" in created.text()
        assert created.read().rstrip().endswith("\r\x1b[Kready: a (practice)")

    def test_a_watch_is_repainted_and_gives_the_screen_back(self, run, session, terminal):
        watched = terminal("ls", "--watch")
        watched.sees("q quits")
        run("create", "--agent", "practice", "--session", "late", *QUICK)
        watched.sees("late")
        watched.type("q")
        assert watched.leave() == 0
        screen = watched.read()
        assert screen.startswith("\x1b[?1049h\x1b[?25l")
        assert screen.endswith("\x1b[?25h\x1b[?1049l")

    @pytest.mark.parametrize("how", ["key", "signal"])
    def test_a_watch_can_be_interrupted(self, run, session, terminal, how):
        watched = terminal("ls", "--watch")
        watched.sees("q quits")
        if how == "key":
            watched.type("\x03")
        else:
            os.kill(watched.pid, signal.SIGTERM)
        assert watched.leave() == (130 if how == "key" else 143)
        assert watched.read().endswith("\x1b[?25h\x1b[?1049l")


def test_a_watch_prints_an_object_per_change(run, session, workspace):
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


def test_s001_47_the_exit_codes_of_a_pass(run, workspace) -> None:
    assert run("monitor", "--once").code == 1
    assert run("init").code == 0
    assert run("monitor", "--once").code == 0
    (workspace / ".hermes/agent-sessions.yaml").write_text("tmux_sessions: [", encoding="utf-8")
    assert run("monitor", "--once").code == 65
