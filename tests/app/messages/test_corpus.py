"""Every text of the corpus through the practice agent, compared byte for byte with what it recorded."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.corpus import corpus

import mam

pytestmark = pytest.mark.slow
WORKERS = 4


def record_of(home, session):
    """Return what the agent recorded as the user's, whole."""
    (path,) = (home / ".local/share/mam-practice").glob(f"{session.row['conversations'][-1]['id']}.jsonl")
    # Not splitlines(): a text may hold other line ends than this.
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [entry["text"] for entry in entries if entry["type"] == "user"]


@pytest.mark.promise("P27")
def test_every_text_arrives_as_it_is(fleet, home, workspace) -> None:
    texts = corpus()
    assert len(texts) >= 300
    sessions = [
        fleet.sessions.create("practice", name=f"one-{n}", args=["--speed", "0"]) for n in range(WORKERS)
    ]

    def send_all(number):
        sent = []
        with mam.open(str(workspace)) as own_fleet:
            for text in texts[number::WORKERS]:
                sent.append((text, own_fleet.messages.send(sessions[number].id, text, timeout=30)))
                if sent[-1][1]["state"] not in ("submitted", "queued"):
                    # Each later text would wait 30 s for its turn.
                    break
        return sent

    with ThreadPoolExecutor(WORKERS) as pool:
        sent_by_worker = list(pool.map(send_all, range(WORKERS)))
    for session, sent in zip(sessions, sent_by_worker, strict=True):
        undelivered = [
            (repr(text[:80]), receipt)
            for text, receipt in sent
            if receipt["state"] not in ("submitted", "queued")
        ]
        assert not undelivered
        session.wait("idle", timeout=30)
        turns = record_of(home, session)
        assert len(turns) == len(sent)
        for (text, receipt), turn in zip(sent, turns, strict=True):
            label = repr(text[:80])
            if receipt["carrier"] == "file":
                path = workspace / ".mam-mail" / f"{receipt['message_id']}.md"
                assert path.read_bytes() == text.encode(), label
                assert f".mam-mail/{path.name}" in turn
            else:
                before = " " if "before" in (receipt["added"] or "") else ""
                after = " " if "after" in (receipt["added"] or "") else ""
                assert turn == before + text + after, label
    carriers = [receipt["carrier"] for sent in sent_by_worker for _, receipt in sent]
    assert carriers.count("inline") > 150, "what can be typed is typed"
    assert not (workspace / "ran").exists()
