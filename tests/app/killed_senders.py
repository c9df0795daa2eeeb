"""Senders that are killed between the text and Enter, and what becomes of their messages."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.app.dying import PAUSE
from tests.waiting import wait_until

import mam
from mam.app.messages.late_proof import correct_receipts

REPOSITORY = Path(__file__).resolve().parents[2]
DELIVERED = ("submitted", "queued")


def kill_senders(
    fleet: mam.Fleet, session: mam.Session, kills: int, seed: int, heard: Callable[[], list[str]]
) -> Counter[str]:
    """Kill senders at random points; return how many messages ended in which state.

    `heard` returns what the agent took. Each message arrives once or ends visibly, and the next one arrives.
    """
    chance, ends = random.Random(seed), Counter()
    for number in range(kills):
        text, delay = _text(chance, f"{seed}-{number}"), chance.uniform(0.0, PAUSE * 1.2)
        _kill_sender(fleet.root, session.id, text, delay)
        after = f"the message after {seed}-{number}"
        receipt = fleet.messages.send(session.id, after, when="idle", timeout=120)
        screen = session.read()
        assert receipt["state"] in DELIVERED, (text[:60], delay, receipt, screen)
        correct_receipts(fleet._access.context, session.id)
        (message,) = [sent for sent in fleet.messages.inbox(session.id) if sent["text"] == text]
        # A hook proves a message before the agent's record shows it.
        taken = wait_until(lambda after=after: _with(after, heard()), f"{after} in the record")
        count = taken.count(text)
        assert count == (1 if message["state"] in DELIVERED else 0), (text[:60], delay, message, screen)
        assert taken.count(after) == 1, (after, taken[-3:])
        assert message["state"] not in ("held", "typing"), message
        assert not [said for said in taken if text in said and said != text], "nothing is glued to it"
        ends[message["state"]] += 1
    return ends


def _with(after: str, heard: list[str]) -> list[str] | None:
    taken = [said.strip() for said in heard]
    return taken if after in taken else None


def _text(chance: random.Random, label: str) -> str:
    """Return a short text, one of a few lines, or one that programs fold."""
    lines = chance.choice((1, 1, 3, 40))
    return "\n".join(f"line {line} of {label} that nobody else has written" for line in range(lines))


def _kill_sender(root: str, session_id: str, text: str, delay: float) -> None:
    argv = [sys.executable, "-m", "tests.app.dying", "paused", root, session_id, text]
    with subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == "pasting\n"
        # The point of the kill is random. Nothing is waited for.
        time.sleep(delay)
        sender.kill()
    wait_until(lambda: sender.returncode is not None, "the end of the sender")
