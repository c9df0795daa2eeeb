"""Mam's own MCP tools for a session: which verbs attach them, and that the row shows it."""

import pytest

from mam.adapters.agents.practice import Practice
from mam.core.errors import Refused

QUICK = ["--speed", "0"]


@pytest.fixture
def mcp_allowed(monkeypatch):
    """Let the practice agent accept MCP servers, although it does not use them."""
    monkeypatch.setattr(Practice, "takes_mcp", True)


def attached(fleet, name):
    return fleet.sessions.get(name).row["pane"]["mcp_attachments"]


def test_the_row_shows_the_tools_and_a_resume_attaches_them_again(fleet, mcp_allowed) -> None:
    session = fleet.sessions.create("practice", name="one", args=QUICK, mcp=True)
    assert attached(fleet, "one") == ["mam"]
    session.send("hello", timeout=20)
    session.wait("idle", timeout=30)
    session.stop()
    session.resume()
    assert attached(fleet, "one") == ["mam"]
    assert fleet.sessions.fork("one", name="two").row["pane"]["mcp_attachments"] == ["mam"]
    # A new start has only the tools that this launch asks for.
    fleet.sessions.stop("one")
    fleet.sessions.create(name="one")
    assert attached(fleet, "one") == []


def test_spawn_team_and_job_attach_them_too(fleet, mcp_allowed) -> None:
    fleet.init()
    member = fleet.teams.spawn("dev", agent="practice", args=QUICK, mcp=True)
    assert attached(fleet, member["session"]["name"]) == ["mam"]
    fleet.teams.down(force=True)
    team = fleet.teams.up("solo-dev", agent="practice", args=QUICK, mcp=True)
    assert [attached(fleet, document["session"]["name"]) for document in team["members"]] == [["mam"]]
    job = fleet.jobs.submit("count the stars", agent="practice", args=QUICK, mcp=True)
    name = job["agent_session"].removeprefix("tmux:")
    assert attached(fleet, name) == ["mam"]


def test_a_kind_without_mcp_is_refused_before_anything_starts(fleet) -> None:
    with pytest.raises(Refused, match="MCP"):
        fleet.sessions.create("practice", name="one", mcp=True)
    assert fleet.sessions.names() == []
