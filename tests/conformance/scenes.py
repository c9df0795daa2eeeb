"""The scenes of each program: a play, and how the program is started for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance import plays
from tests.conformance.program import PROGRAMS, Launch, Program, make_repository
from tests.conformance.program import Scene as OwnScene
from tests.conformance.stage import Stage


def show(stage: Stage, state: str, pattern: str) -> None:
    """A dialog at the start; nothing is pressed in it."""
    stage.pane.wait_for(pattern)
    stage.save(state)


@dataclass(frozen=True, slots=True)
class Scene:
    """A play and how its program is started."""

    name: str
    play: Callable[[Stage], None]
    arguments: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def scenes_of(kind: str) -> list[Scene]:
    program = PROGRAMS[kind]
    shared = [
        Scene("turns", plays.play_turns),
        Scene("dialogs", plays.play_dialogs),
        Scene("troubles", plays.play_troubles),
        Scene("tool", plays.play_tool, tuple(program.free)),
        Scene("resume", plays.play_resume),
    ]
    return shared + [_own_scene(program, one) for one in program.scenes]


def _own_scene(program: Program, one: OwnScene) -> Scene:
    if one.play is None:
        play = partial(show, state=one.name, pattern=one.pattern or program.ready)
    else:
        play = getattr(plays, f"play_{one.play}")
    options = {
        "environment": one.environment,
        "trusted": one.trusted,
        "authenticated": one.authenticated,
        "moderated": one.moderated,
        "prepare": partial(_prepare, one),
    }
    return Scene(one.name, play, tuple(one.arguments), options)


def _prepare(one: OwnScene, folder: Path, home: Path) -> None:
    if one.in_repository:
        make_repository(folder)
    Launch(files=one.files).write(home, anew=True)
