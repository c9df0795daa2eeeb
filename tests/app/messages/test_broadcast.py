"""One text to several sessions, and which session may message which."""

import pytest

from mam.adapters.store.tables import teams
from mam.core import caller as callers
from mam.core.errors import NotAllowed, Refused, Usage

QUICK = ["--speed", "0"]


@pytest.fixture
def sessions(fleet):
    names = {"ann": "developer", "ben": "developer", "cid": "tester"}
    return {
        name: fleet.sessions.create("practice", name=name, role=role, args=QUICK, wait=False)
        for name, role in names.items()
    }


def user_turns(session):
    return [turn["text"] for turn in session.transcript()["turns"] if turn["role"] == "user"]


def test_the_recipients(fleet, sessions, monkeypatch) -> None:
    fleet.sessions.create("sleep", name="nap", args=["1000"])
    for session in sessions.values():
        session.wait("idle", timeout=20)
    fleet._access.context.registry.note(
        lambda transaction: make_team(transaction, "core", sessions["ann"].row)
    )

    def recipients(text, **filters):
        receipts = fleet.messages.broadcast(text, timeout=10, **filters)
        assert {receipt["state"] for receipt in receipts} <= {"submitted", "queued"}
        return {receipt["session"] for receipt in receipts}

    assert recipients("to all", everyone=True) == {"ann", "ben", "cid"}
    assert recipients("to developers", role=["developer"]) == {"ann", "ben"}
    assert recipients("to both", role=["developer", "tester"], agent=["practice"]) == {"ann", "ben", "cid"}
    assert recipients("to a team", team=["core"]) == {"ann"}
    fleet._access._caller = callers.session(sessions["ben"].id)
    assert recipients("not to me", role=["developer"]) == {"ann"}
    fleet._access._caller = callers.user()
    assert user_turns(sessions["cid"]) == ["to all", "to both"]
    (failed,) = fleet.messages.broadcast("to a program", agent=["sleep"])
    assert (failed["session"], failed["state"]) == ("nap", "failed")
    with pytest.raises(Usage):
        fleet.messages.broadcast("to whom?")
    with pytest.raises(Refused, match="fits"):
        fleet.messages.broadcast("to nobody", role=["pilot"])


def make_team(transaction, name, row):
    teams.add(transaction, id="t_00000001", name=name, server="x", layout="main-vertical", by="user")
    teams.add_member(
        transaction,
        team_id="t_00000001",
        session_id=row["id"],
        name=row["name"],
        role="developer",
        colour="red",
        name_source="role",
        workspace=row["workspace"],
        state="active",
    )


def test_the_setting_messages(fleet, sessions, monkeypatch) -> None:
    ann, ben, cid = sessions.values()
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
    fleet._access.context.registry.note(lambda transaction: make_team(transaction, "core", ann.row))
    assert not may(ann.id, ben, "team")
    fleet._access.context.registry.note(
        lambda transaction: teams.change(transaction, "t_00000001", master_id=ben.id)
    )
    assert may(ann.id, ben, "team")
    assert may(ben.id, ann, "team")
    assert not may(ann.id, cid, "team")
    pairs = (("developer", "cid"), ("*", "ann"))
    assert may(ann.id, cid, pairs)
    assert may(cid.id, ann, pairs)
    assert not may(cid.id, ben, pairs)
    with pytest.raises(NotAllowed):
        fleet.messages.keys("ben", "Escape")
