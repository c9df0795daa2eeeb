"""Teams: up and down, reports and boxes, who may close whom, and the window in order."""

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, said

import mam
from mam.adapters.store.tables import teams
from mam.adapters.system import process
from mam.app.messages.delivery import deliver_all
from mam.app.teams.onboarding import welcome_back
from mam.core import caller as callers
from mam.core.errors import InvalidPath, InvalidPrompt, InvalidSettings, NotAllowed, NotReady, Refused, Usage

FIVE = """\
name: five
about: five who practise
roles:
  - role: dev
    prompt: You write.
  - role: qa
    colour: orange
  - architect
  - role: ux
    permissions: ask
  - writer
"""


@pytest.fixture
def five(tmp_path):
    path = tmp_path / "five.yaml"
    path.write_text(FIVE, encoding="utf-8")
    return str(path)


def spawn(fleet, role="dev", **more):
    return fleet.teams.spawn(role, agent="practice", args=QUICK, **more)


def interrupted(*_given, **_options):
    raise KeyboardInterrupt


def members(fleet):
    return {one["session"]: one for team in fleet.teams.list()["teams"] for one in team["members"]}


def boxes(fleet, name):
    return [box for box, ticked in members(fleet)[name]["boxes"].items() if ticked]


class TestUpAndDown:
    def test_a_team_of_five(self, desk, master, five):
        done = master.teams.up(five, agent="practice", args=QUICK, work="the first task")
        roles = ["dev", "qa", "architect", "ux", "writer"]
        assert [one["session"]["name"] for one in done["members"]] == roles
        panes = [one["session"]["pane"]["id"] for one in done["members"]]
        assert desk.panes() == [desk.pane, *panes]
        assert desk.place(desk.pane) == (0, 1)
        assert {desk.place(pane)[0] for pane in panes} == {101}, "stacked at the right"
        assert done["permissions"] == ["ask", "skip"]
        assert [one["member"]["colour"] for one in done["members"]] == [
            "green",
            "orange",
            "purple",
            "cyan",
            "yellow",
        ]
        assert all(one["receipt"]["state"] == "submitted" for one in done["members"])
        assert "TASK-001: the first task" in said(master, "dev")[0] and "You write." in said(master, "dev")[0]
        pids = [one["session"]["pane"]["pid"] for one in done["members"]]
        down = master.teams.down()
        assert sorted(down["closed"]) == sorted(roles)
        assert (down["failed"], down["unfinished"]) == ([], ["TASK-001"])
        assert desk.panes() == [desk.pane]
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert {one.row["status"] for one in master.sessions.list()} == {"stopped"}
        assert master.teams.list()["teams"] == []
        assert desk.raw("show-options", "-w", "-t", desk.window) == ""
        assert desk.option(desk.pane, "@mam_label") == ""
        text = Path(done["session_file"]).read_text(encoding="utf-8")
        assert text.count("| closed |") == 5 and "Ended:" in text
        assert master.tasks.list()["tasks"][0]["status"] == "pending", "it waits again"

    def test_all_or_nothing(self, desk, master, tmp_path):
        path = tmp_path / "two.yaml"
        path.write_text("roles: [{role: dev, agent: practice}, {role: qa, agent: 'false'}]", encoding="utf-8")
        with pytest.raises(NotReady, match="qa"):
            master.teams.up(str(path), timeout=5)
        assert desk.panes() == [desk.pane]
        assert master.sessions.list() == []
        assert master.teams.list(ended=True)["teams"] == []

    def test_a_dialog_is_no_failure(self, desk, master, until):
        done = master.teams.up("dev-qa", agent="practice", args=[*QUICK, "--trust-dialog"])
        assert [one["receipt"]["state"] for one in done["members"]] == ["held", "held"]
        assert all("trust dialog" in one["dialog"] for one in done["members"])
        for one in done["members"]:
            desk.raw("send-keys", "-t", one["session"]["pane"]["id"], "Down")
            desk.raw("send-keys", "-t", one["session"]["pane"]["id"], "Enter")

        def told():
            deliver_all(master._access.context)
            return said(master, "dev") and said(master, "qa")

        until(told)

    def test_its_task_is_a_task_like_others(self, desk, master):
        for work in ("  ", "x" * 70_000):
            with pytest.raises(InvalidPrompt):
                master.teams.up("solo-dev", agent="practice", args=QUICK, work=work)
        assert desk.panes() == [desk.pane]
        master.teams.up("solo-dev", agent="practice", args=QUICK, work="red\x1b[31m\r\nline")
        assert master.tasks.list()["tasks"][0]["text"] == "red[31m\nline"

    def test_a_task_of_a_team_by_its_name(self, master):
        up = master.teams.up("solo-dev", agent="practice", args=QUICK)
        assert master.tasks.add("x", role="dev", team="solo-dev")["task"]["team"] == up["team"]["id"]
        master.teams.down()
        with pytest.raises(Usage, match="no team"):
            master.tasks.add("x", role="dev", team=up["team"]["id"])

    def test_a_preset_that_is_no_file(self, fleet, home):
        (home / ".config" / "mam" / "teams" / "odd.yaml").mkdir(parents=True)
        with pytest.raises(InvalidPath, match="no preset 'odd'"):
            fleet.teams.up("odd")
        assert "odd" not in fleet.teams.list()["presets"]

    def test_what_is_no_file(self, fleet, tmp_path):
        os.mkfifo(tmp_path / "pipe.yaml")
        for path in (tmp_path / "pipe.yaml", tmp_path):
            with pytest.raises(InvalidPath, match="is no file"):
                fleet.teams.up(f"{path}/" if path == tmp_path else str(path))

    def test_one_team_a_window(self, master):
        master.teams.up("solo-dev", agent="practice", args=QUICK)
        with pytest.raises(Refused, match="is up here"):
            master.teams.up("solo-qa", agent="practice", args=QUICK)

    def test_outside_of_tmux(self, fleet):
        done = fleet.teams.up("dev-qa", agent="practice", args=QUICK)
        tmux = fleet._access.context.tmux(done["team"]["tmux_server"])
        assert {pane.session_name for pane in tmux.panes().panes} == {done["team"]["id"]}
        assert done["team"]["master"] is None
        assert sorted(fleet.teams.down()["closed"]) == ["dev", "qa"]
        assert tmux.panes().panes == []

    def test_twice_has_the_same_names(self, master):
        for _ in range(2):
            done = master.teams.up("dev-qa", agent="practice", args=QUICK)
            assert [one["session"]["name"] for one in done["members"]] == ["dev", "qa"]
            master.teams.down()
        assert len(master.teams.list(ended=True)["teams"]) == 2

    def test_every_preset_is_a_team(self, fleet):
        names = fleet.teams.list()["presets"]
        assert {"arch-dev", "dev-qa", "review", "tdd", "sprint"} <= set(names)
        from mam.adapters.store.files.team_presets import load

        for name in names:
            plan = load(name, {"HOME": "/nowhere"})
            assert plan.name == name and plan.about and all(one.prompt for one in plan.roles)

    def test_what_is_no_team(self, fleet, tmp_path):
        with pytest.raises(InvalidPath, match="dev-qaa") as caught:
            fleet.teams.up("dev-qaa")
        assert "dev-qa" in caught.value.hint
        for text in ("roles: [", "[]", "roles: [dev]\nextra: 1", "roles: [{role: dev, permissions: skip}]"):
            path = tmp_path / "bad.yaml"
            path.write_text(text, encoding="utf-8")
            with pytest.raises(InvalidSettings):
                fleet.teams.up(str(path))


class TestReport:
    def test_to_the_spawner_and_on_to_the_next(self, master):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master, task="one")
        master._access._caller = None
        master.tasks.add("two", role="dev")
        done = master.teams.report(session="dev", result="all\nwell")
        conversation = done["member"]["conversation"]
        assert done["report"] == f"STEP COMPLETE: TASK-001 | result: all well | session: {conversation}"
        assert done["receipt"]["state"] == "submitted" and done["receipt"]["session"] == "boss"
        assert said(master, "boss")[-1].endswith(done["report"])
        assert (done["task"]["status"], done["next"]["id"]) == ("done", "TASK-002")
        assert boxes(master, "dev") == ["reported", "saved"]
        again = master.teams.report("TASK-001", session="dev", result="other words")
        assert again["receipt"]["message_id"] == done["receipt"]["message_id"], "it goes out once"
        assert len(said(master, "boss")) == 1
        last = master.teams.report(session="dev", result="two as well")
        assert last["next"] is None
        assert boxes(master, "dev") == ["reported", "done", "saved", "ready"]
        assert master.teams.close("dev")["changed"]

    def test_a_report_that_is_held_ticks_no_box(self, master, until):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master, task="one")
        master._access._caller = None
        boss.send("run ls")
        boss.wait("waiting", timeout=10)
        done = master.teams.report(session="dev")
        assert done["receipt"]["state"] == "held"
        with pytest.raises(Refused, match="report received"):
            master.teams.close("dev")
        row = boss.row
        master._access.context.tmux(row["tmux_server"]).keys(row["pane"]["id"], ["Escape"], mark=row["id"])
        boss.wait("idle", timeout=10)
        deliver_all(master._access.context)
        assert master.teams.close("dev")["changed"]

    def test_the_same_report_without_a_task_goes_out_once(self, master):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master)
        master._access._caller = None
        first = master.teams.report(session="dev", result="well")
        again = master.teams.report(session="dev", result="well")
        assert again["receipt"]["message_id"] == first["receipt"]["message_id"]
        assert boxes(master, "dev") == ["reported", "done", "saved", "ready"], "what was ticked stays so"
        other = master.teams.report(session="dev", result="even better")
        assert other["receipt"]["message_id"] != first["receipt"]["message_id"]
        assert len(said(master, "boss")) == 2

    def test_a_reporter_that_is_killed(self, master, monkeypatch):
        """Its task is done: then its report is recorded as well, and goes out with the next verb."""
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master, task="one")
        master._access._caller = None
        with monkeypatch.context() as patch:
            patch.setattr("mam.app.teams.report.send", interrupted)
            with pytest.raises(KeyboardInterrupt):
                master.teams.report(session="dev", result="well")
        assert master.tasks.list()["tasks"][0]["status"] == "done"
        deliver_all(master._access.context)
        assert "STEP COMPLETE: TASK-001 | result: well" in said(master, "boss")[0]

    def test_to_a_person_it_is_recorded(self, master):
        spawn(master, task="one")
        done = master.teams.report(session="dev", result="well")
        assert done["receipt"]["state"] == "recorded"
        assert boxes(master, "dev") == ["reported", "done", "saved", "ready"]

    def test_a_person_at_a_shell_reports_from_inside(self, desk, master, until):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        done = master.teams.spawn("tester", agent="human", task="try it", env={"PS1": "$ "})
        pane = done["session"]["pane"]["id"]
        until(lambda: "TASK-001: try it" in master.sessions.read("tester"))
        words = shlex.join([sys.executable, "-m", "mam", "report", "--result", "it works", "--json"])
        desk.raw("send-keys", "-t", pane, "-l", words)
        desk.raw("send-keys", "-t", pane, "Enter")
        until(lambda: any("STEP COMPLETE: TASK-001" in one for one in said(master, "boss")), 30)
        until(lambda: boxes(master, "tester") == ["reported", "done", "saved", "ready"], 30)

    def test_the_log_says_who_reported(self, master):
        spawn(master, task="one")
        master.teams.report(result="well", session="dev")
        (done,) = [one for one in master.sessions.log("dev") if one["verb"] == "report"]
        assert done["by"] == "user"

    def test_who_reports(self, master, fleet):
        spawn(master, task="one")
        spawn(master, "qa")
        with pytest.raises(Usage):
            fleet.teams.report()
        with pytest.raises(mam.MamError, match="not claimed by"):
            master.teams.report("TASK-001", session="qa")
        other = master.sessions.create("practice", name="other", args=QUICK)
        with pytest.raises(Refused, match="in no team"):
            master.teams.report(session=other.name)


class TestClose:
    def test_only_with_its_boxes_or_by_force(self, desk, master):
        spawn(master, task="one")
        pane = master.sessions.get("dev").row["pane"]["id"]
        with pytest.raises(Refused, match="report received, task done, ready to close"):
            master.teams.close("dev")
        assert pane in desk.panes()
        done = master.teams.close("dev", force=True)
        assert done["session"]["termination_mode"] == "graceful"
        assert done["member"]["state"] == "closed"
        assert desk.panes() == [desk.pane]
        assert master.tasks.list()["tasks"][0]["status"] == "pending"
        again = master.teams.close("dev", force=True)
        assert (again["changed"], again["note"]) == (False, "closed already")

    def test_never_the_own_pane(self, desk, master):
        done = spawn(master)
        pane = done["session"]["pane"]["id"]
        with desk.fleet(pane) as inside, pytest.raises(NotAllowed, match="where this command runs"):
            inside.teams.close("dev", force=True)
        master._access._caller = callers.session(done["session"]["id"])
        with pytest.raises(NotAllowed, match="where this command runs"):
            master.teams.close("dev", force=True)
        assert pane in desk.panes()
        with desk.fleet(pane) as inside, pytest.raises(NotAllowed):
            inside.teams.down()

    def test_never_the_master(self, desk, master):
        done = spawn(master)
        pane = done["session"]["pane"]["id"]
        with desk.fleet(pane) as inside:
            spawn(inside, "qa")
        # The master of a second team that is a member of the first.
        master._access.context.registry.note(
            lambda draft: teams.add(
                draft,
                id="other",
                server=desk.server,
                server_pid=int(desk.pid),
                window_id="@99",
                master_pane=pane,
                master_id=done["session"]["id"],
                layout="main-vertical",
                by="user",
            )
        )
        with pytest.raises(NotAllowed, match="is the master"):
            master.teams.close("dev", force=True)
        assert pane in desk.panes()

    def test_no_neighbour(self, desk, master):
        spawn(master)
        other = spawn(master, "qa")
        master._access._caller = callers.session(other["session"]["id"])
        with pytest.raises(NotAllowed, match="only the master"):
            master.teams.close("dev", force=True)
        with pytest.raises(NotAllowed):
            master.teams.down()

    def test_one_that_is_gone_already(self, desk, master):
        done = spawn(master, task="one")
        desk.raw("kill-pane", "-t", done["session"]["pane"]["id"])
        closed = master.teams.close("dev")
        assert (closed["changed"], closed["note"]) == (True, "it had ended already")

    def test_one_that_died_leaves_no_pane(self, desk, master):
        for role in ("dev", "qa"):
            spawn(master, role)
        for role in ("dev", "qa"):
            os.kill(master.sessions.get(role).row["pane"]["pid"], signal.SIGKILL)
            master.sessions.wait(role, "exited", timeout=10)
        assert len(desk.panes()) == 3, "kept for review"
        assert master.teams.close("dev")["note"] == "it had ended already"
        assert len(desk.panes()) == 2
        assert master.teams.down()["closed"] == ["qa"]
        assert desk.panes() == [desk.pane]

    def test_a_stop_ends_its_own_pane_only(self, desk, master):
        first, second = spawn(master), spawn(master, "qa")
        master.sessions.stop("dev", force=True)
        assert desk.panes() == [desk.pane, second["session"]["pane"]["id"]]
        assert master.sessions.status("qa")["activity"] == "idle"
        assert master.sessions.get("dev").row["termination_mode"] == "forced"
        assert first["session"]["pane"]["id"] not in desk.panes()

    def test_one_that_is_restarted_comes_back(self, desk, master):
        spawn(master)
        spawn(master, "qa")
        before = said(master, "dev")
        row = master.sessions.restart("dev").session.row
        pane = row["pane"]["id"]
        assert sorted(desk.panes()) == sorted([desk.pane, master.sessions.get("qa").row["pane"]["id"], pane])
        assert desk.panes()[0] == desk.pane and desk.option(pane, "@mam_label") == "dev"
        assert members(master)["dev"]["pane"] == pane
        assert said(master, "dev") == before, "with its conversation"
        master.teams.down()
        master.sessions.resume("dev")
        assert desk.panes() == [desk.pane], "its team is down: it has a tmux session of its own"

    def test_of_no_team(self, master):
        master.sessions.create("practice", name="alone", args=QUICK)
        with pytest.raises(Refused, match="in no team"):
            master.teams.close("alone")


class TestRebalance:
    def test_left_and_top(self, desk, master):
        spawn(master)
        spawn(master, "qa")
        done = master.teams.rebalance(main="top")
        assert done["layout"] == "main-horizontal" and done["runs"] == 1
        assert desk.raw("display-message", "-p", "-t", desk.pane, "#{pane_width}") == "200"
        desk.raw("select-layout", "-t", desk.window, "tiled")
        desk.raw("swap-pane", "-s", desk.pane, "-t", desk.panes()[2])
        done = master.teams.rebalance(main="left")
        assert done["panes"][0] == desk.pane and desk.place(desk.pane) == (0, 1)
        with pytest.raises(Usage):
            master.teams.rebalance(main="tiled")

    def test_a_pane_too_many_is_looked_at_twice(self, desk, master):
        spawn(master)
        desk.raw("split-window", "-t", desk.window, "cat")
        done = master.teams.rebalance()
        assert (done["runs"], done["expected"], len(done["panes"])) == (2, 2, 3)
        assert done["panes"][0] == desk.pane

    def test_the_pane_of_one_that_has_ended(self, desk, master):
        for role in ("dev", "qa", "ux"):
            spawn(master, role)
        master.sessions.stop("dev", force=True)
        os.kill(master.sessions.get("qa").row["pane"]["pid"], signal.SIGKILL)
        master.sessions.wait("qa", "exited", timeout=10)
        done = master.teams.rebalance()
        assert (done["runs"], done["expected"], len(done["panes"])) == (1, 3, 3), "one is gone, one is kept"

    def test_a_member_that_went_elsewhere(self, desk, master):
        pane = spawn(master)["session"]["pane"]["id"]
        spawn(master, "qa")
        desk.raw("break-pane", "-d", "-s", pane)
        welcome_back(master._access.context, master.sessions.get("dev").row)
        assert (done := master.teams.rebalance())["runs"] == 1 and done["expected"] == len(done["panes"]) == 2

    def test_no_team(self, fleet):
        with pytest.raises(Usage):
            fleet.teams.rebalance()


class TestRegister:
    def test_an_agent_that_was_started_by_hand(self, desk, master):
        spawn(master)
        master.tasks.add("for the tester", role="qa")
        pane = desk.raw("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", desk.window, "cat")
        with desk.fleet(pane) as inside:
            done = inside.teams.register("qa", agent="cat")
        assert (done["session"]["name"], done["session"]["role"]) == ("qa", "qa")
        assert done["task"]["id"] == "TASK-001" and done["task"]["pane"] == pane
        assert (done["member"]["name_source"], done["team"]) == ("manual", members(master)["dev"]["team"])
        assert desk.raw("display-message", "-p", "-t", pane, "#{session_name}") == "desk", (
            "it keeps its session"
        )
        assert desk.option(pane, "@mam_session") == done["session"]["id"]
        with desk.fleet(pane) as inside, pytest.raises(Refused, match="already"):
            inside.teams.register("qa")

    def test_an_agent_that_spawns_is_known_first(self, desk, master, tmp_path, until):
        """It was started by hand, and what it spawns reports to it."""
        script, out = tmp_path / "claude", tmp_path / "out.json"
        command = [
            sys.executable,
            "-m",
            "mam",
            "spawn",
            "--role",
            "dev",
            "--agent",
            "practice",
            "--json",
            "--",
        ]
        words = f"{shlex.join([*command, *QUICK])} > {out}.part; mv {out}.part {out}; exec cat"
        script.write_text(f"cd {desk.workspace}\n{words}\n", encoding="utf-8")
        desk.raw("respawn-pane", "-k", "-t", desk.pane, f"sh -c 'sh {script}; cat'")
        until(out.exists, 60)
        row = master.sessions.get("dev").row
        boss = master.sessions.get("master").row
        assert (row["parent"], boss["agent"], boss["role"]) == (boss["id"], "claude", "master")
        assert boss["pane"]["id"] == desk.pane
        assert desk.raw("display-message", "-p", "-t", desk.pane, "#{session_name}") == "desk"
        assert [one["text"] for one in master.messages.inbox("master")] == [
            "/color blue",
            "/rename master-agent",
        ]
        with pytest.raises(Refused, match="in no team"):
            master.teams.close("master")

    def test_what_cannot_be_registered(self, desk, fleet):
        with pytest.raises(Usage, match="no tmux pane"):
            fleet.teams.register("qa", agent="cat")
        with desk.fleet() as inside, pytest.raises(Usage, match="recognise"):
            inside.teams.register("qa")

    def test_a_master(self, desk, master):
        done = master.teams.register("master", agent="cat")
        assert done["member"] is None
        spawned = spawn(master)
        assert master.teams.list()["teams"][0]["master"] == done["session"]["name"]
        assert spawned["session"]["parent"] is None, "a person types in that pane"
        assert master.teams.report(session="dev")["receipt"]["state"] == "recorded", "cat cannot be told"


def test_the_session_file_says_which_messages_did_not_arrive(master, workspace):
    done = spawn(master)
    cat = master.teams.spawn("ops", agent="cat")
    lost = master.messages.send("ops", "hello | there")
    assert lost["state"] == "failed" and cat["receipt"] is None
    master.teams.rebalance()
    master.tasks.add("x", role="dev")
    text = Path(done["session_file"]).read_text(encoding="utf-8")
    assert f"{lost['message_id']} from user to ops: failed" in text
    assert Path(done["session_file"]).parent == workspace / ".hermes"
    assert Path(done["session_file"]).stat().st_mode & 0o077 == 0


def test_a_member_that_is_renamed_is_shown_so_without_a_resident(master):
    done = spawn(master)
    master.sessions.rename("dev", "coder")
    assert list(members(master)) == ["coder"]
    assert "| coder |" in Path(done["session_file"]).read_text(encoding="utf-8")


def test_a_resume_that_is_cut_off_late_takes_its_place_in_the_window_again(master, monkeypatch):
    from mam.app.sessions import resume as resumes

    spawn(master)
    master.sessions.stop("dev")

    def cut_off(*_given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(resumes, "bind", cut_off)
        with pytest.raises(KeyboardInterrupt):
            master.sessions.resume("dev")
    master.sessions.resumable()
    row = master.sessions.get("dev").row
    assert (row["status"], row["pane"]["id"]) == ("running", members(master)["dev"]["pane"])


def test_reading_makes_nothing(fleet, workspace):
    assert fleet.teams.list()["teams"] == []
    assert not (workspace / ".mam").exists()


def test_the_resident_greets_whom_a_dead_spawner_left(master):
    from mam.app.teams.resident_task import TeamTask

    done = spawn(master)
    nobody = {"pid": 1, "start": 1, "boot": "another"}
    master._access.context.registry.note(
        lambda draft: teams.update(
            draft,
            teams.member(draft, done["session"]["id"]),
            state="spawning",
            owner=nobody,
            words=[{"id": "m_00000001", "text": "are you there", "command": False}],
        )
    )
    watch = TeamTask(master._access.context)
    assert watch.tick() == ""
    assert said(master, "dev")[-1] == "are you there"
    assert members(master)["dev"]["state"] == "active"
    watch.tick()
    assert said(master, "dev").count("are you there") == 1


def test_members_that_go_on_after_a_restart_of_tmux_do_not_take_over_other_windows(desk, master, until):
    spawn(master)
    spawn(master, "qa")
    pids = [int(desk.pid), *(one.row["pane"]["pid"] for one in master.sessions.list())]
    desk.raw("kill-server")
    # An agent that has lost its pane lives a moment longer, and cannot be resumed until it ends.
    until(lambda: not any(process.identify(pid) for pid in pids))
    for name in ("dev", "qa"):
        master.sessions.resume(name)
    found = members(master)
    assert found["dev"]["pane"] != found["qa"]["pane"], "each has the pane that it had"
    assert not desk.raw("list-panes", "-a", "-F", "#{@mam_label}").strip(), (
        "no window of its own is the team's"
    )
