"""Who may use which verb."""

import pytest

from mam.core import caller as callers
from mam.core.caller import Caller, CallerKind, Role
from mam.core.errors import NotAllowed
from mam.core.verb_rights import OPTION_RIGHTS, RIGHTS, Right, check, right_of, rights_of

USER, SESSION = callers.user(), callers.session("s_00000001")
UNKNOWN = callers.unknown(reason="nobody knows", hint="unset MAM_SESSION")


def device(role=None):
    return Caller(CallerKind.DEVICE, 0, "phone", role=role)


def host(role=None):
    return Caller(CallerKind.HOST, 0, "lab", role=role)


def may(caller, verb):
    try:
        check(caller, verb)
    except NotAllowed:
        return False
    return True


def verbs_of(caller):
    return {verb for verb in (*RIGHTS, *OPTION_RIGHTS) if may(caller, verb)}


def test_a_person_may_everything_and_a_session_everything_but_trust() -> None:
    everything = {*RIGHTS, *OPTION_RIGHTS}
    assert verbs_of(USER) == everything
    refused = everything - verbs_of(SESSION)
    assert refused == {verb for verb in everything if right_of(verb) is Right.TRUST}
    assert {"init --trust", "init --copy", "init --take-over", "init --new"} < refused
    assert {"resume --run-recorded", "drill --run"} < refused


def test_an_unknown_caller_reads_and_reports_with_a_token_and_nothing_else() -> None:
    allowed = verbs_of(UNKNOWN)
    assert allowed == {verb for verb, right in RIGHTS.items() if right is Right.WATCH} | {"job event"}
    assert allowed.isdisjoint(
        {"answer", "send", "stop", "create", "report", "task claim", "inbox --withdraw"}
    )


@pytest.mark.parametrize("caller", [device, host])
def test_the_roles_of_devices_and_hosts(caller) -> None:
    samples = ("ls", "answer", "stop", "create", "init", "monitor", "register", "init --trust")
    assert [verb for verb in samples if may(caller(), verb)] == ["ls"]
    assert [verb for verb in samples if may(caller(Role.WATCH), verb)] == ["ls"]
    assert [verb for verb in samples if may(caller(Role.ANSWER), verb)] == ["ls", "answer"]
    assert [verb for verb in samples if may(caller(Role.OPERATE), verb)] == ["ls", "answer", "stop", "create"]


def test_a_host_may_report_with_a_token_and_a_device_may_not() -> None:
    assert (may(host(), "job event"), may(device(Role.OPERATE), "job event")) == (True, False)


def test_every_right_is_needed_by_a_verb_and_held_by_a_person() -> None:
    assert {right_of(verb) for verb in (*RIGHTS, *OPTION_RIGHTS)} == set(Right) == rights_of(USER)


def test_an_option_belongs_to_a_verb() -> None:
    assert {option.partition(" --")[0].removesuffix(" FILE") for option in OPTION_RIGHTS} <= set(RIGHTS)


def test_a_refusal_says_who_calls_and_names_a_way_out() -> None:
    for caller, text, hint in (
        (UNKNOWN, "'mam answer' is refused, because mam cannot tell who calls: nobody knows", "unset MAM_"),
        (device(Role.WATCH), "a device with the role 'watch' may not use 'mam answer'", "another role"),
    ):
        with pytest.raises(NotAllowed, match=text) as caught:
            check(caller, "answer")
        assert (caught.value.exit_code, caught.value.code) == (1, "not_allowed")
        assert hint in caught.value.hint
    with pytest.raises(NotAllowed, match="a session may not use 'mam init --trust'"):
        check(SESSION, "init --trust")


def test_a_verb_that_does_not_exist_has_no_right() -> None:
    with pytest.raises(KeyError):
        check(USER, "init --everything")
