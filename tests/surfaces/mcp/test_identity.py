"""The identity and rights of a client: a client that runs inside a session is that session."""

import os
import socket
import threading
from types import SimpleNamespace

import pytest

from mam.adapters.system import process
from mam.app.agent_tools.connected_client import ConnectedClient
from mam.app.api.fleet_object import Fleet
from mam.app.api.verb_group import Access
from mam.core import authority
from mam.core import caller as callers
from mam.core.errors import NotAllowed
from mam.surfaces.mcp.tools.agents import spawn_agent
from mam.surfaces.mcp.tools.jobs import submit_job


def code(answer):
    return answer.get("error", {}).get("code")


def test_a_session_runs_what_it_started_and_nobody_else(fleet, inside) -> None:
    other = fleet.sessions.create("practice", name="stranger")
    lead = inside("lead", role="lead")
    assert lead.call("control_health")["caller"] == lead.id
    child = lead.call("spawn_agent", cli="practice", name="child")
    assert child["parent_agent_id"] == lead.id
    assert [agent["name"] for agent in lead.call("list_agents", mine=True)["agents"]] == ["child"]
    assert lead.call("send_to", agent_id="child", text="hello", timeout_ms=20_000)["delivered"] is True
    assert fleet.messages.inbox("child")[0]["sender"] == "lead"
    for target in ("stranger", "lead"):
        assert code(lead.call("stop_agent", agent_id=target)) == "not_allowed"
        assert code(lead.call("send_to", agent_id=target, text="hello")) == "not_allowed"
        assert code(lead.call("resume_agent", agent_id=target)) == "not_allowed"
    assert other.status()["status"] == "running"
    assert lead.call("stop_agent", agent_id="child")["state"] == "done"


def test_a_session_stops_neither_its_parent_nor_above(fleet, inside) -> None:
    top = inside("top")
    fleet._access._caller = callers.session(top.id)
    below = inside("below")
    assert fleet.sessions.get("below").row["parent"] == top.id
    assert code(below.call("stop_agent", agent_id="top", force=True)) == "not_allowed"
    assert top.call("stop_agent", agent_id="below")["state"] == "done"


def test_a_grant_of_the_operator_reaches_others(fleet, inside, home) -> None:
    fleet.sessions.create("practice", name="stranger")
    with (home / ".config" / "mam" / "config.toml").open("a", encoding="utf-8") as file:
        file.write('[mcp]\nmessage = "all"\nallow = ["kill"]\n')
    session = inside("one")
    assert session.call("send_to", agent_id="stranger", text="hello", timeout_ms=20_000)["delivered"] is True
    assert code(session.call("stop_agent", agent_id="stranger")) == "not_allowed"


def test_a_session_does_not_say_whose_settings_hold(fleet, inside, tmp_path) -> None:
    fleet.sessions.create("practice", name="stranger")
    config = tmp_path / "forged" / "mam" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[mcp]\nmessage = "all"\nallow = ["kill"]\n', encoding="utf-8")
    session = inside("one", prefix=[f"XDG_CONFIG_HOME={tmp_path / 'forged'}"])
    assert code(session.call("send_to", agent_id="stranger", text="hello")) == "not_allowed"
    assert code(session.call("kill", target="stranger")) == "usage"


def test_a_child_has_at_most_its_parents_permissions_and_stays_in_the_root(fleet, inside, tmp_path) -> None:
    session = inside("one")
    refused = session.call("spawn_agent", cli="practice", permissions="skip")
    assert code(refused) == "not_allowed"
    assert code(session.call("spawn_agent", cli="practice", cwd=str(tmp_path))) == "not_allowed"
    assert fleet.sessions.names() == ["one"]


def test_a_session_that_is_held_to_permissions_starts_no_program_that_cannot_be(fleet) -> None:
    limited, free = (
        fleet.sessions.create("practice", name=name, permissions=name) for name in ("default", "skip")
    )
    fleet._access._caller = callers.session(limited.id)
    for program in ("make", "sh"):
        with pytest.raises(NotAllowed, match=program):
            fleet.agents.authorize_child(program, None, "skip")
    assert fleet.agents.authorize_child("practice", None, "skip") == "default"
    assert fleet.agents.authorize_child("human", None, "skip") is None
    fleet._access._caller = callers.session(free.id)
    assert fleet.agents.authorize_child("make", None, "skip") is None


def test_calls_that_come_at_once_start_no_more_than_one_after_the_other(fleet, monkeypatch) -> None:
    monkeypatch.setattr(authority, "MOST_CHILDREN", 2)
    lead = fleet.sessions.create("practice", name="lead", permissions="skip")
    codes = []

    def call(tool, **arguments):
        access = Access(fleet._access.context.for_thread(), callers.session(lead.id), child_limit=True)
        with Fleet(access) as client_fleet:
            try:
                tool(SimpleNamespace(fleet=client_fleet), cli="practice", **arguments)
                codes.append("")
            except NotAllowed as refused:
                codes.append(refused.message)

    calls = [(spawn_agent, {"name": f"child-{number}"}) for number in range(3)]
    calls += [(submit_job, {"prompt": "hello"})] * 2
    threads = [threading.Thread(target=call, args=(tool,), kwargs=options) for tool, options in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(bool, codes)) == [False, False, True, True, True], codes
    assert sum(session.row["parent"] == lead.id for session in fleet.sessions.list()) == 2


@pytest.fixture
def line():
    client_end, server_end = socket.socketpair()
    with client_end, server_end:
        yield server_end


def test_where_a_client_says_that_it_is_leads_out_of_no_root(fleet, workspace, line) -> None:
    session = fleet.sessions.create("practice", name="one")
    context = ConnectedClient(fleet._access.context, line, {"cwd": f"{workspace}/.."}).context()
    with (
        Fleet(Access(context, callers.session(session.id))) as client_fleet,
        pytest.raises(NotAllowed, match="below"),
    ):
        client_fleet.agents.authorize_child("practice", None, "skip")


def test_the_tmux_of_a_session_is_found_also_by_a_client_with_few_variables(fleet, line, monkeypatch) -> None:
    session = fleet.sessions.create("practice", name="one")
    few = {key: os.environ[key] for key in ("HOME", "PATH")}
    client = ConnectedClient(fleet._access.context, line, {"cwd": fleet.root, "environ": few})
    monkeypatch.setattr(client, "session", lambda _context: session.row)
    with Fleet(Access(client.context(), callers.session(session.id))) as theirs:
        context = theirs._access.context
        assert context.environ["TMUX_TMPDIR"] == os.environ["TMUX_TMPDIR"]
        assert context.tmux(session.row["tmux_server"]).environ["TMUX_TMPDIR"] == os.environ["TMUX_TMPDIR"]
        assert theirs.sessions.ls()["sessions"][0]["tmux_alive"] is True


def test_a_client_of_another_root_is_not_served(fleet, line) -> None:
    """A new folder may get the inode of a removed one, and with it the socket address of another root."""
    fleet.init()
    state = fleet._access.context.paths.state
    assert ConnectedClient(fleet._access.context, line, {"state": state}).paths.state == state
    with pytest.raises(NotAllowed, match="another root"):
        ConnectedClient(fleet._access.context, line, {"state": f"{state}-elsewhere"})


def test_a_session_starts_nothing_anew_that_it_could_not_resume_or_that_has_options_of_others(
    fleet, inside
) -> None:
    free = fleet.sessions.create("practice", args=["--permissions", "skip"])
    named_session = fleet.sessions.create("practice", name="named")
    for session in (free, named_session):
        session.stop()
    lead = inside("lead")
    assert code(lead.call("spawn_agent", cli="practice", name="named")) == "not_allowed"
    assert code(lead.call("new_split", cli="practice", role="dev", title="named")) == "not_allowed"
    assert fleet.sessions.get("named").row["parent"] is None
    child = lead.call("spawn_agent", cli="practice")
    assert child["agent_id"] != free.id
    assert fleet.sessions.get(child["agent_id"]).row["start_command"] == ["practice"]
    assert lead.call("stop_agent", agent_id=child["agent_id"])["state"] == "done"
    again = lead.call("spawn_agent", cli="practice", name=child["name"])
    assert again["agent_id"] == child["agent_id"]


def test_who_claims_to_be_a_session_and_is_not_changes_nothing(fleet, workspace, resident) -> None:
    import os

    from tests.surfaces.mcp.client import Client

    session = fleet.sessions.create("practice", name="one")
    with Client(workspace, env={**os.environ, "MAM_SESSION": session.id}) as client:
        client.greet()
        assert code(client.call("stop_agent", agent_id="one")) == "not_allowed"
        assert client.call("get_agent_state", agent_id="one")["state"] == "ready"


def test_a_client_with_the_secret_of_a_launch_is_that_session_wherever_it_runs(
    fleet, workspace, resident
) -> None:
    from tests.surfaces.mcp.client import Client

    session = fleet.sessions.create("practice", name="one")
    fleet.sessions.create("practice", name="stranger")
    proof = {
        "MAM_SESSION": session.id,
        "MAM_LAUNCH": process.environment(session.row["pane"]["pid"])["MAM_LAUNCH"],
    }
    with Client(workspace, env={**os.environ, **proof}) as client:
        client.greet()
        assert client.call("control_health")["caller"] == session.id
        assert code(client.call("stop_agent", agent_id="stranger")) == "not_allowed"
        child = client.call("spawn_agent", cli="practice", name="child")
        assert child["parent_agent_id"] == session.id
    assert (
        process.environment(fleet.sessions.get("child").row["pane"]["pid"])["MAM_LAUNCH"]
        != proof["MAM_LAUNCH"]
    )


def test_a_client_that_is_unknown_gets_no_guarded_tool_that_it_names_itself(fleet, line) -> None:
    fleet.init()
    for environ, allowed in (({}, ("kill",)), ({"MAM_SESSION": "s_00000001"}, ())):
        introduction = {"environ": {**os.environ, **environ}, "allow": ["kill"]}
        assert ConnectedClient(fleet._access.context, line, introduction).allowed() == allowed
