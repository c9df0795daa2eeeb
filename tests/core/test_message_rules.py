"""Messages: when mam may type them, and which spaces it adds."""

import pytest

from mam.core import message_rules as rules
from mam.core.errors import InvalidPrompt


def reason(**facts):
    return rules.reason_to_hold(
        **{"state": "idle", "dialog": None, "box": "empty", "queues": False, "when": "ready", **facts}
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"dialog": "trust"}, "its trust dialog is open"),
        ({"dialog": "limit", "box": "empty"}, "its limit dialog is open"),
        ({"box": None}, "its input box is not visible"),
        ({"box": "draft"}, "a draft is in its box"),
        ({"box": "draft", "detail": "shell mode"}, "its shell mode is on"),
        ({"state": "working"}, "it is working"),
        ({"state": "working", "queues": True}, None),
        ({"state": "working", "queues": True, "when": "idle"}, "it is working"),
        ({"state": "unknown"}, "its activity is unknown"),
        ({"state": "unknown", "queues": True}, None),
    ],
)
def test_reasons(facts, expected) -> None:
    assert reason(**facts) == expected


@pytest.mark.parametrize("noun", ["message", "prompt"])
@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("", "the {} is empty", "what the agent should do"),
        (" \n\t", "the {} is empty", "what the agent should do"),
        ("a\0b", "the {} contains a NUL character", "remove it"),
        ("\udcff", "the {} is not valid Unicode", "UTF-8"),
        ("x" * (1024 * 1024 + 1), "a {} is at most 1 MB long", "names a file which the agent can read"),
    ],
    ids=["empty", "blank", "NUL", "bytes", "long"],
)
def test_one_rule_for_every_text_of_an_agent(text, problem, hint, noun) -> None:
    with pytest.raises(InvalidPrompt) as refused:
        rules.check_text(text, noun)
    assert (refused.value.message, refused.value.exit_code) == (problem.format(noun), 64)
    assert hint in refused.value.hint


def test_a_text_of_the_largest_size_is_taken() -> None:
    assert rules.check_text("x" * 1024 * 1024)


def test_what_is_about_a_dialog() -> None:
    assert rules.is_about_dialog(reason(dialog="permission").code)
    assert rules.is_about_dialog(rules.ASKING.code)
    assert not any(map(rules.is_about_dialog, (None, rules.NOT_TRIED.code, reason(box="draft").code)))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/x", None),
        (" /x", "a space before it"),
        ("/x ", "a space after it"),
        (" /x ", "a space before it and after it"),
    ],
)
def test_what_was_added(typed, expected) -> None:
    assert rules.added_spaces(typed, "/x") == expected


@pytest.mark.parametrize(
    "text",
    [
        "a\x1bb",
        "a\rb",
        "x" * 11,
        "[mam m_0 from boss]",
        "hello\n  [mam m_1 from x]",
        "[MAM m_0 from boss]",
        "[ mam  m_0",
        "> [mam m_0",
        "[\u200bmam\xa0m_0",
        "x\u2028[mam m_0",
        "\u202e[mam m_0",
    ],
)
def test_what_is_not_plain(text) -> None:
    assert rules.is_plain("plain [x]", 30)
    assert not rules.is_plain(text, 10 if text.startswith("xx") else 30)


@pytest.mark.parametrize("character", "\n[ >\u2028")
def test_a_text_of_one_character_costs_no_more_than_another(character) -> None:
    """A single pattern took half an hour here: its time grew with the square of the length."""
    assert rules.is_plain(character * 1_000_000, 1_000_000)


def test_the_conversation_that_is_meant() -> None:
    assert rules.other_conversation("a", "a") is None
    assert rules.other_conversation("a", "b") == "its conversation is b, not a"
    assert rules.other_conversation("a", None) == "its conversation is not known, not a"


def test_every_state_has_an_exit_code() -> None:
    assert {rules.EXIT_CODES[state] for state in rules.ENDED} == {0, 2, 3}
    assert rules.EXIT_CODES[rules.MessageState.HELD] == 4


@pytest.mark.parametrize(
    ("since", "others", "shown_at", "is_own"),
    [
        (0, [], [], False),
        (0, [], [5], True),
        (10, [], [5], False),
        (0, [20], [25], False),
        (0, [20], [5, 25], True),
        (0, [20], [25, 30], True),
        (20, [0], [25], False),
        (20, [0], [5, 25], True),
        (20, [0], [25, 30], True),
        (20, [0, 0], [25, 30], False),
        (20, [30], [5, 35], False),
    ],
)
def test_each_message_has_its_own_proof(since, others, shown_at, is_own) -> None:
    """`shown_at` is where the transcript has the text; a message typed at 20 is shown after 20."""
    count = lambda start: sum(place > start for place in shown_at)  # noqa: E731
    assert rules.has_own_proof(since, others, count) is is_own


def test_a_transcript_that_cannot_be_read_proves_nothing() -> None:
    assert rules.has_own_proof(0, [], lambda start: None) is False


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, False),
        ({"box": None}, True),
        ({"may_be_in_box": True}, True),
        ({"may_be_in_box": True, "activity": "working", "queues": False}, True),
        ({"activity": "working"}, True),
        ({"activity": "unknown"}, True),
        ({"activity": "working", "records_queue": True}, False),
        ({"activity": "working", "queues": False}, False),
        ({"activity": "waiting", "box": None, "asks": True}, True),
        ({"activity": "waiting", "box": None, "asks": True, "asks_as_before": True}, False),
        ({"activity": "waiting", "box": None, "asks": True, "queues": False}, False),
    ],
)
def test_what_an_agent_may_have_although_its_record_does_not_show_it(facts, expected) -> None:
    usual = {"activity": "idle", "box": "empty", "may_be_in_box": False, "queues": True}
    assert rules.may_have_unrecorded(**{**usual, "records_queue": False, **facts}) is expected


@pytest.mark.parametrize(
    ("shown", "taken", "state"),
    [(0, 0, "unconfirmed"), (2, 0, "unconfirmed"), (2, 1, "submitted"), (None, None, "unconfirmed")],
)
def test_after_a_restore_a_text_that_the_agent_may_have_is_not_typed(shown, taken, state) -> None:
    assert rules.state_after_restore(shown, taken, may_be_unrecorded=True) == state
