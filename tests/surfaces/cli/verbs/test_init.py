"""What a person reads who makes a root, or takes a way out of a root that mam refuses to change."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest
from tests.app.copied_root import copy_root
from tests.app.roots.test_init_ways import plain_fleet, set_place

from mam.core.root_state import Place


@pytest.fixture
def foreign(run, workspace, monkeypatch, tmp_path):
    job = plain_fleet(workspace)
    monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "other"))
    return job


def test_trust_says_what_it_took_parked_and_kept(run, foreign, workspace, tmp_path) -> None:
    refused = run("forget", "one")
    assert refused.code == 1
    assert "mam init --trust takes it in" in refused.err
    answer = run("init", "--trust")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[:2] == ["this root is yours now", "taken in: 1 session, 1 message, 1 job"]
    assert lines[2].startswith(f"the former state is kept in {tmp_path}/other/kept/")
    assert lines[3:] == [
        "parked messages: m_held; mam inbox --release ID…, or all",
        f"parked jobs: {foreign}; mam job release ID…, or all",
    ]
    assert "parked" in run("inbox", "one").out
    assert run("inbox", "--parked", "--json").json["messages"][0]["state"] == "parked"
    assert f"{foreign}  parked" in run("job", "list").out
    wait = run("job", "wait", foreign)
    assert (wait.code, wait.out) == (4, f"{foreign} parked\n")
    released = run("job", "release", foreign)
    assert (released.code, released.out) == (
        0,
        f"released: {foreign} is pending; its timeouts count from now\n",
    )
    again = run("job", "release", foreign)
    assert (again.code, again.out.splitlines()[0]) == (
        1,
        f"not released: {foreign}: it is pending, and not parked",
    )
    message = run("inbox", "--release", "all")
    assert (message.code, message.out[:32]) == (0, "released: m_held to one is held:")
    assert run("inbox", "--release", "all").out == "no message is parked\n"
    assert run("job", "release", "all").out == "no job is parked\n"
    assert run("init", "--trust").out == "this root is known: nothing to do\n"


def test_trust_names_what_it_left_out(run, foreign, workspace) -> None:
    connection = sqlite3.connect(workspace / ".mam" / "state.db")
    connection.execute("UPDATE messages SET sender=x'ff'")
    connection.execute("INSERT INTO intents VALUES('s_1f00ab42', 'one', 'stop', '{}', 1.0, '{}')")
    connection.commit()
    connection.close()
    (workspace / ".mam" / "strange").symlink_to("/etc")
    answer = run("init", "--trust", "--keep")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[3:] == [
        f"released jobs: {foreign}",
        "dropped: 1 unfinished change",
        "left out: messages m_held: sender is not a text, or too long",
        "files left in the former state: strange",
    ]


def test_copy_take_over_and_new(run, workspace, tmp_path, monkeypatch) -> None:
    plain_fleet(workspace)
    copy = tmp_path / "copy"
    copy_root(workspace, copy)
    monkeypatch.chdir(copy)
    assert "mam init --copy" in run("forget", "one").err
    answer = run("init", "--copy")
    assert answer.out.startswith(
        f"this copy is a root of its own now; the conversations stay with {workspace}\n"
    )
    set_place(copy, Place("m", "boat", 1, 1.0))
    assert "mam init --take-over" in run("forget", "one").err
    answer = run("init", "--take-over")
    assert answer.out == "this root is changed from here now, and not from boat any more\n"
    for folder in (".mam", ".hermes"):
        shutil.rmtree(copy / folder)
    assert "mam init --new" in run("create", "--agent", "practice").err
    answer = run("init", "--new", "--json")
    assert answer.json == {
        "registry": f"{copy}/.hermes/agent-sessions.yaml",
        "changed": True,
        "panes": [],
    }


def test_the_ways_exclude_each_other(run) -> None:
    answer = run("init", "--trust", "--copy")
    assert answer.code == 64
    assert "--trust and --copy exclude each other" in answer.err
    answer = run("init", "--copy", "--keep")
    assert (answer.code, "--keep goes with --trust" in answer.err) == (64, True)
    assert run("inbox", "--release", "all", "m_1").code == 64
    assert run("job", "release", "all", "00ab12cd").code == 64


def test_a_way_that_does_not_fit_names_the_one_that_does(run, foreign) -> None:
    answer = run("init", "--new", "--json")
    assert answer.error["code"] == "root_foreign"
    assert answer.error["message"].startswith("mam init --new does not help here: your mam did not make")
    assert "mam init --trust takes it in" in answer.error["hint"]
    assert answer.code == 1


def test_a_refused_root_is_named_once_for_many_sessions(run, workspace, tmp_path, monkeypatch) -> None:
    for name in ("one", "two", "three"):
        assert run("create", "--agent", "sleep", "--session", name, "--", "1000").code == 0
    place = tmp_path / "copy"
    copy_root(workspace, place)
    monkeypatch.chdir(place)
    answer = run("stop", "--all")
    assert answer.code == 1
    refusals = [
        line for line in answer.err.splitlines() if line.startswith("mam: ") and "warning" not in line
    ]
    assert refusals == [f"mam: {place} is a copy of {workspace}, which is still there"]
    results = json.loads(run("stop", "--all", "--json").out)["results"]
    assert [result["error"]["code"] for result in results] == ["root_copy"] * 3
