"""The types of the tools' results. No field is required, because an error has none of them."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class Agent(TypedDict, total=False):
    """One agent."""

    agent_id: str
    name: str
    state: str
    blocked_on_prompt: bool
    waiting_for: str | None
    cli: str
    model: str | None
    role: str | None
    parent_agent_id: str | None
    cwd: str
    job_id: str | None


class Agents(TypedDict, total=False):
    """Several agents."""

    agents: list[Agent]
    count: int


class AgentState(Agent, total=False):
    """One agent with its whole record, and its open dialog."""

    health: str | None
    prompt: dict[str, Any] | None
    record: dict[str, Any]


class Spawned(Agent, total=False):
    """An agent that was started or resumed."""

    surface_id: str
    boot_prompt_delivered: bool
    note: str | None


class LeftRunning(TypedDict):
    """A process that an agent detached, and that still runs after its end."""

    pid: int
    command: str


class Applied(TypedDict, total=False):
    """What was done to an agent."""

    agent_id: str
    state: str
    applied: str
    left_running: list[LeftRunning]


class Receipt(TypedDict, total=False):
    """What became of a message to an agent. It is delivered if the agent submitted or queued it."""

    agent_id: str
    delivered: bool
    message_id: str
    session: str
    state: str
    evidence: str | None
    carrier: str | None
    attempts: int
    elapsed_ms: float
    reason: str | None


class Receipts(TypedDict, total=False):
    """What became of a message to several agents."""

    receipts: list[Receipt]
    delivered: int


class Interacted(Receipt, total=False):
    """What was done to an agent, and its activity afterwards."""

    applied: str
    activity: str


class Job(TypedDict, total=False):
    """A job, with its record."""

    job_id: str
    status: str
    agent_session: str | None
    job: dict[str, Any]


class Reported(TypedDict, total=False):
    """An event that was recorded."""

    job_id: str
    status: str
    event: Any
    published: Any


class Split(Agent, total=False):
    """An agent in a new pane of your window."""

    surface: str
    team: str
    receipt: dict[str, Any] | None


class Closed(TypedDict, total=False):
    """What was closed."""

    agent_id: str
    agent_stopped: bool
    surface_closed: bool
    note: str | None


class Answered(TypedDict, total=False):
    """The dialog that was answered, and the one that followed."""

    agent_id: str
    dialog: str
    answer: Any
    next: Any


class Killed(TypedDict, total=False):
    """The agents that were killed, and the errors of the others."""

    killed: list[str]
    errors: list[dict[str, Any]]
    force: bool


class Waited(TypedDict, total=False):
    """The agents or the job that the call waited for."""

    matched: bool
    timed_out: bool
    elapsed_ms: int
    results: list[dict[str, Any]]
    job: dict[str, Any]


class Screen(TypedDict, total=False):
    """What a terminal shows."""

    surface: str
    agent_id: str
    state: str
    text: str


class Surfaces(TypedDict, total=False):
    """The panes of the tmux servers."""

    servers: list[dict[str, Any]]
    surfaces: list[dict[str, Any]]


class Health(TypedDict, total=False):
    """The checks of this machine and root, with ways to mend what failed."""

    ok: bool
    root: str
    version: str
    caller: str
    checks: list[dict[str, Any]]
