"""The tools that only read: they may be asked twice, and nobody needs a permission for them."""

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
