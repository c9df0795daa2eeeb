"""A model on loopback: it answers the programs from a script and keeps every request.

What a request holds is the proof that a prompt arrived, or that a history is really there. Without a
script each turn is answered with `pong N: ` and the beginning of what was said last.
"""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from tests.conformance.dialects import DIALECTS, Body, Dialect, texts
from tests.conformance.replies import Fail, McpCall, Question, Reply, Say, Shell

_INSTRUCTIONS = {"system", "developer"}
_MODEL = {"assistant", "model"}
# Every ten turns Hermes asks its model in the background what is worth remembering.
_REVIEW = "Review the conversation above"
_SECRET_HEADERS = {"authorization", "x-api-key", "x-goog-api-key"}


@dataclass(slots=True)
class Request:
    """One request as it arrived, and what became of its answer: `answered`, `failed`, `cut` or still None."""

    method: str
    path: str
    body: Body
    headers: dict[str, str]
    at: float
    dialect: Dialect | None
    outcome: str | None = None

    @property
    def is_turn(self) -> bool:
        if self.dialect is None or not self.dialect.is_turn(self.body):
            return False
        return not any(text.startswith(_REVIEW) for text in self.texts())

    def messages(self) -> list[Any]:
        found = self.body.get(self.dialect.messages, []) if self.dialect else []
        return found if isinstance(found, list) else [found]

    def texts(self) -> list[str]:
        """Return every string in what was said; not the instructions, not the tools."""
        return list(texts([one for one in self.messages() if _role(one) not in _INSTRUCTIONS]))

    def last_text(self) -> str:
        """Return the last thing said to the model that is not a reminder the program wrote itself."""
        said = [one for one in self.messages() if _role(one) not in _INSTRUCTIONS | _MODEL]
        found = [text.strip() for text in texts(said[-1:]) if len(text.split()) > 1]
        return next((text for text in reversed(found) if not text.startswith("<")), "")


def _role(message: Any) -> str:
    return str(message.get("role", "")) if isinstance(message, dict) else ""


@dataclass
class ModelServer:
    """The server and its script; use it as a context manager.

    The script answers turns only, in the order of their arrival; a side call gets a short text.
    """

    requests: list[Request] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._script: deque[Reply] = deque()
        self._gates: list[Event] = []
        self._lock = Lock()
        self._turns = 0
        self._http = _Http(("127.0.0.1", 0), _handler_of(self))
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> ModelServer:
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for gate in self._gates:
            gate.set()
        self._http.shutdown()
        self._http.server_close()

    def answer(self, *replies: Reply) -> None:
        """Append replies to the script: one per turn request to come."""
        with self._lock:
            self._script.extend(replies)

    def fail(self, status: int, times: int = 1) -> None:
        """Append `times` errors to the script."""
        self.answer(*[Fail(status)] * times)

    def forget_script(self) -> None:
        """Drop the replies that no turn has taken yet."""
        with self._lock:
            self._script.clear()

    def gate(self) -> Event:
        """Return an event for a held reply; the server sets it at its end, so that no thread stays."""
        gate = Event()
        self._gates.append(gate)
        return gate

    def turns(self) -> list[Request]:
        """Return the turn requests so far, retries included."""
        return [request for request in self.requests if request.is_turn]

    def saw(self, text: str) -> list[Request]:
        """Return the turn requests whose messages hold a text."""
        return [request for request in self.turns() if any(text in said for said in request.texts())]

    def reply_to(self, request: Request) -> Reply:
        if not request.is_turn:
            return Say(_answer_aside(request))
        with self._lock:
            self._turns += 1
            if self._script:
                return self._script.popleft()
            return Say(f"pong {self._turns}: {request.last_text()[:40]}")


def _answer_aside(request: Request) -> str:
    """Return the answer to a side call: a title, in the form that the call insists on."""
    settings = request.body.get("generationConfig") or {}
    schema = settings.get("responseJsonSchema") or settings.get("responseSchema")
    schema = schema or request.body.get("text", {}).get("format", {}).get("schema")
    return json.dumps(_instance(schema)) if schema else "A title"


def _instance(schema: Body) -> Any:
    """Return a value that fits a simple JSON schema."""
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        return {name: _instance(one) for name, one in schema.get("properties", {}).items()}
    plain: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": []}
    return plain.get(kind, schema.get("enum", ["A title"])[0])


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep silent: a program that goes away in the middle of an answer is an ordinary event here."""


def _handler_of(model: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        server_of_models = model

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_models: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self._leads_outside():
            return
        self._keep({}, None)
        self._send_json(404, {"error": {"message": "not found"}})

    def do_HEAD(self) -> None:
        self._keep({}, None)
        self._send_json(200, {})

    def do_CONNECT(self) -> None:
        self._leads_outside()

    def _leads_outside(self) -> bool:
        """Refuse, as the proxy of the programs, every way out of this machine, and remember where it led."""
        if self.path.startswith("/"):
            return False
        self.server_of_models.outside.append(self.path)
        self.close_connection = True
        self._send_json(502, {"error": {"message": "no way out"}})
        return True

    def do_POST(self) -> None:
        if self._leads_outside():
            return
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        path = urlsplit(self.path).path
        if path.endswith(("count_tokens", ":countTokens")):
            self._keep(body, None)
            self._send_json(200, {"input_tokens": 11, "totalTokens": 11})
            return
        dialect = next((one for one in DIALECTS if one.path.search(path)), None)
        request = self._keep(body, dialect)
        if dialect is None:
            self._send_json(404, {"error": {"message": "not found"}})
            return
        try:
            self._answer(request, dialect)
        except OSError:
            request.outcome = "cut"
            self.close_connection = True

    def _answer(self, request: Request, dialect: Dialect) -> None:
        reply = self.server_of_models.reply_to(request)
        if isinstance(reply, Fail):
            self._send_json(reply.status, dialect.refuse(reply))
            request.outcome = "failed"
            return
        if isinstance(reply, Shell):
            reply = dialect.shell(reply, request.body)
        elif isinstance(reply, McpCall):
            reply = dialect.mcp(reply)
        elif isinstance(reply, Question):
            reply = dialect.question(reply)
        if dialect.wants_stream(self.path, request.body):
            self._send_head(200, "text/event-stream")
            for chunk in dialect.stream(reply):
                self._send_chunk(chunk)
            self._send_chunk(b"")
        else:
            self._send_json(200, dialect.whole(reply))
        request.outcome = "answered"

    def _keep(self, body: Body, dialect: Dialect | None) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        kept = {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}
        request = Request(self.command, self.path, body, kept, time.time(), dialect)
        self.server_of_models.requests.append(request)
        return request

    def _send_head(self, status: int, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _send_json(self, status: int, body: Body) -> None:
        data = json.dumps(body).encode()
        self._send_head(status, "application/json", len(data))
        if self.command != "HEAD":
            self.wfile.write(data)
