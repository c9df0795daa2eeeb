"""The tools for broadcasts, jobs and panes, and the guarded tools."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.surfaces.mcp.client import Client

from mam.app.api.agent_tools import Agents
from mam.app.api.sessions import Sessions
from mam.core import caller as callers
from mam.core.errors import NeedsConfirmation, StopUnconfirmed
from mam.surfaces.mcp.tools.agents import stop_agent
from mam.surfaces.mcp.tools.guarded import kill
from mam.surfaces.mcp.tools.messages import send_to


def code(answer):
    return answer.get("error", {}).get("code")


@pytest.fixture
def trusted(fleet, workspace, resident):
    """A client of the operator with every guarded tool."""
    fleet.init()
    with Client(workspace, "--allow", "answer_prompt", "--allow", "purge", "--allow", "kill") as client:
        client.greet()
        yield client


def test_words_to_many_and_an_interrupt(client, fleet, until) -> None:
    for name, role in (("one", "dev"), ("two", "dev"), ("three", "qa")):
        client.call("spawn_agent", cli="practice", name=name, role=role)
    sent = client.call("broadcast", text="hello to you", role="dev", exclude=["two"])
    assert [receipt["agent_id"] for receipt in sent["receipts"]] == ["one"]
    fleet.messages.send("two", "/slow 600", command=True)
    until(lambda: client.call("get_agent_state", agent_id="two")["state"] == "working")
    result = client.call("interact", agent="two", action="interrupt")
    assert (result["applied"], result["activity"]) == ("interrupt", "idle")
    assert code(client.call("interact", agent="two", action="model", model="other")) == "refused"
    assert code(client.call("interact", agent="two", action="model", model="a b")) == "usage"
    sent_alone = client.call("interact", agent="three", action="send", text="hello there")
    assert (sent_alone["applied"], sent_alone["agent_id"]) == ("send", "three")


def test_a_job_is_submitted_awaited_and_told_of(client, fleet) -> None:
    job = client.call("submit_job", prompt="count the stars", cli="practice")
    assert job["status"] in ("pending", "running"), job
    outcome = client.call("job_event", job_id=job["job_id"], event="completed", detail="seven")
    assert (outcome["job_id"], outcome["status"]) == (job["job_id"], "completed")
    waited = client.call("wait_for", job_id=job["job_id"], timeout_ms=60_000)
    assert (waited["matched"], waited["job"]["status"]) == (True, "completed")
    assert client.call("job_status", job_id=job["job_id"])["status"] == "completed"
    events = client.ask("resources/read", uri=f"mam://jobs/{job['job_id']}/events")["result"]["contents"]
    assert "seven" in events[0]["text"]
    assert code(client.call("job_status", job_id="00000000")) == "job_not_found"
    waiting = client.call("submit_job", prompt="wait a while", cli="human")
    late = client.call("wait_for", job_id=waiting["job_id"], timeout_ms=100)
    assert (late["matched"], late["timed_out"]) == (False, True)


def test_a_session_splits_its_window_and_closes_what_it_opened(fleet, inside) -> None:
    lead = inside("lead", role="lead")
    member = lead.call("new_split", role="dev", cli="practice", title="helper", task="count the stars")
    assert (member["name"], member["parent_agent_id"]) == ("helper", lead.id), member
    rows = {pane["name"]: pane for pane in lead.call("list_surfaces")["surfaces"]}
    assert rows["helper"]["window"] == rows["lead"]["window"]
    assert code(lead.call("close_surface", surface=member["surface"])) in ("refused", "not_allowed")
    closed = lead.call("close_surface", surface=member["surface"], force=True)
    assert (closed["agent_stopped"], closed["surface_closed"]) == (True, True), closed
    assert fleet.sessions.get("helper").row["status"] == "stopped"
    alone = lead.call("spawn_agent", cli="practice", name="alone")
    assert code(lead.call("close_surface", agent_id=alone["agent_id"])) == "needs_confirmation"
    assert lead.call("close_surface", agent_id="alone", force=True)["agent_stopped"] is True
    assert code(lead.call("close_surface", agent_id="lead", force=True)) == "not_allowed"


def test_guarded_tools_are_not_there_unless_the_operator_says_so(client) -> None:
    names = {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}
    assert not names & {"answer_prompt", "purge", "kill"}
    assert len(names) == 17
    assert code(client.call("kill", target="all")) == "usage"


def test_a_session_has_guarded_tools_by_the_settings_alone(fleet, inside, home) -> None:
    session = inside("one")
    assert code(session.call("kill", target="all")) == "usage"
    with (home / ".config" / "mam" / "config.toml").open("a", encoding="utf-8") as file:
        file.write('[mcp]\nallow = ["kill"]\n')
    assert code(session.call("kill", target="all")) == "needs_confirmation"


def test_settings_that_cannot_be_read_are_an_answer(client, home) -> None:
    with (home / ".config" / "mam" / "config.toml").open("a", encoding="utf-8") as file:
        file.write("[mcp]\nmessage = 1\n")
    assert code(client.call("list_agents")) == "invalid_settings"
    assert "error" in client.ask("tools/list")


def test_every_tool_is_documented(client) -> None:
    text = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")
    for tool in client.ask("tools/list")["result"]["tools"]:
        assert f"`{tool['name']}(" in text, tool["name"]


def test_an_answer_goes_to_the_question_that_was_read(trusted, fleet, until) -> None:
    trusted.call("spawn_agent", cli="practice", name="one")
    fleet.messages.send("one", "/ask Bash rm it", command=True)
    until(lambda: trusted.call("get_agent_state", agent_id="one")["blocked_on_prompt"])
    prompt = until(lambda: trusted.call("get_agent_state", agent_id="one")["prompt"])
    wrong = trusted.call(
        "answer_prompt", agent_id="one", answer="allow", expect="0" * len(prompt["fingerprint"])
    )
    assert code(wrong) == "conflict"
    outcome = trusted.call("answer_prompt", agent_id="one", answer="allow", expect=prompt["fingerprint"])
    assert outcome["answer"], outcome
    waited = trusted.call("wait_for", agent_id="one", target_state="idle", timeout_ms=60_000)
    assert waited["results"][0]["blocked_on_prompt"] is False


def confirmed(client, tool, **arguments):
    refused = client.call(tool, **arguments)
    assert code(refused) == "needs_confirmation"
    confirmation = refused["error"]["hint"].split('"')[1]
    return confirmation, client.call(tool, **arguments, confirm=confirmation)


def test_what_cannot_be_undone_is_confirmed(trusted, fleet) -> None:
    for name in ("one", "two", "three"):
        trusted.call("spawn_agent", cli="practice", name=name)
    trusted.call("send_to", agent_id="one", text="remember this", timeout_ms=20_000)
    code_given, purged = confirmed(trusted, "purge", agent_id="one")
    assert (purged["state"], purged["applied"]) == ("done", "purge")
    assert fleet.sessions.get("one").row["resumable"] is False
    # A code is valid once, and only for the same call.
    assert code(trusted.call("purge", agent_id="one", confirm=code_given)) == "needs_confirmation"
    assert code(trusted.call("kill", target=["two"], confirm=code_given)) == "needs_confirmation"
    assert fleet.sessions.names(status=["running"]) == ["two", "three"]
    _, ended = confirmed(trusted, "kill", target="all", force=True)
    assert (sorted(ended["killed"]), ended["errors"]) == (["three", "two"], [])
    assert fleet.sessions.names(status=["running"]) == []


def test_children_are_killed_first_and_each_once_and_nobody_killed_is_an_error(fleet, monkeypatch) -> None:
    fleet.sessions.create("practice", name="above")
    fleet._access._caller = callers.session(fleet.sessions.get("above").id)
    fleet.sessions.create("practice", name="below")
    fleet._access._caller = callers.user()
    call = SimpleNamespace(fleet=fleet, client=SimpleNamespace(pid=1))

    def kill_confirmed(target):
        with pytest.raises(NeedsConfirmation, match="end 2 agents") as refusal:
            kill(call, target, force=True)
        return kill(call, target, force=True, confirm=refusal.value.hint.split('"')[1])

    def fail(*_arguments, **_options):
        raise StopUnconfirmed("it is still there")

    with monkeypatch.context() as patch, pytest.raises(StopUnconfirmed):
        patch.setattr(Sessions, "stop", fail)
        kill_confirmed(["above", "below"])
    assert kill_confirmed(["below", "above", "below"])["killed"] == ["below", "above"]


@pytest.mark.parametrize("tool", ["stop_agent", "send_to"])
def test_it_is_done_to_the_one_that_was_allowed_whoever_has_the_name_now(fleet, monkeypatch, tool) -> None:
    meant, other = (
        fleet.sessions.create("practice", name="meant"),
        fleet.sessions.create("practice", name="other"),
    )
    authorize = Agents.authorize

    def and_then_renamed(self, act, target):
        row = authorize(self, act, target)
        fleet.sessions.rename("meant", "moved")
        fleet.sessions.rename("other", "meant")
        return row

    monkeypatch.setattr(Agents, "authorize", and_then_renamed)
    call = SimpleNamespace(fleet=fleet)
    if tool == "stop_agent":
        stop_agent(call, "meant")
        assert fleet.sessions.get(meant.id).row["status"] == "stopped"
        assert fleet.sessions.get(other.id).row["status"] == "running"
    else:
        assert send_to(call, "meant", "hello")["session"] == "moved"
