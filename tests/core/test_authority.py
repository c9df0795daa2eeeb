"""Which session may write to which, and answer for which."""

import pytest

from mam.core import authority


def row(name, role=None, parent=None, agent="claude"):
    return {"id": f"s_{name}", "name": name, "role": role, "parent": parent and f"s_{parent}", "agent": agent}


LEAD, DEV, TEST = row("lead"), row("dev", "developer", "lead"), row("test", "tester", "lead", "codex")
ALONE = row("alone", "developer")


@pytest.mark.parametrize(
    ("rule", "sender", "target", "share_team", "may"),
    [
        ("all", ALONE, DEV, False, True),
        ("none", LEAD, DEV, True, False),
        ("family", LEAD, DEV, False, True),
        ("family", DEV, LEAD, False, True),
        ("family", DEV, TEST, False, True),
        ("family", ALONE, LEAD, True, False),
        ("family", ALONE, row("other"), False, False),
        ("team", ALONE, LEAD, True, True),
        ("team", ALONE, LEAD, False, False),
        ((("developer", "lead"),), DEV, LEAD, False, True),
        ((("developer", "lead"),), LEAD, DEV, False, False),
        ((("*", "codex"), ("lead", "*")), ALONE, TEST, False, True),
        ((("*", "codex"), ("lead", "*")), LEAD, ALONE, False, True),
        ((), LEAD, DEV, True, False),
    ],
)
def test_may_write(rule, sender, target, share_team, may) -> None:
    assert authority.may_write(rule, sender, target, share_team=share_team) is may


@pytest.mark.parametrize(
    ("rule", "sender", "target", "may"),
    [
        ("parent", LEAD, DEV, True),
        ("parent", DEV, LEAD, False),
        ("parent", DEV, TEST, False),
        ("all", DEV, TEST, True),
        ("all", DEV, DEV, False),
        ("user", LEAD, DEV, False),
    ],
)
def test_may_answer(rule, sender, target, may) -> None:
    assert authority.may_answer(rule, sender, target) is may
