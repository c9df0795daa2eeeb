"""What is played to record the screens: one walk for all programs, and the scenes of one program alone.

Enter is never pressed in a dialog: each is left with the keys that refuse it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance.replies import Question, Say, Shell
from tests.conformance.stage import Stage
from tests.conformance.terminal import wait_until

# Lines, because Claude shows a streamed text only as far as its last whole line.
LONG = "\n\n".join(f"Here is count number {number}." for number in range(1, 9))
BIG = "\n".join(f"line {number} of a long text" for number in range(1, 101))


@dataclass(frozen=True, slots=True)
class Manners:
    """How a program is spoken to, and what shows that it is in a state."""

    permission: str
    error: str
    retry: str
    queued: str
    question: str | None = None
    erase: tuple[str, ...] = ("C-u",)
    interrupt: tuple[str, ...] = ("Escape",)
    clear: str = "/clear"
    resume: tuple[str, ...] = ("--continue",)
    free: tuple[str, ...] = ()
    free_options: dict[str, Any] = field(default_factory=dict)


MANNERS = {
    "claude": Manners(
        permission=r"Do you want to proceed\?",
        question=r"Enter to select",
        error=r"API Error: 400",
        retry=r"attempt \d+/\d+",
        queued=r"and this too",
        free=("--allowedTools", "Bash"),
    ),
    "codex": Manners(
        permission=r"Would you like to run",
        error=r"fake error 400",
        retry=r"Reconnecting",
        queued=r"and this too",
        erase=("C-c",),
        resume=("resume", "--last"),
        free=("--dangerously-bypass-approvals-and-sandbox",),
    ),
    "gemini": Manners(
        permission=r"Allow execution of",
        question=r"Which color",
        error=r"fake error 400",
        retry=r"Thinking",
        queued=r"Queued",
        resume=("--resume", "latest"),
        free=("--approval-mode", "yolo"),
    ),
    "opencode": Manners(
        permission=r"Permission required",
        question=r"Which color",
        error=r"fake error 400",
        retry=r"retrying",
        queued=r"QUEUED",
        interrupt=("Escape", "Escape"),
        clear="/new",
        free=("--auto",),
    ),
}


def press(stage: Stage, keys: tuple[str, ...]) -> None:
    for key in keys:
        stage.pane.keys(key)
        time.sleep(0.4)


def rest(stage: Stage) -> None:
    """Wait until every turn that the model took is answered, and the screen rests."""
    wait_until(lambda: all(turn.outcome for turn in stage.model.turns()), "the end of the turns")
    stage.pane.settle(1.0)


def command(stage: Stage, text: str) -> None:
    """Type a command of the program and press Enter."""
    stage.pane.type(text)
    time.sleep(0.6)
    stage.pane.keys("Enter")
    stage.pane.settle()


def play_turns(stage: Stage) -> None:
    """From a fresh start to an answered turn, with what is seen while the model answers."""
    manners = MANNERS[stage.kind]
    stage.ready()
    stage.save("idle")
    stage.pane.type("half a thought")
    stage.save("draft")
    press(stage, manners.erase)
    stage.model.answer(Say("The first answer is complete."))
    stage.ask("remember the word xylophone")
    stage.pane.wait_for("first answer is complete")
    rest(stage)
    stage.save("idle-after-turn")
    held = stage.model.gate()
    stage.model.answer(Say("The thought is complete.", before=held))
    stage.ask("think before you speak")
    time.sleep(1.5)
    stage.save("thinking", still=False)
    held.set()
    stage.pane.wait_for("thought is complete")
    rest(stage)
    held = stage.model.gate()
    stage.model.answer(Say(LONG, midway=held))
    stage.ask("count slowly")
    stage.pane.wait_for("count number 3")
    time.sleep(0.5)
    stage.save("streaming", still=False)
    stage.pane.paste("and this too")
    time.sleep(0.5)
    stage.pane.keys("Enter")
    stage.pane.wait_for(manners.queued)
    time.sleep(0.5)
    stage.save("queued", still=False)
    held.set()
    wait_until(lambda: stage.model.saw("and this too"), "the second prompt")
    rest(stage)
    stage.save("queue-answered")
    stage.pane.paste(BIG)
    stage.save("big-paste")
    press(stage, manners.erase)
    stage.pane.settle()
    stage.save("erased", note=f"after {' '.join(manners.erase)}")


def play_dialogs(stage: Stage) -> None:
    """A tool that wants a permission, a question, and the keys that refuse them."""
    manners = MANNERS[stage.kind]
    stage.ready()
    stage.model.answer(Shell("touch made-by-tool", "make a file"))
    stage.ask("make a file please")
    stage.pane.wait_for(manners.permission)
    stage.save("permission")
    assert not (stage.folder / "made-by-tool").exists()
    stage.pane.keys("Escape")
    rest(stage)
    stage.save("denied")
    if manners.question:
        stage.model.answer(Question())
        stage.ask("ask me something")
        stage.pane.wait_for(manners.question)
        stage.save("question")
        stage.pane.keys("Escape")
        rest(stage)
        stage.save("question-refused")


def play_troubles(stage: Stage) -> None:
    """An interrupt, an error, retries, a cleared conversation, the end."""
    manners = MANNERS[stage.kind]
    stage.ready()
    held = stage.model.gate()
    stage.model.answer(Say(LONG, midway=held))
    stage.ask("count until I stop you")
    stage.pane.wait_for("count number 3")
    press(stage, manners.interrupt)
    held.set()
    stage.pane.settle(1.0)
    stage.save("interrupted")
    stage.model.fail(400, 30)
    stage.ask("provoke an error")
    stage.pane.wait_for(manners.error)
    rest(stage)
    stage.save("error")
    stage.model.forget_script()
    stage.model.fail(500, 30)
    stage.ask("provoke retries")
    stage.pane.wait_for(manners.retry)
    time.sleep(2.0)
    stage.save("retry", still=False)
    press(stage, manners.interrupt)
    stage.pane.settle(1.0)
    stage.save("retry-interrupted")
    stage.model.forget_script()
    press(stage, manners.erase if stage.kind == "claude" else ())
    command(stage, manners.clear)
    stage.pane.settle(1.0)
    stage.save("cleared")
    stage.leave()
    stage.save("exited")


def play_tool(stage: Stage) -> None:
    """A tool that runs for a while, with every permission given."""
    stage.ready()
    stage.model.answer(Shell("sleep 6; touch made-by-tool", "wait and make a file", asks=False))
    stage.ask("take your time")
    time.sleep(3.0)
    stage.save("tool-running", still=False)
    wait_until(lambda: len(stage.model.turns()) > 1, "the result of the tool")
    assert (stage.folder / "made-by-tool").exists()
    rest(stage)
    stage.save("tool-done")


def play_resume(stage: Stage) -> None:
    """A conversation that is left and taken up again."""
    stage.ready()
    stage.model.answer(Say("I keep the word xylophone."))
    stage.ask("remember the word xylophone")
    stage.pane.wait_for("I keep the word")
    rest(stage)
    stage.leave()
    stage.save("exited-after-turn")
    stage.restart(*MANNERS[stage.kind].resume)
    stage.pane.wait_for("I keep the word", timeout=60)
    stage.pane.settle(1.0)
    stage.save("resumed")
    stage.ask("which word was it")
    assert len(stage.model.saw("xylophone")) == 2, "the history is not there"
    rest(stage)
    stage.leave()


def show(stage: Stage, state: str, pattern: str) -> None:
    """A dialog at the start; nothing is pressed in it."""
    stage.pane.wait_for(pattern)
    stage.save(state)


def make_repository(folder: Path, home: Path) -> None:
    subprocess.run(
        ["git", "init", "-q"], cwd=folder, check=True, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}
    )


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
        Scene("turns", play_turns),
        Scene("dialogs", play_dialogs),
        Scene("troubles", play_troubles),
        Scene("tool", play_tool, manners.free, manners.free_options),
        Scene("resume", play_resume),
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
    ],
    "codex": [
        opening("trust", r"Trust and continue", trusted=False, prepare=make_repository),
        opening("login", r"Sign in", authenticated=False),
    ],
    "gemini": [
        opening("trust", r"Do you trust", trusted=False),
        opening("login", r"How would you like to authenticate", authenticated=False),
    ],
    "opencode": [],
}
