"""The four ways in which the programs talk to a model, each from a reply to the bytes on the wire.

A dialect knows its path, where a request keeps its messages, and how an answer is written as a stream of
server-sent events and as one document. A request with tools is a turn; one without is a side call
(a title, a route) that a script never answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar
from uuid import uuid4

from tests.conformance.replies import Call, Fail, McpCall, Question, Say, Shell

Body = dict[str, Any]

# The names that the real services give their errors: opencode retries a 400 that calls itself a server error.
_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
_GOOGLE_ERRORS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def event(data: Body, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def texts(value: Any) -> Iterator[str]:
    """Yield every string below a value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


class Dialect:
    """What the dialects share; `messages` is the key of a request's conversation."""

    name: ClassVar[str]
    path: ClassVar[re.Pattern[str]]
    messages: ClassVar[str]

    def wants_stream(self, path: str, body: Body) -> bool:
        return bool(body.get("stream"))

    def is_turn(self, body: Body) -> bool:
        return bool(body.get("tools"))

    def shell(self, wanted: Shell, body: Body) -> Call:
        return Call("bash", {"command": wanted.command, "description": wanted.why})

    def question(self, wanted: Question) -> Call:
        return Call("question", {"questions": [self._question(wanted)]})

    def mcp(self, wanted: McpCall) -> Call:
        return Call(f"mam_{wanted.name}", wanted.arguments)

    def _question(self, wanted: Question) -> Body:
        return {"question": wanted.text, "header": wanted.header, "options": wanted.choices()}

    def refuse(self, reply: Fail) -> Body:
        name = _OPENAI_ERRORS.get(reply.status, "server_error")
        return {"error": {"message": reply.message, "type": name, "param": None, "code": None}}

    def stream(self, reply: Say | Call) -> Iterator[bytes]:
        raise NotImplementedError

    def whole(self, reply: Say | Call) -> Body:
        raise NotImplementedError


class Anthropic(Dialect):
    """Claude Code: messages."""

    name = "anthropic"
    path = re.compile(r"/v1/messages$")
    messages = "messages"

    def shell(self, wanted: Shell, body: Body) -> Call:
        return Call("Bash", {"command": wanted.command, "description": wanted.why})

    def question(self, wanted: Question) -> Call:
        return Call("AskUserQuestion", {"questions": [self._question(wanted) | {"multiSelect": False}]})

    def mcp(self, wanted: McpCall) -> Call:
        return Call(f"mcp__mam__{wanted.name}", wanted.arguments)

    def refuse(self, reply: Fail) -> Body:
        name = _ANTHROPIC_ERRORS.get(reply.status, "api_error")
        return {"type": "error", "error": {"type": name, "message": reply.message}}

    def whole(self, reply: Say | Call) -> Body:
        if isinstance(reply, Say):
            block, why = {"type": "text", "text": "".join(reply.words())}, "end_turn"
        else:
            block = {"type": "tool_use", "id": f"toolu_{uuid4().hex[:20]}", "name": reply.name}
            block, why = block | {"input": reply.arguments}, "tool_use"
        return self._opened() | {"content": [block], "stop_reason": why}

    def stream(self, reply: Say | Call) -> Iterator[bytes]:
        yield self._event("message_start", message=self._opened())
        if isinstance(reply, Say):
            yield self._event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for word in reply.words():
                yield self._event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
            why = "end_turn"
        else:
            block = {"type": "tool_use", "id": f"toolu_{uuid4().hex[:20]}", "name": reply.name, "input": {}}
            yield self._event("content_block_start", index=0, content_block=block)
            part = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
            yield self._event("content_block_delta", index=0, delta=part)
            why = "tool_use"
        yield self._event("content_block_stop", index=0)
        ended = {"stop_reason": why, "stop_sequence": None}
        yield self._event("message_delta", delta=ended, usage={"output_tokens": 7})
        yield self._event("message_stop")

    def _opened(self) -> Body:
        return {
            "id": f"msg_{uuid4().hex[:20]}",
            "type": "message",
            "role": "assistant",
            "model": "fake-model",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 1},
        }

    def _event(self, kind: str, **data: Any) -> bytes:
        return event({"type": kind, **data}, kind)


class Responses(Dialect):
    """Codex: responses, always streamed."""

    name = "responses"
    path = re.compile(r"/v1/responses$")
    messages = "input"

    def shell(self, wanted: Shell, body: Body) -> Call:
        offered = {tool.get("name") for tool in body.get("tools", ())}
        if "exec_command" in offered:
            # Inside its sandbox Codex runs a command without a word; outside it asks.
            outside = {"sandbox_permissions": "require_escalated", "justification": f"May I {wanted.why}?"}
            return Call("exec_command", {"cmd": wanted.command, **(outside if wanted.asks else {})})
        if "shell_command" in offered:
            return Call("shell_command", {"command": wanted.command})
        return Call("shell", {"command": ["bash", "-lc", wanted.command]})

    def question(self, wanted: Question) -> Call:
        return Call("request_user_input", {"questions": [self._question(wanted) | {"id": "color"}]})

    def mcp(self, wanted: McpCall) -> Call:
        return Call(wanted.name, wanted.arguments, namespace="mcp__mam")

    def stream(self, reply: Say | Call) -> Iterator[bytes]:
        ident = f"resp_{uuid4().hex[:20]}"
        yield self._event("response.created", response={"id": ident})
        if isinstance(reply, Say):
            item: Body = {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{uuid4().hex[:20]}",
                "content": [],
            }
            yield self._event("response.output_item.added", output_index=0, item=item)
            where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            said = ""
            for word in reply.words():
                said += word
                yield self._event("response.output_text.delta", delta=word, **where)
            item = item | {"content": [{"type": "output_text", "text": said, "annotations": []}]}
        else:
            item = {"type": "function_call", "call_id": f"call_{uuid4().hex[:20]}", "name": reply.name}
            item = item | {"arguments": json.dumps(reply.arguments)}
            if reply.namespace:
                item["namespace"] = reply.namespace
            yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._event("response.output_item.done", output_index=0, item=item)
        usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        yield self._event("response.completed", response={"id": ident, "output": [item], "usage": usage})

    def whole(self, reply: Say | Call) -> Body:
        *_, last = self.stream(reply)
        return json.loads(last.split(b"data: ", 1)[1])["response"]

    def _event(self, kind: str, **data: Any) -> bytes:
        return event({"type": kind, **data}, kind)


class Gemini(Dialect):
    """Gemini CLI: the method is the end of the path."""

    name = "gemini"
    path = re.compile(r":(?:stream)?generateContent$", re.IGNORECASE)
    messages = "contents"

    def wants_stream(self, path: str, body: Body) -> bool:
        return "streamGenerateContent" in path

    def shell(self, wanted: Shell, body: Body) -> Call:
        return Call("run_shell_command", {"command": wanted.command, "description": wanted.why})

    def question(self, wanted: Question) -> Call:
        return Call("ask_user", {"questions": [self._question(wanted) | {"type": "choice"}]})

    def mcp(self, wanted: McpCall) -> Call:
        return Call(f"mcp_mam_{wanted.name}", wanted.arguments)

    def refuse(self, reply: Fail) -> Body:
        name = _GOOGLE_ERRORS.get(reply.status, "INTERNAL")
        return {"error": {"code": reply.status, "message": reply.message, "status": name}}

    def stream(self, reply: Say | Call) -> Iterator[bytes]:
        if isinstance(reply, Say):
            for word in reply.words():
                yield event(self._document({"text": word}))
            yield event(self._document({"text": ""}, "STOP"))
        else:
            call = {"functionCall": {"name": reply.name, "args": reply.arguments}}
            yield event(self._document(call, "STOP"))

    def whole(self, reply: Say | Call) -> Body:
        if isinstance(reply, Say):
            return self._document({"text": "".join(reply.words())}, "STOP")
        return self._document({"functionCall": {"name": reply.name, "args": reply.arguments}}, "STOP")

    def _document(self, part: Body, finish: str | None = None) -> Body:
        candidate: Body = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake-model"}


class Chat(Dialect):
    """opencode: chat completions."""

    name = "chat"
    path = re.compile(r"/v1/chat/completions$")
    messages = "messages"

    def stream(self, reply: Say | Call) -> Iterator[bytes]:
        if isinstance(reply, Say):
            yield self._chunk({"role": "assistant", "content": ""})
            for word in reply.words():
                yield self._chunk({"content": word})
        else:
            yield self._chunk({"role": "assistant", "tool_calls": [{"index": 0, **self._call(reply)}]})
        yield self._chunk({}, "stop" if isinstance(reply, Say) else "tool_calls")
        yield b"data: [DONE]\n\n"

    def whole(self, reply: Say | Call) -> Body:
        if isinstance(reply, Say):
            message: Body = {"role": "assistant", "content": "".join(reply.words())}
            return self._document("chat.completion", "message", message, "stop")
        message = {"role": "assistant", "content": None, "tool_calls": [self._call(reply)]}
        return self._document("chat.completion", "message", message, "tool_calls")

    def _call(self, reply: Call) -> Body:
        function = {"name": reply.name, "arguments": json.dumps(reply.arguments)}
        return {"id": f"call_{uuid4().hex[:20]}", "type": "function", "function": function}

    def _chunk(self, delta: Body, finish: str | None = None) -> bytes:
        return event(self._document("chat.completion.chunk", "delta", delta, finish))

    def _document(self, kind: str, key: str, value: Body, finish: str | None) -> Body:
        return {
            "id": f"chatcmpl-{uuid4().hex[:20]}",
            "object": kind,
            "created": 0,
            "model": "fake-model",
            "choices": [{"index": 0, key: value, "finish_reason": finish}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }


DIALECTS: tuple[Dialect, ...] = (Anthropic(), Responses(), Gemini(), Chat())
