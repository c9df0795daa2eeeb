"""Mam's own tools for a session: which verbs give them, and that the row shows it."""

import pytest

from mam.adapters.agents.practice import Practice
from mam.core.errors import Refused

QUICK = ["--speed", "0"]


@pytest.fixture
def taking(monkeypatch):
    """Let the practice agent take what it does not use."""
    monkeypatch.setattr(Practice, "takes_mcp", True)


def attached(fleet, name):
    return fleet.sessions.get(name).row["pane"]["mcp_attachments"]


def test_the_row_shows_them_and_a_resume_gives_them_again(fleet, taking) -> None:
    one = fleet.sessions.create("practice", name="one", args=QUICK, mcp=True)
    assert attached(fleet, "one") == ["mam"]
    one.send("hello", timeout=20)
    one.wait("idle", timeout=30)
    one.stop()
    one.resume()
    assert attached(fleet, "one") == ["mam"]
    assert fleet.sessions.fork("one", name="two").row["pane"]["mcp_attachments"] == ["mam"]
    # Begun anew it has what this launch asks for.
    fleet.sessions.stop("one")
    fleet.sessions.create(name="one")
    assert attached(fleet, "one") == []


def test_spawn_team_and_job_give_them_too(fleet, taking) -> None:
    fleet.init()
    member = fleet.teams.spawn("dev", agent="practice", args=QUICK, mcp=True)
    assert attached(fleet, member["session"]["name"]) == ["mam"]
    fleet.teams.down(force=True)
    up = fleet.teams.up("solo-dev", agent="practice", args=QUICK, mcp=True)
    assert [attached(fleet, one["session"]["name"]) for one in up["members"]] == [["mam"]]
    job = fleet.jobs.submit("count the stars", agent="practice", args=QUICK, mcp=True)
    name = job["agent_session"].removeprefix("tmux:")
    assert attached(fleet, name) == ["mam"]


def test_a_kind_that_takes_none_is_refused_before_anything_is_started(fleet) -> None:
    with pytest.raises(Refused, match="MCP"):
        fleet.sessions.create("practice", name="one", mcp=True)
    assert fleet.sessions.names() == []
