"""The same words to several sessions, and which session may write to which."""

import pytest

from mam.adapters.store.tables import teams
from mam.core import caller as callers
from mam.core.errors import NotAllowed, Refused, Usage

QUICK = ["--speed", "0"]


@pytest.fixture
def crew(fleet):
    names = {"ann": "developer", "ben": "developer", "cid": "tester"}
    return {
        name: fleet.sessions.create("practice", name=name, role=role, args=QUICK, wait=False)
        for name, role in names.items()
    }


def heard(session):
    return [turn["text"] for turn in session.transcript()["turns"] if turn["role"] == "user"]


def test_to_whom(fleet, crew, monkeypatch) -> None:
    fleet.sessions.create("sleep", name="nap", args=["1000"])
    for session in crew.values():
        session.wait("idle", timeout=20)
    fleet._access.context.registry.note(lambda draft: make_team(draft, "core", crew["ann"].row))

    def told(text, **choice):
        done = fleet.messages.broadcast(text, timeout=10, **choice)
        assert {one["state"] for one in done} <= {"submitted", "queued"}
        return {one["session"] for one in done}

    assert told("to all", everyone=True) == {"ann", "ben", "cid"}
    assert told("to developers", role=["developer"]) == {"ann", "ben"}
    assert told("to both", role=["developer", "tester"], agent=["practice"]) == {"ann", "ben", "cid"}
    assert told("to a team", team=["core"]) == {"ann"}
    fleet._access._caller = callers.session(crew["ben"].id)
    assert told("not to me", role=["developer"]) == {"ann"}
    fleet._access._caller = callers.user()
    assert heard(crew["cid"]) == ["to all", "to both"]
    (failed,) = fleet.messages.broadcast("to a program", agent=["sleep"])
    assert (failed["session"], failed["state"]) == ("nap", "failed")
    with pytest.raises(Usage):
        fleet.messages.broadcast("to whom?")
    with pytest.raises(Refused, match="fits"):
        fleet.messages.broadcast("to nobody", role=["pilot"])


def make_team(draft, name, row):
    teams.add(draft, id="t_00000001", name=name, server="x", layout="main-vertical", by="user")
    teams.join(
        draft,
        team_id="t_00000001",
        session_id=row["id"],
        name=row["name"],
        role="developer",
        colour="red",
        name_source="role",
        workspace=row["workspace"],
        state="active",
    )


def test_who_may_write_to_whom(fleet, crew, monkeypatch) -> None:
    ann, ben, cid = crew.values()
    settings = fleet._access.context.settings()

    def may(sender, target, rule) -> bool:
        monkeypatch.setattr(settings, "messages", rule)
        fleet._access._caller = callers.user() if sender == "user" else callers.session(sender)
        try:
            fleet.messages.send(target.id, f"{sender} {rule}", when="idle")
        except NotAllowed:
            return False
        return True

    assert all(may("user", cid, rule) for rule in ("none", "team", "family"))
    assert may(ann.id, ben, "all")
    assert not any(may(ann.id, ben, rule) for rule in ("none", "team", "family", ()))
    fleet._access.context.registry.note(lambda draft: make_team(draft, "core", ann.row))
    assert not may(ann.id, ben, "team")
    fleet._access.context.registry.note(lambda draft: teams.change(draft, "t_00000001", master_id=ben.id))
    assert may(ann.id, ben, "team")
    assert may(ben.id, ann, "team")
    assert not may(ann.id, cid, "team")
    pairs = (("developer", "cid"), ("*", "ann"))
    assert may(ann.id, cid, pairs)
    assert may(cid.id, ann, pairs)
    assert not may(cid.id, ben, pairs)
    with pytest.raises(NotAllowed):
        fleet.messages.keys("ben", "Escape")
