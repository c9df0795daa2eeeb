"""A sender that is killed at a step of its way: python -m tests.app.dying STEP ROOT NAME TEXT.

It kills itself. With `paused` the test kills it: it says on its output when it types the text, and leaves a
pause between the text and Enter.
"""

from __future__ import annotations

import os
import signal
import sys

import mam
from mam.adapters.agents.kind import Kind
from mam.adapters.tmux.client import Tmux
from mam.app.messages import delivery, receipt_proof, send

STEPS = ("recorded", "begun", "pasted", "entered", "proven")
PAUSE = 0.5


def die(*_given, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(act, **changed):
    def work(*given, **options):
        act(*given, **{**options, **changed})
        die()

    return work


def cut(self, pane_id, text, **options):
    """Paste the first half of a text, and die."""
    _paste(self, pane_id, text[: len(text) // 2], **{**options, "enter": False})
    die()


def paste_aloud(*given, **options):
    print("pasting", flush=True)
    _paste(*given, **options)


def pause_before_enter(kind: Kind) -> None:
    """Let a program of this kind have its text for a while before it has Enter."""
    type(kind).pause = lambda _kind, _text: PAUSE


_paste = Tmux.paste


def arm(step: str) -> None:
    if step == "recorded":
        send.deliver = die
    elif step == "begun":
        delivery.type_text = die
    elif step == "cut":
        Tmux.paste = cut
    elif step in ("pasted", "pasted-command"):
        Tmux.paste = then_die(Tmux.paste, enter=False)
    elif step == "entered":
        Tmux.paste = then_die(Tmux.paste)
    elif step == "proven":
        receipt_proof.wait_for = then_die(receipt_proof.wait_for)
    elif step == "paused":
        Tmux.paste = paste_aloud


if __name__ == "__main__":
    arm(sys.argv[1])
    with mam.open(sys.argv[2]) as fleet:
        if sys.argv[1] == "paused":
            pause_before_enter(fleet._access.context.kind(fleet.sessions.get(sys.argv[3]).row["agent"]))
        fleet.messages.send(sys.argv[3], sys.argv[4], command=sys.argv[1] == "pasted-command")
