"""mam team, spawn, close, rebalance, register and report: what they print, and their exit codes."""

from pathlib import Path

from mam.adapters.tmux.client import Tmux

QUICK = ("--agent", "practice", "--", "--speed", "0")


def test_a_team_from_up_to_down(run):
    up = run("team", "up", "dev-qa", "--task", "write it", *QUICK)
    assert up.code == 0, up
    lines = up.out.splitlines()
    assert lines[0].startswith("up: ") and "-dev-qa-" in lines[0]
    assert (
        lines[1].startswith("  dev (practice, dev) in pane %")
        and ", with TASK-001, permissions skip" in lines[1]
    )
    assert lines[2].startswith("  qa (practice, qa) in pane %")
    assert lines[3].startswith("no member asks for permissions (--permissions")
    assert Path(lines[4].removeprefix("team page: ")).exists()
    listed = run("team", "list").out.splitlines()
    assert listed[1].split() == ["MEMBER", "AGENT", "PANE", "STATE", "TASK", "CHECKLIST"]
    assert listed[2].split()[:2] == ["dev", "practice"] and listed[2].split()[3:] == [
        "active",
        "TASK-001",
        "saved",
    ]
    assert listed[3].split()[3:] == ["active", "-", "saved"]
    assert listed[-1].startswith("presets: arch-dev, audit")
    refused = run("close", "dev", "--json")
    assert (refused.code, refused.error["code"]) == (1, "refused")
    assert "missing: report received" in refused.error["message"]
    reported = run("report", "--session", "dev", "--result", "well").out.splitlines()
    assert reported[0].startswith("recorded: STEP COMPLETE: TASK-001 | result: well | session: ")
    assert reported[1].startswith("no task is pending: you are ready to be closed")
    assert run("close", "dev").out == "closed: dev (practice, dev)\n"
    assert run("close", "dev").out == "nothing to do: dev (practice, dev) (closed already)\n"
    spawned = run("spawn", "--role", "ux", "--task", "look", *QUICK)
    assert spawned.code == 0, spawned
    assert spawned.out.splitlines()[1].startswith("ux runs without asking (--permissions")
    assert "its task: TASK-002" in spawned.out and "first message submitted" in spawned.out
    assert spawned.out.splitlines()[-1] == lines[4], "the same team page"
    assert run("rebalance", "--main", "top").out.endswith(": 2 panes, main-horizontal\n")
    assert run("spawn", "--role", "pm", *QUICK).code == 0
    row = run("status", "pm", "--json").json["session"]
    Tmux(row["tmux_server"]).kill_pane(row["pane"]["id"], mark=None)
    assert run("rebalance").out.endswith("(the team had 3; one of them is gone)\n")
    assert run("close", "pm").code == 0
    down = run("team", "down").out.splitlines()
    assert down[0].startswith("down: ") and down[1] == "unfinished, and pending again: TASK-002"
    assert run("team", "list").out.startswith("no team is up")
    assert "down since" in run("team", "list", "--all").out
    assert run("team", "list", "--json").json["teams"] == []


def test_s003_36_a_team_that_is_down_already_is_nothing_to_do(run):
    never = run("team", "down", "--json")
    assert (never.code, never.error["code"]) == (1, "team_not_found")
    team_id = run("team", "up", "solo-dev", "--json", *QUICK).json["team"]["id"]
    assert run("team", "down", team_id, "--json").json["changed"] is True
    for arguments in ((), (team_id,), ("solo-dev",)):
        again = run("team", "down", *arguments)
        assert (again.code, again.out) == (0, f"nothing to do: {team_id} is down already\n")
    assert run("team", "down", "--json").json == {
        **run("team", "down", team_id, "--json").json,
        "changed": False,
        "closed": [],
        "failed": [],
        "unfinished": [],
    }
    unknown = run("team", "down", "no-such-team", "--json")
    assert (unknown.code, unknown.error["code"]) == (1, "team_not_found")
    assert unknown.error["hint"] == "mam team list --all"


def test_wrong_usage(run):
    for arguments in (
        ("spawn",),
        ("spawn", "--role", "…"),
        ("close",),
        ("rebalance", "--main", "right"),
        ("register", "--role", "dev"),
        ("report",),
        ("team",),
        ("team", "list", "--", "x"),
    ):
        refused = run(*arguments, "--json") if "--" not in arguments else run("--json", *arguments)
        assert (refused.code, refused.error["code"]) == (64, "usage"), arguments
    assert run("team", "up", "nothing", "--json").error["code"] == "invalid_path"
