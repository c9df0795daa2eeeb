"""Variables that an agent sets for its children are distinguished from those of a person."""

from __future__ import annotations

import pytest

from mam.core.inherited_variables import is_inherited, without_inherited

OF_AN_AGENT = [
    "CLAUDECODE",
    "CLAUDE_PID",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_PROJECT_DIR",
    "CODEX_THREAD_ID",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_CI",
    "CODEX_VERSION",
    "GEMINI_CLI",
    "GEMINI_SESSION_ID",
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_ROUTE",
    "HERMES_SESSION_ID",
    "HERMES_KANBAN_TASK",
    "HERMES_KANBAN_GOAL_MODE",
    "HERMES_KANBAN_BRANCH",
]
OF_A_PERSON = [
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "OPENAI_BASE_URL",
    "CODEX_HOME",
    "GEMINI_API_KEY",
    "GEMINI_CLI_HOME",
    "GEMINI_CLI_TRUST_WORKSPACE",
    "OPENCODE_DB",
    "OPENCODE_CONFIG",
    "HERMES_HOME",
    "HERMES_KANBAN_DB",
    "HERMES_YOLO_MODE",
    "HERMES_BIN",
    "AGENT",
]


@pytest.mark.parametrize("name", OF_AN_AGENT)
def test_of_an_agent(name) -> None:
    assert is_inherited(name)


def test_what_a_person_set_stays() -> None:
    personal = dict.fromkeys(OF_A_PERSON, "x")
    assert without_inherited({**personal, **dict.fromkeys(OF_AN_AGENT, "y")}) == personal
