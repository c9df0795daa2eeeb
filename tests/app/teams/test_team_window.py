"""The window of a team: BMAD_SESSION_ID names the team, and its session folder holds the team page."""

from __future__ import annotations

import pytest
from tests.app.team_desk import QUICK

from mam.core import caller as callers
from mam.core.errors import InvalidName, NotAllowed, NotReady, Refused

ID = "2026-11-18-login-fix-ab12"
OTHER = "2026-11-18-other-work-cd34"
PLACE = f"_bmad-output/sessions/{ID}/agent-sessions.md"


@pytest.fixture
def document_session(master):
    """The fleet of a caller whose environment names a session of the documents."""
    master._access.context.environ["BMAD_SESSION_ID"] = ID
    return master


def spawn(fleet, role="dev", **more):
    return fleet.teams.spawn(role, agent="practice", args=QUICK, **more)


def test_s003_19_the_variable_names_the_team_and_the_place_of_its_page(document_session, workspace):
    document = spawn(document_session, task="write it")
    assert document["team"] == ID
    assert document["session_file"] == str(workspace / PLACE)
    text = (workspace / PLACE).read_text(encoding="utf-8")
    assert text.startswith(f"# Agent Sessions — {ID}\n")
    assert "| dev |" in text and "### TASK-001 · in-progress" in text
    assert not list((workspace / ".hermes").glob("*.md")), "there is one page"
    document_session.teams.close("dev", force=True)
    assert "| dev | closed |" in (workspace / PLACE).read_text(encoding="utf-8")
    assert document_session.teams.list()["teams"][0]["session_file"] == str(workspace / PLACE)


def test_s003_19_who_does_not_have_the_variable_writes_the_same_page(document_session, workspace):
    """The resident has its own environment."""
    spawn(document_session)
    del document_session._access.context.environ["BMAD_SESSION_ID"]
    document_session.tasks.add("look at it", role="qa")
    assert "look at it" in (workspace / PLACE).read_text(encoding="utf-8")
    assert not list((workspace / ".hermes").glob("*.md"))


def test_s003_19_an_agent_in_another_window_joins_the_team_of_its_variable(document_session, desk):
    spawn(document_session)
    desk.raw("new-window", "-d", "-t", "desk", "cat")
    pane = desk.raw("list-panes", "-a", "-F", "#{pane_id} #{pane_current_command}").split()[-2]
    with desk.fleet(pane) as inside:
        inside._access.context.environ["BMAD_SESSION_ID"] = ID
        document = inside.teams.register("qa", agent="cat")
    assert document["team"] == ID
    assert [team["id"] for team in document_session.teams.list()["teams"]] == [ID]


def test_s003_19_a_member_stays_in_its_own_team(document_session):
    first = spawn(document_session)
    document_session._access._caller = callers.session(first["session"]["id"])
    document_session._access.context.environ["BMAD_SESSION_ID"] = OTHER
    assert spawn(document_session, "qa")["team"] == ID


def test_s003_19_the_team_of_a_variable_is_ended_and_goes_on(document_session, workspace):
    spawn(document_session)
    assert document_session.teams.down()["team"]["id"] == ID
    assert "Ended:" in (workspace / PLACE).read_text(encoding="utf-8")
    assert document_session.teams.down()["changed"] is False
    document = spawn(document_session, "qa")
    assert document["team"] == ID
    text = (workspace / PLACE).read_text(encoding="utf-8")
    assert "Ended:" not in text and "| dev | closed |" in text and "| qa | active |" in text
    assert document_session.teams.down()["closed"] == ["qa"]


def test_s003_19_a_failed_spawn_ends_the_team_again(document_session, workspace):
    spawn(document_session)
    document_session.teams.down()
    with pytest.raises(NotReady):
        document_session.teams.spawn("qa", agent="practice", args=["--no-such-option"])
    assert document_session.teams.list()["teams"] == []
    assert "Ended:" in (workspace / PLACE).read_text(encoding="utf-8")


def test_s003_19_a_failed_spawn_leaves_no_session_folder(document_session, workspace):
    (workspace / "_bmad-output").mkdir()
    with pytest.raises(NotReady):
        document_session.teams.spawn("qa", agent="practice", args=["--no-such-option"])
    assert list((workspace / "_bmad-output").iterdir()) == []


def test_s003_19_a_window_of_another_team_is_not_shared(document_session, desk):
    del document_session._access.context.environ["BMAD_SESSION_ID"]
    first = spawn(document_session)["team"]
    document_session._access.context.environ["BMAD_SESSION_ID"] = ID
    with pytest.raises(Refused, match=f"this window has the team {first}") as caught:
        spawn(document_session, "qa")
    assert "BMAD_SESSION_ID" in caught.value.hint
    assert len(desk.panes()) == 2


@pytest.mark.parametrize("name", ["../../outside", "a/b", ".", "..", "-x", "a b", "x" * 81, "a\nb", "a.b"])
def test_s003_19_a_variable_that_is_no_id_is_refused(document_session, workspace, name):
    document_session._access.context.environ["BMAD_SESSION_ID"] = name
    with pytest.raises(InvalidName, match="BMAD_SESSION_ID") as caught:
        spawn(document_session)
    assert "unset" in caught.value.hint
    assert not (workspace / "_bmad-output").exists() and not (workspace / ".mam").exists()


def test_s003_19_an_empty_variable_names_nothing(document_session):
    document_session._access.context.environ["BMAD_SESSION_ID"] = ""
    assert "-by-hand-" in spawn(document_session)["team"]


def test_s003_19_a_session_file_of_a_person_stays_as_it_is(document_session, workspace):
    place = workspace / PLACE
    place.parent.mkdir(parents=True)
    place.write_text("# Agent Sessions — mine\n\nTrack: small\n", encoding="utf-8")
    warnings = []
    document_session.on_warning(warnings.append)
    document = spawn(document_session)
    assert place.read_text(encoding="utf-8") == "# Agent Sessions — mine\n\nTrack: small\n"
    assert (document["team"], document["session_file"]) == (ID, str(place.with_name("agent-sessions-mam.md")))
    assert "| dev |" in place.with_name("agent-sessions-mam.md").read_text(encoding="utf-8")
    assert any(str(place) in warning for warning in warnings)


@pytest.mark.parametrize("part", ["_bmad-output", "_bmad-output/sessions", f"_bmad-output/sessions/{ID}"])
def test_s003_19_a_link_is_not_followed(document_session, workspace, tmp_path, part):
    outside = tmp_path / "outside"
    (outside / "sessions" / ID).mkdir(parents=True)
    (outside / ID).mkdir()
    (workspace / part).parent.mkdir(parents=True, exist_ok=True)
    (workspace / part).symlink_to(outside)
    with pytest.raises(NotAllowed, match="symbolic link"):
        spawn(document_session)
    assert [path for path in outside.rglob("*") if path.is_file()] == []
    assert document_session.sessions.list() == []
