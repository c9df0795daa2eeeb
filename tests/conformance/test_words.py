"""Texts of the corpus through the real programs, compared with what their model was sent.

The hardest of them here; `tests/torture` has all.
"""

from __future__ import annotations

import pytest
from tests.conformance.desk import Desk, wait_for
from tests.conformance.kinds import with_long
from tests.conformance.program import taking_part
from tests.corpus import HARD

pytestmark = pytest.mark.slow
KINDS = taking_part("words")


@pytest.fixture(
    scope="module",
    params=with_long("words"),
)
def kind(request):
    return request.param


def see_arrive(desk: Desk, texts: list[str]) -> None:
    """Send each text, and find it at the model as it was written: inline, or as a file that is named."""
    session = desk.worker()
    (desk.workspace / "README.md").write_text("x", encoding="utf-8")
    wrong = []
    for text in texts:
        before = len(desk.model.turns())
        done = desk.fleet.messages.send(session.id, text, when="idle", timeout=60)
        if done["state"] not in ("submitted", "queued"):
            wrong.append((text[:60], done, desk.fleet.sessions.read(session.id)[-1500:]))
            desk.discard()
            session = desk.worker()
            continue
        wait_for(lambda before=before: len(desk.model.turns()) > before, session.read, 30)
        heard = [said for turn in desk.model.turns()[before:] for said in turn.texts()]
        if done["carrier"] == "file":
            name = f".mam-mail/{done['message_id']}.md"
            fits = any(name in said for said in heard)
            fits = fits and (desk.workspace / name).read_bytes() == text.encode()
        else:
            # A space that keeps it from being a command may reach the model or not.
            fits = any(said in (text, f" {text}", f"{text} ", f" {text} ") for said in heard)
        if not fits:
            wrong.append((text[:60], done, [said[:100] for said in heard[-3:]]))
    assert not wrong, "\n".join(map(repr, wrong))
    assert not (desk.workspace / "ran").exists()


@pytest.mark.promise("P27")
def test_the_hardest_words_arrive(shared: Desk) -> None:
    assert len(HARD) >= 40
    see_arrive(shared, list(HARD))
