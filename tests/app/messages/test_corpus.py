"""Every text of the corpus through the practice agent, compared byte for byte with what it recorded."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.corpus import corpus

import mam

pytestmark = pytest.mark.slow
CREW = 4


def record_of(home, session):
    """Return what the agent recorded as the user's, whole."""
    (path,) = (home / ".local/share/mam-practice").glob(f"{session.row['conversations'][-1]['id']}.jsonl")
    # Not splitlines(): a text may hold other line ends than this.
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [entry["text"] for entry in entries if entry["type"] == "user"]


def test_every_text_arrives_as_it_is(fleet, home, workspace) -> None:
    texts = corpus()
    assert len(texts) >= 300
    sessions = [
        fleet.sessions.create("practice", name=f"one-{n}", args=["--speed", "0"]) for n in range(CREW)
    ]

    def send_all(number):
        with mam.open(str(workspace)) as own:
            return [
                (text, own.messages.send(sessions[number].id, text, timeout=30))
                for text in texts[number::CREW]
            ]

    with ThreadPoolExecutor(CREW) as crew:
        done = list(crew.map(send_all, range(CREW)))
    for session, sent in zip(sessions, done, strict=True):
        left = [(repr(text[:80]), one) for text, one in sent if one["state"] not in ("submitted", "queued")]
        assert not left
        session.wait("idle", timeout=30)
        heard = record_of(home, session)
        assert len(heard) == len(sent)
        for (text, receipt), words in zip(sent, heard, strict=True):
            shown = repr(text[:80])
            if receipt["carrier"] == "file":
                path = workspace / ".mam-mail" / f"{receipt['message_id']}.md"
                assert path.read_bytes() == text.encode(), shown
                assert f".mam-mail/{path.name}" in words
            else:
                before = " " if "before" in (receipt["added"] or "") else ""
                after = " " if "after" in (receipt["added"] or "") else ""
                assert words == before + text + after, shown
    carriers = [receipt["carrier"] for sent in done for _, receipt in sent]
    assert carriers.count("inline") > 150, "what can be typed is typed"
    assert not (workspace / "ran").exists()
