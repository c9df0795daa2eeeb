"""Recovery: an intent that fails in a way that nobody foresaw stops neither the verb nor the others."""

import json
import os
import signal
import sqlite3

import pytest

import mam
from mam.adapters.system import child_process
from mam.adapters.tmux import client
from mam.adapters.tmux.client import Tmux
from mam.adapters.tmux.error_translation import NoAnswer
from mam.app.context.setting_aside import is_of_item
from mam.app.sessions import launch, recover
from mam.core.errors import Broken, DiskFull, RegistryCorrupt, TerminalsDown
from mam.core.mam_version import is_newer

QUICK = ["--speed", "0"]


def plant(fleet, session_id="s_0000abcd", verb="create", data="{}", owner="{}"):
    with sqlite3.connect(fleet._access.context.paths.db) as connection:
        connection.execute(
            "INSERT INTO intents VALUES(?, 'planted', ?, ?, ?, ?)", (session_id, verb, owner, 1.0, data)
        )
    connection.close()


def read(fleet, query):
    connection = sqlite3.connect(fleet._access.context.paths.db)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@pytest.fixture
def told(fleet):
    fleet.init()
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    return warnings


@pytest.mark.promise("P6")
@pytest.mark.parametrize(
    ("verb", "data", "owner", "reason"),
    [
        ("create", "{}", "{}", "KeyError: 'row'"),
        ("adopt", '{"row": 7}', "{}", "TypeError"),
        ("resume", '{"launch_file": []}', "not JSON", "not readable"),
        ("stop", "{cut off", "{}", "not readable"),
        ("stop", "[]", "{}", "not what mam writes"),
    ],
)
def test_e1_a_bad_intent_is_set_aside_and_stops_no_verb(fleet, told, verb, data, owner, reason) -> None:
    plant(fleet, verb=verb, data=data, owner=owner)
    plant(fleet, "s_0000beef", verb="rename")
    fleet.init()
    assert read(fleet, "SELECT * FROM intents") == []
    assert [reason in text for text in told] == [True]
    ((kind, key, why, version),) = read(fleet, "SELECT kind, key, reason, version FROM set_aside")
    assert (kind, key, version) == ("intent", "s_0000abcd", mam.__version__)
    assert reason in why
    fleet.init()
    assert len(told) == 1
    (check,) = [check for check in fleet.monitor.doctor() if check["check"] == "set aside"]
    assert check["ok"] is None
    assert f"interrupted {verb} of planted, which is not in the registry" in check["message"]
    assert reason in check["message"]


def test_e1_reading_verbs_show_the_registry_beside_an_unreadable_intent(fleet, told) -> None:
    plant(fleet, data="{cut off")
    assert fleet.sessions.ls()["sessions"] == []
    checks = {check["check"]: check["ok"] for check in fleet.monitor.doctor()}
    assert "half-done change" not in checks
    assert checks["set aside"] is None


def test_e1_an_interrupt_passes_and_the_intent_stays(fleet, told, monkeypatch) -> None:
    plant(fleet, verb="rename")

    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setitem(recover._FINISH, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fleet.init()
    assert len(read(fleet, "SELECT * FROM intents")) == 1
    assert read(fleet, "SELECT * FROM set_aside") == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), DiskFull("full")])
def test_e1_an_error_of_the_machine_sets_nothing_aside(fleet, told, monkeypatch, error) -> None:
    plant(fleet, verb="rename")

    def fail(*_arguments):
        raise error

    monkeypatch.setitem(recover._FINISH, "rename", fail)
    fleet.init()
    assert len(read(fleet, "SELECT * FROM intents")) == 1
    assert read(fleet, "SELECT * FROM set_aside") == []
    assert len(told) == 1


def set_aside_by(fleet, version):
    plant(fleet, verb="rename", data="[]")
    fleet.init()
    with sqlite3.connect(fleet._access.context.paths.db) as connection:
        text = json.dumps({**json.loads(read(fleet, "SELECT data FROM set_aside")[0][0]), "data": "{}"})
        connection.execute("UPDATE set_aside SET version=?, data=?", (version, text))
    connection.close()


def test_e1_a_newer_mam_tries_it_again_once(fleet, told) -> None:
    set_aside_by(fleet, "0.1.0")
    fleet.init()
    assert read(fleet, "SELECT * FROM intents") == read(fleet, "SELECT * FROM set_aside") == []


def test_e1_an_older_mam_leaves_it(fleet, told) -> None:
    set_aside_by(fleet, "99.0.0")
    fleet.init()
    assert read(fleet, "SELECT version FROM set_aside") == [("99.0.0",)]


def test_e1_it_is_not_tried_again_after_a_later_change_of_the_session(fleet, told) -> None:
    set_aside_by(fleet, "0.1.0")
    with sqlite3.connect(fleet._access.context.paths.db) as connection:
        connection.execute(
            "INSERT INTO log(at, actor, verb, session_id, detail)"
            " SELECT at + 1, 'u', 'resume', key, '{}' FROM set_aside"
        )
    connection.close()
    fleet.init()
    assert read(fleet, "SELECT version FROM set_aside") == [(mam.__version__,)]


def test_which_errors_say_something_about_an_item() -> None:
    of_values = DiskFull("x")
    of_values.__cause__ = sqlite3.ProgrammingError("type 'dict' is not supported")
    for error in (
        KeyError("row"),
        TypeError(),
        RecursionError(),
        OSError(36, "long"),
        Broken("x"),
        of_values,
    ):
        assert is_of_item(error)
    passing = (RegistryCorrupt("x"), DiskFull("x"), OSError(5, "io"), MemoryError(), KeyboardInterrupt())
    assert not any(is_of_item(error) for error in passing)


def test_versions_are_compared_by_their_numbers() -> None:
    assert is_newer("0.10.0", "0.9.9")
    assert is_newer("0.2.0", "0.2.0.dev0")
    assert not is_newer("0.2.0.dev0", "0.2.0.dev0")
    assert is_newer("0.1.0", "what")


@pytest.mark.parametrize("verb", ["resume", "create"])
def test_a_pane_of_a_launch_that_was_withdrawn_is_not_taken_for_the_agent(fleet, monkeypatch, verb) -> None:
    """tmux carries out late what it was asked for, when mam has given up; for a moment the pane lives."""
    fleet.sessions.create("practice", name="one", args=["--speed", "0"], wait=False)
    fleet.sessions.stop("one", force=True)
    start = launch._start_in_pane

    def start_late(*given, **options):
        start(*given, **options)
        raise NoAnswer("tmux server does not answer (new-session)")

    with monkeypatch.context() as silent:
        silent.setattr(launch, "_start_in_pane", start_late)
        silent.setattr(launch, "_find_row_pane", lambda *_given: None)
        # A launcher that has not looked for its file yet.
        silent.setattr(launch.launches, "launcher_command", lambda _path: ["sleep", "1000"])
        with pytest.raises(TerminalsDown):
            if verb == "resume":
                fleet.sessions.resume("one")
            else:
                fleet.sessions.create("practice", name="two", args=["--speed", "0"])
    assert read(fleet, "SELECT verb FROM intents") == [(verb,)]
    fleet.init()
    assert read(fleet, "SELECT verb FROM intents") == []
    assert {one.name: one.row["status"] for one in fleet.sessions.list()} == {"one": "stopped"}


@pytest.mark.parametrize(
    "verb",
    [
        lambda fleet: fleet.sessions.read("one"),
        lambda fleet: fleet.messages.interrupt("two"),
        lambda fleet: fleet.sessions.create("practice", name="three", args=QUICK),
    ],
    ids=["read", "interrupt", "create"],
)
def test_a_verb_pays_the_time_limit_of_a_server_that_hangs_once(
    fleet, workspace, tmux_server, monkeypatch, verb
) -> None:
    """Also while a stop is left half done that recovery cannot finish before tmux answers."""
    for name in ("one", "two"):
        fleet.sessions.create("practice", name=name, args=QUICK)
    server = fleet.sessions.get("one").row["pane"]["server_pid"]
    monkeypatch.setitem(Tmux.__init__.__kwdefaults__, "timeout", 0.5)
    monkeypatch.setattr(client, "SHORT_TIMEOUT", 0.1)
    limits = []
    run = child_process.run

    def noting(*words, timeout, **options):
        limits.append(timeout)
        return run(*words, timeout=timeout, **options)

    os.kill(server, signal.SIGSTOP)
    try:
        with mam.open(str(workspace)) as first, pytest.raises(TerminalsDown):
            first.sessions.stop("one")
        monkeypatch.setattr(child_process, "run", noting)
        with mam.open(str(workspace)) as other, pytest.raises(TerminalsDown):
            verb(other)
        assert limits.count(0.5) == 1
    finally:
        os.kill(server, signal.SIGCONT)
    with mam.open(str(workspace)) as after:
        assert after.sessions.ls()["sessions"][0]["tmux_alive"] is True
        assert after._access.context.registry.view().intents == []
