"""The scenes of each program: a play, and how the program is started for it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance import plays
from tests.conformance.launch import READY
from tests.conformance.manners import MANNERS
from tests.conformance.stage import Stage


def show(stage: Stage, state: str, pattern: str) -> None:
    """A dialog at the start; nothing is pressed in it."""
    stage.pane.wait_for(pattern)
    stage.save(state)


def make_repository(folder: Path, home: Path) -> None:
    subprocess.run(
        ["git", "init", "-q"], cwd=folder, check=True, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}
    )


def choose_api_key(folder: Path, home: Path) -> None:
    """Write Gemini's settings as after its first question: the key itself is still missing."""
    (home / ".gemini").mkdir()
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Scene:
    """A play and how its program is started."""

    name: str
    play: Callable[[Stage], None]
    arguments: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def scenes_of(kind: str) -> list[Scene]:
    manners = MANNERS[kind]
    shared = [
        Scene("turns", plays.play_turns),
        Scene("dialogs", plays.play_dialogs),
        Scene("troubles", plays.play_troubles),
        Scene("tool", plays.play_tool, manners.free),
        Scene("resume", plays.play_resume),
    ]
    return shared + OWN[kind]


def opening(state: str, pattern: str, *arguments: str, **options: Any) -> Scene:
    return Scene(state, partial(show, state=state, pattern=pattern), arguments, options)


OWN = {
    "claude": [
        opening("trust", r"trust this folder", trusted=False),
        opening("api-key", r"Do you want to use this API key", authenticated=False),
        opening(
            "bypass",
            r"Bypass Permissions mode",
            "--dangerously-skip-permissions",
            environment={"IS_SANDBOX": "1"},
        ),
        opening("auto-mode", READY["claude"], moderated=False),
        Scene("no-key", plays.play_no_key, options={"environment": {"ANTHROPIC_API_KEY": ""}}),
    ],
    "codex": [
        opening("trust", r"Trust and continue", trusted=False, prepare=make_repository),
        opening("login", r"Sign in", authenticated=False),
        Scene("tab", plays.play_tab),
        Scene("locked", plays.play_locked),
    ],
    "gemini": [
        opening("trust", r"Do you trust", trusted=False),
        opening("login", r"How would you like to authenticate", authenticated=False),
        opening("api-key", r"API Key", authenticated=False, prepare=choose_api_key),
    ],
    "opencode": [
        Scene("half-interrupted", plays.play_half_interrupt),
        opening("no-provider", READY["opencode"], authenticated=False),
    ],
}
