"""The model server speaks each dialect, keeps what it was asked, and does what its script says."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from threading import Thread

import pytest
from tests.conformance.model_server import ModelServer
from tests.conformance.replies import Call, Question, Say, Shell
from tests.waiting import wait_until

TOOLS = [{"name": "tool"}]
REQUESTS = {
    "anthropic": ("/v1/messages?beta=true", "messages", {"role": "user", "content": "hello there"}),
    "responses": ("/v1/responses", "input", {"role": "user", "content": [{"text": "hello there"}]}),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        "contents",
        {"role": "user", "parts": [{"text": "hello there"}]},
    ),
    "chat": ("/v1/chat/completions", "messages", {"role": "user", "content": "hello there"}),
}


@pytest.fixture
def model():
    with ModelServer() as server:
        yield server


def post(model, dialect, stream=True, tools=TOOLS, path=None):
    where, key, message = REQUESTS[dialect]
    body = {"model": "m", key: [message], "stream": stream, "tools": tools}
    request = urllib.request.Request(
        model.url + (path or where), json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


@pytest.mark.parametrize("dialect", REQUESTS)
class TestDialect:
    def test_streams_an_echo(self, model, dialect):
        said = post(model, dialect)
        assert said.count("data: ") > 3
        assert all(word in said for word in ("pong ", "1: ", "hello ", "there"))
        (request,) = model.saw("hello there")
        # The client has the whole answer a moment before the server has noted it.
        wait_until(lambda: request.outcome is not None, "the server's note")
        assert request.outcome == "answered"
        assert not model.saw("pong")

    def test_answers_as_one_document(self, model, dialect):
        path = "/v1beta/models/m:generateContent" if dialect == "gemini" else None
        said = json.loads(post(model, dialect, stream=False, path=path))
        assert "pong 1: hello there" in json.dumps(said)

    @pytest.mark.parametrize(
        ("reply", "inside"), [(Shell("touch x"), "touch x"), (Question("Why?"), "Why?"), (Call("any"), "any")]
    )
    def test_asks_for_a_tool_and_goes_on_after_it(self, model, dialect, reply, inside):
        model.answer(reply, Say("finished"))
        assert inside in post(model, dialect)
        assert "finished" in post(model, dialect)

    def test_fails_as_often_as_told(self, model, dialect):
        model.fail(500, times=2)
        for _ in range(2):
            with pytest.raises(urllib.error.HTTPError) as failure:
                post(model, dialect)
            assert failure.value.code == 500
            assert "fake error 500" in failure.value.read().decode()
            failure.value.close()
        assert "pong" in post(model, dialect)

    def test_a_side_call_leaves_the_script_alone(self, model, dialect):
        model.answer(Say("for the turn"))
        assert "title" in post(model, dialect, tools=[])
        assert not model.turns()
        assert "turn" in post(model, dialect)


def test_a_held_answer_waits_for_its_gate(model):
    gate = model.gate()
    model.answer(Say("one two three four", midway=gate))
    heard = []
    asking = Thread(target=lambda: heard.append(post(model, "anthropic")))
    asking.start()
    time.sleep(0.1)
    assert not heard
    assert model.turns()[0].outcome is None
    gate.set()
    asking.join(5)
    assert "four" in heard[0]


def test_no_way_leads_outside(model):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": model.url, "https": model.url}))
    for scheme in ("http", "https"):
        with pytest.raises(urllib.error.URLError) as refused:
            opener.open(f"{scheme}://outside.invalid/x", timeout=5)
        if isinstance(refused.value, urllib.error.HTTPError):
            refused.value.close()
    assert model.outside == ["http://outside.invalid/x", "outside.invalid:443"]


def test_counts_tokens(model):
    assert json.loads(post(model, "anthropic", path="/v1/messages/count_tokens"))["input_tokens"] == 11
    assert not model.turns()
