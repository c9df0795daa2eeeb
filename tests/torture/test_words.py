"""Every text of the corpus through the real programs; `tests/conformance/test_words.py` has the hardest.

What is at stake besides the words: a dialog that opens just when words are typed to an agent that works.
"""

from __future__ import annotations

import time

import pytest
from tests.conformance.desk import Desk, wait_for
from tests.conformance.replies import Say, Shell
from tests.conformance.test_words import KINDS, see_arrive
from tests.corpus import corpus


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("part", range(8))
def test_all_words_arrive(shared: Desk, part: int) -> None:
    see_arrive(shared, corpus()[part::8])


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2, 0.4])
def test_a_dialog_that_opens_while_words_are_typed(shared: Desk, delay: float) -> None:
    """However the two meet, no tool runs that nobody allowed."""
    desk, session = shared, shared.worker()
    trap = desk.workspace / f"trap-{delay}"
    held = desk.model.gate()
    desk.model.answer(Say("one\ntwo\n", midway=held), Shell(f"touch {trap.name}"))
    session.send(f"count {delay}", timeout=30)
    desk.becomes(session, "working")
    held.set()
    desk.rests(session)
    desk.fleet.messages.send(session.id, f"make a file {delay}", timeout=30)
    time.sleep(delay)
    done = desk.fleet.messages.send(session.id, f"hello {delay}")
    wait_for(lambda: session.status()["activity"] == "waiting", session.read, 30)
    assert done["state"] in ("held", "queued", "submitted", "unconfirmed"), done
    time.sleep(1.0)
    assert not trap.exists(), done
    session.answer("deny")
    assert not trap.exists()
    # Words that waited would take the answers of the next trap.
    desk.discard()
