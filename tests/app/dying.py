"""A sender that kills itself at a step of its way: python -m tests.app.dying STEP ROOT NAME TEXT."""

from __future__ import annotations

import os
import signal
import sys

import mam
from mam.adapters.tmux.client import Tmux
from mam.app.messages import delivery, receipt_proof, send

STEPS = ("recorded", "begun", "pasted", "entered", "proven")


def die(*_given, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


def then_die(act, **changed):
    def work(*given, **options):
        act(*given, **{**options, **changed})
        die()

    return work


def arm(step: str) -> None:
    if step == "recorded":
        send.deliver = die
    elif step == "begun":
        delivery.type_text = die
    elif step == "pasted":
        Tmux.paste = then_die(Tmux.paste, enter=False)
    elif step == "entered":
        Tmux.paste = then_die(Tmux.paste)
    elif step == "proven":
        receipt_proof.wait_for = then_die(receipt_proof.wait_for)


if __name__ == "__main__":
    arm(sys.argv[1])
    with mam.open(sys.argv[2]) as fleet:
        fleet.messages.send(sys.argv[3], sys.argv[4])
