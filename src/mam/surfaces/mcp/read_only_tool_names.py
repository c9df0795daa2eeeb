"""The tools that only read: a call may be repeated, and needs no permission."""

from __future__ import annotations

READS = frozenset(
    {
        "control_health",
        "get_agent_state",
        "job_status",
        "list_agents",
        "list_surfaces",
        "read_screen",
        "wait_for",
    }
)
