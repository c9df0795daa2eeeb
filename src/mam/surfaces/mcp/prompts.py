"""The MCP prompts, which a person can pick in a client: two ways of working with other agents."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcp.server import MCPServer


def add(server: MCPServer) -> None:
    """Register the prompts."""

    @server.prompt(name="delegate")
    def delegate(task: str, cli: str = "claude") -> str:
        """Have another agent do a task, and check what it did."""
        return f"""\
Delegate this task to another agent: {task}

1. spawn_agent with cli "{cli}" and a role; if it is blocked_on_prompt, say so and stop: a person must answer.
2. send_to it the task, with everything it has to know and how you will check the result.
3. wait_for it with target_state "idle". If it is blocked_on_prompt, report what it asks.
4. read_screen, and check the result itself: files, tests. If it is wrong, say what, at most three times.
5. stop_agent. Report what was done and what you checked."""

    @server.prompt(name="review")
    def review(what: str, cli: str = "codex") -> str:
        """Have another agent review something, and weigh what it finds."""
        return f"""\
Have another agent review this: {what}

1. spawn_agent with cli "{cli}", role "reviewer" and permissions "ask".
2. send_to it what to review and how; ask for findings with file, line and reason, and for no changes.
3. wait_for it with target_state "idle", then read_screen with scrollback.
4. Check each finding yourself: what an agent writes is a claim. Keep those that hold.
5. stop_agent, and report the findings that hold, the worst first."""
