"""What the agent programs write, one valid example of each form: payloads of hooks, lines, whole files."""

from __future__ import annotations

from typing import Any

UUID = "0197a1b2-c3d4-7e5f-8a6b-0c1d2e3f4a5b"
OPENCODE, HERMES = "ses_0123456789abcdef", "20261115_080000_0123ab"
WORKSPACE = "/abs/demo/app"
_AT = "2026-11-15T08:00:00.000Z"
_TOOL = {"tool_name": "Bash", "tool_input": {"command": "touch made", "description": "Make a file"}}


def _claude_hook(event: str, **more: Any) -> dict[str, Any]:
    return {
        "session_id": UUID,
        "transcript_path": f"/h/.claude/projects/-abs-demo-app/{UUID}.jsonl",
        "cwd": WORKSPACE,
        "hook_event_name": event,
        **more,
    }


HOOKS: dict[str, list[dict[str, Any]]] = {
    "claude": [
        _claude_hook("SessionStart", source="startup"),
        _claude_hook("UserPromptSubmit", prompt="do it\n[mam m_1f00ab42 from lead]"),
        _claude_hook("Notification", notification_type="permission_prompt", message="Claude needs"),
        _claude_hook("PreToolUse", **_TOOL),
        _claude_hook("PermissionRequest", **_TOOL),
        _claude_hook("PermissionRequest", tool_name="AskUserQuestion", tool_input={"questions": [{"a": 1}]}),
        _claude_hook("Stop", stop_hook_active=False),
        _claude_hook("SessionEnd", reason="clear"),
        _claude_hook("SubagentStop", agent_id="a1"),
    ],
    "codex": [
        {"hook_event_name": "UserPromptSubmit", "session_id": UUID, "prompt": "do it"},
        {"hook_event_name": "PermissionRequest", "session_id": UUID, **_TOOL},
        {"hook_event_name": "Stop", "session_id": UUID},
        {"type": "agent-turn-complete", "thread-id": UUID, "input-messages": ["do it"], "turn-id": "1"},
    ],
    "opencode": [
        {"agent": "opencode", "event": "session.created", "session": OPENCODE, "title": "x (fork #1)"},
        {"agent": "opencode", "event": "session.status", "session": OPENCODE, "status": "busy"},
        {
            "agent": "opencode",
            "event": "session.status",
            "session": OPENCODE,
            "status": "retry",
            "reason": "limit",
            "message": "try again at 5 PM",
        },
        {
            "agent": "opencode",
            "event": "asked",
            "session": OPENCODE,
            "waiting_for": "permission",
            "tool": "bash",
            "what": "rm -rf x",
        },
        {"agent": "opencode", "event": "chat.message", "session": OPENCODE, "prompt": "long " * 40},
    ],
    "practice": [
        {"hook_event_name": "SessionStart", "session_id": UUID},
        {"hook_event_name": "UserPromptSubmit", "session_id": UUID, "prompt": "please"},
        {"hook_event_name": "PermissionRequest", "session_id": UUID, **_TOOL},
        {"hook_event_name": "Stop", "session_id": UUID},
    ],
}
# Kinds without hooks of their own get whatever the others send.
HOOKS |= {
    name: [*HOOKS["claude"], *HOOKS["opencode"]] for name in ("gemini", "hermes", "agy", "human", "exec")
}

CLAUDE_LINES: list[dict[str, Any]] = [
    {"type": "user", "cwd": WORKSPACE, "timestamp": _AT, "message": {"role": "user", "content": "do it"}},
    {
        "type": "user",
        "cwd": WORKSPACE,
        "timestamp": _AT,
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}, {"text": "y"}]},
    },
    {
        "type": "assistant",
        "timestamp": _AT,
        "message": {
            "id": "msg_1",
            "model": "claude-opus-4-1",
            "role": "assistant",
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "done"}],
            "usage": {
                "input_tokens": 11,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 4,
                "cache_creation": {"ephemeral_1h_input_tokens": 3},
                "output_tokens": 7,
                "speed": "standard",
            },
        },
    },
    {"type": "system", "subtype": "turn_duration", "timestamp": _AT, "durationMs": 5},
    {"type": "queue-operation", "operation": "enqueue", "timestamp": _AT, "content": 'and then "user"'},
    {"type": "agent-color", "agentColor": "blue"},
    {"type": "agent-name", "agentName": "one"},
]
CLAUDE_STATE: dict[str, Any] = {
    "pid": 4000001,
    "procStart": "77",
    "status": "waiting",
    "waitingFor": "permission prompt",
    "statusUpdatedAt": 1794744000000,
    "updatedAt": 1794744000000,
    "sessionId": UUID,
}


def _codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": _AT, "type": kind, "payload": payload}


_LIMIT = "You've hit your usage limit. Try again at Nov 15th, 2026 5:00 PM."
CODEX_LINES: list[dict[str, Any]] = [
    _codex("session_meta", id=UUID, cwd=WORKSPACE, source="cli", thread_source="user", forked_from_id=UUID),
    _codex("turn_context", model="gpt-5-codex", cwd=WORKSPACE, service_tier="default"),
    _codex("event_msg", type="task_started", model_context_window=272000),
    _codex(
        "event_msg",
        type="item_completed",
        item={"type": "UserMessage", "content": [{"type": "text", "text": "do it"}]},
    ),
    _codex(
        "event_msg",
        type="item_completed",
        item={"type": "AgentMessage", "content": [{"type": "text", "text": "done"}]},
    ),
    _codex(
        "event_msg",
        type="token_count",
        info={
            "total_token_usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2},
            "last_token_usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2},
            "model_context_window": 272000,
        },
    ),
    _codex("response_item", type="message", role="assistant", content=[]),
    _codex("event_msg", type="turn_aborted", reason="interrupted"),
    _codex("event_msg", type="task_complete"),
    _codex(
        "event_msg",
        type="task_complete",
        error={"codex_error_info": "usage_limit_exceeded", "message": _LIMIT},
    ),
]
GEMINI_LINES: list[dict[str, Any]] = [
    {"sessionId": UUID, "projectHash": "h", "startTime": _AT, "lastUpdated": _AT, "kind": "main"},
    {"$set": {"messages": [{"id": "c", "type": "user", "content": [{"text": "<session_context>"}]}]}},
    {"id": "1", "timestamp": _AT, "type": "user", "content": [{"text": "do it"}]},
    {
        "id": "2",
        "timestamp": _AT,
        "type": "gemini",
        "content": "done",
        "thoughts": [],
        "tokens": {"input": 11, "output": 7, "thoughts": 2, "cached": 4, "tool": 0},
        "model": "gemini-2.5-pro",
    },
    {"id": "3", "timestamp": _AT, "type": "gemini", "content": "", "toolCalls": [{"name": "x"}]},
    {"id": "4", "timestamp": _AT, "type": "info", "content": "Request cancelled."},
    {"$rewindTo": "1"},
    {"$set": {"lastUpdated": _AT}},
]
GEMINI_LOG: list[dict[str, Any]] = [
    {"sessionId": UUID, "messageId": 0, "type": "user", "message": "do it", "timestamp": _AT},
    {"sessionId": UUID, "messageId": 1, "type": "user", "message": "/stats", "timestamp": _AT},
]
PRACTICE_LINES: list[dict[str, Any]] = [
    {"type": "user", "text": "do it", "at": _AT},
    {"type": "assistant", "text": "done", "at": _AT},
]
OPENCODE_MESSAGE: dict[str, Any] = {
    "role": "assistant",
    "time": {"created": 1794744000000, "completed": 1794744001000},
    "finish": "stop",
    "providerID": "fake",
    "modelID": "m",
    "tokens": {"input": 11, "output": 7, "reasoning": 0, "cache": {"read": 5, "write": 2}},
}
OPENCODE_PART: dict[str, Any] = {"type": "text", "text": "do it"}
HERMES_PARTS: list[dict[str, Any]] = [{"type": "text", "text": "do it"}, {"type": "image"}]
