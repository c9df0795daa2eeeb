"""Variables that an agent program sets for its child processes, to describe itself and its conversation.

A session, a tmux server or a resident that inherits them would be taken for a part of the agent that
called mam. Settings of a person (keys, homes, providers) are not among them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = frozenset(
    [
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_EFFORT",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PID",
        "CLAUDE_PROJECT_DIR",
        "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
        "CODEX_CI",
        "CODEX_MANAGED_BY_NPM",
        "CODEX_MANAGED_PACKAGE_ROOT",
        "CODEX_PERMISSION_PROFILE",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
        "CODEX_VERSION",
        "GEMINI_CLI",
        "GEMINI_CLI_NO_RELAUNCH",
        "GEMINI_CWD",
        "GEMINI_PLANS_DIR",
        "GEMINI_PROJECT_DIR",
        "GEMINI_SESSION_ID",
        "HERMES_INTERACTIVE",
        "HERMES_QUIET",
        "HERMES_UI_SESSION_ID",
        "OPENCODE",
        "OPENCODE_PID",
        "OPENCODE_ROUTE",
    ]
)
# Hermes' variables for cards. Those that name the board are not here: a person may set them, too.
_CARD = ("TASK", "RUN", "CLAIM", "WORKSPACE", "BRANCH", "GOAL")
_PREFIXES = ("HERMES_SESSION_", *(f"HERMES_KANBAN_{name}" for name in _CARD))


def is_inherited(name: str) -> bool:
    """Tell whether a variable describes the agent that set it."""
    return name in _NAMES or name.startswith(_PREFIXES)


def without_inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that describe an agent."""
    return {name: value for name, value in environ.items() if not is_inherited(name)}
