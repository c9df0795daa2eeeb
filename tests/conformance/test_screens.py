"""The recorded screens are complete, of the versions that are tested, and without a trace of a machine."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from tests.conformance.program import PROGRAMS, taking_part
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
KINDS = taking_part("screens")
RECORDED = sorted(SCREENS.glob("*/*.txt"))


def columns(line):
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_state_is_recorded(kind, size):
    suffix = "" if size == SIZES[0] else f"@{size}"
    there = {path.name for path in (SCREENS / kind).iterdir()}
    wanted = {
        f"{state}{suffix}{ending}" for state in STATES | PROGRAMS[kind].states for ending in (".txt", ".json")
    }
    assert not wanted - there


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_fits_its_facts(path):
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    screen = path.read_text(encoding="utf-8")
    assert facts["kind"] == path.parent.name
    assert facts["version"] == PROGRAMS[facts["kind"]].install.version
    assert facts["state"] == path.stem.partition("@")[0]
    width, height = facts["size"]
    lines = screen.splitlines()
    assert len(lines) <= height
    assert max(map(columns, lines)) <= width
    assert not re.search(r"/var/tmp|/tmp/mc-|/agents/|\b(?!8765)\d{5}\b", screen)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fresh_screen_is_ready(kind):
    screen = (SCREENS / kind / "idle.txt").read_text(encoding="utf-8")
    assert re.search(PROGRAMS[kind].ready, screen, re.MULTILINE)
