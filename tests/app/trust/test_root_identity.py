"""Roots that were moved, copied, restored, carried here, or are used from elsewhere: what a person gets.

Nobody who works honestly is locked out, and nothing of somebody else is believed.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.copied_root import copy_root

import mam
from mam.adapters.store.root_paths import RootPaths
from mam.adapters.system import process
from mam.core.errors import (
    NotAllowed,
    RootCopy,
    RootForeign,
    RootMissing,
)

QUICK = ["--speed", "0"]
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and make namespaces")


@pytest.fixture
def ended(fleet):
    """Return a session that has ended, with a conversation on disk."""
    session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
    session.stop()
    fleet.close()
    return session


@pytest.fixture
def another_user_state(tmp_path, monkeypatch):
    """Let mam be used with another user state, as in a container with a home of its own."""
    monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "another-state"))


def state_of(directory) -> str:
    with mam.open(str(directory)) as fleet:
        return fleet.sessions.ls()["root_state"]


def logged(directory) -> list[str]:
    with mam.open(str(directory)) as fleet:
        return [entry["verb"] for entry in fleet.sessions.log()]


def changes(directory) -> None:
    with mam.open(str(directory)) as fleet:
        fleet.sessions.rename("one", "renamed")
        fleet.sessions.rename("renamed", "one")


def test_a_new_root_is_known_after_its_first_change(fleet, workspace) -> None:
    assert state_of(workspace) == "new"
    fleet.init()
    assert state_of(workspace) == "known"
    with sqlite3.connect(fleet._access.context.paths.db) as database:
        (text,) = database.execute("SELECT value FROM meta WHERE key='root_id'").fetchone()
    assert len(json.loads(text)) == 16


def test_honest_a_renamed_and_moved_folder(ended, workspace, tmp_path) -> None:
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    workspace.rename(moved)
    assert state_of(moved) == "known"
    changes(moved)
    assert "moved" in logged(moved)
    assert state_of(moved) == "known"


def test_honest_a_moved_folder_keeps_its_live_agents(fleet, workspace, tmp_path) -> None:
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    fleet.close()
    moved = tmp_path / "moved"
    workspace.rename(moved)
    (workspace / ".mam").mkdir(parents=True)
    with mam.open(str(moved)) as other:
        assert other.sessions.status(session.name)["tmux_alive"] is True
        assert other.sessions.stop("one").session.row["status"] == "stopped"


@is_root
def test_honest_a_bind_mount(ended, workspace, tmp_path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    subprocess.run(["mount", "--bind", workspace, mount], check=True)
    try:
        assert state_of(mount) == "known"
        changes(mount)
        assert state_of(workspace) == "known"
    finally:
        subprocess.run(["umount", mount], check=True)


def test_honest_a_symlinked_folder(ended, workspace, tmp_path) -> None:
    link = tmp_path / "link"
    link.symlink_to(workspace)
    assert state_of(link) == "known"
    changes(link)


def test_honest_a_restored_folder(ended, workspace) -> None:
    """A backup is put back at the same path: another folder with the same id."""
    # The copy exists beside the original, so the file system cannot give it the same inode.
    copy_root(workspace / ".mam", workspace / "backup")
    shutil.rmtree(workspace / ".mam")
    (workspace / "backup").rename(workspace / ".mam")
    assert state_of(workspace) == "known"
    changes(workspace)
    assert "restored" in logged(workspace)


def test_honest_a_git_worktree(ended, workspace, tmp_path) -> None:
    """A worktree has no state of its own: it is a new root, and the first one stays as it is."""
    tree = tmp_path / "tree"
    git = ["git", "-C", str(workspace), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", tree], check=True)
    assert state_of(tree) == "new"
    with mam.open(str(tree)) as fleet:
        fleet.init()
    assert [state_of(tree), state_of(workspace)] == ["known", "known"]


def test_d6_a_copied_folder(ended, workspace, tmp_path) -> None:
    """`cp -a`: the copy is shown, and may not be changed until it has an id of its own."""
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", workspace, copy], check=True)
    assert state_of(copy) == "copy"
    with mam.open(str(copy)) as fleet:
        for verb in (
            lambda: fleet.sessions.resume("one"),
            lambda: fleet.sessions.create("practice", name="two"),
            lambda: fleet.sessions.stop("one"),
            lambda: fleet.messages.send("one", "hello"),
        ):
            with pytest.raises(RootCopy) as refused:
                verb()
            assert refused.value.message == f"{copy} is a copy of {workspace}, which is still there"
            assert "mam init --copy" in refused.value.hint
    changes(workspace)


@pytest.mark.promise("P18")
def test_d6_a_lease_tells_the_original_from_its_copy(fleet, workspace, tmp_path) -> None:
    """The copy has the same session ids; with another root id it may not open the conversation."""
    session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
    context = fleet._access.context
    lease = context.user_state.lease("practice", session.row["conversations"][-1]["id"])
    assert lease.root_id == context.root_id
    copied = type(lease)(str(tmp_path), session.id, {}, "f" * 16)
    assert not lease.is_of(copied)


def test_d6_a_row_without_identity_leaves_the_agent_of_another_root_alone(
    fleet, tmp_path, tmux_server
) -> None:
    session = fleet.sessions.create("sleep", name="demo-app-creator-sleep", args=["1000"])
    other_root = tmp_path / "other"
    (other_root / ".hermes").mkdir(parents=True)
    row = {"name": session.name, "tmux_server": tmux_server, "status": "running", "agent": "sleep"}
    (other_root / ".hermes/agent-sessions.yaml").write_text(
        json.dumps({"tmux_sessions": [row]}), encoding="utf-8"
    )
    with mam.open(str(other_root)) as other:
        other.sessions.stop(session.name)
    assert session.status()["tmux_alive"] is True


def test_d3_a_state_that_is_gone_is_said_first(ended, workspace) -> None:
    """`git clean -fdx` took the folder: nobody makes a new one by accident."""
    shutil.rmtree(workspace / ".mam")
    shutil.rmtree(workspace / ".hermes")
    assert state_of(workspace) == "missing"
    with mam.open(str(workspace)) as fleet, pytest.raises(RootMissing) as refused:
        fleet.sessions.create("practice", name="two", args=QUICK)
    assert refused.value.message.startswith("the state of this root is gone")
    assert "mam init --new" in refused.value.hint
    assert not (workspace / ".mam").exists()


def test_honest_a_devcontainer_with_a_new_home(ended, workspace, another_user_state) -> None:
    assert state_of(workspace) == "foreign"
    with mam.open(str(workspace)) as fleet, pytest.raises(RootForeign) as refused:
        fleet.sessions.resume("one")
    assert "another home" in refused.value.hint and "mam init --trust" in refused.value.hint


def test_a_foreign_root_is_shown_and_nothing_is_written(ended, workspace, another_user_state) -> None:
    before = {path: path.stat().st_mtime_ns for path in workspace.rglob("*")}
    warnings: list[str] = []
    with mam.open(str(workspace)) as fleet:
        fleet.on_warning(warnings.append)
        document = fleet.sessions.ls()
        (entry,) = document["sessions"]
        assert (document["root_state"], entry["name"], entry["tmux_alive"]) == ("foreign", "one", None)
        assert fleet.sessions.status("one")["name"] == "one"
        for verb in (
            lambda: fleet.sessions.stop("one"),
            lambda: fleet.sessions.read("one"),
            lambda: fleet.sessions.transcript("one"),
            lambda: fleet.sessions.wait("one", "idle"),
            lambda: fleet.sessions.explain("one"),
            lambda: fleet.messages.send("one", "hello"),
            lambda: fleet.messages.answer("one", "allow"),
            lambda: fleet.jobs.submit("task", agent="practice"),
            fleet.monitor.once,
        ):
            with pytest.raises(RootForeign):
                verb()
    assert len(warnings) == 1 and "your mam did not make the state" in warnings[0]
    assert {path: path.stat().st_mtime_ns for path in workspace.rglob("*")} == before


def test_a_foreign_root_with_own_panes_can_be_stopped(fleet, workspace, another_user_state) -> None:
    session = fleet.sessions.create("practice", name="one", args=QUICK)
    fleet.close()
    with mam.open(str(workspace)) as other:
        assert other.sessions.ls()["root_state"] == "foreign"
        assert other.sessions.attach("one")["argv"]
        assert other.messages.interrupt("one")["activity"] == "idle"
        outcome = other.sessions.stop("one")
        assert "nothing is recorded" in outcome.note
        with pytest.raises(RootForeign):
            other.sessions.stop("one")
    assert process.identify(session.row["pane"]["pid"]) is None


def test_an_event_by_its_token_is_recorded_in_a_foreign_root(fleet, workspace, another_user_state) -> None:
    from mam.app.jobs import new_job

    context = fleet._access.context
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAM_STATE_HOME", context.user_state.folder)
        job = new_job.record_job(context, fleet.caller, new_job.new_id(), "the task")
    fleet.close()
    records = Path(context.paths.jobs, f"{job.id}.json").read_bytes()
    with mam.open(str(workspace)) as other:
        assert other.jobs.event(job.id, "progress", detail="half")["status"] == "running"
        assert other.jobs.status(job.id)["status"] == "running"
        with pytest.raises(RootForeign):
            other.jobs.cancel(job.id)
    assert Path(context.paths.jobs, f"{job.id}.json").read_bytes() == records


@is_root
def test_honest_a_second_container_on_the_same_folder(ended, workspace) -> None:
    """Another PID namespace, such as a second container: it reads, and says who changes the root."""
    script = (
        "import mam, sys\n"
        "with mam.open(sys.argv[1]) as fleet:\n"
        "    print(fleet.sessions.ls()['root_state'])\n"
        "    try:\n"
        "        fleet.sessions.rename('one', 'two')\n"
        "    except mam.MamError as error:\n"
        "        print(error.code, error.message, '|', error.hint)\n"
    )
    changes(workspace)
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script, str(workspace)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert output[0] == "elsewhere"
    assert output[1].startswith(f"root_elsewhere {workspace} is changed from another container on ")
    assert "mam init --take-over" in output[1]
    changes(workspace)


def test_two_processes_that_make_one_root_agree_on_its_id(workspace, home) -> None:
    script = (
        "import mam, sys\n"
        "with mam.open(sys.argv[1]) as fleet: fleet.init(); print(fleet._access.context.root_id)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, str(workspace)], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    ids = {child.communicate()[0].strip() for child in started}
    assert len(ids) == 1 and len(ids.pop()) == 16
    assert state_of(workspace) == "known"


@pytest.mark.parametrize("is_emptied", [False, True], ids=["deleted", "emptied"])
def test_d3_a_database_that_was_lost_is_said_and_not_made_anew(ended, workspace, fleet, is_emptied) -> None:
    """The registry file has the sessions, and not their messages: a person decides what comes back."""
    context = fleet._access.context
    fleet.close()
    for suffix in ("", "-wal", "-shm"):
        Path(context.paths.db + suffix).unlink(missing_ok=True)
    if is_emptied:
        Path(context.paths.db).touch(mode=0o600)
    assert state_of(workspace) == "missing"
    with mam.open(str(workspace)) as again, pytest.raises(RootMissing, match=r"state\.db was there"):
        again.init()
    with mam.open(str(workspace)) as again:
        assert again.init_new()["changed"] is True
        assert again.sessions.names() == ["one"]
    assert state_of(workspace) == "known"


def test_d3_a_database_that_is_deleted_while_a_change_begins_is_not_made_anew(
    ended, workspace, monkeypatch
) -> None:
    make = RootPaths.make

    def make_and_delete(paths) -> None:
        make(paths)
        for suffix in ("", "-wal", "-shm"):
            Path(paths.db + suffix).unlink(missing_ok=True)

    with mam.open(str(workspace)) as fleet:
        database = Path(fleet._access.context.paths.db)
        monkeypatch.setattr(RootPaths, "make", make_and_delete)
        with pytest.raises(RootMissing):
            fleet.init()
    assert not database.exists()


def test_honest_a_moved_folder_whose_old_path_is_taken_stays_known(ended, workspace, tmp_path) -> None:
    """Something new is made where the root was: by init --new, or by moving another root there."""
    moved, other = tmp_path / "moved", tmp_path / "other"
    workspace.rename(moved)
    workspace.mkdir()
    with mam.open(str(workspace)) as fleet:
        assert fleet.init_new()["changed"] is True
    assert [state_of(workspace), state_of(moved)] == ["known", "known"]
    changes(moved)
    moved.rename(other)
    workspace.rename(moved)
    with mam.open(str(moved)) as fleet:
        fleet.init()
    assert [state_of(moved), state_of(other)] == ["known", "known"]


def test_d3_agents_whose_registry_file_was_left_stay_its_sessions(fleet, workspace) -> None:
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    fleet.close()
    shutil.rmtree(workspace / ".mam")
    with mam.open(str(workspace)) as again:
        again.init_new()
        assert again.sessions.status("one")["tmux_alive"] is True
        assert again.sessions.stop("one").session.row["status"] == "stopped"
    assert process.identify(session.row["pane"]["pid"]) is None


def test_a_foreign_state_that_comes_while_a_root_is_made_is_not_taken(
    ended, workspace, tmp_path, monkeypatch
) -> None:
    """A clone or a sync program may put it there between the look and the change."""
    monkeypatch.setenv("MAM_STATE_HOME", str(tmp_path / "another-state"))
    place = tmp_path / "place"
    place.mkdir()
    with mam.open(str(place)) as fleet:
        registry, check = fleet._access.context.registry, fleet._access.context.root.check

        def check_and_copy() -> None:
            check()
            if not (place / ".mam").exists():
                copy_root(workspace / ".mam", place / ".mam")

        monkeypatch.setattr(registry.root, "check", check_and_copy)
        with pytest.raises(RootForeign):
            registry.ensure_exists()
    assert state_of(place) == "foreign"


def test_d6_a_registry_file_alone_ends_no_process_that_mam_did_not_start(fleet, tmp_path) -> None:
    """A copied file names the process of the original's agent, and a tmux server that is not there."""
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    copy = tmp_path / "copy"
    (copy / ".hermes").mkdir(parents=True)
    row = {**session.row, "tmux_server": "no-such-server"}
    (copy / ".hermes/agent-sessions.yaml").write_text(json.dumps({"tmux_sessions": [row]}), encoding="utf-8")
    with mam.open(str(copy)) as other, pytest.raises(NotAllowed, match="mam has not started it"):
        other.sessions.stop("one")
    assert session.status()["tmux_alive"] is True


def test_d2_a_launch_file_that_is_none_stays(fleet, tmp_path) -> None:
    """Also in a known root: an agent that may edit files can write its database."""
    from mam.adapters.store.intents import Intent

    precious = tmp_path / "precious.launch"
    precious.write_text("mine", encoding="utf-8")
    session = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
    session.stop()
    notes = {"launch_file": str(precious), "choice": ["x", None, None]}
    intent = Intent(session.id, "one", "resume", owner={}, at=1.0, data=notes)
    fleet._access.context.registry.note(lambda transaction: transaction.intents.put(intent))
    fleet.sessions.rename("one", "two")
    assert precious.read_text(encoding="utf-8") == "mine"


def test_d8_a_session_is_no_user_in_another_root(fleet, tmp_path, tmux_server, until) -> None:
    """Its process is an ancestor, whatever variables it has unset."""
    other = tmp_path / "other"
    other.mkdir()
    with mam.open(str(other)) as fleet_of_other:
        fleet_of_other.init()
    said = tmp_path / "said"
    names = ("MAM_SESSION", "MAM_LAUNCH", "MAM_ROOT", "TMUX", "TMUX_PANE")
    unset = " ".join(f"-u {name}" for name in names)
    call = f"env {unset} {sys.executable} -m mam create --agent sleep --session x -- 1000"
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
    script = f"{wait}; cd {other}; {call} > {said}.part 2>&1; mv {said}.part {said}; sleep 1000"
    fleet.sessions.create("sh", name="one", args=["-c", script])
    (tmp_path / "go").touch()
    until(said.exists)
    assert "it runs in a session of another root" in said.read_text(encoding="utf-8")


@pytest.mark.parametrize("loss", ["moved", "emptied"])
def test_d3_a_state_that_goes_between_two_looks_is_gone(
    fleet, workspace, tmp_path, monkeypatch, loss
) -> None:
    """Its database was there when mam looked, and is not when mam opens it."""
    fleet.init()
    with mam.open(str(workspace)) as own:
        identity = own._access.context.root
        connect = identity.connect

        def lose_and_connect():
            if loss == "moved":
                (workspace / ".mam").rename(tmp_path / "away")
            else:
                (workspace / ".mam" / "state.db").write_bytes(b"")
            return connect()

        monkeypatch.setattr(identity, "connect", lose_and_connect)
        assert identity.verdict().state == "missing"
