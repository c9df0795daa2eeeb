"""The reading verbs: ls, status, read, explain, wait, log, doctor. They read, and change nothing."""

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

import mam
from mam.adapters.system import child_process
from mam.adapters.tmux.client import Tmux
from mam.app.sessions import wait as waiting
from mam.core.errors import EditRefused, PaneGone, SessionNotFound, TimedOut, Usage

QUICK = ["--speed", "0"]


def type_into(session, text: str) -> None:
    Tmux(session.row["tmux_server"]).paste(session.row["pane"]["id"], text, mark=session.id, enter=True)


def test_ls_shows_every_field_of_the_contract(fleet, until) -> None:
    session = fleet.sessions.create("practice", role="developer", args=QUICK, prompt="hello")
    # The screen may show idle before the hooks have reported the start and the end of the turn.
    until(
        lambda: (
            ("hook", "Stop") in [(item["source"], item["detail"]) for item in session.explain()["evidence"]]
        )
    )
    document = fleet.sessions.ls()
    assert (document["root"], document["schema_version"]) == (fleet.root, 2)
    (entry,) = document["sessions"]
    assert {
        "activity",
        "activity_source",
        "activity_age_s",
        "waiting_for",
        "tmux_alive",
        "resume",
        "job",
        "drift",
    } < set(entry)
    assert (entry["activity"], entry["tmux_alive"], entry["drift"], entry["job"]) == ("idle", True, "-", None)
    assert entry["resume"] == {"id": entry["practice_session_id_own"], "tier": 1, "on_disk": True}
    json.dumps(document)


def test_filters(fleet, until_reported) -> None:
    fleet.sessions.create("practice", name="one", role="developer", args=QUICK)
    second = fleet.sessions.create("practice", name="two", role="reviewer", args=QUICK)
    fleet.sessions.create("sleep", name="three", args=["1000"]).stop()
    type_into(second, "/ask touch foo")
    until_reported(second, "PermissionRequest")

    def names(**filters):
        return [entry["name"] for entry in fleet.sessions.ls(**filters)["sessions"]]

    assert names(status=["running"]) == ["one", "two"]
    assert names(agent=["sleep"]) == ["three"]
    assert names(role=["reviewer"]) == ["two"]
    assert names(waiting=True) == ["two"]
    assert names(status=["archived"]) == []


def test_all_roots_of_the_host(fleet, tmp_path) -> None:
    fleet.sessions.create("sleep", name="here", args=["1000"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with mam.open(str(elsewhere)) as other:
        other.sessions.create("sleep", name="there", args=["1000"])
    edited, broken = tmp_path / "edited", tmp_path / "broken"
    for folder in (edited, broken):
        folder.mkdir()
        with mam.open(str(folder)) as third:
            third.sessions.create("sleep", name=folder.name, args=["1000"]).stop()
            Path(third.registry_file).write_text("tmux_sessions: [", encoding="utf-8")
    (broken / ".mam" / "state.db").write_bytes(b"no database" * 1000)
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    document = fleet.sessions.ls(all_roots=True)
    assert {(entry["name"], entry["root"]) for entry in document["sessions"]} == {
        ("here", fleet.root),
        ("there", str(elsewhere)),
        ("edited", str(edited)),
    }
    assert [entry["root"] for entry in document["unreadable"]] == [str(broken)]
    assert [str(edited) in warning for warning in warnings] == [True]


def test_all_roots_have_those_whose_state_is_gone(fleet, tmp_path) -> None:
    fleet.sessions.create("sleep", name="here", args=["1000"])
    for name in ("copied", "bare", "deleted", "gone for good"):
        (tmp_path / name).mkdir()
        with mam.open(str(tmp_path / name)) as other:
            other.init()
            if name in ("copied", "deleted"):
                other.monitor.backup()
        for folder in (".mam", ".hermes"):
            shutil.rmtree(tmp_path / name / folder)
        if name in ("deleted", "gone for good"):
            (tmp_path / name).rmdir()
    document = fleet.sessions.ls(all_roots=True)
    assert [entry["name"] for entry in document["sessions"]] == ["here"]
    hints = {entry["root"]: entry["hint"] for entry in document["unreadable"]}
    bare, copied, deleted = (str(tmp_path / name) for name in ("bare", "copied", "deleted"))
    assert hints == {
        bare: f"there is no copy of it; mam init --new --workspace {bare} begins anew",
        copied: f"mam restore --workspace {copied} brings it back",
        deleted: f"mkdir -p {deleted}; mam restore --workspace {deleted} brings it back",
    }
    assert {entry["root_state"] for entry in document["unreadable"]} == {"missing"}
    assert all("the state of this root is gone" in entry["error"] for entry in document["unreadable"])


@pytest.mark.promise("P5")
def test_reading_changes_nothing(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    place = fleet._access.context.paths
    before = {path: Path(path).read_bytes() for path in (place.yaml, place.yaml + ".bak")}
    version = fleet.sessions.get(session.id).row["version"]
    fleet.sessions.ls()
    fleet.sessions.ls(all_roots=True)
    fleet.sessions.status(session.name)
    fleet.sessions.explain(session.name)
    fleet.sessions.read(session.name)
    fleet.sessions.log()
    fleet.monitor.doctor()
    assert {path: Path(path).read_bytes() for path in before} == before
    assert fleet.sessions.get(session.id).row["version"] == version


def test_reading_makes_nothing_where_there_is_nothing(home, tmux_server, tmp_path) -> None:
    with mam.open(str(tmp_path)) as empty:
        assert empty.sessions.ls()["sessions"] == []
        assert empty.sessions.log() == []
        with pytest.raises(SessionNotFound):
            empty.sessions.status("nobody")
        empty.monitor.doctor()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_activity_follows_the_agent(fleet, until_reported) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    type_into(session, "/slow 30")
    assert session.wait("working", timeout=10)["activity"] == "working"
    until_reported(session, "UserPromptSubmit")
    Tmux(session.row["tmux_server"]).keys(session.row["pane"]["id"], ["Escape"], mark=session.id)
    # An interrupt runs no hook: only the screen shows it.
    entry = session.wait("idle", timeout=10)
    assert entry["activity"] == "idle"
    explained = session.explain()
    assert explained["activity_source"] in ("title", "transcript", "hook")
    assert {item["source"] for item in explained["evidence"]} == {
        "process",
        "hook",
        "transcript",
        "screen",
        "title",
    }


def test_a_permission_dialog_is_waiting(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    type_into(session, "/ask touch foo")
    result = session.wait("waiting", timeout=10)
    assert result["waiting_for"] == "permission"


def test_a_disagreement_is_shown(fleet, until, until_reported) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    type_into(session, "/hang")
    until_reported(session, "UserPromptSubmit")
    Tmux(session.row["tmux_server"]).keys(session.row["pane"]["id"], ["Escape"], mark=session.id)

    def overruled():
        result = session.explain()
        return result if result["activity_source"] in ("title", "screen") else None

    result = until(overruled)
    assert result["activity"] == "idle"
    assert "hook" in result["disagreeing"]


def test_a_hook_of_a_child_that_inherits_the_environment_does_not_count(fleet, workspace) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    payload = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "x", "prompt": "y"})
    spool = Path(fleet._access.context.paths.spool)
    forged = spool / f"{session.id}.{os.getpid()}.1.json"
    forged.write_text(payload, encoding="utf-8")
    assert session.status()["activity"] == "idle"
    assert forged.exists(), "a status reads only"
    fleet.sessions.resumable()
    assert not forged.exists()
    assert session.status()["activity"] == "idle"


def hook_state(session) -> str | None:
    """Return the state that the session's hooks reported last."""
    return {item["source"]: item["state"] for item in session.explain()["evidence"]}.get("hook")


def test_a_stop_loses_no_payload_of_other_sessions(fleet, until) -> None:
    first, second = (
        fleet.sessions.create("practice", args=QUICK),
        fleet.sessions.create("practice", args=QUICK),
    )
    # Its first hook may come after its input box was seen, and would then be the newest.
    until(lambda: hook_state(second) == "idle")
    payload = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "x", "prompt": "y"})
    waiting = Path(fleet._access.context.paths.spool) / f"{second.id}.{second.row['pane']['pid']}.1.json"
    waiting.write_text(payload, encoding="utf-8")
    assert hook_state(second) == "working"
    first.stop()
    assert not waiting.exists(), "a changing verb takes in what every session reports"
    assert hook_state(second) == "working"


def test_broken_payloads_are_dropped(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    spool = Path(fleet._access.context.paths.spool)
    contents = [b"", b"{", b"[]", b"\xff\xfe", b'{"hook_event_name": 5}', b"[" * 100_000]
    broken = [spool / f"{session.id}.{session.row['pane']['pid']}.{n}.json" for n in range(len(contents))]
    for path, content in zip(broken, contents, strict=True):
        path.write_bytes(content)
    (spool / "package.json").write_bytes(b"x")
    assert session.status()["activity"] == "idle"
    assert all(path.exists() for path in broken), "a status reads only"
    fleet.sessions.resumable()
    assert session.status()["activity"] == "idle"
    assert [path for path in broken if path.exists()] == []
    assert (spool / "package.json").exists()


def test_read_is_cleaned_and_tailed(fleet, workspace) -> None:
    script = workspace / "noise.sh"
    script.write_text("printf 'one\\n\\033]0;title\\007two\\nthree\\n'; exec sleep 1000\n", encoding="utf-8")
    session = fleet.sessions.create("sh", args=[str(script)])
    session.wait("text:three", timeout=10)
    assert session.read() == "one\ntwo\nthree"
    assert session.read(lines=1) == "three"


def test_read_of_an_ended_session_is_its_last_screen(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello walrus")
    session.wait("text:hello walrus", timeout=10)
    session.wait("idle", timeout=10)
    session.stop()
    assert "hello walrus" in session.read()


def test_read_without_a_pane_and_a_kept_screen_names_the_way_on(fleet, until) -> None:
    session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    fleet._access.context.tmux(session.row["tmux_server"]).kill_pane(
        session.row["pane"]["id"], mark=session.id
    )
    with pytest.raises(PaneGone, match="kept no screen") as error:
        session.read()
    assert error.value.hint == "mam read one --parsed shows what was said; mam resume one"
    assert session.transcript()["turns"][0]["text"] == "hello"


def test_scrollback_reaches_back(fleet, workspace) -> None:
    script = workspace / "long.sh"
    script.write_text("seq 1 300; exec sleep 1000\n", encoding="utf-8")
    session = fleet.sessions.create("sh", args=[str(script)])
    session.wait("text:(?m)^300$", timeout=10)
    assert "\n1\n" not in session.read()
    assert session.read(scrollback=True).startswith("1\n2\n")


def test_wait_for_the_end(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    threading.Timer(0.2, os.kill, (session.row["pane"]["pid"], signal.SIGKILL)).start()
    assert session.wait("exited", timeout=10)["activity"] == "exited"
    with pytest.raises(PaneGone):
        session.wait("idle", timeout=10)


def test_wait_gives_up(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    with pytest.raises(TimedOut) as caught:
        session.wait("text:never", timeout=0.2)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("condition", ["asleep", "text:(", ""])
def test_wait_for_nonsense(fleet, condition) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    with pytest.raises(Usage):
        session.wait(condition, timeout=1)


def test_the_log_says_who_what_and_why(fleet) -> None:
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    session.stop(reason="lunch")
    fleet.sessions.rename("worker", "rested")
    entries = fleet.sessions.log("rested")
    assert [(entry["verb"], entry["by"], entry["reason"]) for entry in entries] == [
        ("create", "user", None),
        ("stop", "user", "lunch"),
        ("rename", "user", None),
    ]
    assert len(fleet.sessions.log(limit=1)) == 1


def test_doctor_names_what_is_wrong_and_how_to_mend_it(fleet, tmux_server) -> None:
    session = fleet.sessions.create("practice", name="lost", args=QUICK)
    assert [finding for finding in fleet.monitor.doctor() if finding["ok"] is False] == []
    Path(fleet._access.context.paths.state).chmod(0o755)
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    orphan = fleet.sessions.create("sleep", name="orphan", args=["1000"])
    fleet._access.context.registry.change(lambda transaction: transaction.remove(orphan.id))
    bad = {finding["check"]: finding for finding in fleet.monitor.doctor() if finding["ok"] is False}
    assert "chmod 700" in bad["mode"]["mend"]
    assert bad["session lost"]["mend"] == "mam resume lost"
    assert orphan.row["pane"]["id"] in bad["pane without a row"]["message"]
    assert bad["pane without a row"]["mend"] == "mam adopt orphan --agent KIND registers it"


def test_doctor_and_wait_name_a_way_that_works_where_the_conversation_is_gone(fleet, home, until) -> None:
    session = fleet.sessions.create("practice", name="lost", args=QUICK, prompt="hello")
    own = session.row["practice_session_id_own"]
    (transcript,) = until(lambda: list((home / ".local/share/mam-practice").glob(f"{own}.jsonl")))
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: not session.status()["tmux_alive"])
    transcript.unlink()
    way = "mam create --session lost starts it with a new conversation"
    bad = {finding["check"]: finding for finding in fleet.monitor.doctor() if finding["ok"] is False}
    assert bad["session lost"]["mend"] == way
    session.stop(purge_conversation=True)
    for ended in (lambda: session.wait("idle", timeout=20), lambda: fleet.sessions.attach("lost")):
        with pytest.raises(PaneGone) as caught:
            ended()
        assert caught.value.hint == way
    assert fleet.sessions.create(name="lost").row["status"] == "running"


def test_doctor_in_a_root_that_mam_has_not_changed(fleet, tmp_path, monkeypatch) -> None:
    def lines(root: mam.Fleet) -> dict[str, str]:
        return {finding["check"]: finding["message"] for finding in root.monitor.doctor()}

    fleet.sessions.create("practice", name="one", args=QUICK).stop()
    assert lines(fleet)["registry"].endswith("agent-sessions.yaml shows 1 session")
    file = Path(fleet._access.context.paths.yaml)
    (tmp_path / "theirs" / ".hermes").mkdir(parents=True)
    (tmp_path / "theirs" / ".hermes" / file.name).write_bytes(file.read_bytes())
    monkeypatch.setenv("TMUX_SERVER_NAME", "mam-named-by-the-environment")
    with mam.open(tmp_path / "theirs") as theirs:
        assert lines(theirs)["registry"].endswith("shows 1 session; the first change records the file")
        assert lines(theirs)["settings"].startswith("tmux server mam-named-by-the-environment,")
    file.write_text(file.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    assert lines(fleet)["registry"].endswith("shows 1 session; the next change takes in its edit")


def test_watch_yields_when_something_changes(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    stream = fleet.sessions.watch(interval=0.05)
    assert next(stream)["sessions"][0]["status"] == "running"
    session.stop()
    assert next(stream)["sessions"][0]["status"] == "stopped"


def test_wait_returns_what_it_saw(fleet, monkeypatch) -> None:
    """`wait` returns the look that fulfilled the condition: a later look may show another state."""
    session = fleet.sessions.create("practice", args=QUICK)
    real, looks = waiting.look, []

    def look(context, target):
        looks.append(real(context, target))
        return looks[-1]

    monkeypatch.setattr(waiting, "look", look)
    result = session.wait("idle", timeout=10)
    assert result is looks[-1]
    assert (result["activity"], result["version_tested"]) == ("idle", session.status()["version_tested"])


def test_the_log_is_read_where_each_look_opens_the_database_anew(fleet, monkeypatch) -> None:
    """On a read-only mount mam reads a database that nobody can change, and opens it for each look."""
    fleet.init()
    fleet.sessions.create("sleep", args=["1000"], name="one", wait=False)
    registry = fleet._access.context.registry
    monkeypatch.setattr(registry, "_close_if_replaced", registry.close)
    assert [entry["verb"] for entry in fleet.sessions.log("one")] == ["create"]


class TestEditedStatus:
    """A status that a person writes into the registry file, which the next change compares with tmux."""

    @pytest.fixture
    def edit(self, fleet, workspace):
        """Return a function that gives the session `one` another status in the file."""
        fleet.sessions.create("practice", name="one", args=QUICK)
        fleet.sessions.create("practice", name="two", args=QUICK)

        def write(old: str, new: str) -> list[str]:
            path = workspace / ".hermes" / "agent-sessions.yaml"
            text = path.read_text(encoding="utf-8")
            assert f"  status: {old}\n" in text
            path.write_text(text.replace(f"  status: {old}\n", f"  status: {new}\n", 1), encoding="utf-8")
            warnings: list[str] = []
            fleet._access.context = fleet._access.context.replace(warn=warnings.append)
            return warnings

        return write

    @pytest.mark.parametrize("status", ["stopped", "archived"])
    @pytest.mark.parametrize(
        "look",
        [
            lambda sessions: sessions.ls(),
            lambda sessions: sessions.ls(status=["terminated"]),
            lambda sessions: sessions.status("one"),
            lambda sessions: sessions.explain("two"),
            lambda sessions: sessions.read("two"),
            lambda sessions: sessions.drill(["two"]),
        ],
        ids=["ls", "a filtered ls", "status", "explain", "read", "drill"],
    )
    def test_reading_verbs_warn_of_a_status_that_tmux_contradicts(self, fleet, edit, look, status) -> None:
        warnings = edit("running", status)
        look(fleet.sessions)
        (warning,) = warnings
        assert f"'status: {status}' is not what was observed for 'one'; mam shows its own records" in warning
        with pytest.raises(EditRefused, match="is not what was observed for 'one'"):
            fleet.sessions.rename("two", "three")

    def test_doctor_and_drill_name_it(self, fleet, edit) -> None:
        edit("running", "terminated")
        (found,) = (entry for entry in fleet.monitor.doctor() if entry["check"] == "registry")
        assert found["ok"] is False
        assert "'status: terminated' is not what was observed" in found["message"]
        (check,) = (entry for entry in fleet.sessions.drill()["root"] if entry["check"] == "registry")
        assert check["message"] == found["message"]

    def test_a_true_status_is_no_problem(self, fleet, edit) -> None:
        fleet.sessions.stop("one")
        warnings = edit("stopped", "terminated")
        fleet.sessions.ls()
        assert warnings == []
        (found,) = (entry for entry in fleet.monitor.doctor() if entry["check"] == "registry")
        assert (found["ok"], "takes in its edit" in found["message"]) == (True, True)
        fleet.sessions.rename("two", "three")
        assert fleet.sessions.get("one").row["status"] == "terminated"

    def test_a_listing_asks_tmux_no_more_than_without_the_edit(self, fleet, edit, monkeypatch) -> None:
        calls = []

        def counted(function):
            return lambda *words, **options: (calls.append(words), function(*words, **options))[1]

        for name in ("run", "start"):
            monkeypatch.setattr(child_process, name, counted(getattr(child_process, name)))
        fleet.sessions.ls()
        before = len(calls)
        assert edit("running", "terminated") == []
        fleet.sessions.ls()
        assert len(calls) == 2 * before > 0
