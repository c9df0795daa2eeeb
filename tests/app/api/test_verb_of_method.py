"""Every method of the API belongs to a verb, and checks the caller unless everybody may call it."""

import inspect

import pytest

from mam.app.api import (
    agent_tools,
    boards,
    demo,
    fleet_object,
    jobs,
    mcp_connection,
    messages,
    monitor,
    sessions,
    skills,
    tasks,
    teams,
    verb_group,
)
from mam.app.api.verb_of_method import OPEN, VERBS
from mam.core import caller as callers
from mam.core.errors import NotAllowed
from mam.core.verb_rights import OPTION_RIGHTS, RIGHTS, Right, right_of

MODULES = (agent_tools, boards, demo, jobs, mcp_connection, messages, monitor, sessions, skills, tasks, teams)
GROUPS = [
    group
    for module in MODULES
    for group in vars(module).values()
    if inspect.isclass(group)
    and issubclass(group, verb_group.VerbGroup)
    and group is not verb_group.VerbGroup
]
OPEN_METHODS = {f"{group}.{name}" for group, names in OPEN.items() for name in names.split()}
UNKNOWN = callers.unknown(reason="nobody knows", hint="…")


def methods():
    return {
        f"{group.__name__}.{name}": value
        for group in GROUPS
        for name, value in vars(group).items()
        if not name.startswith("__") and (callable(value) or isinstance(value, property))
    }


def is_marked(method):
    """Tell whether a method checks its caller; the mark of one that only reads is another one."""
    return hasattr(method, "__wrapped__") and method.__code__.co_qualname != "reading.<locals>.read"


# The fleet itself has these: they check the caller by themselves.
INITS = {name for name in VERBS if name.startswith("Fleet.")}


def test_every_method_is_in_one_of_the_tables() -> None:
    public = {name for name in methods() if not name.partition(".")[2].startswith("_")}
    assert public <= VERBS.keys() | OPEN_METHODS
    assert VERBS.keys() - INITS <= methods().keys()
    assert methods().keys() >= OPEN_METHODS
    assert OPEN_METHODS.isdisjoint(VERBS)


def test_a_method_is_marked_if_and_only_if_it_has_a_verb() -> None:
    marked = {name for name, method in methods().items() if is_marked(method)}
    assert marked == VERBS.keys() - INITS


def test_the_verbs_are_those_of_the_table_of_rights() -> None:
    assert set(VERBS.values()) <= RIGHTS.keys() | OPTION_RIGHTS.keys()
    checked = {verb for verb in RIGHTS if right_of(verb) is not Right.WATCH}
    assert checked <= set(VERBS.values()), "a verb that not everybody may use has a method that checks it"


@pytest.mark.parametrize("method", sorted(VERBS.keys() - INITS))
def test_an_unknown_caller_is_refused_before_anything_happens(method, tmp_path) -> None:
    if right_of(VERBS[method]) in (Right.WATCH, Right.SIGNED):
        return
    with fleet_object.open_fleet(str(tmp_path)) as fleet:
        fleet._access._caller = UNKNOWN
        group = next(group for group in GROUPS if group.__name__ == method.partition(".")[0])
        with pytest.raises(NotAllowed, match="mam cannot tell who calls: nobody knows"):
            vars(group)[method.partition(".")[2]](group(fleet._access))
    assert list(tmp_path.iterdir()) == []


def test_init_and_the_rights_of_agents_are_checked(tmp_path) -> None:
    with fleet_object.open_fleet(str(tmp_path)) as fleet:
        fleet._access._caller = UNKNOWN
        for call in (
            fleet.init,
            lambda: fleet.agents.authorize("stop", "one"),
            lambda: fleet.agents.authorize_child("claude", None, "skip"),
            lambda: fleet.agents.reachable("message"),
        ):
            with pytest.raises(NotAllowed, match="nobody knows"):
                call()
        assert fleet.sessions.names() == []
    assert list(tmp_path.iterdir()) == []


def test_reading_finds_no_caller(tmp_path, monkeypatch) -> None:
    """`mam ls` does not pay for it."""
    monkeypatch.setattr("mam.app.context.caller._find", lambda *_words, **_more: pytest.fail("looked"))
    with fleet_object.open_fleet(str(tmp_path)) as fleet:
        assert fleet.sessions.ls()["sessions"] == []


@pytest.mark.parametrize("method", sorted(INITS))
def test_an_unknown_caller_makes_no_root(method, tmp_path) -> None:
    with fleet_object.open_fleet(str(tmp_path)) as fleet:
        fleet._access._caller = UNKNOWN
        with pytest.raises(NotAllowed):
            getattr(fleet, method.partition(".")[2])()
    assert list(tmp_path.iterdir()) == []
