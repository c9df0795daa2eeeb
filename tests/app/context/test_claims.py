"""Two verbs on one session at the same time, and verbs that fail half way."""

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from tests.app.copied_root import copy_root

import mam
from mam.adapters.store.user_state import Lease
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.app.context import claims
from mam.app.sessions import rename as renames
from mam.core.errors import (
    ConversationBusy,
    DiskFull,
    NameTaken,
    NotAllowed,
    Refused,
    RegistryBusy,
    RootCopy,
)

QUICK = ["--speed", "0"]


def test_a_verb_never_ends_the_intent_of_the_next_one(fleet) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    with claims.claim_session(fleet._access.context, "stop", session.id, lambda transaction, row: {}):
        # A verb ends its claim in its last commit, and then the next verb claims the session.
        fleet._access.context.registry.note(lambda transaction: transaction.intents.end(session.id))
        later = claims.new_intent(session.id, session.name, "rename", 1.0, {})
        fleet._access.context.registry.note(lambda transaction: transaction.intents.put(later))
    assert [intent.verb for intent in fleet._access.context.registry.view().intents] == ["rename"]


@pytest.mark.parametrize("method", ["peek", "note"])
def test_a_full_disk_neither_hides_the_failure_of_a_verb_nor_keeps_its_claim(
    fleet, monkeypatch, method
) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    context = fleet._access.context

    def full(*_arguments, **_options):
        raise DiskFull("no space left")

    with (
        monkeypatch.context() as patch,
        pytest.raises(KeyboardInterrupt),
        claims.claim_session(context, "stop", session.id, lambda transaction, row: {}),
    ):
        patch.setattr(context.registry, method, full)
        raise KeyboardInterrupt
    (intent,) = context.registry.view().intents
    assert not claims.is_owned(intent)


def test_a_claim_whose_release_the_disk_refused_is_free_for_other_processes_soon(
    fleet, monkeypatch, until
) -> None:
    """A program that stays idle after a full disk kept the session from everybody for as long as it lived."""
    session = fleet.sessions.create("sleep", args=["1000"])
    context = fleet._access.context

    def full(*_arguments, **_options):
        raise DiskFull("no space left")

    with (
        monkeypatch.context() as patch,
        pytest.raises(DiskFull),
        claims.claim_session(context, "rename", session.id, lambda transaction, row: {}),
    ):
        patch.setattr(context.registry, "note", full)
        raise DiskFull("no space left")

    def owners():
        return [intent.owner for intent in context.registry.view().intents]

    assert owners() == [process.me().as_json()]
    until(lambda: owners() == [{}])
    assert fleet.sessions.rename(session.id, "two").name == "two"
    assert owners() == []


def test_a_start_that_is_recorded_is_not_taken_back(fleet) -> None:
    from mam.adapters.store.registry import Registry

    fleet.sessions.create("sleep", name="first", args=["1000"])
    real = Registry.project

    def full(self, *rest):
        if any(row["name"] == "second" for row in self.view().rows):
            raise DiskFull("no space left")
        return real(self, *rest)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(DiskFull):
        patch.setattr(Registry, "project", full)
        fleet.sessions.create("sleep", name="second", args=["1000"])
    row = fleet.sessions.get("second").row
    assert row["status"] == "running"
    assert process.identify(row["pane"]["pid"]) is not None
    fleet.sessions.create("sleep", name="third", args=["1000"])
    assert fleet._access.context.registry.view().intents == []


def test_a_copy_of_a_root_does_not_command_the_originals_panes(fleet, workspace, tmp_path) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    copy = tmp_path / "copy"
    copy_root(workspace, copy)
    with mam.open(str(copy)) as other, pytest.raises(RootCopy):
        other.sessions.stop(session.name)
    assert process.identify(session.row["pane"]["pid"]) is not None
    assert session.status()["tmux_alive"] is True


def test_a_root_that_moved_keeps_its_sessions(fleet, workspace, tmp_path) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    fleet.close()
    moved = tmp_path / "moved"
    workspace.rename(moved)
    workspace.mkdir()
    with mam.open(str(moved)) as other:
        assert other.sessions.status(session.name)["tmux_alive"] is True


@pytest.mark.promise("P16")
def test_another_program_that_started_in_our_pane_is_left_alone(fleet, tmux_server, until) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    pane = session.row["pane"]["id"]
    Tmux(tmux_server)._call(["respawn-pane", "-k", "-t", pane, "sleep", "4321"])
    other_pid = Tmux(tmux_server).pane(pane).pid
    assert session.stop().row["status"] == "stopped"
    assert process.identify(other_pid) is not None
    assert Tmux(tmux_server).pane(pane).mark == ""


def test_a_session_whose_pane_another_program_took_can_still_be_resumed(fleet, tmux_server) -> None:
    session = fleet.sessions.create("practice", name="ours", args=["--speed", "0"], prompt="hello")
    pane = session.row["pane"]["id"]
    Tmux(tmux_server)._call(["respawn-pane", "-k", "-t", pane, "sleep", "4321"])
    with pytest.raises(NameTaken, match="not ours") as refused:
        session.resume()
    assert "mam rename ours ours-2" in (refused.value.hint or "")
    assert (refused.value.hint or "").endswith("mam adopt ours --agent sleep --session ours-2")
    assert session.status()["status"] == "terminated"
    theirs = fleet.sessions.adopt("ours", agent="sleep", name="theirs")
    assert theirs.status()["tmux_alive"] is True
    assert session.resume().status()["activity"] == "idle"


def test_what_a_dead_agent_left_running_ends_with_its_stop(fleet, workspace, until) -> None:
    script = workspace / "parent.sh"
    script.write_text("nohup sleep 1002 >/dev/null 2>&1 & echo $! > child; wait\n", encoding="utf-8")
    session = fleet.sessions.create("sh", args=[str(script)])
    child = int(
        until(lambda: (workspace / "child").exists() and (workspace / "child").read_text(encoding="utf-8"))
    )
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: process.identify(session.row["pane"]["pid"]) is None)
    session.stop()
    assert process.identify(child) is None


def test_a_conversation_that_is_open_elsewhere_is_not_purged(fleet, tmp_path) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    own = session.row["practice_session_id_own"]
    session.stop()
    other_root = tmp_path / "other"
    other_root.mkdir()
    with mam.open(str(other_root)) as other:
        sharer = other.sessions.create("practice", name="sharer", args=QUICK)
        sharer.stop()
        other._access.context.registry.change(
            lambda transaction: transaction.put(
                {**transaction.get(sharer.id), "practice_session_id_own": own}
            )
        )
        other.sessions.resume("sharer")
        with pytest.raises(ConversationBusy):
            session.stop(purge_conversation=True)
        assert other.sessions.status("sharer")["resume"]["on_disk"] is True


def test_an_agent_is_not_ended_for_a_purge_that_is_refused(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    lease = Lease("/elsewhere", "s_00000000", process.me().as_json(), "another root")
    fleet._access.context.user_state.take(
        "practice", session.row["conversations"][-1]["id"], lease, lambda holder: False
    )
    with pytest.raises(ConversationBusy):
        session.stop(purge_conversation=True)
    assert session.status()["tmux_alive"] is True
    assert fleet._access.context.registry.view().intents == []


def test_two_who_adopt_one_pane(fleet, tmux_server) -> None:
    Tmux(tmux_server)
    fleet.sessions.create("sleep", name="keeps-the-server", args=["1000"])
    Tmux(tmux_server)._call(["new-session", "-d", "-s", "foreign", "sleep", "1000"])
    outcomes: list[str] = []

    def adopt(name: str) -> None:
        own_fleet = fleet.for_thread()
        try:
            own_fleet.sessions.adopt("foreign", agent="sleep", name=name)
            outcomes.append("adopted")
        except (NotAllowed, Refused, mam.MamError):
            outcomes.append("refused")
        finally:
            own_fleet.close()

    threads = [threading.Thread(target=adopt, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("adopted") <= 1
    marks = [pane.mark for pane in Tmux(tmux_server).panes().panes]
    assert len(marks) == len(set(marks))


@pytest.mark.parametrize("name", ["spool", "launch"])
def test_a_link_in_the_state_is_refused_and_nothing_behind_it_is_touched(fleet, tmp_path, name) -> None:
    fleet.sessions.create("sleep", args=["1000"])
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "package.json").write_text("{}", encoding="utf-8")
    folder = Path(fleet._access.context.paths.state) / name
    shutil.rmtree(folder)
    folder.symlink_to(precious)
    with mam.open(fleet.root) as again, pytest.raises(NotAllowed, match="symbolic link"):
        again.sessions.ls()
    assert (precious / "package.json").exists()


def test_ls_sees_that_a_dialog_was_dismissed(fleet, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    Tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], "/ask touch x", mark=session.id, enter=True
    )
    session.wait("waiting", timeout=10)
    Tmux(session.row["tmux_server"]).keys(session.row["pane"]["id"], ["Escape"], mark=session.id)
    until(lambda: fleet.sessions.ls(waiting=True)["sessions"] == [])


def test_a_fork_that_was_never_spoken_to_keeps_its_history(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="the word is walrus")
    session.wait("idle", timeout=10)
    fork = session.fork(name="fork")
    fork.stop()
    resumed = fleet.sessions.resume("fork")
    assert resumed.note is None
    fleet.sessions.wait("fork", "text:walrus", timeout=10)


def test_a_program_without_a_kind_is_started_anew_and_says_so(fleet) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    session.stop()
    assert "new conversation" in (fleet.sessions.resume(session.name).note or "")


@pytest.mark.parametrize("late", ["rename", "create"])
def test_a_name_that_a_rename_gives_is_taken_until_it_is_done(fleet, workspace, monkeypatch, late) -> None:
    """It stands in no row yet while tmux is asked, and another verb wants it in this very moment."""
    one, other = (fleet.sessions.create("sleep", name=name, args=["1000"]) for name in ("one", "other"))
    ask_tmux = renames._check

    def want_it_too(*given):
        monkeypatch.setattr(renames, "_check", ask_tmux)
        monkeypatch.setattr(claims, "WAIT_SECONDS", 0.0)
        with mam.open(str(workspace)) as second, pytest.raises((NameTaken, RegistryBusy), match="new"):
            if late == "rename":
                second.sessions.rename(other.id, "new")
            else:
                second.sessions.create("sleep", name="new", args=["1000"])
        ask_tmux(*given)

    monkeypatch.setattr(renames, "_check", want_it_too)
    assert fleet.sessions.rename(one.id, "new").id == one.id
    assert sorted(fleet.sessions.names()) == ["new", "other"]
