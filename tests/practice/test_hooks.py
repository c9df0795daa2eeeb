"""Hooks run in order, beside the agent, and cannot hold it."""

from __future__ import annotations

import json
import os
import select

import pytest
from tests.practice.drive import wait_for
from tests.processes import is_running

from mam.practice import hooks as module
from mam.practice.hooks import Hooks
from mam.practice.settings import load_hooks
from mam.practice.transcript import Refused


def finish(hooks: Hooks) -> None:
    def is_done() -> bool:
        hooks.advance()
        return hooks.deadline() is None

    wait_for(is_done, "the end of the hooks")


def test_payload_arrives_whole_however_big(tmp_path):
    hooks = Hooks({"Stop": f"cat > {tmp_path}/out.part && mv {tmp_path}/out.part {tmp_path}/out"})
    payload = {"text": "é\n" * 500_000}
    hooks.fire("Stop", payload)
    finish(hooks)
    assert json.loads((tmp_path / "out").read_text()) == payload


def test_order_is_kept(tmp_path):
    hooks = Hooks({"A": f"sleep 0.1; echo a >> {tmp_path}/log", "B": f"echo b >> {tmp_path}/log"})
    for event in ("A", "B", "A"):
        hooks.fire(event, {})
    finish(hooks)
    assert (tmp_path / "log").read_text() == "a\nb\na\n"


def test_firing_does_not_wait():
    hooks = Hooks({"A": "exec sleep 600"})
    hooks.fire("A", {"text": "x" * 1_000_000})
    hooks.fire("A", {})
    assert is_running(hooks._running.pid)
    assert len(hooks._waiting) == 1
    hooks._until = 0
    hooks._waiting.clear()
    finish(hooks)


@pytest.mark.parametrize(
    "command", ["exit 3", "kill -9 $$", "exec <&-", "/no/such/program", "syntax ( error"]
)
def test_a_failing_hook_is_no_matter(command, tmp_path):
    hooks = Hooks({"A": command, "B": f"touch {tmp_path}/told"})
    hooks.fire("A", {"text": "x" * 200_000})
    hooks.fire("B", {})
    finish(hooks)
    assert (tmp_path / "told").exists()


def test_a_hanging_hook_is_killed_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LIMIT_SECONDS", 0.3)
    # The child holds a FIFO; its end is seen as end of file.
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    hooks = Hooks({"A": f"(echo x; sleep 60) > {pipe} & wait", "B": f"touch {tmp_path}/told"})
    hooks.fire("A", {})
    hooks.fire("B", {})
    wait_for(lambda: select.select([reading], [], [], 0)[0] and os.read(reading, 9) == b"x\n", "the child")
    finish(hooks)
    wait_for(lambda: select.select([reading], [], [], 0)[0] and os.read(reading, 9) == b"", "its end")
    os.close(reading)
    assert (tmp_path / "told").exists()


def test_the_last_event_is_told_even_behind_hanging_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LIMIT_SECONDS", 0.4)
    hooks = Hooks({"A": "sleep 600", "End": f"touch {tmp_path}/told"})
    for event in ("A", "A", "A", "End"):
        hooks.fire(event, {})
    hooks.finish()
    assert (tmp_path / "told").exists()


def test_nobody_listens():
    hooks = Hooks({"A": ""})
    hooks.fire("A", {})
    hooks.fire("B", {})
    assert hooks.deadline() is None


def test_settings_from_text_and_file(tmp_path):
    text = '{"hooks": {"Stop": "true"}, "other": 1}'
    (tmp_path / "settings.json").write_text(text)
    assert load_hooks(text) == load_hooks(str(tmp_path / "settings.json")) == {"Stop": "true"}
    assert load_hooks("") == load_hooks("{}") == {}


@pytest.mark.parametrize(
    "setting",
    ["{", "/no/such/file", "/", '{"hooks": []}', '{"hooks": {"Stop": 1}}', '{"hooks": {"Stop": []}}'],
)
def test_settings_that_cannot_be_used(setting):
    with pytest.raises(Refused):
        load_hooks(setting)
