"""A drill: it finds what a resume finds, changes nothing, and leaves nothing of the forks that it runs."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.sessions import dying_drill
from tests.waiting import wait_for

from mam.adapters.agents.kind import Launch
from mam.adapters.agents.practice import Practice
from mam.adapters.tmux.client import Tmux
from mam.app.sessions import drill_run
from mam.app.sessions.drill import OK, UNPROVEN, WARNING, WOULD_NOT
from mam.core import caller
from mam.core.errors import InvalidSettings, MamError, NotAllowed, Refused, RootForeign

QUICK = ["--speed", "0"]


@pytest.fixture
def start(fleet):
    """Return a function that makes a session with a conversation."""

    def make(name, **options):
        session = fleet.sessions.create(
            "practice", name=name, **{"args": QUICK, "prompt": f"the word of {name} is walrus", **options}
        )
        wait_for(session, "idle")
        return session

    return make


@pytest.fixture
def stores(home):
    return home / ".local/share/mam-practice"


def record_of(fleet, stores, name):
    return stores / f"{fleet.sessions.get(name).row['practice_session_id_own']}.jsonl"


def edit(workspace, old, new) -> None:
    path = workspace / ".hermes" / "agent-sessions.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def change_row(fleet, name, **fields) -> None:
    """Change a row in the database alone, as it comes with somebody else's root."""
    with sqlite3.connect(fleet._access.context.paths.db) as database:
        for field, value in fields.items():
            database.execute(
                f"UPDATE sessions SET data=json_set(data, '$.{field}', json(?)),"
                f" written=json_set(written, '$.{field}', json(?)) WHERE name=?",
                [*[json.dumps(value)] * 2, name],
            )


def by_name(document):
    return {result["session"]: result for result in document["results"]}


def codes(result):
    return [reason["code"] for reason in result["reasons"]]


def state(fleet, tmux_server, stores):
    """Return all that a fork could leave: rows, intents, leases, launches, panes and files."""
    context = fleet._access.context
    view = context.registry.view()
    user_state = sqlite3.connect(context.user_state.path)
    try:
        tables = [
            user_state.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("leases", "launches", "launch_secrets")
        ]
    finally:
        user_state.close()
    panes = [(pane.id, pane.pid, pane.session_name, pane.mark) for pane in Tmux(tmux_server).panes().panes]
    folder = Path(context.paths.state)
    ids = {row["id"] for row in view.rows}
    files = sorted(
        str(path)
        for place in ("launches", "settings", "spool")
        for path in (folder / place).glob("*")
        # The reports of a registered session are taken in by any verb.
        if path.name[:10] not in ids
    )
    records = {path.name: path.read_bytes() for path in stores.iterdir()}
    return view.rows, view.identities, view.intents, tables, panes, files, records


def test_what_a_drill_finds_is_what_a_resume_finds(fleet, start, stores, workspace, tmp_path) -> None:
    for name in ("fine", "record-gone", "record-empty", "held", "edited", "unbegun"):
        start(name, **({"prompt": None} if name == "unbegun" else {}))
    place = tmp_path / "short-lived"
    place.mkdir()
    with fleet.in_directory(str(place)) as elsewhere:
        elsewhere.sessions.create("practice", name="homeless", args=QUICK, prompt="hello").stop()
        place.rmdir()
        lost = elsewhere.in_directory(str(tmp_path)).sessions.create("practice", name="lost", args=QUICK)
        lost.stop()
    fleet.sessions.create("human", name="person")
    for name in ("record-gone", "record-empty", "held", "edited", "unbegun"):
        fleet.sessions.stop(name)
    record_of(fleet, stores, "record-gone").unlink()
    record_of(fleet, stores, "record-empty").write_bytes(b"")
    own = fleet.sessions.get("fine").row["practice_session_id_own"]
    change_row(fleet, "held", practice_session_id_own=own)
    change_row(fleet, "edited", permissions="skip")
    change_row(fleet, "lost", conversations=[])
    shutil.copy(record_of(fleet, stores, "fine"), stores / "00000000-0000-4000-8000-000000000001.jsonl")
    with (stores / "workspaces.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"cwd": str(tmp_path), "id": "00000000-0000-4000-8000-000000000001"}) + "\n")
    files = [workspace / ".hermes" / "agent-sessions.yaml", workspace / ".mam" / "state.db"]
    before = [path.read_bytes() for path in files]

    document = fleet.sessions.drill()

    assert [path.read_bytes() for path in files] == before, "a drill only reads"
    results = by_name(document)
    assert {name: (result["outcome"], codes(result)) for name, result in results.items()} == {
        "fine": (WARNING, ["conversation_busy"]),
        "record-gone": (WOULD_NOT, ["illegal_transition"]),
        "record-empty": (WOULD_NOT, ["empty"]),
        "held": (WOULD_NOT, ["conversation_busy"]),
        "edited": (WOULD_NOT, ["not_allowed"]),
        "unbegun": (WARNING, ["no_history"]),
        "homeless": (WOULD_NOT, ["invalid_path"]),
        "lost": (WARNING, ["other_conversation"]),
        "person": (WOULD_NOT, ["no_resume"]),
    }
    assert (document["ok"], document["unproven"], document["failed"]) == (3, 0, 6)
    assert [result["session"] for result in document["results"]] == fleet.sessions.names()
    begin_anew = "mam create --session record-gone starts it with a new conversation"
    assert results["record-gone"]["reasons"][0]["hint"] == begin_anew
    assert (results["lost"]["tier"], results["fine"]["tier"]) == (2, 1)
    assert all(check["ok"] for check in document["root"])
    assert all(reason["hint"] for result in document["results"] for reason in result["reasons"])
    for name in ("record-gone", "held", "edited", "homeless"):
        with pytest.raises(MamError) as caught:
            fleet.sessions.resume(name)
        assert caught.value.message == results[name]["reasons"][0]["message"]


def test_more_that_is_in_the_way(fleet, start, stores, workspace, monkeypatch) -> None:
    start("one")
    start("two").stop()
    with monkeypatch.context() as patch:
        patch.setattr(Practice, "program", lambda *_: "no-such-program")
        document = fleet.sessions.drill()
        assert [codes(result) for result in document["results"]] == [["agent_missing"]] * 2
        assert by_name(document)["one"]["status"] == "running"
    with monkeypatch.context() as patch:
        patch.setattr(Practice, "known_versions", ("0.0.1",))
        (result,) = fleet.sessions.drill(["two"])["results"]
        assert (result["outcome"], codes(result)) == (WARNING, ["untested_version"])
    stores.rename(stores.parent / "elsewhere")
    change_row(fleet, "two", **{"stores.XDG_DATA_HOME": "/no/such/folder"})
    (result,) = fleet.sessions.drill(["two", "two"])["results"]
    assert codes(result) == ["not_allowed", "illegal_transition", "store_gone"]
    change_row(fleet, "two", start_command=["practice", 7])
    assert codes(fleet.sessions.drill(["two"])["results"][0]) == ["refused"]
    edit(workspace, "status: running", "status: stopped")
    document = fleet.sessions.drill(["one"])
    assert [check["check"] for check in document["root"] if not check["ok"]] == ["registry"]


def test_which_sessions_are_checked(fleet, start) -> None:
    assert fleet.sessions.drill()["results"] == []
    start("alive")
    for name in ("stopped", "archived", "purged"):
        start(name).stop(purge_conversation=name == "purged")
    fleet.sessions.archive("archived")
    results = by_name(fleet.sessions.drill())
    assert {name: result["outcome"] for name, result in results.items()} == {"alive": OK, "stopped": OK}
    (result,) = fleet.sessions.drill(["archived"], agent="practice")["results"]
    assert (result["outcome"], result["status"]) == (OK, "archived")
    assert codes(fleet.sessions.drill(["purged"])["results"][0]) == ["illegal_transition"]
    with pytest.raises(Refused, match="no session of claude"):
        fleet.sessions.drill(agent="claude")


def test_a_running_session_is_checked_as_it_would_be_recorded_after_its_death(fleet, start, until) -> None:
    session = start("one")
    fleet.messages.send("one", "/clear", command=True, timeout=10)
    session.send("a new word", timeout=10)
    wait_for(session, "idle")
    (result,) = fleet.sessions.drill()["results"]
    Tmux(session.row["tmux_server"]).kill_server()
    until(lambda: fleet.sessions.ls()["sessions"][0]["tmux_alive"] is False)
    resumed = fleet.sessions.resume("one").session.row
    assert result["outcome"] == OK
    assert result["conversation"] == resumed["practice_session_id_own"]
    assert result["conversation"] != session.row["practice_session_id_own"]


@pytest.mark.promise("P25")
def test_a_run_proves_the_history_and_leaves_nothing(fleet, start, stores, tmux_server) -> None:
    live = start("live", permissions="skip")
    start("stopped").stop()
    fleet.sessions.create("human", name="person")
    start("unbegun", prompt=None)
    before = state(fleet, tmux_server, stores)
    screen = live.read()
    steps: list[str] = []
    fleet.on_progress(steps.append)

    document = fleet.sessions.drill(run=True)

    assert {name: (result.get("run") or {}).get("outcome") for name, result in by_name(document).items()} == {
        "live": "proven",
        "stopped": "proven",
        "person": None,
        "unbegun": "n/a",
    }
    assert (document["ok"], document["unproven"], document["failed"]) == (3, 0, 1)
    assert state(fleet, tmux_server, stores) == before
    assert live.read() == screen
    assert "forking stopped (2 of 4)" in steps
    verbs = [entry["verb"] for entry in fleet.sessions.log() if (entry["session"] or "").startswith("drill-")]
    assert sorted(verbs) == sorted(["create", "purge", "forget"] * 2)


def test_a_dialog_of_a_fork_is_not_answered(fleet, start, stores, tmux_server) -> None:
    start("one", args=[*QUICK, "--trust-dialog"], trust=True).stop()
    before = state(fleet, tmux_server, stores)
    document = fleet.sessions.drill(run=True)
    (result,) = document["results"]
    assert (result["outcome"], codes(result), result["run"]["outcome"]) == (
        UNPROVEN,
        ["dialog_open"],
        UNPROVEN,
    )
    assert "trust dialog" in result["run"]["message"]
    assert (document["ok"], document["unproven"], document["failed"]) == (0, 1, 0)
    assert state(fleet, tmux_server, stores) == before


def launch_without(wanted):
    """Return a launch of the practice agent whose forks run `wanted` instead of the conversation."""
    original = Practice.launch

    def launch(self, request):
        if not request.fork_of:
            return original(self, request)
        if wanted == "nothing":
            return Launch([shutil.which("false") or "false"])
        request.fork_of = None
        return original(self, request)

    return launch


def test_a_fork_without_its_history_proves_nothing(fleet, start, stores, tmux_server, monkeypatch) -> None:
    start("one").stop()
    before = state(fleet, tmux_server, stores)
    for wanted, outcome, code in (("nothing", WOULD_NOT, "not_ready"), ("history", UNPROVEN, "no_proof")):
        with monkeypatch.context() as patch:
            patch.setattr(Practice, "launch", launch_without(wanted))
            patch.setattr(drill_run, "_HISTORY_SECONDS", 0.1)
            (result,) = fleet.sessions.drill(["one"], run=True)["results"]
        assert (result["outcome"], codes(result)) == (outcome, [code]), wanted
        assert state(fleet, tmux_server, stores) == before
    with monkeypatch.context() as patch:
        patch.setattr(Practice, "can_fork", False)
        (result,) = fleet.sessions.drill(["one"], run=True)["results"]
    assert (result["outcome"], result["run"]["outcome"]) == (OK, "n/a")
    assert fleet.sessions.log()[-1]["verb"] == "forget", "nothing was started"
    assert state(fleet, tmux_server, stores) == before


@pytest.mark.parametrize("place", ["start", "wait_until_ready"])
def test_ctrl_c_removes_the_forks(fleet, start, stores, tmux_server, monkeypatch, place) -> None:
    for name in ("one", "two"):
        start(name).stop()
    before = state(fleet, tmux_server, stores)

    def interrupt(*given, **options):
        if place == "start":
            begin(*given, **options)
        raise KeyboardInterrupt

    begin = drill_run.fork.start
    monkeypatch.setattr(drill_run.fork if place == "start" else drill_run, place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        fleet.sessions.drill(run=True)
    assert state(fleet, tmux_server, stores) == before


@pytest.mark.parametrize("step", dying_drill.STEPS)
def test_the_next_verb_removes_the_forks_of_a_killed_drill(fleet, start, stores, tmux_server, step) -> None:
    start("one").stop()
    before = state(fleet, tmux_server, stores)
    command = [sys.executable, "-m", "tests.app.sessions.dying_drill", step, str(fleet.root)]
    assert subprocess.run(command, check=False).returncode == -9
    assert fleet._access.context.registry.view().intents != []
    fleet.init()
    assert state(fleet, tmux_server, stores) == before
    assert fleet.sessions.resume("one").session.row["status"] == "running"


def test_the_purge_of_a_fork_gives_the_identity_cache_back(fleet) -> None:
    fleet.init()
    context = fleet._access.context
    cache = {"session_id": "0199a213-81c0-7800-8aa1-bbab2a035a53", "project_cwd": "/w"}
    notes = {"fork": "s_00000001", "agent": "practice", "identity": cache}

    def begin(transaction):
        intent = drill_run.claims.new_intent("s_00000002", "one (fork)", "drill", transaction.now, notes)
        transaction.intents.put(intent)
        return intent

    drill_run.remove_fork(context, fleet.caller, context.registry.note(begin))
    view = context.registry.view()
    assert (view.identities, view.intents) == ({"practice": cache}, [])


def test_a_session_may_read_and_not_run(fleet, start) -> None:
    start("one")
    fleet._access._caller = caller.session("s_00000001")
    assert fleet.sessions.drill()["ok"] == 1
    with pytest.raises(NotAllowed, match="may not use 'mam drill --run'"):
        fleet.sessions.drill(run=True)


def test_a_root_of_somebody_else_is_refused(fleet, start) -> None:
    start("one").stop()
    with sqlite3.connect(fleet._access.context.user_state.path) as database:
        database.execute("DELETE FROM known_roots")
    fleet.close()
    fleet._access.context.root.forget_verdict()
    with pytest.raises(RootForeign):
        fleet.sessions.drill()


def test_a_mistake_in_the_settings_is_one_check_of_the_root(fleet, start, home) -> None:
    start("one")
    start("two")
    (home / ".config/mam/config.toml").write_text('keep_lgo = "2w"\n', encoding="utf-8")
    context = fleet._access.context
    fleet._access.context = context.replace(settings_environ=dict(context.environ))
    document = fleet.sessions.drill()
    (check,) = [entry for entry in document["root"] if not entry["ok"]]
    assert (check["check"], "there is no setting 'keep_lgo'" in check["message"]) == ("settings", True)
    assert [result["outcome"] for result in document["results"]] == [OK, OK]
    assert (document["ok"], document["failed"]) == (2, 0)
    with pytest.raises(InvalidSettings):
        fleet.sessions.drill(run=True)
