"""Spawn: a pane beside the caller, an agent that knows its role, and nothing left behind by a failure."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, Desk, said

import mam
from mam.adapters.agents.practice import Practice
from mam.adapters.store.tables import tasks, teams
from mam.app.messages.delivery import deliver_all
from mam.app.sessions.death import record_if_dead
from mam.app.teams import team_page
from mam.app.teams.onboarding_steps import finish_spawns
from mam.app.teams.spawn import Spawn
from mam.app.teams.team_window import find_team_window
from mam.core import caller as callers
from mam.core.errors import DialogOpen, NotAllowed, NotReady, Refused, Unavailable


def counts(fleet):
    def read(transaction):
        tables = ("teams", "members", "tasks", "intents")
        return {
            table: transaction.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables
        }

    return fleet._access.context.registry.peek(read, {})


def test_a_member_beside_the_caller(desk, master):
    document = master.teams.spawn("dev", agent="practice", task="write it", args=QUICK)
    row, member = document["session"], document["member"]
    pane = row["pane"]["id"]
    assert desk.panes() == [desk.pane, pane]
    assert desk.place(desk.pane) == (0, 1), "below its border"
    assert desk.place(pane)[0] > 0
    assert desk.raw("display-message", "-p", "-t", "=desk:", "#{pane_id}") == desk.pane
    assert (row["name"], row["role"], row["parent"], row["status"]) == ("dev", "dev", None, "running")
    assert (row["tmux_server"], row["permissions"]) == (desk.server, "skip")
    assert (desk.option(pane, "@mam_label"), desk.option(pane, "@mam_colour")) == ("dev", "#4a6e38")
    assert desk.option(desk.pane, "@mam_label") == "master"
    assert [receipt["state"] for receipt in document["identity"]] == ["submitted", "submitted"]
    assert [receipt["proven"] for receipt in document["identity"]] == [None, True]
    assert "dev-agent" in master.sessions.read("dev")
    assert document["receipt"]["state"] == "submitted" and document["receipt"]["evidence"] in (
        "hook",
        "transcript",
    )
    (prompt,) = said(master, "dev")
    assert all(text in prompt for text in ("dev agent", document["team"], "TASK-001: write it", "mam report"))
    assert (member["state"], member["colour"], member["task"]) == ("active", "green", "TASK-001")
    assert document["task"]["claimed_by"] == "dev" and document["task"]["pane"] == pane
    text = Path(document["session_file"]).read_text(encoding="utf-8")
    assert f"# Agent Sessions — {document['team']}" in text
    assert f"| {pane} | dev |" in text and "### TASK-001 · in-progress (claimed:" in text


def test_others_join_in_their_order(desk, master):
    first = master.teams.spawn("dev", agent="practice", args=QUICK)
    second = master.teams.spawn("dev", agent="practice", args=QUICK)
    third = master.teams.spawn("Tech Writer", agent="practice", args=QUICK)
    assert {document["team"] for document in (first, second, third)} == {first["team"]}
    names = [document["session"]["name"] for document in (first, second, third)]
    assert names == ["dev", "dev-2", "tech-writer"]
    assert desk.panes() == [
        desk.pane,
        *(document["session"]["pane"]["id"] for document in (first, second, third)),
    ]


def test_s003_28_messages_arrive_after_the_heights_of_the_panes_changed(desk, master):
    names = [master.teams.spawn("dev", agent="practice", args=QUICK)["session"]["name"] for _ in range(3)]
    for name in names:
        assert master.messages.send(name, "after the third spawn", timeout=60)["state"] == "submitted"
    master.teams.close(names[0], force=True)
    for name in names[1:]:
        assert master.messages.send(name, "after the close", timeout=60)["state"] == "submitted"
        assert said(master, name)[1:] == ["after the third spawn", "after the close"]


def test_a_member_that_spawns_is_the_parent_and_no_master(desk, master):
    first = master.teams.spawn("dev", agent="practice", args=QUICK)
    master._access._caller = callers.session(first["session"]["id"])
    second = master.teams.spawn("qa", agent="practice", args=QUICK)
    assert second["session"]["parent"] == first["session"]["id"]
    assert second["team"] == first["team"]
    (prompt,) = said(master, "qa")
    assert prompt.startswith(f"[mam {second['receipt']['message_id']} from dev (dev)]")
    assert "You were started by session dev." in prompt


def test_the_oldest_task_of_the_role_is_its_first(master):
    master.tasks.add("older", role="dev")
    master.tasks.add("newer", role="dev")
    document = master.teams.spawn("dev", agent="practice", args=QUICK)
    assert document["task"]["text"] == "older"
    assert "TASK-001: older" in said(master, "dev")[0]


def test_a_name_that_has_ended_is_started_anew(master):
    first = master.teams.spawn("dev", agent="practice", args=QUICK)
    master.sessions.stop("dev")
    second = master.teams.spawn("dev", agent="practice", args=QUICK)
    assert second["session"]["id"] == first["session"]["id"]
    assert second["member"]["state"] == "active"
    assert len(said(master, "dev")) == 1, "a new conversation"


def test_the_dead_pane_of_the_last_launch_is_removed(desk, master, until):
    first = master.teams.spawn("dev", agent="practice", args=QUICK)["session"]
    os.kill(first["pane"]["pid"], signal.SIGKILL)
    until(lambda: record_if_dead(master._access.context, master.caller, first)["status"] == "terminated")
    assert first["pane"]["id"] in desk.panes()
    second = master.teams.spawn("dev", agent="practice", args=QUICK)["session"]
    assert second["id"] == first["id"]
    assert desk.panes() == [desk.pane, second["pane"]["id"]]


def test_outside_of_tmux_a_team_has_its_own_session(fleet):
    first = fleet.teams.spawn("dev", agent="practice", args=QUICK)
    second = fleet.teams.spawn("qa", agent="practice", args=QUICK)
    assert first["team"] == second["team"]
    panes = {
        pane.mark: pane for pane in fleet._access.context.tmux(first["session"]["tmux_server"]).panes().panes
    }
    windows = {panes[document["session"]["id"]].window_id for document in (first, second)}
    assert len(windows) == 1
    assert {pane.session_name for pane in panes.values()} == {first["team"]}


@pytest.mark.parametrize(("drill", "timeout"), [(["--no-such-option"], None), (["--slow-start", "600"], 0.3)])
def test_failing_three_times_leaves_nothing_behind(desk, master, workspace, drill, timeout):
    master.tasks.add("somebody else's", role="dev")
    before = counts(master)
    tries = []
    master.on_progress(lambda text: tries.append(text) if text.startswith("starting") else None)
    with pytest.raises(NotReady, match="3 tries"):
        master.teams.spawn("dev", agent="practice", args=drill, timeout=timeout)
    assert len(tries) == 3
    assert counts(master) == before
    assert master.tasks.list()["tasks"][0]["status"] == "pending"
    assert master.sessions.list() == []
    assert desk.panes() == [desk.pane]
    assert list((workspace / ".mam" / "launch").iterdir()) == []
    assert "dev" not in (workspace / ".hermes" / "agent-sessions.yaml").read_text(encoding="utf-8")


def test_s003_30_a_failed_spawn_leaves_no_team_page(desk, master, workspace, while_starting):
    while_starting(lambda: team_page.write(master._access.context))
    with pytest.raises(NotReady, match="3 tries") as caught:
        master.teams.spawn("dev", agent="practice", task="x", args=["--slow-start", "600"], timeout=0.3)
    assert [path.name for path in (workspace / ".hermes").iterdir() if path.suffix == ".md"] == []
    assert "mam read dev" not in caught.value.hint and "keeps running" not in caught.value.hint
    assert "mam create --agent practice" in caught.value.hint


def test_s003_30_the_page_of_a_team_does_not_show_a_failed_spawn(master, while_starting):
    document = master.teams.spawn("qa", agent="practice", args=QUICK)
    while_starting(lambda: team_page.write(master._access.context))
    with pytest.raises(NotReady):
        master.teams.spawn("dev", agent="practice", task="write it", args=["--no-such-option"])
    text = Path(document["session_file"]).read_text(encoding="utf-8")
    assert "| qa |" in text
    assert "| dev |" not in text and "write it" not in text and "spawning" not in text


def test_s003_30_the_page_of_a_spawn_that_a_dead_spawner_left_is_removed(master, workspace):
    """The session did not start, so the next verb removes the member and with it the team."""
    context = master._access.context
    window = find_team_window(context, master.caller)

    def work(transaction):
        window.open(transaction, "user")
        teams.add_member(
            transaction,
            team_id=window.team_id,
            session_id="s_00000001",
            name="dev",
            role="dev",
            colour="green",
            name_source="auto",
            workspace=str(workspace),
            state="spawning",
            owner={"pid": 1, "start": 1, "boot": "another"},
        )

    context.registry.note(work)
    team_page.write(context)
    (page,) = (workspace / ".hermes").glob("*.md")
    finish_spawns(context)
    assert not page.exists()


def test_s003_30_a_failed_spawn_leaves_an_ended_session_of_its_name_as_it_was(master):
    master.teams.spawn("dev", agent="practice", args=QUICK)
    master.sessions.stop("dev")
    before = master.sessions.get("dev").row
    with pytest.raises(NotReady):
        master.teams.spawn("dev", agent="practice", args=["--no-such-option"])
    after = master.sessions.get("dev").row
    assert {**after, "version": 0} == {**before, "version": 0}
    assert len(said(master, "dev")) == 1
    assert master.sessions.resume("dev").session.row["status"] == "running"


@pytest.fixture
def while_starting(monkeypatch):
    """Call something in each try of a spawn, while mam waits for the agent, as the resident does."""
    from mam.app.teams import spawn

    wait = spawn.wait_until_ready

    def set_call(call):
        def call_and_wait(*arguments, **options):
            call()
            return wait(*arguments, **options)

        monkeypatch.setattr(spawn, "wait_until_ready", call_and_wait)

    return set_call


def test_s003_29_a_failed_spawn_holds_the_messages_of_the_former_session_again(master, while_starting):
    master.teams.spawn("dev", agent="practice", args=QUICK)
    master.sessions.stop("dev")
    held = master.messages.send("dev", "for the former session")
    states = []

    def look():
        (message,) = [
            sent for sent in master.messages.inbox("dev") if sent["message_id"] == held["message_id"]
        ]
        states.append((message["state"], message["reason"]))

    while_starting(look)
    with pytest.raises(NotReady):
        master.teams.spawn("dev", agent="practice", args=["--no-such-option"])
    assert states == [("failed", "'dev' was started anew before it was typed")] * 3
    look()
    assert states[-1][0] == "held"
    master.sessions.resume("dev")
    deliver_all(master._access.context)
    assert said(master, "dev")[-1].endswith("for the former session")


def test_s003_30_a_failed_spawn_keeps_what_changed_meanwhile(master, while_starting):
    master.teams.spawn("dev", agent="practice", args=QUICK)
    master.sessions.stop("dev")
    before = master.sessions.get("dev").row
    renamed = []

    def rename_once():
        if not renamed:
            renamed.append(master.sessions.rename("dev", "other"))

    while_starting(rename_once)
    with pytest.raises(NotReady):
        master.teams.spawn("dev", agent="practice", args=["--no-such-option"])
    after = master.sessions.get(before["id"]).row
    assert after["name"] == "other"
    assert (after["conversations"], after["pane"]) == (before["conversations"], before["pane"])


def test_an_undone_spawn_leaves_no_held_messages(master):
    """Another role of the team failed: a later resume must not tell the session that it is a member."""
    master.teams.spawn("dev", agent="practice", args=QUICK)
    master.sessions.stop("dev")
    before = len(master.messages.inbox("dev"))
    args = [*QUICK, "--trust-dialog"]
    member_spawn = Spawn(
        master._access.context,
        master.caller,
        find_team_window(master._access.context, master.caller),
        "dev",
        agent="practice",
        args=args,
    )
    member_spawn.run()
    member_spawn.finish()
    assert [message["state"] for message in master.messages.inbox("dev")[before:]] == ["held"] * 3
    member_spawn.undo()
    assert [message["state"] for message in master.messages.inbox("dev")[before:]] == ["failed"] * 3


def test_a_member_whose_row_could_not_be_recorded_is_ended(desk, master, monkeypatch) -> None:
    """The disk was full for a moment. The claim on the session would have it started by a recovery."""
    from mam.app.sessions import create

    master.init()
    real, fails = create.claims.change, [True]

    def change(context, work):
        if fails:
            fails.clear()
            raise Unavailable("no space left")
        return real(context, work)

    monkeypatch.setattr(create.claims, "change", change)
    before = counts(master)
    with pytest.raises(Unavailable, match="no space left"):
        master.teams.spawn("dev", agent="practice", args=QUICK)
    assert not fails
    assert master.sessions.list() == []
    assert counts(master) == before
    assert desk.panes() == [desk.pane]


def test_a_program_that_is_not_there(desk, master):
    with pytest.raises(mam.MamError, match="not on PATH"):
        master.teams.spawn("dev", agent="no-such-agent", task="x")
    assert desk.panes() == [desk.pane]
    assert not any(counts(master).values())


def test_a_start_that_its_kind_refuses_leaves_nothing_behind(desk, master, tmp_path, monkeypatch):
    """Claude takes no skipped permissions as root."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\nexec cat\n", encoding="utf-8")
    (tmp_path / "bin" / "claude").chmod(0o755)
    master._access.context.environ["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    with pytest.raises(NotAllowed) as caught:
        master.teams.spawn("dev", task="x")
    assert "another user" in caught.value.hint
    assert desk.panes() == [desk.pane]
    assert not any(counts(master).values()) and master.sessions.list() == []


def test_a_dialog_holds_the_messages(desk, master, until):
    with pytest.raises(DialogOpen) as caught:
        master.teams.spawn("dev", agent="practice", task="work", args=[*QUICK, "--trust-dialog"])
    assert caught.value.session["name"] == "dev"
    held = master.messages.inbox("dev")
    assert [message["state"] for message in held] == ["held"] * 3
    desk.raw("send-keys", "-t", caught.value.session["pane"]["id"], "Down")
    desk.raw("send-keys", "-t", caught.value.session["pane"]["id"], "Enter")

    def delivered():
        deliver_all(master._access.context)
        return all(message["state"] == "submitted" for message in master.messages.inbox("dev"))

    until(delivered)
    assert "TASK-001: work" in said(master, "dev")[0]


def test_a_window_without_room(tmux_server, workspace):
    small = Desk(tmux_server, workspace, width=80, height=12)
    with small.fleet() as fleet:
        fleet.teams.spawn("dev", agent="practice", args=QUICK)
        with pytest.raises(Refused, match="no room"):
            fleet.teams.spawn("qa", agent="practice", args=QUICK)
        assert len(small.panes()) == 2


SPAWNER = """
import os, signal, sys
import mam
from mam.app.teams import onboarding_steps, spawn
step = sys.argv[1]
def die(*_args, **_more):
    os.kill(os.getpid(), signal.SIGKILL)
if step == "place":
    spawn.Spawn._place_in_window = die
elif step == "wait":
    spawn.Spawn.wait = die
elif step == "prompt":
    onboarding_steps.send_first_prompt = die
elif step == "active":
    onboarding_steps.mark_active = die
mam.open().teams.spawn("dev", agent="practice", task="work", args=["--speed", "0"])
"""


@pytest.mark.parametrize("step", ["place", "wait", "prompt", "active"])
def test_a_spawner_that_is_killed(desk, master, step, until):
    result = subprocess.run(
        [sys.executable, "-c", SPAWNER, step], env=desk.environ(), cwd=desk.workspace, check=False
    )
    assert result.returncode == -signal.SIGKILL
    # Any verb of teams finishes the spawn.
    master.tasks.add("next", role="qa")
    master.teams.rebalance()
    until(lambda: master.sessions.status("dev")["activity"] == "idle")

    def arrived():
        deliver_all(master._access.context)
        return [prompt for prompt in said(master, "dev") if "TASK-001: work" in prompt]

    assert len(until(arrived)) == 1
    (member,) = master.teams.list()["teams"][0]["members"]
    assert (member["state"], member["task"]) == ("active", "TASK-001")
    assert member["pane"] == master.sessions.get("dev").row["pane"]["id"]
    assert desk.panes() == [desk.pane, member["pane"]]
    master.teams.rebalance()
    assert [message["state"] for message in master.messages.inbox("dev")].count("submitted") == 3, "and once"


def test_a_pane_that_is_killed_while_it_is_named(desk, master, monkeypatch):
    """It counts as a failed try, like any other."""
    tries = []
    real = Practice.identity_took_effect

    def killed(self, command, conversation, stores, screen):
        if not tries:
            tries.append(desk.panes()[-1])
            desk.raw("kill-pane", "-t", tries[0])
            return False
        return real(self, command, conversation, stores, screen)

    monkeypatch.setattr(Practice, "identity_took_effect", killed)
    document = master.teams.spawn("dev", agent="practice", task="work", args=QUICK)
    assert desk.panes() == [desk.pane, document["session"]["pane"]["id"]]
    assert (counts(master)["members"], counts(master)["tasks"], len(master.sessions.list())) == (1, 1, 1)


def test_settings_change_the_permissions(desk, workspace):
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "mam" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + 'team_permissions = "ask"\n', encoding="utf-8")
    with desk.fleet() as fleet:
        document = fleet.teams.spawn("dev", agent="practice", args=QUICK)
    assert (document["permissions"], document["session"]["permissions"]) == ("ask", "ask")


def test_the_records_are_json(master):
    document = master.teams.spawn("dev", agent="practice", args=QUICK)
    assert json.loads(json.dumps(document)) == document
    assert master._access.context.registry.peek(teams.starting, []) == []
    assert master._access.context.registry.peek(tasks.listed, []) == []


def test_a_command_without_effect_is_sent_once_more(master, monkeypatch):
    from mam.adapters.agents.practice import Practice
    from mam.app.teams import onboarding_steps

    monkeypatch.setattr(onboarding_steps, "_PROOF_SECONDS", 0.05)
    monkeypatch.setattr(
        Practice, "identity_took_effect", lambda self, command, *_: not command.startswith("/rename")
    )
    warnings = []
    master.on_warning(warnings.append)
    document = master.teams.spawn("dev", agent="practice", args=QUICK)
    assert [message["text"] for message in master.messages.inbox("dev")][:3] == [
        "/color green",
        *["/rename dev-agent"] * 2,
    ]
    assert [receipt["proven"] for receipt in document["identity"]] == [True, False]
    assert warnings == ["'dev' did not carry out /rename dev-agent"]
    assert document["receipt"]["state"] == "submitted", "its work does not wait for its name"


def test_the_prompt_names_the_command_of_this_mam(master, tmp_path):
    (tmp_path / "mam").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "mam").chmod(0o755)
    path = master._access.context.environ["PATH"]
    master._access.context.environ["PATH"] = os.pathsep.join([str(tmp_path), path])
    master.teams.spawn("dev", agent="practice", args=QUICK)
    assert "shell: mam report" in said(master, "dev")[0]
    without = [folder for folder in path.split(os.pathsep) if not (Path(folder) / "mam").exists()]
    master._access.context.environ["PATH"] = os.pathsep.join(without)
    master.teams.spawn("qa", agent="practice", args=QUICK)
    assert f"shell: {sys.executable} -m mam report" in said(master, "qa")[0]
