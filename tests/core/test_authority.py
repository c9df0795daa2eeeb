"""Authority: which session may message, answer, stop or start which other session."""

import pytest

from mam.core import authority
from mam.core.errors import NotAllowed


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
    assert authority.may_message(rule, sender, target, share_team=share_team) is may


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


# grandparent -> parent -> me -> child -> grandchild; a sibling, a stranger, and somebody's master
ROWS = [
    {"id": "s_top", "name": "top", "parent": None},
    {"id": "s_parent", "name": "parent", "parent": "s_top"},
    {"id": "s_me", "name": "me", "parent": "s_parent"},
    {"id": "s_child", "name": "child", "parent": "s_me"},
    {"id": "s_grandchild", "name": "grandchild", "parent": "s_child"},
    {"id": "s_sibling", "name": "sibling", "parent": "s_parent"},
    {"id": "s_stranger", "name": "stranger", "parent": None},
    {"id": "s_master", "name": "master", "parent": None, "role": "master"},
]
BY_NAME = {row["name"]: row for row in ROWS}
OWN = {"message": "descendants", "stop": "descendants"}
EVERYBODY = {"message": "all", "stop": "all"}


def allowed(act, target, grants=OWN, caller="s_me"):
    try:
        authority.check(act, caller, BY_NAME[target], ROWS, grants)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize("act", authority.ACTS)
def test_a_session_does_as_it_likes_with_what_it_started_and_with_nobody_else(act) -> None:
    assert {name for name in BY_NAME if allowed(act, name)} == {"child", "grandchild"}


@pytest.mark.parametrize("act", authority.ACTS)
def test_a_grant_reaches_others_but_neither_itself_nor_those_above_nor_a_master(act) -> None:
    reached = {name for name in BY_NAME if allowed(act, name, EVERYBODY)}
    assert reached == {"child", "grandchild", "sibling", "stranger"}


def test_each_grant_covers_its_own_acts() -> None:
    only_words = {"message": "all", "stop": "descendants"}
    assert allowed("message", "stranger", only_words)
    assert not any(allowed(act, "stranger", only_words) for act in ("stop", "resume", "purge"))


def test_a_person_may_do_everything() -> None:
    assert all(allowed(act, name, caller=authority.OPERATOR) for act in authority.ACTS for name in BY_NAME)


def test_parents_in_a_circle_end_the_look() -> None:
    circle = [{"id": "a", "name": "a", "parent": "b"}, {"id": "b", "name": "b", "parent": "a"}]
    assert authority.ancestors("a", circle) == ["b"]
    assert authority.ancestors("nobody", circle) == []


@pytest.mark.promise("P42")
@pytest.mark.parametrize("own", authority.LEAST_TO_MOST)
@pytest.mark.parametrize("requested", [None, *authority.LEAST_TO_MOST])
def test_a_child_never_has_more_than_its_parent(own, requested) -> None:
    order = authority.LEAST_TO_MOST.index
    if requested and order(requested) > order(own):
        with pytest.raises(NotAllowed):
            authority.child_permissions(requested, "skip", own)
        return
    permissions = authority.child_permissions(requested, "skip", own)
    assert permissions == (requested or own)
    assert authority.child_permissions(None, "ask", own) == "ask"


def test_births_are_limited_in_depth_and_number() -> None:
    authority.check_child_limit(authority.OPERATOR, ROWS)
    authority.check_child_limit("s_parent", ROWS)
    with pytest.raises(NotAllowed, match="deep"):
        authority.check_child_limit("s_me", ROWS)
    many = [
        {"id": f"c{number}", "name": f"c{number}", "parent": "s_top", "status": "running"}
        for number in range(authority.MOST_CHILDREN)
    ]
    with pytest.raises(NotAllowed, match="children"):
        authority.check_child_limit("s_top", [*ROWS, *many])
    ended = [{**row, "status": "stopped"} for row in many]
    authority.check_child_limit("s_top", [*ROWS, *ended])
