"""What is played with a program to see its states: one walk for all four, and plays for one alone.

Enter is never pressed in a dialog: each is left with the key that refuses it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.conformance.replies import Question, Say, Shell
from tests.conformance.stage import Stage
from tests.conformance.terminal import wait_until

# Lines, because Claude shows a streamed text only as far as its last whole line.
LONG = "\n\n".join(f"Here is count number {number}." for number in range(1, 9))
BIG = "\n".join(f"line {number} of a long text" for number in range(1, 101))


def press(stage: Stage, keys: Sequence[str]) -> None:
    for key in keys:
        stage.pane.keys(key)
        time.sleep(0.4)


def refuse(stage: Stage, pattern: str) -> None:
    """Leave a dialog with Escape, and wait until it is gone: opencode takes a second for it."""
    stage.pane.keys("Escape")
    wait_until(lambda: not stage.pane.shows(pattern), "the end of the dialog")
    rest(stage)


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
    program = stage.program
    stage.ready()
    stage.save("idle")
    stage.pane.type("half a thought")
    stage.save("draft")
    press(stage, program.erase)
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
    stage.pane.wait_for(program.queued)
    time.sleep(0.5)
    stage.save("queued", still=False)
    held.set()
    wait_until(lambda: stage.model.saw("and this too"), "the second prompt")
    rest(stage)
    stage.save("queue-answered")
    stage.pane.paste(BIG)
    stage.save("big-paste")
    press(stage, program.erase)
    stage.pane.settle()
    stage.save("erased", note=f"after {' '.join(program.erase)}")
    stage.pane.type("/")
    stage.save("slash-menu")
    stage.pane.keys("BSpace")
    stage.pane.settle()
    stage.pane.type("!")
    stage.save("shell-mode")


def play_dialogs(stage: Stage) -> None:
    """A tool that wants a permission, a question, and the keys that refuse them."""
    program = stage.program
    stage.ready()
    stage.model.answer(Shell("touch made-by-tool", "make a file"))
    stage.ask("make a file please")
    stage.pane.wait_for(program.permission)
    stage.save("permission")
    assert not (stage.folder / "made-by-tool").exists()
    refuse(stage, program.permission)
    stage.save("denied")
    if program.question:
        stage.model.answer(Question())
        stage.ask("ask me something")
        stage.pane.wait_for(program.question)
        stage.save("question")
        refuse(stage, program.question)
        stage.save("question-refused")
    if program.menu_keys:
        stage.pane.keys(*program.menu_keys)
    else:
        command(stage, program.menu)
    stage.save("menu")


def play_troubles(stage: Stage) -> None:
    """An interrupt, an error, retries, a cleared conversation, the end."""
    program = stage.program
    stage.ready()
    held = stage.model.gate()
    stage.model.answer(Say(LONG, midway=held))
    stage.ask("count until I stop you")
    stage.pane.wait_for("count number 3")
    press(stage, program.interrupt)
    held.set()
    stage.pane.settle(1.0)
    stage.save("interrupted")
    stage.model.fail(400, 30)
    stage.ask("provoke an error")
    stage.pane.wait_for(program.error)
    rest(stage)
    stage.save("error")
    stage.model.forget_script()
    stage.model.fail(500, 30)
    stage.ask("provoke retries")
    stage.pane.wait_for(program.retry)
    time.sleep(2.0)
    stage.save("retry", still=False)
    press(stage, program.interrupt)
    stage.pane.settle(1.0)
    stage.save("retry-interrupted")
    stage.model.forget_script()
    press(stage, program.erase if program.restores_prompt else ())
    command(stage, program.clear)
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
    stage.restart(*stage.program.resume)
    stage.pane.wait_for("I keep the word", timeout=60)
    stage.pane.settle(1.0)
    stage.save("resumed")
    stage.ask("which word was it")
    assert len(stage.model.saw("xylophone")) == 2, "the history is not there"
    rest(stage)
    stage.leave()


def play_tab(stage: Stage) -> None:
    """Codex alone: Tab queues what Enter would put into the running turn."""
    stage.ready()
    held = stage.model.gate()
    stage.model.answer(Say(LONG, midway=held))
    stage.ask("count slowly")
    stage.pane.wait_for("count number 3")
    stage.pane.paste("after this one")
    time.sleep(0.5)
    stage.pane.keys("Tab")
    time.sleep(1.0)
    stage.save("tab-queued", still=False)
    held.set()
    wait_until(lambda: stage.model.saw("after this one"), "the queued prompt")
    rest(stage)


def play_locked(stage: Stage) -> None:
    """Codex alone: a conversation that another process has open."""
    stage.ready()
    stage.ask("remember the word xylophone")
    rest(stage)
    first, stage.pane = stage.pane, stage.open_beside("resume", "--last")
    stage.pane.wait_for("open in another")
    stage.save("locked")
    first.close()


def play_half_interrupt(stage: Stage) -> None:
    """opencode alone: one Escape only announces the interrupt."""
    stage.ready()
    held = stage.model.gate()
    stage.model.answer(Say(LONG, midway=held))
    stage.ask("count slowly")
    stage.pane.wait_for("count number 3")
    stage.pane.keys("Escape")
    stage.pane.wait_for("again to interrupt")
    stage.save("half-interrupted", still=False)
    held.set()


def play_no_key(stage: Stage) -> None:
    """Claude alone: it looks ready without a key, and says so only when asked."""
    stage.ready()
    stage.save("no-key")
    stage.pane.submit("is anybody there")
    stage.pane.wait_for("/login")
    stage.save("no-key-refused")
