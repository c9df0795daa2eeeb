"""Teams: up and down, reports and checklists, who may close a member, and the layout of the window."""

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, said

import mam
from mam.adapters.store.files.team_page_file import path_of
from mam.adapters.store.tables import messages, teams
from mam.adapters.system import process
from mam.app.messages import late_proof, receipt_proof
from mam.app.messages.delivery import deliver_all
from mam.app.sessions.death import record_if_dead
from mam.app.teams import team_page
from mam.app.teams.onboarding_steps import place_resumed_member
from mam.core import caller as callers
from mam.core.errors import (
    InvalidPath,
    InvalidPrompt,
    InvalidSettings,
    NotAllowed,
    NotReady,
    Refused,
    TeamNotFound,
    Usage,
)

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


def interrupt(*_arguments, **_options):
    raise KeyboardInterrupt


def members(fleet):
    return {member["session"]: member for team in fleet.teams.list()["teams"] for member in team["members"]}


def checklist(fleet, name):
    return [item for item, is_done in members(fleet)[name]["boxes"].items() if is_done]


class TestUpAndDown:
    def test_a_team_of_five(self, desk, master, five):
        document = master.teams.up(five, agent="practice", args=QUICK, work="the first task")
        roles = ["dev", "qa", "architect", "ux", "writer"]
        assert [entry["session"]["name"] for entry in document["members"]] == roles
        panes = [entry["session"]["pane"]["id"] for entry in document["members"]]
        assert desk.panes() == [desk.pane, *panes]
        assert desk.place(desk.pane) == (0, 1)
        assert {desk.place(pane)[0] for pane in panes} == {101}, "stacked at the right"
        assert document["permissions"] == ["ask", "skip"]
        assert [entry["member"]["colour"] for entry in document["members"]] == [
            "green",
            "orange",
            "purple",
            "cyan",
            "yellow",
        ]
        assert all(entry["receipt"]["state"] == "submitted" for entry in document["members"])
        assert "TASK-001: the first task" in said(master, "dev")[0] and "You write." in said(master, "dev")[0]
        pids = [entry["session"]["pane"]["pid"] for entry in document["members"]]
        result = master.teams.down()
        assert sorted(result["closed"]) == sorted(roles)
        assert (result["failed"], result["unfinished"]) == ([], ["TASK-001"])
        assert desk.panes() == [desk.pane]
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        assert {session.row["status"] for session in master.sessions.list()} == {"stopped"}
        assert master.teams.list()["teams"] == []
        assert desk.raw("show-options", "-w", "-t", desk.window) == ""
        assert desk.option(desk.pane, "@mam_label") == ""
        text = Path(document["session_file"]).read_text(encoding="utf-8")
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
        document = master.teams.up("dev-qa", agent="practice", args=[*QUICK, "--trust-dialog"])
        assert [entry["receipt"]["state"] for entry in document["members"]] == ["held", "held"]
        assert all("trust dialog" in entry["dialog"] for entry in document["members"])
        for entry in document["members"]:
            desk.raw("send-keys", "-t", entry["session"]["pane"]["id"], "Down")
            desk.raw("send-keys", "-t", entry["session"]["pane"]["id"], "Enter")

        def has_prompts():
            deliver_all(master._access.context)
            return said(master, "dev") and said(master, "qa")

        until(has_prompts)

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
        with pytest.raises(TeamNotFound, match="no team"):
            master.tasks.add("x", role="dev", team=up["team"]["id"])

    def test_a_preset_that_is_no_file(self, fleet, home):
        (home / ".config" / "mam" / "teams" / "odd.yaml").mkdir(parents=True)
        with pytest.raises(InvalidPath, match="no preset 'odd'"):
            fleet.teams.up("odd")
        assert "odd" not in fleet.teams.list()["presets"]

    def test_what_is_no_file(self, fleet, tmp_path):
        os.mkfifo(tmp_path / "pipe.yaml")
        for path in (tmp_path / "pipe.yaml", tmp_path):
            with pytest.raises(InvalidPath, match="is not a file"):
                fleet.teams.up(f"{path}/" if path == tmp_path else str(path))

    def test_one_team_a_window(self, master):
        master.teams.up("solo-dev", agent="practice", args=QUICK)
        with pytest.raises(Refused, match="is already up"):
            master.teams.up("solo-qa", agent="practice", args=QUICK)

    def test_outside_of_tmux(self, fleet):
        document = fleet.teams.up("dev-qa", agent="practice", args=QUICK)
        tmux = fleet._access.context.tmux(document["team"]["tmux_server"])
        assert {pane.session_name for pane in tmux.panes().panes} == {document["team"]["id"]}
        assert document["team"]["master"] is None
        assert sorted(fleet.teams.down()["closed"]) == ["dev", "qa"]
        assert tmux.panes().panes == []

    def test_twice_has_the_same_names(self, master):
        for _ in range(2):
            document = master.teams.up("dev-qa", agent="practice", args=QUICK)
            assert [entry["session"]["name"] for entry in document["members"]] == ["dev", "qa"]
            master.teams.down()
        assert len(master.teams.list(ended=True)["teams"]) == 2

    def test_every_preset_is_a_team(self, fleet):
        names = fleet.teams.list()["presets"]
        assert {"arch-dev", "dev-qa", "review", "tdd", "sprint"} <= set(names)
        from mam.adapters.store.files.team_presets import load

        for name in names:
            plan = load(name, {"HOME": "/nowhere"})
            assert plan.name == name and plan.about and all(role.prompt for role in plan.roles)

    def test_what_is_no_team(self, fleet, tmp_path):
        with pytest.raises(InvalidPath, match="dev-qaa") as caught:
            fleet.teams.up("dev-qaa")
        assert "dev-qa" in caught.value.hint
        for text in ("roles: [", "[]", "roles: [dev]\nextra: 1", "roles: [{role: dev, permissions: skip}]"):
            path = tmp_path / "bad.yaml"
            path.write_text(text, encoding="utf-8")
            with pytest.raises(InvalidSettings):
                fleet.teams.up(str(path))

    def test_s003_36_a_second_down_does_not_end_the_team_of_another_window(self, desk, master):
        spawn(master)
        master.teams.down()
        desk.raw("new-window", "-d", "-t", "desk", "cat")
        pane = desk.raw("list-panes", "-a", "-F", "#{pane_id}").split()[-1]
        with desk.fleet(pane) as elsewhere:
            team_id = spawn(elsewhere, "qa")["team"]
        assert master.teams.down()["changed"] is False
        assert [team["id"] for team in master.teams.list()["teams"]] == [team_id]


class TestReport:
    def test_to_the_spawner_and_on_to_the_next(self, master):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master, task="one")
        master._access._caller = None
        master.tasks.add("two", role="dev")
        document = master.teams.report(session="dev", result="all\nwell")
        conversation = document["member"]["conversation"]
        assert document["report"] == f"STEP COMPLETE: TASK-001 | result: all well | session: {conversation}"
        assert document["receipt"]["state"] == "submitted" and document["receipt"]["session"] == "boss"
        assert said(master, "boss")[-1].endswith(document["report"])
        assert (document["task"]["status"], document["next"]["id"]) == ("done", "TASK-002")
        assert checklist(master, "dev") == ["reported", "saved"]
        again = master.teams.report("TASK-001", session="dev", result="other words")
        assert again["receipt"]["message_id"] == document["receipt"]["message_id"], "it goes out once"
        assert len(said(master, "boss")) == 1
        last = master.teams.report(session="dev", result="two as well")
        assert last["next"] is None
        assert checklist(master, "dev") == ["reported", "done", "saved", "ready"]
        assert master.teams.close("dev")["changed"]

    def test_a_held_report_does_not_count_as_reported(self, master, until):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master, task="one")
        master._access._caller = None
        boss.send("run ls")
        boss.wait("waiting", timeout=10)
        document = master.teams.report(session="dev")
        assert document["receipt"]["state"] == "held"
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
        assert checklist(master, "dev") == ["reported", "done", "saved", "ready"], (
            "the checklist stays complete"
        )
        other = master.teams.report(session="dev", result="even better")
        assert other["receipt"]["message_id"] != first["receipt"]["message_id"]
        assert len(said(master, "boss")) == 2

    def test_a_reporter_that_is_killed(self, master, monkeypatch):
        """The task is done, so its report is recorded too, and the next verb sends it."""
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        spawn(master, task="one")
        master._access._caller = None
        with monkeypatch.context() as patch:
            patch.setattr("mam.app.teams.report.send", interrupt)
            with pytest.raises(KeyboardInterrupt):
                master.teams.report(session="dev", result="well")
        assert master.tasks.list()["tasks"][0]["status"] == "done"
        deliver_all(master._access.context)
        assert "STEP COMPLETE: TASK-001 | result: well" in said(master, "boss")[0]

    def test_to_a_person_it_is_recorded(self, master):
        spawn(master, task="one")
        document = master.teams.report(session="dev", result="well")
        assert document["receipt"]["state"] == "recorded"
        assert checklist(master, "dev") == ["reported", "done", "saved", "ready"]

    def test_a_person_at_a_shell_reports_from_inside(self, desk, master, until):
        boss = master.sessions.create("practice", name="boss", args=QUICK)
        master._access._caller = callers.session(boss.id)
        document = master.teams.spawn("tester", agent="human", task="try it", env={"PS1": "$ "})
        pane = document["session"]["pane"]["id"]
        until(lambda: "TASK-001: try it" in master.sessions.read("tester"))
        command = shlex.join([sys.executable, "-m", "mam", "report", "--result", "it works", "--json"])
        desk.raw("send-keys", "-t", pane, "-l", command)
        desk.raw("send-keys", "-t", pane, "Enter")
        until(lambda: any("STEP COMPLETE: TASK-001" in message for message in said(master, "boss")), 30)
        until(lambda: checklist(master, "tester") == ["reported", "done", "saved", "ready"], 30)

    def test_the_log_says_who_reported(self, master):
        spawn(master, task="one")
        master.teams.report(result="well", session="dev")
        (entry,) = [log_entry for log_entry in master.sessions.log("dev") if log_entry["verb"] == "report"]
        assert entry["by"] == "user"

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


def spawn_for_boss(master, **options):
    """Spawn `dev` for the session `boss`."""
    boss = master.sessions.create("practice", name="boss", args=QUICK)
    master._access._caller = callers.session(boss.id)
    spawn(master, **options)
    master._access._caller = None
    return boss


def report_unproven(master, monkeypatch, **options):
    """Report while mam sees no proof that the spawner got it."""
    with monkeypatch.context() as patch:
        patch.setattr(receipt_proof, "wait_for", lambda *_given, **_options: None)
        document = master.teams.report(session="dev", **options)
    assert document["receipt"]["state"] == "unconfirmed"
    return document


class TestUnprovenReport:
    @pytest.mark.parametrize("result", ["well", None])
    def test_s003_24_a_second_report_types_nothing(self, master, monkeypatch, until, result):
        spawn_for_boss(master, task="one")
        monkeypatch.setattr(late_proof, "correct_receipts", lambda *_given: None)
        monkeypatch.setattr(messages, "correct_by_prompt", lambda *_given: None)
        first = report_unproven(master, monkeypatch, result="well")
        until(lambda: len(said(master, "boss")) == 1)
        again = master.teams.report(session="dev", result=result)
        assert again["receipt"]["message_id"] == first["receipt"]["message_id"]
        assert (again["report"], again["receipt"]["state"]) == (first["report"], "unconfirmed")
        assert len(said(master, "boss")) == 1
        assert again["task"]["status"] == "done"

    def test_s003_24_the_master_accepts_it(self, desk, master, monkeypatch):
        spawn_for_boss(master, task="one")
        monkeypatch.setattr(late_proof, "correct_receipts", lambda *_given: None)
        monkeypatch.setattr(messages, "correct_by_prompt", lambda *_given: None)
        with pytest.raises(Refused, match="no report of 'dev' to accept"):
            master.teams.close("dev", accept=True)
        report = report_unproven(master, monkeypatch, result="well")
        with pytest.raises(Refused, match="missing: report received") as refused:
            master.teams.close("dev")
        assert "mam close dev --accept" in refused.value.hint
        assert master.teams.close("dev", accept=True)["changed"]
        assert checklist(master, "dev") == ["reported", "done", "saved", "ready"]
        (entry,) = [entry for entry in master.sessions.log("dev") if entry["verb"] == "accept"]
        assert (entry["by"], entry["detail"]["message"]) == ("user", report["receipt"]["message_id"])

    def test_s003_24_only_an_unconfirmed_report_is_accepted(self, master):
        boss = spawn_for_boss(master, task="one")
        boss.send("run ls")
        boss.wait("waiting", timeout=10)
        held = master.teams.report(session="dev", result="well")["receipt"]
        assert held["state"] == "held"
        with pytest.raises(Refused, match="the report of 'dev' is not typed yet") as refused:
            master.teams.close("dev", accept=True)
        assert "mam inbox dev --sent" in refused.value.hint
        assert master.messages.withdraw(held["message_id"])
        with pytest.raises(Refused, match="the report of 'dev' failed, and nobody got it") as refused:
            master.teams.close("dev", accept=True)
        assert "mam report" in refused.value.hint
        assert "reported" not in checklist(master, "dev")

    def test_s003_24_a_refused_close_accepts_nothing(self, master, monkeypatch):
        spawn_for_boss(master, task="one")
        monkeypatch.setattr(late_proof, "correct_receipts", lambda *_given: None)
        monkeypatch.setattr(messages, "correct_by_prompt", lambda *_given: None)
        master.tasks.add("two", role="dev")
        report_unproven(master, monkeypatch, result="well")
        with pytest.raises(Refused, match="missing: task done, ready to close"):
            master.teams.close("dev", accept=True)
        assert "reported" not in checklist(master, "dev")
        assert not [entry for entry in master.sessions.log("dev") if entry["verb"] == "accept"]

    def test_s003_24_a_later_proof_completes_the_checklist(self, master, monkeypatch, until):
        boss = spawn_for_boss(master, task="one")
        report = report_unproven(master, monkeypatch, result="well")
        page = Path(path_of(master._access.context.paths, report["member"]["team"]))
        assert report["receipt"]["message_id"] in page.read_text(encoding="utf-8")
        assert checklist(master, "dev") == ["done", "saved", "ready"]
        boss.wait("idle", timeout=15)
        late_proof.correct_receipts(master._access.context)
        assert checklist(master, "dev") == ["reported", "done", "saved", "ready"]
        team_page.write(master._access.context)
        assert report["receipt"]["message_id"] not in page.read_text(encoding="utf-8")
        assert master.teams.close("dev")["changed"]

    def test_a_report_that_was_never_typed_goes_out_again(self, master, monkeypatch):
        boss = spawn_for_boss(master, task="one")
        boss.send("run ls")
        boss.wait("waiting", timeout=10)
        held = master.teams.report(session="dev", result="well")["receipt"]
        assert held["state"] == "held"
        assert master.messages.withdraw(held["message_id"])
        boss.answer("deny")
        boss.wait("idle", timeout=10)
        again = master.teams.report(session="dev", result="well")["receipt"]
        assert again["state"] == "submitted"
        assert again["message_id"] != held["message_id"]


class TestUntold:
    def test_who_was_not_told_of_a_task(self, master):
        warnings = []
        master.on_warning(warnings.append)
        spawn(master, "qa")
        warnings.clear()
        master.tasks.add("for nobody", role="ux")
        assert warnings == []
        master.tasks.add("review", role="qa")
        claim = "mam send qa 'there is a task for you: run mam task claim'"
        assert warnings == [f"'qa' is idle and was not told of TASK-002: {claim}"]
        master.tasks.claim(role="qa", session="qa")
        told = "mam send qa 'your task is {0}; mam task list shows it'"
        assert warnings[1:] == ["'qa' was not told of TASK-002: " + told.format("TASK-002")]
        master.tasks.add("again", role="qa")
        assert len(warnings) == 2, "it is busy, and gets the task when it reports"
        master.teams.report(session="qa", result="well")
        assert warnings[2:] == ["'qa' was not told of TASK-003: " + told.format("TASK-003")]


class TestTruePage:
    def test_a_stopped_member_is_shown_as_stopped(self, master):
        page = Path(spawn(master, task="one")["session_file"])
        assert "| dev | busy |" in page.read_text(encoding="utf-8")
        master.sessions.stop("dev")
        text = page.read_text(encoding="utf-8")
        assert "| dev | stopped |" in text
        assert "| dev | busy |" not in text and "| dev | active |" not in text
        master.sessions.resume("dev")
        text = page.read_text(encoding="utf-8")
        assert "| dev | busy |" in text and "| dev | active |" in text

    def test_a_dead_member_is_shown_as_terminated(self, master, until):
        document = spawn(master, task="one")
        page, row = Path(document["session_file"]), document["session"]
        os.kill(row["pane"]["pid"], signal.SIGKILL)
        until(lambda: record_if_dead(master._access.context, master.caller, row)["status"] == "terminated")
        assert "| dev | terminated |" in page.read_text(encoding="utf-8")

    def test_an_unfinished_task_is_not_ticked_after_the_end(self, master):
        page = Path(spawn(master, task="one")["session_file"])
        spawn(master, "qa")
        master.tasks.add("two", role="dev")
        master.teams.report(session="dev", result="well")
        assert master.teams.down()["unfinished"] == ["TASK-002"]
        text = page.read_text(encoding="utf-8")
        assert "| dev | closed | [x] | [ ] | [x] | [ ] |" in text
        assert "| qa | closed | [ ] | [ ] | [x] | [ ] |" in text

    def test_a_member_that_was_ready_stays_ticked_after_the_end(self, master):
        page = Path(spawn(master, task="one")["session_file"])
        master.teams.report(session="dev", result="well")
        master.teams.close("dev")
        assert "| dev | closed | [x] | [x] | [x] | [x] |" in page.read_text(encoding="utf-8")


class TestClose:
    def test_only_with_a_complete_checklist_or_by_force(self, desk, master):
        spawn(master, task="one")
        pane = master.sessions.get("dev").row["pane"]["id"]
        with pytest.raises(Refused, match="report received, task done, ready to close"):
            master.teams.close("dev")
        assert pane in desk.panes()
        document = master.teams.close("dev", force=True)
        assert document["session"]["termination_mode"] == "graceful"
        assert document["member"]["state"] == "closed"
        assert desk.panes() == [desk.pane]
        assert master.tasks.list()["tasks"][0]["status"] == "pending"
        again = master.teams.close("dev", force=True)
        assert (again["changed"], again["note"]) == (False, "closed already")

    def test_s003_20_a_member_without_a_task_has_not_done_one(self, master):
        page = Path(spawn(master)["session_file"])
        assert checklist(master, "dev") == ["saved"]
        assert "| dev | active | [ ] | [ ] | [x] | [ ] |" in page.read_text(encoding="utf-8")
        with pytest.raises(Refused, match="report received, task done, ready to close"):
            master.teams.close("dev")
        master.teams.report(session="dev", result="looked around")
        assert checklist(master, "dev") == ["reported", "done", "saved", "ready"]
        assert master.teams.close("dev")["changed"]

    def test_s003_20_a_task_of_an_earlier_membership_does_not_count(self, master):
        spawn(master, task="one")
        master.tasks.finish("TASK-001")
        assert "done" in checklist(master, "dev")
        master.teams.close("dev", force=True)
        spawn(master)
        assert [member["boxes"]["done"] for member in master.teams.list()["teams"][0]["members"]] == [
            True,
            False,
        ]

    def test_never_the_own_pane(self, desk, master):
        document = spawn(master)
        pane = document["session"]["pane"]["id"]
        own = document["session"]["id"]
        with (
            desk.fleet(pane, session=own) as inside,
            pytest.raises(NotAllowed, match="where this command runs"),
        ):
            inside.teams.close("dev", force=True)
        master._access._caller = callers.session(document["session"]["id"])
        with pytest.raises(NotAllowed, match="where this command runs"):
            master.teams.close("dev", force=True)
        assert pane in desk.panes()
        with desk.fleet(pane, session=own) as inside, pytest.raises(NotAllowed):
            inside.teams.down()

    def test_never_the_master(self, desk, master):
        document = spawn(master)
        pane = document["session"]["pane"]["id"]
        with desk.fleet(pane, session=document["session"]["id"]) as inside:
            spawn(inside, "qa")
        # The member of the first team becomes the master of a second team.
        master._access.context.registry.note(
            lambda transaction: teams.add(
                transaction,
                id="other",
                server=desk.server,
                server_pid=int(desk.pid),
                window_id="@99",
                master_pane=pane,
                master_id=document["session"]["id"],
                layout="main-vertical",
                by="user",
            )
        )
        with pytest.raises(NotAllowed, match="is the master"):
            master.teams.close("dev", force=True)
        assert pane in desk.panes()

    def test_a_member_does_not_close_another(self, desk, master):
        spawn(master)
        other = spawn(master, "qa")
        master._access._caller = callers.session(other["session"]["id"])
        with pytest.raises(NotAllowed, match="only the master"):
            master.teams.close("dev", force=True)
        with pytest.raises(NotAllowed):
            master.teams.down()

    def test_a_member_whose_pane_is_gone(self, desk, master):
        document = spawn(master, task="one")
        desk.raw("kill-pane", "-t", document["session"]["pane"]["id"])
        closed = master.teams.close("dev")
        assert (closed["changed"], closed["note"]) == (True, "the session had ended already")

    def test_a_member_that_died_leaves_no_pane(self, desk, master):
        for role in ("dev", "qa"):
            spawn(master, role)
        for role in ("dev", "qa"):
            os.kill(master.sessions.get(role).row["pane"]["pid"], signal.SIGKILL)
            master.sessions.wait(role, "exited", timeout=10)
        assert len(desk.panes()) == 3, "kept for review"
        assert master.teams.close("dev")["note"] == "the session had ended already"
        assert len(desk.panes()) == 2
        assert master.teams.down()["closed"] == ["qa"]
        assert desk.panes() == [desk.pane]

    def test_a_stop_ends_its_own_pane_only(self, desk, master):
        first, second = spawn(master), spawn(master, "qa")
        master.sessions.stop("dev", force=True)
        assert desk.panes() == [desk.pane, second["session"]["pane"]["id"]]
        master.sessions.wait("qa", "idle", timeout=30)
        assert master.sessions.get("dev").row["termination_mode"] == "forced"
        assert first["session"]["pane"]["id"] not in desk.panes()

    def test_a_restarted_member_returns_to_its_window(self, desk, master):
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

    def test_s003_16_a_session_without_a_pane_is_not_the_master_of_a_team_without_one(self, master):
        """A team outside of tmux has no window yet while its first member starts."""
        master._access.context.registry.note(
            lambda transaction: teams.add(
                transaction, id="other", server="x", master_pane=None, layout="main-vertical", by="user"
            )
        )
        master.sessions.create("practice", name="alone", args=QUICK)
        master.sessions.stop("alone")
        master._access.context.registry.change(
            lambda transaction: transaction.put({**transaction.named("alone"), "pane": {}})
        )
        with pytest.raises(Refused, match="in no team"):
            master.teams.close("alone")

    def test_of_no_team(self, master):
        master.sessions.create("practice", name="alone", args=QUICK)
        with pytest.raises(Refused, match="in no team"):
            master.teams.close("alone")


class TestRebalance:
    def test_left_and_top(self, desk, master):
        spawn(master)
        spawn(master, "qa")
        document = master.teams.rebalance(main="top")
        assert document["layout"] == "main-horizontal" and document["runs"] == 1
        assert desk.raw("display-message", "-p", "-t", desk.pane, "#{pane_width}") == "200"
        desk.raw("select-layout", "-t", desk.window, "tiled")
        desk.raw("swap-pane", "-s", desk.pane, "-t", desk.panes()[2])
        document = master.teams.rebalance(main="left")
        assert document["panes"][0] == desk.pane and desk.place(desk.pane) == (0, 1)
        with pytest.raises(Usage):
            master.teams.rebalance(main="tiled")

    def test_a_pane_too_many_is_looked_at_twice(self, desk, master):
        spawn(master)
        desk.raw("split-window", "-t", desk.window, "cat")
        document = master.teams.rebalance()
        assert (document["runs"], document["expected"], len(document["panes"])) == (2, 2, 3)
        assert document["panes"][0] == desk.pane

    def test_the_pane_of_an_ended_member(self, desk, master):
        for role in ("dev", "qa", "ux"):
            spawn(master, role)
        master.sessions.stop("dev", force=True)
        os.kill(master.sessions.get("qa").row["pane"]["pid"], signal.SIGKILL)
        master.sessions.wait("qa", "exited", timeout=10)
        document = master.teams.rebalance()
        assert (document["runs"], document["expected"], len(document["panes"])) == (1, 3, 3), (
            "one is gone, one is kept"
        )

    def test_a_member_that_moved_to_another_window(self, desk, master):
        pane = spawn(master)["session"]["pane"]["id"]
        spawn(master, "qa")
        desk.raw("break-pane", "-d", "-s", pane)
        place_resumed_member(master._access.context, master.sessions.get("dev").row)
        assert (document := master.teams.rebalance())["runs"] == 1 and document["expected"] == len(
            document["panes"]
        ) == 2

    def test_no_team(self, fleet):
        with pytest.raises(TeamNotFound):
            fleet.teams.rebalance()


class TestRegister:
    def test_an_agent_that_was_started_by_hand(self, desk, master):
        spawn(master)
        master.tasks.add("for the tester", role="qa")
        pane = desk.raw("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", desk.window, "cat")
        with desk.fleet(pane) as inside:
            document = inside.teams.register("qa", agent="cat")
        assert (document["session"]["name"], document["session"]["role"]) == ("qa", "qa")
        assert document["task"]["id"] == "TASK-001" and document["task"]["pane"] == pane
        assert (document["member"]["name_source"], document["team"]) == (
            "manual",
            members(master)["dev"]["team"],
        )
        assert desk.raw("display-message", "-p", "-t", pane, "#{session_name}") == "desk", (
            "it keeps its session"
        )
        assert desk.option(pane, "@mam_session") == document["session"]["id"]
        own = document["session"]["id"]
        with desk.fleet(pane, session=own) as inside, pytest.raises(Refused, match="already"):
            inside.teams.register("qa")

    def test_the_session_in_the_masters_pane_is_the_master(self, desk, master):
        team = spawn(master, task="one")["team"]
        boss = master.teams.register("master", agent="cat")["session"]
        (listed,) = master.teams.list()["teams"]
        assert (listed["master"], listed["master_pane"]) == ("master", desk.pane)
        master._access._caller = callers.session(boss["id"])
        assert master.teams.close("dev", force=True)["changed"]
        spawn(master)
        assert master.teams.down()["team"]["id"] == team

    def test_a_master_that_was_registered_before_its_team_knew_it(self, desk, master):
        """An older mam recorded no master for such a team."""
        team = spawn(master)["team"]
        boss = master.teams.register("master", agent="cat")["session"]
        registry = master._access.context.registry
        registry.note(lambda transaction: teams.change(transaction, team, master_id=None))
        master._access._caller = callers.session(boss["id"])
        assert master.teams.close("dev", force=True)["changed"]
        assert master.teams.down()["changed"]

    def test_another_session_may_not_end_the_team(self, master):
        spawn(master)
        other = master.sessions.create("practice", name="other", args=QUICK)
        master._access._caller = callers.session(other.id)
        team = master.teams.list()["teams"][0]["id"]
        with pytest.raises(NotAllowed, match="only the master may end") as refused:
            master.teams.down(team)
        assert "the master's pane" in refused.value.hint

    def test_a_shell_is_no_agent(self, desk, master, until):
        desk.raw("respawn-pane", "-k", "-t", desk.pane, "sh")
        shown = "#{pane_current_command}"
        until(lambda: desk.raw("display-message", "-p", "-t", desk.pane, shown) == "sh")
        with pytest.raises(Refused, match="this pane runs sh, and not practice") as refused:
            master.teams.register("master", agent="practice")
        assert "mam create --agent practice" in refused.value.hint
        assert not master.sessions.list()

    def test_a_shell_in_which_a_person_registers_is_no_agent(self, desk, master, tmp_path, until):
        """The command itself is the foreground program then."""
        out = tmp_path / "out"
        desk.raw("respawn-pane", "-k", "-t", desk.pane, "sh")
        command = shlex.join(
            [sys.executable, "-m", "mam", "register", "--role", "dev", "--agent", "practice"]
        )
        line = f"cd {desk.workspace}; {command} 2> {out}.part; mv {out}.part {out}"
        desk.raw("send-keys", "-t", desk.pane, line, "Enter")
        until(out.exists, 60)
        assert "this pane runs sh, and not practice" in out.read_text(encoding="utf-8")

    def test_s003_16_an_agent_that_spawns_is_registered_and_never_closed(self, desk, master, tmp_path, until):
        """It was started by hand, and the members that it spawns report to it."""
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
        line = f"{shlex.join([*command, *QUICK])} > {out}.part; mv {out}.part {out}; exec cat"
        state_home = f"export MAM_STATE_HOME={shlex.quote(os.environ['MAM_STATE_HOME'])}"
        script.write_text(f"cd {desk.workspace}\n{state_home}\n{line}\n", encoding="utf-8")
        desk.raw("respawn-pane", "-k", "-t", desk.pane, f"sh -c 'sh {script}; cat'")
        until(out.exists, 60)
        row = master.sessions.get("dev").row
        boss = master.sessions.get("master").row
        assert (row["parent"], boss["agent"], boss["role"]) == (boss["id"], "claude", "master")
        assert boss["pane"]["id"] == desk.pane
        assert desk.raw("display-message", "-p", "-t", desk.pane, "#{session_name}") == "desk"
        assert [message["text"] for message in master.messages.inbox("master")] == [
            "/color blue",
            "/rename master-agent",
        ]
        # A person closes it, who is not in its pane.
        master._access._caller = callers.user(os.getpid())
        for force in (False, True):
            with pytest.raises(NotAllowed, match="is the master of the team") as caught:
                master.teams.close("master", force=force)
            assert "mam team down" in caught.value.hint and "mam stop master" in caught.value.hint

    def test_what_cannot_be_registered(self, desk, fleet):
        with pytest.raises(Usage, match="no tmux pane"):
            fleet.teams.register("qa", agent="cat")
        with desk.fleet() as inside, pytest.raises(Usage, match="recognise"):
            inside.teams.register("qa")

    def test_a_master(self, desk, master):
        document = master.teams.register("master", agent="cat")
        assert document["member"] is None
        spawned = spawn(master)
        assert master.teams.list()["teams"][0]["master"] == document["session"]["name"]
        assert spawned["session"]["parent"] is None, "a person types in that pane"
        assert master.teams.report(session="dev")["receipt"]["state"] == "recorded", (
            "mam cannot read the screen of cat"
        )


def test_the_team_page_lists_messages_that_did_not_arrive(master, workspace):
    document = spawn(master)
    cat = master.teams.spawn("ops", agent="cat")
    lost = master.messages.send("ops", "hello | there")
    assert lost["state"] == "failed" and cat["receipt"] is None
    master.teams.rebalance()
    master.tasks.add("x", role="dev")
    text = Path(document["session_file"]).read_text(encoding="utf-8")
    assert f"{lost['message_id']} from user to ops: failed" in text
    assert Path(document["session_file"]).parent == workspace / ".hermes"
    assert Path(document["session_file"]).stat().st_mode & 0o077 == 0


def test_the_page_shows_a_renamed_member_without_a_resident(master):
    document = spawn(master)
    master.sessions.rename("dev", "coder")
    assert list(members(master)) == ["coder"]
    assert "| coder |" in Path(document["session_file"]).read_text(encoding="utf-8")


def test_a_late_interrupted_resume_is_placed_in_the_window_again(master, monkeypatch):
    from mam.app.sessions import resume as resumes

    spawn(master)
    master.sessions.stop("dev")

    def cut_off(*_arguments):
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


def test_the_resident_finishes_the_spawn_of_a_dead_spawner(master):
    from mam.app.teams.resident_task_spawns_and_pages import TeamTask

    document = spawn(master)
    dead_owner = {"pid": 1, "start": 1, "boot": "another"}
    master._access.context.registry.note(
        lambda transaction: teams.update(
            transaction,
            teams.member(transaction, document["session"]["id"]),
            state="spawning",
            owner=dead_owner,
            words=[{"id": "m_00000001", "text": "are you there", "command": False}],
        )
    )
    team_task = TeamTask(master._access.context)
    assert team_task.tick() == ""
    assert said(master, "dev")[-1] == "are you there"
    assert members(master)["dev"]["state"] == "active"
    team_task.tick()
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
