"""Where a recording happens: a program in a pane with a model, and the screens that are kept of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.install import find_cache
from tests.conformance.launch import start
from tests.conformance.model_server import ModelServer
from tests.conformance.program import PROGRAMS, Program
from tests.conformance.terminal import HEIGHT, WIDTH, Drawn, Pane, Terminals
from tests.processes import is_running, processes_of
from tests.waiting import wait_until

SCREENS = Path(__file__).parent / "screens"
SHOWN = Path("/w")
_STYLES = r"((?:\x1b\[[0-9;:]*m)*)"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(slots=True)
class Stage:
    """One program, one home, one model; `save` keeps what is on the screen."""

    kind: str
    size: tuple[int, int]
    place: Path
    terminals: Terminals
    model: ModelServer
    pane: Pane

    @property
    def program(self) -> Program:
        return PROGRAMS[self.kind]

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def folder(self) -> Path:
        return self.place / "demo"

    def ready(self) -> None:
        self.pane.wait_for(self.program.ready, timeout=self.program.ready_timeout)
        self.pane.settle()

    def restart(self, *arguments: str, **options: Any) -> None:
        """Start the program again in the same home and folder."""
        self.pane.close()
        self.pane = self.open_beside(*arguments, **options)

    def open_beside(self, *arguments: str, **options: Any) -> Pane:
        """Start the program once more in the same home and folder, in a pane of its own."""
        return start(
            *(self.kind, self.terminals, self.folder, self.model),
            home=self.home,
            arguments=arguments,
            size=self.size,
            **options,
        )

    def ask(self, text: str) -> None:
        """Submit a prompt, and wait until the model has its turn."""
        before = len(self.model.turns())
        self.pane.paste(text)
        self.pane.wait_for(re.escape(text.splitlines()[0][:30]))
        # Codex and Gemini take an Enter that comes too early for a part of the text.
        time.sleep(0.4)
        self.pane.keys("Enter")
        wait_until(lambda: len(self.model.turns()) > before, f"a turn for {text!r}\n{self.pane.screen()}")

    def leave(self) -> int:
        self.pane.type(self.program.exit)
        time.sleep(0.6)
        self.pane.keys("Enter")
        return self.pane.wait_for_exit()

    def save(self, state: str, *, still: bool = True, note: str = "") -> None:
        """Keep the screen and its facts as a state; `still` waits for a screen that rests."""
        if still:
            self.pane.settle()
        drawn = self.pane.drawn()
        suffix = "" if self.size == (WIDTH, HEIGHT) else f"@{self.size[0]}x{self.size[1]}"
        target = SCREENS / self.kind / f"{state}{suffix}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._neutral(drawn.text) + "\n", encoding="utf-8")
        target.with_suffix(".ansi").write_text(self._neutral_styled(drawn) + "\n", encoding="utf-8")
        facts = json.dumps(self._facts(state, drawn.cursor, note), ensure_ascii=False, indent=1)
        target.with_suffix(".json").write_text(self._neutral(facts) + "\n", encoding="utf-8")
        print(f"{self.kind} {state}{suffix}", flush=True)

    def _facts(self, state: str, cursor: list[int], note: str) -> dict[str, Any]:
        turns = self.model.turns()
        facts: dict[str, Any] = {
            "kind": self.kind,
            "version": self.program.install.version,
            "state": state,
            "size": list(self.size),
            "pane_title": self._title(),
            "cursor": cursor,
            "cursor_visible": self.pane.field("cursor_flag") == "1",
            "alternate_screen": self.pane.field("alternate_on") == "1",
            "exit_status": self.pane.exit_status(),
            "turns": [
                {
                    "last_said": turn.last_text()[:80],
                    "messages": len(turn.messages()),
                    "outcome": turn.outcome,
                }
                for turn in turns
            ],
        }
        if (own := self._own_status()) is not None:
            facts["own_status"] = own
        if note:
            facts["note"] = note
        return facts

    def _title(self) -> str | None:
        """Return the title that the program gave its pane; tmux itself begins with the name of the host."""
        title = self.pane.field("pane_title").rstrip()
        return None if title == self.pane.field("host_short") else title

    def _own_status(self) -> dict[str, Any] | None:
        """Return what the program itself says about its state, in a file it keeps while it runs."""
        own = self.program.own_status
        for path in self.home.glob(own.files) if own else ():
            with suppress(OSError, ValueError):
                said = json.loads(path.read_text(encoding="utf-8"))
                return {name: said[name] for name in own.keys if name in said}
        return None

    def _neutral(self, text: str) -> str:
        """Take the machine out of a text; a shorter path leaves its column where it was."""
        for real, shown in ((self.place, SHOWN), (find_cache(), SHOWN / "agents")):
            text = "\n".join(_replace(line, str(real), str(shown)) for line in text.split("\n"))
        text = text.replace(str(self.model.port), "8765")
        return _UUID.sub(_blank_uuid, text)

    def _neutral_styled(self, drawn: Drawn) -> str:
        """Return the styled screen as `_neutral` does; a style may change in the middle of an id."""
        styled = drawn.styled
        for ident in set(_UUID.findall(drawn.text)):
            parted = _STYLES.join(f"({re.escape(sign)})" for sign in ident)
            styled = re.sub(parted, _blank_parted_uuid, styled)
        return self._neutral(styled)


def _replace(line: str, real: str, shown: str) -> str:
    gone = len(real) - len(shown)
    while real in line:
        before, after = line.split(real, 1)
        gap = re.search(r" {3,}", after)
        if gap:
            after = after[: gap.end()] + " " * gone + after[gap.end() :]
        line = before + shown + after
    return line


def _blank_uuid(found: re.Match[str]) -> str:
    """Keep the first digits, so that two ids stay two."""
    return found[0][:8] + re.sub("[0-9a-f]", "0", found[0][8:])


def _blank_parted_uuid(found: re.Match[str]) -> str:
    """Blank the digits of an id between which there are styles; each second group is a style."""
    signs, styles = found.groups()[::2], found.groups()[1::2]
    blank = re.sub("[0-9a-f]", "0", "".join(signs[8:]))
    return "".join(map("".join, zip([*signs[:8], *blank], [*styles, ""], strict=True)))


@contextmanager
def stage(
    kind: str,
    terminals: Terminals,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    arguments: Sequence[str] = (),
    prepare: Any = None,
    **options: Any,
) -> Iterator[Stage]:
    """Start a program in a fresh home; at the end the program, its children and its home are gone.

    `prepare(folder, home)` runs before the start.
    """
    # Named as it is shown: a dialog names the parent folder too.
    place = terminals.place / str(time.monotonic_ns() % 10**6) / SHOWN.name
    (place / "demo").mkdir(parents=True)
    (place / "home").mkdir()
    if prepare is not None:
        prepare(place / "demo", place / "home")
    with ModelServer() as model:
        pane = start(
            *(kind, terminals, place / "demo", model),
            home=place / "home",
            arguments=arguments,
            size=size,
            **options,
        )
        one = Stage(kind, size, place, terminals, model, pane)
        try:
            yield one
        finally:
            one.pane.close()
            end_processes_of(one.home)
            shutil.rmtree(place.parent, ignore_errors=True)


def end_processes_of(home: Path, grace: float = 5.0) -> None:
    """Wait for the processes of a home to end on their own, and kill those that do not, by pid."""
    until = time.monotonic() + grace
    while (left := processes_of(home)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, left)), "the end of the processes of a home")
