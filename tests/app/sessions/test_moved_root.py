"""A moved root: the rows name the former folder, and a link there makes every conversation come back."""

import shutil
import subprocess
from pathlib import Path

import pytest

import mam
from mam.adapters.system import process
from mam.core.errors import InvalidPath

QUICK = ["--speed", "0"]


@pytest.fixture
def moved(fleet, workspace):
    """Two sessions that run, one in a folder below; the root is moved, and opened at its new path."""
    (workspace / "api").mkdir()
    for name, folder in (("one", workspace), ("api", workspace / "api"), ("off", workspace)):
        context = fleet._access.context
        fleet._access.context = context.replace(workspace=str(folder))
        fleet.sessions.create("practice", name=name, args=QUICK, prompt="hello").wait("idle", timeout=10)
    fleet.sessions.stop("off")
    fleet.close()
    place = workspace.with_name("new app")
    workspace.rename(place)
    with mam.open(str(place)) as opened:
        yield opened


def link_command(moved, workspace):
    return f"ln -s '{moved.root}' {workspace}"


@pytest.mark.parametrize("is_changed_first", [False, True])
def test_the_error_names_the_link_that_brings_the_sessions_back(moved, workspace, is_changed_first) -> None:
    if is_changed_first:
        # From then on the user state knows the root at its new path alone.
        moved.init()
        moved.close()
    with mam.open(moved.root) as fleet:
        for verb in (fleet.sessions.restart, fleet.sessions.fork):
            with pytest.raises(InvalidPath) as caught:
                verb("api")
            assert f"was moved from {workspace} to {fleet.root}" in caught.value.message
            assert caught.value.hint == f"let the former path lead here: {link_command(fleet, workspace)}"
        drill = fleet.sessions.drill()
        assert drill["failed"] == 3
        subprocess.run(link_command(fleet, workspace), shell=True, check=True)
        drill = fleet.sessions.drill()
        assert (drill["failed"], drill["ok"]) == (0, 3)
        assert fleet.sessions.resume("off").changed
        assert fleet.sessions.restart("api").changed


def test_doctor_names_each_session_and_advises_to_forget_none(moved, workspace) -> None:
    found = {entry["check"]: entry for entry in moved.monitor.doctor()}
    for name in ("one", "api", "off"):
        assert "is gone" in found[f"session {name}"]["message"]
        assert found[f"session {name}"]["mend"].endswith(link_command(moved, workspace))


def stands_at_the_former_path(workspace, what: str) -> None:
    if what == "a link":
        other = workspace.with_name("other")
        (other / "api").mkdir(parents=True)
        workspace.symlink_to(other)
    else:
        (workspace / "api").mkdir(parents=True)


@pytest.mark.parametrize("what", ["a directory", "a link"])
def test_no_agent_comes_back_in_another_directory_that_has_the_former_path(moved, workspace, what) -> None:
    stands_at_the_former_path(workspace, what)
    command = f"mv {workspace} {workspace}.aside && {link_command(moved, workspace)}"
    for verb, name in (("restart", "api"), ("fork", "api"), ("resume", "off")):
        with pytest.raises(InvalidPath) as caught:
            getattr(moved.sessions, verb)(name)
        assert f"is another directory now: this root was moved from {workspace}" in caught.value.message
        assert str(caught.value.hint).endswith(f": {command}")
    drill = moved.sessions.drill()
    assert [one["reasons"][0]["check"] for one in drill["results"]] == ["workspace"] * 3
    found = {entry["check"]: entry for entry in moved.monitor.doctor()}
    for name in ("one", "api", "off"):
        assert "is another directory now" in found[f"session {name}"]["message"]
        assert found[f"session {name}"]["mend"].endswith(command)
    subprocess.run(command, shell=True, check=True)
    assert moved.sessions.drill()["ok"] == 3
    row = moved.sessions.resume("off").session.row
    assert process.working_directory(row["pane"]["pid"]) == moved.root


def test_a_link_that_leads_nowhere_is_moved_away(moved, workspace) -> None:
    workspace.symlink_to(workspace.with_name("gone"))
    with pytest.raises(InvalidPath) as caught:
        moved.sessions.restart("api")
    subprocess.run(str(caught.value.hint).partition(": ")[2], shell=True, check=True)
    assert moved.sessions.restart("api").changed


def test_workspaces_stay_where_only_the_state_was_moved(fleet, workspace) -> None:
    fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello").wait("idle", timeout=10)
    fleet.sessions.stop("one")
    fleet.close()
    place = workspace / "below"
    place.mkdir()
    for folder in (".mam", ".hermes"):
        (workspace / folder).rename(place / folder)
    with mam.open(str(place)) as moved:
        row = moved.sessions.resume("one").session.row
        assert process.working_directory(row["pane"]["pid"]) == str(workspace)


def test_a_link_goes_below_what_stands_at_the_former_path(moved, workspace) -> None:
    workspace.mkdir()
    (workspace / "README").touch()
    with pytest.raises(InvalidPath) as caught:
        moved.sessions.restart("api")
    assert str(caught.value.hint).endswith(f"ln -s '{moved.root}/api' {workspace}/api")


def test_a_folder_above_that_is_gone_as_well_is_made_first(fleet, workspace, tmp_path) -> None:
    fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello").wait("idle", timeout=10)
    fleet.sessions.stop("one")
    fleet.close()
    workspace.rename(tmp_path / "app")
    workspace.parent.rmdir()
    with mam.open(str(tmp_path / "app")) as opened, pytest.raises(InvalidPath) as caught:
        opened.sessions.resume("one")
    assert str(caught.value.hint).endswith(
        f"mkdir -p {workspace.parent} && ln -s {tmp_path / 'app'} {workspace}"
    )


def test_a_workspace_that_the_root_does_not_have_is_only_gone(fleet, workspace) -> None:
    (workspace / "api").mkdir()
    context = fleet._access.context
    fleet._access.context = context.replace(workspace=str(workspace / "api"))
    for name in ("one", "two"):
        fleet.sessions.create("practice", name=name, args=QUICK, prompt="hello").wait("idle", timeout=10)
    fleet.sessions.stop("two")
    (workspace / "api").rmdir()
    with pytest.raises(InvalidPath) as caught:
        fleet.sessions.resume("two")
    assert "moved" not in caught.value.message
    mends = {entry["check"]: entry["mend"] for entry in fleet.monitor.doctor() if entry["ok"] is False}
    assert "forget" not in mends["session one"]
    assert "mam forget two" in mends["session two"]


def test_a_restored_root_knows_where_it_has_been(moved, workspace) -> None:
    moved.init()
    moved.monitor.backup()
    for name in ("one", "api"):
        moved.sessions.stop(name, force=True)
    moved.close()
    shutil.rmtree(Path(moved.root) / ".mam")
    stands_at_the_former_path(workspace, "a directory")
    with mam.open(moved.root) as restored:
        restored.restore()
        with pytest.raises(InvalidPath, match="is another directory now"):
            restored.sessions.resume("off")
