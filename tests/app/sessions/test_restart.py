"""Restart: what would keep a session from being started again is found before it is stopped."""

import pytest

from mam.app.sessions import launch
from mam.core.errors import IllegalTransition, InvalidPath, InvalidSettings

QUICK = ["--speed", "0"]


@pytest.fixture
def session(fleet, workspace):
    """A session with a conversation, in a workspace of its own."""
    (workspace / "api").mkdir()
    context = fleet._access.context
    fleet._access.context = context.replace(workspace=str(workspace / "api"))
    one = fleet.sessions.create("practice", name="one", args=QUICK, prompt="hello")
    one.wait("idle", timeout=10)
    return one


def lose_workspace(fleet, home, workspace):
    """Move the workspace away."""
    (workspace / "api").rename(workspace / "web")


def mistype_setting(fleet, home, workspace):
    """Put a mistake into the settings, as the next command reads them."""
    (home / ".config/mam/config.toml").write_text('resident = "off"\nkeep_lgo = "2w"\n', encoding="utf-8")
    context = fleet._access.context
    fleet._access.context = context.replace(settings_environ=dict(context.environ))


def lose_conversation(fleet, home, workspace):
    """Delete the record of the conversation."""
    for file in (home / ".local/share/mam-practice").glob("*.jsonl"):
        file.unlink()


@pytest.mark.parametrize(
    ("harm", "error"),
    [
        (lose_workspace, InvalidPath),
        (mistype_setting, InvalidSettings),
        (lose_conversation, IllegalTransition),
    ],
)
def test_what_prevents_the_start_is_found_before_the_stop(
    session, fleet, home, workspace, harm, error
) -> None:
    harm(fleet, home, workspace)
    with pytest.raises(error) as caught:
        fleet.sessions.restart("one")
    assert "stopped" not in caught.value.message
    now = fleet.sessions.get("one")
    assert (now.row["status"], now.row["pane"]) == ("running", session.row["pane"])
    assert now.status()["tmux_alive"] is True
    assert all(entry["verb"] != "stop" for entry in fleet.sessions.log("one"))


def test_a_start_that_fails_after_the_stop_says_that_the_session_is_stopped(
    session, fleet, monkeypatch
) -> None:
    def refuse(*_arguments, **_options):
        raise InvalidSettings("a file was changed just now", hint="mend it")

    monkeypatch.setattr(launch, "launch_agent", refuse)
    with pytest.raises(
        InvalidSettings, match=r"^'one' is stopped, and could not be started again: a file"
    ) as caught:
        fleet.sessions.restart("one")
    assert (caught.value.hint, caught.value.exit_code) == (
        "mend it; when that is mended: mam resume one",
        1,
    )
    assert fleet.sessions.get("one").row["status"] == "stopped"
    monkeypatch.undo()


def test_a_session_that_had_ended_is_not_said_to_be_stopped(session, fleet, workspace) -> None:
    session.stop()
    lose_workspace(fleet, None, workspace)
    with pytest.raises(InvalidPath, match=r"^the workspace"):
        fleet.sessions.restart("one")
