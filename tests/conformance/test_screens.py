"""The recorded screens are complete, of the versions that are tested, and without a trace of a machine."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from tests.conformance.launch import READY
from tests.conformance.programs import KINDS, PACKAGES
from tests.conformance.record import SIZES
from tests.conformance.stage import SCREENS

STATES = set(
    [
        "idle",
        "draft",
        "idle-after-turn",
        "thinking",
        "streaming",
        "queued",
        "queue-answered",
        "big-paste",
        "erased",
        "slash-menu",
        "shell-mode",
        "permission",
        "denied",
        "menu",
        "interrupted",
        "error",
        "retry",
        "retry-interrupted",
        "cleared",
        "exited",
        "tool-running",
        "tool-done",
        "exited-after-turn",
        "resumed",
    ]
)
OWN_STATES = {
    "claude": {"trust", "api-key", "bypass", "question", "question-refused", "auto-mode", "no-key"},
    "codex": {"trust", "login", "tab-queued", "locked"},
    "gemini": {"trust", "login", "api-key", "question", "question-refused"},
    "opencode": {"question", "question-refused", "half-interrupted", "no-provider"},
}
RECORDED = sorted(SCREENS.glob("*/*.txt"))


def columns(line):
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_state_is_recorded(kind, size):
    suffix = "" if size == SIZES[0] else f"@{size}"
    there = {path.name for path in (SCREENS / kind).iterdir()}
    wanted = {
        f"{state}{suffix}{ending}" for state in STATES | OWN_STATES[kind] for ending in (".txt", ".json")
    }
    assert not wanted - there


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_fits_its_facts(path):
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    screen = path.read_text(encoding="utf-8")
    assert facts["kind"] == path.parent.name
    assert facts["version"] == PACKAGES[facts["kind"]].version
    assert facts["state"] == path.stem.partition("@")[0]
    width, height = facts["size"]
    lines = screen.splitlines()
    assert len(lines) <= height
    assert max(map(columns, lines)) <= width
    assert not re.search(r"/var/tmp|/tmp/mc-|/agents/|\b(?!8765)\d{5}\b", screen)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fresh_screen_is_ready(kind):
    screen = (SCREENS / kind / "idle.txt").read_text(encoding="utf-8")
    assert re.search(READY[kind], screen, re.MULTILINE)
