"""A moved root: the rows name the former folder, and a link there makes every conversation come back."""

import subprocess

import pytest

import mam
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
