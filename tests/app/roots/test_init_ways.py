"""The ways out of a root that mam refuses to change: --trust, --copy, --take-over and --new."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from tests.app.copied_root import copy_root
from tests.app.team_desk import said

import mam
from mam.adapters.store import state_replacement
from mam.adapters.store.tables import messages
from mam.adapters.store.user_state import UserState
from mam.app.context.liveness import identity_of
from mam.app.observation import conversations
from mam.app.roots import init_new, init_take_over, init_trust, state_rebuild
from mam.core import caller as callers
from mam.core.errors import (
    ConversationBusy,
    NotAllowed,
    Refused,
    RegistryCorrupt,
    RootCopy,
    RootElsewhere,
    RootForeign,
    RootMissing,
    SchemaTooNew,
)
from mam.core.root_state import Place
from mam.core.session_row import current_conversation

QUICK = ["--speed", "0"]
# They ask tmux for the panes of sessions.
pytestmark = pytest.mark.starts


@pytest.fixture
def move_home(home, monkeypatch, tmp_path):
    """Return a function after which this user's mam has made no root yet, as in another home."""

    def move(name="other"):
        monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / name))

    return move


@pytest.fixture
def reopened(workspace):
    """Return a function that opens the root again, as the next command does."""
    opened = []

    def reopen(path=None):
        fleet = mam.open(str(path or workspace))
        opened.append(fleet)
        return fleet

    yield reopen
    for fleet in opened:
        fleet.close()


def plain_fleet(workspace):
    """Make a root with an ended session, a held message and an open job, without starting anything."""
    with mam.open(str(workspace)) as fleet:
        fleet.init()
        registry = fleet._access.context.registry

        def work(transaction):
            transaction.add(
                {
                    "id": "s_1f00ab42",
                    "name": "one",
                    "agent": "practice",
                    "workspace": str(workspace),
                    "status": "stopped",
                    "tmux_server": "mam-none",
                    "conversations": [{"id": "c0ffee", "source": "create"}],
                    "resumable": True,
                }
            )
            messages.add(
                transaction,
                {
                    "id": "m_held",
                    "session_id": "s_1f00ab42",
                    "sender": "user",
                    "text": "hello",
                    "is_command": False,
                    "wanted": "ready",
                    "state": "held",
                    "reason": "it has ended",
                    "conversation": None,
                },
            )

        job: str = fleet.jobs.submit("look at it", type="human")["job_id"]
        registry.change(work)
    return job


@pytest.fixture
def foreign(home, workspace, move_home):
    """A root that another home's mam made: an ended session, a held message and an open job."""
    job = plain_fleet(workspace)
    move_home()
    return job


def marks_of(fleet):
    context = fleet._access.context
    return [pane.root for pane in context.resources.tmux(os.environ["TMUX_SERVER_NAME"]).panes().panes]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def trust_in_child(workspace, arm):
    """Run `init --trust` in a child process that `arm` prepares; return its exit code."""
    pid = os.fork()  # noqa: TID251  (it dies where a process would be killed)
    if not pid:
        try:
            arm()
            with mam.open(str(workspace)) as child:
                child.init_trust()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def dying(step, number, *, is_after=False):
    """Return the step as one that ends the process at the call of that number."""
    left = [number] if isinstance(number, int) else number

    def run(*arguments, **options):
        if not left[0]:
            if is_after:
                step(*arguments, **options)
            os._exit(9)
        left[0] -= 1
        return step(*arguments, **options)

    return run


def database_of(workspace):
    return Path(workspace, ".mam", "state.db")


class TestTrust:
    def test_what_was_open_is_parked_and_the_rest_is_as_before(self, foreign, reopened, workspace) -> None:
        fleet = reopened()
        with pytest.raises(RootForeign):
            fleet.messages.release()
        document = fleet.init_trust()
        assert document["changed"] is True
        assert document["parked"] == {"messages": ["m_held"], "jobs": [foreign]}
        assert (document["taken"]["sessions"], document["left_out"]) == (1, [])
        fleet = reopened()
        (row,) = fleet.sessions.ls()["sessions"]
        assert (row["name"], row["id"], row["status"]) == ("one", "s_1f00ab42", "stopped")
        (message,) = fleet.messages.inbox(parked=True)
        assert (message["message_id"], message["reason"]) == ("m_held", "mam init --trust parked it")
        assert fleet.jobs.status(foreign)["status"] == "parked"
        record = json.loads(Path(workspace, ".mam", "jobs", f"{foreign}.json").read_text(encoding="utf-8"))
        assert record["status"] == "parked"
        assert fleet.jobs.release(foreign)[0]["released"]
        fleet.jobs.event(foreign, "completed", detail="its token came along")
        assert fleet.jobs.status(foreign)["status"] == "completed"
        assert [entry["verb"] for entry in fleet.sessions.log()].count("init") == 2

    def test_the_former_state_is_kept(self, foreign, reopened, workspace, tmp_path) -> None:
        before = database_of(workspace).read_bytes()
        yaml = Path(workspace, ".hermes", "agent-sessions.yaml").read_bytes()
        kept = Path(reopened().init_trust()["kept"])
        assert kept.is_relative_to(tmp_path / "other")
        assert (kept / "state" / "state.db").read_bytes() == before
        assert (kept / "agent-sessions.yaml").read_bytes() == yaml
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700
        assert not Path(workspace, ".mam.new").exists()

    def test_what_is_only_in_the_log_of_the_database_is_taken(self, foreign, reopened, workspace) -> None:
        connection = sqlite3.connect(database_of(workspace), isolation_level=None)
        connection.execute("UPDATE messages SET text='the newest'")
        assert Path(f"{database_of(workspace)}-wal").stat().st_size
        fleet = reopened()
        fleet.init_trust()
        connection.close()
        assert fleet.messages.inbox(parked=True)[0]["text"] == "the newest"

    def test_with_keep_everything_goes_on(self, foreign, reopened) -> None:
        fleet = reopened()
        document = fleet.init_trust(keep=True)
        assert [job["job_id"] for job in document["released"]["jobs"] if job["released"]] == [foreign]
        (message,) = document["released"]["messages"]
        assert (message["message_id"], message["released"], message["state"]) == ("m_held", True, "held")
        assert fleet.jobs.status(foreign)["status"] == "pending"

    def test_a_live_session_is_the_same_as_before(self, fleet, move_home, reopened) -> None:
        session = fleet.sessions.create("practice", name="one", args=QUICK)
        held = session.row["id"]
        fleet.close()
        move_home()
        again = reopened()
        again.init_trust()
        (row,) = again.sessions.ls()["sessions"]
        assert (row["id"], row["status"], row["tmux_alive"]) == (held, "running", True)
        assert again.messages.send("one", "are you there", timeout=20)["state"] == "submitted"
        assert said(again, "one")[-1] == "are you there"
        again.sessions.stop("one")

    def test_a_crash_or_an_error_loses_no_live_session(
        self, fleet, move_home, reopened, workspace, monkeypatch
    ) -> None:
        """The panes get the mark of the new root before the folders are exchanged."""
        fleet.sessions.create("practice", name="one", args=QUICK)
        fleet.close()
        move_home()
        replacement, exchange = (
            state_replacement.StateReplacement,
            state_replacement.StateReplacement.exchange,
        )
        assert trust_in_child(workspace, lambda: setattr(replacement, "exchange", dying(exchange, 0))) == 9

        def fail(_replacement):
            raise OSError(5, "no")

        marks = marks_of(reopened())
        with monkeypatch.context() as patch:
            patch.setattr(replacement, "exchange", fail)
            with pytest.raises(OSError, match="no"):
                reopened().init_trust()
        assert marks_of(reopened()) == marks
        again = reopened()
        again.init_trust()
        assert marks_of(again) != marks
        assert again.sessions.ls()["sessions"][0]["tmux_alive"] is True
        again.sessions.stop("one")

    def test_d2_no_file_that_an_intent_names_is_touched(self, foreign, reopened, workspace, tmp_path) -> None:
        """An intent's `launch_file` names a file of the user."""
        precious = tmp_path / "precious"
        precious.write_text("keep me", encoding="utf-8")
        row = {"id": "s_00ab12cd", "name": "two", "agent": "practice", "workspace": "/", "tmux_server": "x"}
        connection = sqlite3.connect(database_of(workspace))
        for number, verb in enumerate(("create", "resume")):
            connection.execute(
                "INSERT INTO intents VALUES(?, ?, ?, '{}', 1.0, ?)",
                (
                    f"s_0000000{number}",
                    verb,
                    verb,
                    json.dumps({"row": row, "launch_file": str(precious), "choice": [None, None, None]}),
                ),
            )
        connection.commit()
        connection.close()
        fleet = reopened()
        for change in (
            lambda: fleet.sessions.stop("one"),
            lambda: fleet.sessions.create("practice", name="three"),
            lambda: fleet.sessions.resume("one"),
            lambda: fleet.messages.send("one", "hello"),
            fleet.init,
        ):
            with pytest.raises(RootForeign):
                change()
        assert fleet.init_trust()["dropped"]["intents"] == 2
        assert fleet.sessions.forget("one")
        assert precious.read_text(encoding="utf-8") == "keep me"

    def test_links_and_pipes_are_left_behind(self, foreign, reopened, workspace, tmp_path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "file").write_text("mine", encoding="utf-8")
        state = Path(workspace, ".mam")
        (state / "jobs" / "link.json").symlink_to(outside / "file")
        os.mkfifo(state / "jobs" / "pipe.token")
        shutil.rmtree(state / "launch")
        (state / "launch").symlink_to(outside)
        (state / "strange").symlink_to(outside)
        shutil.rmtree(state / "settings")
        (state / "settings").symlink_to(outside)
        fleet = reopened()
        document = fleet.init_trust()
        assert set(document["files_left"]) == {
            *("jobs/link.json", "jobs/pipe.token", "launch", "strange", "settings")
        }
        assert all(not path.is_symlink() and (path.is_file() or path.is_dir()) for path in state.rglob("*"))
        assert [path.name for path in outside.iterdir()] == ["file"]
        assert (Path(document["kept"]) / "state" / "strange").is_symlink()

    def test_a_job_writes_and_publishes_only_where_this_root_does(self, foreign, reopened, workspace) -> None:
        connection = sqlite3.connect(database_of(workspace))
        ((data,),) = connection.execute("SELECT data FROM jobs").fetchall()
        facts = {**json.loads(data), "logs_dir": "/evil", "registry_dir": "/evil", "broker": {"host": "evil"}}
        connection.execute("UPDATE jobs SET data=?", (json.dumps(facts),))
        connection.commit()
        connection.close()
        fleet = reopened()
        fleet.init_trust()
        job = fleet.jobs.status(foreign)
        assert job["broker"] is None
        assert job["logs_dir"] == str(workspace / "delegate_job_logs")
        assert job["registry_dir"] == str(workspace / ".mam" / "jobs")

    @pytest.mark.parametrize(
        ("spoil", "error"),
        [
            (lambda db: db.write_bytes(b"no database" * 100), RegistryCorrupt),
            (lambda db: (db.unlink(), db.symlink_to("/etc/passwd")), RegistryCorrupt),
            (lambda db: (db.unlink(), os.mkfifo(db)), RegistryCorrupt),
        ],
    )
    def test_what_cannot_be_taken_in_stays_as_it_is(self, foreign, reopened, workspace, spoil, error) -> None:
        for suffix in ("-wal", "-shm"):
            Path(f"{database_of(workspace)}{suffix}").unlink(missing_ok=True)
        spoil(database_of(workspace))
        before = names_in(workspace / ".mam")
        fleet = reopened()
        with pytest.raises((error, mam.core.errors.Unavailable)):
            fleet.init_trust()
        assert names_in(workspace / ".mam") == before
        assert not Path(workspace, ".mam.new").exists()
        with pytest.raises(RootForeign):
            reopened().init()

    def test_a_newer_schema_is_refused(self, foreign, reopened, workspace) -> None:
        connection = sqlite3.connect(database_of(workspace))
        connection.execute("PRAGMA user_version=99")
        connection.close()
        with pytest.raises(SchemaTooNew, match=r"was written by mam .* \(schema 99\."):
            reopened().init_trust()

    def test_sessions_that_only_the_file_has_are_added(self, foreign, reopened, workspace) -> None:
        path = Path(workspace, ".hermes", "agent-sessions.yaml")
        text = path.read_text(encoding="utf-8")
        block = text[text.index("- id: s_1f00ab42") : text.index("# end of sessions")]
        more = block.replace("s_1f00ab42", "s_2f00ab42").replace("name: one", "name: two")
        path.write_text(text.replace("# end of sessions", f"{more}# end of sessions"), encoding="utf-8")
        fleet = reopened()
        assert fleet.init_trust()["taken"]["sessions"] == 2
        assert fleet.sessions.names() == ["one", "two"]

    def test_a_folder_without_a_database_is_taken_too(self, foreign, reopened, workspace) -> None:
        for path in Path(workspace, ".mam").glob("state.db*"):
            path.unlink()
        fleet = reopened()
        with pytest.raises(RootForeign):
            fleet.init()
        fleet.init_trust()
        assert fleet.sessions.names() == ["one"], "from the registry file"

    def test_a_root_that_is_in_use_elsewhere_is_refused(self, foreign, reopened, workspace) -> None:
        set_place(workspace, Place("m", "boat", 1, my_place_now()))
        with pytest.raises(RootElsewhere, match="boat") as refused:
            reopened().init_trust()
        assert "after ten minutes" in refused.value.hint

    def test_a_known_root_has_nothing_to_do(self, fleet) -> None:
        fleet.init()
        assert fleet.init_trust() == {"registry": fleet.registry_file, "changed": False}

    def test_where_there_is_nothing_it_says_so(self, fleet) -> None:
        with pytest.raises(Refused, match=r"there is no state of mam in .* so mam init --trust") as refused:
            fleet.init_trust()
        assert refused.value.hint == "mam init makes this directory a root"


# Each is a step of `--trust` on the way to the disk.
STEPS = [
    (state_replacement.StateReplacement, "begin"),
    (state_replacement.StateReplacement, "open_source"),
    (state_replacement.StateReplacement, "open_target"),
    (state_replacement.StateReplacement, "close_source"),
    (state_replacement.StateReplacement, "seal"),
    (state_replacement.StateReplacement, "copy_files"),
    (UserState, "record_root"),
    (state_replacement.StateReplacement, "exchange"),
    (state_replacement.StateReplacement, "keep_former"),
    (state_rebuild.claims, "change"),
    (state_rebuild, "write_files"),
]


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
def test_a_crash_leaves_the_foreign_root_or_the_trusted_one(
    foreign, reopened, workspace, owner, name, is_after
) -> None:
    before = {path.name: path.read_bytes() for path in Path(workspace, ".mam").glob("state.db*")}
    step = getattr(owner, name)
    assert trust_in_child(workspace, lambda: setattr(owner, name, dying(step, 0, is_after=is_after))) == 9
    fleet = reopened()
    is_trusted = fleet._access.context.root.refusal() is None
    assert is_trusted == ((owner, name, is_after) in STEPS_AFTER)
    if not is_trusted:
        after = {path.name: path.read_bytes() for path in Path(workspace, ".mam").glob("state.db*")}
        assert {key: after[key] for key in before} == before
    assert fleet.init_trust()["changed"] is not is_trusted
    fleet = reopened()
    assert fleet.sessions.names() == ["one"]
    assert [one["message_id"] for one in fleet.messages.inbox(parked=True)] == ["m_held"]
    assert fleet.jobs.status(foreign)["status"] == "parked"
    fleet.sessions.forget("one")


STEPS_AFTER = {
    (state_replacement.StateReplacement, "exchange", True),
    *((owner, name, is_after) for owner, name in STEPS[-3:] for is_after in (False, True)),
}


@pytest.mark.parametrize("number", range(12))
def test_a_crash_at_any_rename_or_flush_loses_nothing(foreign, reopened, workspace, number) -> None:
    """The process dies before its Nth rename or flush of the folder of the root."""
    left = [number]

    def arm():
        for module, name in ((os, "rename"), (os, "fsync"), (state_replacement, "swap")):
            setattr(module, name, dying(getattr(module, name), left))

    trust_in_child(workspace, arm)
    fleet = reopened()
    fleet.init_trust()
    assert fleet.sessions.names() == ["one"]
    assert [one["message_id"] for one in fleet.messages.inbox(parked=True)] == ["m_held"]


@pytest.mark.parametrize("number", range(3))
def test_without_an_exchange_of_names_a_crash_is_finished(
    foreign, reopened, workspace, number, monkeypatch
) -> None:
    """On a file system that cannot exchange two names, three renames do it."""
    monkeypatch.setattr(state_replacement, "swap", lambda _path, _other: False)
    assert trust_in_child(workspace, lambda: setattr(os, "rename", dying(os.rename, number))) == 9
    fleet = reopened()
    fleet.init_trust()
    assert fleet.sessions.names() == ["one"]
    assert [one["message_id"] for one in fleet.messages.inbox(parked=True)] == ["m_held"]


def test_a_failed_flush_after_the_exchange_does_not_undo_it(
    foreign, reopened, workspace, monkeypatch
) -> None:
    before = database_of(workspace).read_bytes()
    exchange = state_replacement.StateReplacement.exchange

    def fail_after(replacement):
        exchange(replacement)
        raise OSError(5, "no")

    with monkeypatch.context() as patch:
        patch.setattr(state_replacement.StateReplacement, "exchange", fail_after)
        with pytest.raises(OSError, match="no"):
            reopened().init_trust()
    again = reopened()
    assert again.init_trust()["changed"] is False
    assert [one["message_id"] for one in again.messages.inbox(parked=True)] == ["m_held"]
    assert Path(workspace, ".mam.new", "state.db").read_bytes() == before


def my_place_now(age: float = 5.0) -> float:
    import time

    return time.time() - age


def set_place(workspace, place):
    connection = sqlite3.connect(database_of(workspace))
    connection.execute("INSERT OR REPLACE INTO meta VALUES('place', ?)", (json.dumps(place.as_json()),))
    connection.commit()
    connection.close()


class TestCopy:
    @pytest.fixture
    def copy(self, home, workspace, tmp_path):
        """A copy of a root that is still there."""
        job = plain_fleet(workspace)
        place = tmp_path / "demo" / "copy"
        copy_root(workspace, place)
        return place, job

    def test_a_copy_becomes_a_root_of_its_own(self, copy, reopened, workspace) -> None:
        place, job = copy
        fleet = reopened(place)
        with pytest.raises(RootCopy):
            fleet.sessions.forget("one")
        document = fleet.init_copy()
        assert (document["changed"], document["original"]) == (True, str(workspace))
        (row,) = reopened(place).sessions.ls()["sessions"]
        assert (row["status"], row["resumable"], row["conversations"]) == ("terminated", False, [])
        assert (row["stop_reason"], row["workspace"]) == (f"it belongs to {workspace}", str(place))
        assert reopened(place).jobs.status(job)["status"] == "parked"
        with pytest.raises(Refused, match="cannot be resumed: no conversation of it is known"):
            reopened(place).sessions.resume("one")
        (outcome,) = reopened(place).messages.release()
        assert outcome["released"] is False
        assert reopened(place).init_copy() == {"registry": document["registry"], "changed": False}
        original = reopened(workspace)
        assert original.sessions.get("one").row["conversations"] != []
        assert original.jobs.status(job)["status"] == "pending"
        original.jobs.event(job, "completed")
        assert original._access.context.root_id != fleet._access.context.root_id

    def test_a_live_session_of_the_original_is_not_touched(
        self, fleet, workspace, tmp_path, reopened
    ) -> None:
        session = fleet.sessions.create("practice", name="one", args=QUICK)
        place = tmp_path / "demo" / "copy"
        copy_root(workspace, place)
        copied = reopened(place)
        copied.init_copy()
        copied.sessions.stop("one", force=True)
        copied.sessions.forget("one")
        assert fleet.sessions.ls()["sessions"][0]["tmux_alive"] is True
        assert session.send("still there", timeout=20)["state"] == "submitted"

    def test_what_looks_says_the_same_of_a_copy_and_points_only_to_its_own_way(
        self, fleet, workspace, tmp_path, reopened
    ) -> None:
        fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello").wait("idle")
        place = tmp_path / "demo" / "copy"
        copy_root(workspace, place)
        copied = reopened(place)
        (listed,) = copied.sessions.ls()["sessions"]
        status = copied.sessions.status("one")
        for document in (listed, status):
            assert (document["tmux_alive"], document["activity"], document["drift"]) == (False, "exited", "A")
        for look in (copied.sessions.drill, lambda: copied.sessions.drill(run=True)):
            with pytest.raises(RootCopy) as refused:
                look()
            assert "mam init --copy" in str(refused.value.hint)
        problems = [entry for entry in copied.monitor.doctor() if entry["ok"] is not True]
        assert [(entry["check"], entry["mend"]) for entry in problems] == [("root", refused.value.hint)]
        (listed,) = fleet.sessions.ls()["sessions"]
        assert (listed["tmux_alive"], listed["drift"]) == (True, "-")

    def test_elsewhere_it_is_refused_with_the_way_that_fits(self, foreign, reopened) -> None:
        with pytest.raises(RootForeign, match="mam init --copy does not help here") as refused:
            reopened().init_copy()
        assert "mam init --trust" in refused.value.hint


class TestTakeOver:
    @pytest.fixture
    def elsewhere(self, home, workspace):
        """A root that another machine changes; `age` tells when it did last."""
        plain_fleet(workspace)
        return lambda age: set_place(workspace, Place("m", "boat", 1, my_place_now(age)))

    def test_while_it_is_in_use_it_is_refused_with_the_age(self, elsewhere, reopened) -> None:
        elsewhere(300)
        fleet = reopened()
        with pytest.raises(
            RootElsewhere, match=r"was changed from boat 5m ago, and may be in use"
        ) as refused:
            fleet.init_take_over()
        assert "after ten minutes" in refused.value.hint
        with pytest.raises(RootElsewhere):
            fleet.sessions.forget("one")

    def test_after_ten_silent_minutes_it_is_taken(self, elsewhere, reopened, workspace) -> None:
        connection = sqlite3.connect(database_of(workspace))
        owner = json.dumps({"pid": os.getpid(), "start": 1, "boot": "theirs"})
        connection.execute(
            "INSERT INTO intents VALUES('s_1f00ab42', 'one', 'forget', ?, 1.0, '{}')", (owner,)
        )
        connection.execute("UPDATE messages SET state='typing', owner=?", (owner,))
        connection.commit()
        connection.close()
        elsewhere(700)
        fleet = reopened()
        document = fleet.init_take_over()
        assert (document["changed"], document["former"]["host"]) == (True, "boat")
        context = fleet._access.context
        assert [intent.owner for intent in context.registry.view().intents] == [{}]
        assert context.registry.peek(messages.open_of, [])[0].owner is None
        fleet = reopened()
        fleet.sessions.forget("one")
        assert "mam init --take-over" in [entry["reason"] for entry in fleet.sessions.log()]
        assert fleet.init_take_over()["changed"] is False

    def test_a_place_that_came_back_meanwhile_is_not_overrun(self, elsewhere, reopened, monkeypatch) -> None:
        elsewhere(700)
        fleet = reopened()
        assert fleet._access.context.root.refusal() is not None
        check = init_take_over.refuse_if_in_use

        def look_then_change(context, place):
            check(context, place)
            monkeypatch.setattr(init_take_over, "refuse_if_in_use", check)
            elsewhere(1)

        monkeypatch.setattr(init_take_over, "refuse_if_in_use", look_then_change)
        with pytest.raises(RootElsewhere, match="boat"):
            fleet.init_take_over()


class TestNew:
    def test_a_lost_state_begins_anew(self, home, tmux_server, workspace, reopened) -> None:
        plain_fleet(workspace)
        with mam.open(str(workspace)) as former:
            old = former._access.context.root_id
        shutil.rmtree(workspace / ".mam")
        shutil.rmtree(workspace / ".hermes")
        fleet = reopened()
        with pytest.raises(RootMissing):
            fleet.sessions.create("practice", name="two")
        document = fleet.init_new()
        assert (document["changed"], document["panes"]) == (True, [])
        fleet = reopened()
        assert fleet.sessions.names() == []
        assert fleet._access.context.root_id not in (None, old)
        assert fleet.init_new() == {"registry": fleet.registry_file, "changed": False}

    def test_what_the_registry_file_has_comes_back(self, home, tmux_server, workspace, reopened) -> None:
        plain_fleet(workspace)
        shutil.rmtree(workspace / ".mam")
        fleet = reopened()
        fleet.init_new()
        assert fleet.sessions.names() == ["one"]

    def test_d3_live_agents_are_named_and_taken_back(self, fleet, workspace, reopened) -> None:
        """`git clean -fdx` takes database and file, and the agent lives."""
        session = fleet.sessions.create("practice", name="one", args=QUICK)
        before = session.row["id"]
        fleet.close()
        shutil.rmtree(workspace / ".mam")
        shutil.rmtree(workspace / ".hermes")
        again = reopened()
        (pane,) = again.init_new()["panes"]
        assert (pane["tmux_session"], pane["session_id"]) == ("one", before)
        again.sessions.adopt("one", agent="practice")
        (row,) = again.sessions.ls()["sessions"]
        assert (row["id"], row["tmux_alive"]) == (before, True)
        again.sessions.stop("one")

    def test_an_adopted_agent_is_not_in_its_own_way(self, fleet, workspace, reopened, hands_on) -> None:
        """Its lease is of the lost root, and its process is that of the session itself."""
        fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello").wait("idle")
        fleet.close()
        for folder in (".mam", ".hermes"):
            shutil.rmtree(workspace / folder)
        again = reopened()
        again.init_new()
        again.sessions.adopt("one", agent="practice")
        assert again.sessions.drill()["ok"] == 1
        one = again.sessions.get("one")
        one.send("again")
        one.wait("idle")
        again.monitor.once()
        assert again.sessions.drill()["results"][0]["reasons"] == []
        conversation = again.sessions.get("one").row["practice_session_id_own"]
        assert again.sessions.restart("one").session.row["practice_session_id_own"] == conversation
        again.sessions.stop("one", purge_conversation=True)

    def test_a_row_that_came_from_another_root_holds_nothing(self, fleet, tmp_path, reopened) -> None:
        """It names the process of the original as its own."""
        session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
        session.wait("idle")
        row = session.row
        place = tmp_path / "other-root"
        place.mkdir()
        other = reopened(place)
        other.init()
        conversation = current_conversation(row)
        with pytest.raises(ConversationBusy):
            conversations.refuse_if_held(other._access.context, row, conversation, runs=True)
        with pytest.raises(ConversationBusy):
            conversations.take_lease(other._access.context, row, conversation, identity_of(row))

    def test_a_pane_of_another_root_is_not_adopted(self, fleet, tmp_path, reopened) -> None:
        fleet.sessions.create("practice", name="one", args=QUICK)
        other = tmp_path / "other-root"
        other.mkdir()
        stranger = reopened(other)
        stranger.init()
        with pytest.raises(NotAllowed, match="is a session of"):
            stranger.sessions.adopt("one", agent="practice")
        fleet.sessions.stop("one")

    def test_where_nothing_was_it_is_a_plain_init(self, fleet) -> None:
        assert fleet.init_new()["changed"] is True


@pytest.mark.parametrize(
    ("way", "command"),
    [
        (init_trust.trust, "--trust"),
        (init_trust.make_own, "--copy"),
        (init_take_over.take_over, "--take-over"),
        (init_new.begin_anew, "--new"),
    ],
)
def test_the_ways_are_for_people(fleet, way, command) -> None:
    for caller in (callers.session("s_1f00ab42"), callers.Caller(callers.CallerKind.UNKNOWN, 1)):
        with pytest.raises(NotAllowed, match=f"'mam init {command}'"):
            way(fleet._access.context, caller)
    assert not fleet.exists
