"""The options of every recorded dialog: labels, pointer, consent, refusal and free text."""

from pathlib import Path

import pytest

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Screen

SCREENS = Path(__file__).parents[2] / "conformance"
# the beginnings of the labels, pointer, consent, refusal, free text
YES_NO = (["Yes", "Yes, and always", "Yes, and switch", "No"], 0, 0, 3, None)
COLOURS = ["Red", "Green"]
DIALOGS = {
    "claude/permission": YES_NO,
    "claude/question": ([*COLOURS, "Type something.", "Chat about this"], 0, None, None, 2),
    "claude/trust": (["No, exit", "Yes, I trust this folder"], 0, 1, 0, None),
    "codex/permission": (["Yes, proceed (y)", "Yes, and don't ask", "No, and tell Codex"], 0, 0, 2, None),
    "codex/trust": (["Trust and continue", "Quit"], 0, 0, 1, None),
    "gemini/permission": (["Allow once", "Allow for this session", "No, suggest"], 0, 0, 2, None),
    "gemini/question": ([*COLOURS, "Enter a custom value"], 0, None, None, 2),
    "gemini/trust": (["Trust folder (demo)", "Trust parent", "Don't trust"], 0, 0, 2, None),
    "opencode/permission": (["Allow once", "Allow always", "Reject"], None, 0, 2, None),
    "opencode/question": ([*COLOURS, "Type your own answer"], None, None, None, 2),
    "hermes/permission": (["Allow once", "Allow for this", "Add to permanent", "Deny"], 0, 0, 3, None),
    "hermes/question": ([*COLOURS, "Other (type your answer)"], 0, None, None, 2),
    "hermes/confirm": (["Approve Once", "Always Approve", "Cancel"], 0, 0, 2, None),
}
TEXTS = {
    "claude/permission": "Bash command",
    "codex/permission": "$ touch made-by-tool",
    "gemini/permission": "touch made-by-tool",
    "opencode/permission": "$ touch made-by-tool",
    "hermes/permission": "rm -rf ./gone",
}


def scene_of(name, size=""):
    agent, _, scene = name.partition("/")
    folder = SCREENS / ("screens_hermes" if agent == "hermes" else f"screens/{agent}")
    return kind(agent), Screen((folder / f"{scene}{size}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("size", ["", "@100x30"])
@pytest.mark.parametrize("name", DIALOGS)
def test_the_options_of_a_recorded_dialog(name, size) -> None:
    agent, screen = scene_of(name, size)
    labels, *facts = DIALOGS[name]
    choices = agent.choices(screen)
    assert len(choices.labels) == len(labels)
    for label, begin in zip(choices.labels, labels, strict=True):
        assert label.startswith(begin)
    assert [choices.at, choices.consent(), choices.refusal(), choices.free_text()] == facts
    assert TEXTS.get(name, "") in choices.text
    for number, label in enumerate(choices.labels):
        assert choices.find_option(str(number + 1)) == number
        assert choices.find_option(f"  {label.upper()}  ") == number
    assert choices.find_option("9" * 5000) is None


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "hermes"])
def test_a_screen_without_a_dialog_has_no_consent(agent) -> None:
    agent_kind, screen = scene_of(f"{agent}/idle")
    choices = agent_kind.choices(screen)
    assert choices is None or choices.consent() is None


def test_consent_is_the_narrowest_option() -> None:
    text = (
        "Plan\n 1. Yes, and auto-accept edits\n ❯ 2. Yes, and manually approve edits\n 3. No, keep planning"
    )
    choices = kind("claude").choices(Screen(text))
    assert (choices.consent(), choices.at) == (1, 1)
    only_wide = kind("claude").choices(Screen("❯ 1. Yes, always\n  2. No"))
    assert only_wide.consent() is None
