"""Who may do what to whom."""

import pytest

from mam.core import rank
from mam.core.errors import NotAllowed

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
        rank.check(act, caller, BY_NAME[target], ROWS, grants)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize("act", rank.ACTS)
def test_a_session_does_as_it_likes_with_what_it_started_and_with_nobody_else(act) -> None:
    assert {name for name in BY_NAME if allowed(act, name)} == {"child", "grandchild"}


@pytest.mark.parametrize("act", rank.ACTS)
def test_a_grant_reaches_others_but_neither_itself_nor_those_above_nor_a_master(act) -> None:
    reached = {name for name in BY_NAME if allowed(act, name, EVERYBODY)}
    assert reached == {"child", "grandchild", "sibling", "stranger"}


def test_each_grant_covers_its_own_acts() -> None:
    only_words = {"message": "all", "stop": "descendants"}
    assert allowed("message", "stranger", only_words)
    assert not any(allowed(act, "stranger", only_words) for act in ("stop", "resume", "purge"))


def test_a_person_may_do_everything() -> None:
    assert all(allowed(act, name, caller=rank.OPERATOR) for act in rank.ACTS for name in BY_NAME)


def test_parents_in_a_circle_end_the_look() -> None:
    circle = [{"id": "a", "name": "a", "parent": "b"}, {"id": "b", "name": "b", "parent": "a"}]
    assert rank.ancestors("a", circle) == ["b"]
    assert rank.ancestors("nobody", circle) == []


@pytest.mark.parametrize("own", rank.PERMISSIONS)
@pytest.mark.parametrize("asked", [None, *rank.PERMISSIONS])
def test_a_child_never_has_more_than_its_parent(own, asked) -> None:
    order = rank.PERMISSIONS.index
    if asked and order(asked) > order(own):
        with pytest.raises(NotAllowed):
            rank.child_permissions(asked, "skip", own)
        return
    given = rank.child_permissions(asked, "skip", own)
    assert given == (asked or own)
    assert rank.child_permissions(None, "ask", own) == "ask"


def test_births_are_limited_in_depth_and_number() -> None:
    rank.check_birth(rank.OPERATOR, ROWS)
    rank.check_birth("s_parent", ROWS)
    with pytest.raises(NotAllowed, match="deep"):
        rank.check_birth("s_me", ROWS)
    many = [
        {"id": f"c{number}", "name": f"c{number}", "parent": "s_top", "status": "running"}
        for number in range(rank.MOST_CHILDREN)
    ]
    with pytest.raises(NotAllowed, match="children"):
        rank.check_birth("s_top", [*ROWS, *many])
    ended = [{**row, "status": "stopped"} for row in many]
    rank.check_birth("s_top", [*ROWS, *ended])
