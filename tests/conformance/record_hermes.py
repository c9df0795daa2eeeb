"""Record the screens of Hermes: `python -m tests.conformance.record_hermes [SCENE...]`.

It plays the scenes with the real program in a private tmux server, and writes below `screens_hermes/`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.launch import start
from tests.conformance.model_server import ModelServer
from tests.conformance.program import PROGRAMS
from tests.conformance.replies import Call, Say
from tests.conformance.stage import end_processes_of
from tests.conformance.terminal import Pane, Terminals, wait_until

SCREENS = Path(__file__).parent / "screens_hermes"
# Below 64 columns it draws less.
SIZES = ((200, 50), (100, 30), (60, 24))
PROGRAM = PROGRAMS["hermes"]
READY = PROGRAM.ready
_ID = re.compile(r"\b[0-9]{8}_[0-9]{6}_[0-9a-f]{6}\b")


@dataclass
class Stage:
    """One program in a pane, and the screens that are kept of it."""

    size: tuple[int, int]
    place: Path
    terminals: Terminals
    model: ModelServer
    is_configured: bool = True

    def __post_init__(self) -> None:
        (self.place / "demo").mkdir(parents=True)
        self.pane = self.start()

    def start(self, *arguments: str) -> Pane:
        return start(
            *(PROGRAM.name, self.terminals, self.place / "demo", self.model),
            home=self.place / "home",
            arguments=arguments,
            authenticated=self.is_configured,
            size=self.size,
        )

    def ready(self) -> None:
        self.pane.wait_for(READY, timeout=PROGRAM.ready_timeout)
        self.pane.settle()

    def ask(self, text: str) -> None:
        before = len(self.model.turns())
        self.pane.paste(text)
        self.pane.keys("Enter")
        wait_until(lambda: len(self.model.turns()) > before, f"a turn for {text!r}\n{self.pane.screen()}")

    def save(self, state: str) -> None:
        drawn = self.pane.drawn()
        suffix = "" if self.size == SIZES[0] else "@{}x{}".format(*self.size)
        facts = {
            "kind": "hermes",
            "version": PROGRAM.install.version,
            "state": state,
            "size": list(self.size),
            "cursor": drawn.cursor,
            "alternate_screen": self.pane.field("alternate_on") == "1",
            "exit_status": self.pane.exit_status(),
        }
        SCREENS.mkdir(exist_ok=True)
        for ending, screen in (("txt", drawn.text), ("ansi", drawn.styled)):
            (SCREENS / f"{state}{suffix}.{ending}").write_text(self._neutral(screen) + "\n", encoding="utf-8")
        (SCREENS / f"{state}{suffix}.json").write_text(
            json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
        print(f"{state}{suffix}", flush=True)

    def _neutral(self, text: str) -> str:
        # A narrow screen breaks a path in the middle.
        text = re.sub(rf"{re.escape(str(self.place.parent.parent))}[^\s\x1b]*", "/w/home", text)
        text = text.replace(str(self.model.port), "8765")
        return _ID.sub("20260101_000000_000000", text)


def play_turn(one: Stage) -> None:
    one.ready()
    one.save("idle")
    one.pane.type("some words")
    one.pane.wait_for("some words")
    one.save("draft")
    one.pane.keys("C-u")
    one.pane.type("/mo")
    one.pane.wait_for("/model")
    one.save("slash-menu")
    one.pane.keys("C-u")
    held = one.model.gate()
    one.model.answer(Say("one two three", before=held))
    one.ask("remember the word xylophone")
    one.pane.settle(timeout=2.0)
    one.save("thinking")
    held.set()
    one.pane.wait_for("one two three")
    one.pane.wait_for(READY)
    one.pane.settle()
    one.save("idle-after-turn")
    held = one.model.gate()
    one.model.answer(Say("one two three\nfour five six\nseven eight\n", midway=held))
    one.ask("count slowly")
    one.pane.wait_for("one two three\n")
    one.pane.settle(timeout=2.0)
    one.save("streaming")
    one.pane.type("draft in a turn")
    one.pane.wait_for("draft in a turn")
    one.save("draft-in-a-turn")
    one.pane.keys("C-u")
    one.pane.keys("C-c")
    one.pane.wait_for("Interrupted")
    one.pane.wait_for(READY)
    one.pane.settle()
    one.save("interrupted")
    held.set()
    one.pane.paste("\n".join(f"line {number} of a big paste" for number in range(100)))
    one.pane.wait_for("Pasted text")
    one.save("big-paste")
    one.pane.keys("C-c")
    one.pane.settle()
    one.save("erased")


def play_dialogs(one: Stage) -> None:
    one.ready()
    one.model.answer(Call("terminal", {"command": "rm -rf ./gone"}))
    one.ask("remove it")
    one.pane.wait_for("Allow once")
    one.pane.settle(timeout=1.0)
    one.save("permission")
    one.pane.keys("4")
    one.pane.wait_for("denied")
    one.pane.wait_for(READY)
    one.pane.settle()
    one.save("denied")
    one.model.answer(Call("clarify", {"question": "Which color?", "choices": ["Red", "Green"]}))
    one.ask("ask me")
    one.pane.wait_for("1. Red")
    one.save("question")
    one.pane.keys("Down")
    one.pane.keys("Down")
    one.pane.keys("Enter")
    one.pane.wait_for("^✎")
    one.save("question-in-words")
    one.pane.keys("C-c")
    one.pane.wait_for(READY)
    one.pane.settle()
    one.save("question-refused")
    one.pane.paste("/model")
    one.pane.keys("Enter")
    one.pane.wait_for("Model Picker")
    one.pane.settle()
    one.save("menu")
    one.pane.keys("Escape")
    one.pane.settle()
    one.pane.paste("/new")
    one.pane.keys("Enter")
    one.pane.wait_for("Approve Once")
    one.pane.settle(timeout=1.0)
    one.save("confirm")
    one.pane.keys("1")
    one.pane.wait_for("New session started")
    one.pane.wait_for(READY)
    one.pane.settle()
    one.save("cleared")
    one.model.fail(400, 6)
    one.ask("provoke an error")
    one.pane.wait_for(READY)
    one.pane.settle()
    one.save("error")
    one.model.forget_script()
    one.pane.paste("/exit")
    one.pane.keys("Enter")
    one.pane.wait_for_exit()
    one.pane.settle()
    one.save("exited")


def play_unconfigured(one: Stage) -> None:
    one.pane.wait_for("Run setup now")
    one.pane.settle()
    one.save("no-provider")


SCENES: dict[str, tuple[Callable[[Stage], None], bool]] = {
    "turn": (play_turn, True),
    "dialogs": (play_dialogs, True),
    "unconfigured": (play_unconfigured, False),
}


def main() -> int:
    wanted = sys.argv[1:] or list(SCENES)
    place = Path(tempfile.mkdtemp(prefix="mc-", dir="/var/tmp"))
    try:
        with Terminals(f"mam-conf-{os.getpid()}", place) as terminals, ModelServer() as model:
            for name in wanted:
                play, is_configured = SCENES[name]
                for size in SIZES:
                    stage = Stage(size, place / f"{name}-{size[0]}" / "w", terminals, model, is_configured)
                    try:
                        play(stage)
                    finally:
                        stage.pane.close()
                        end_processes_of(stage.place / "home")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
