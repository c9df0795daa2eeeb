"""The options of every dialog that was recorded: their labels, the pointer, and what consents or refuses."""

from pathlib import Path

import pytest

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Screen

SCREENS = Path(__file__).parents[2] / "conformance"
# labels (as they begin), pointer, consent, refusal, own words
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
WORDS = {
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
def test_the_options(name, size) -> None:
    agent, screen = scene_of(name, size)
    labels, *facts = DIALOGS[name]
    found = agent.choices(screen)
    assert len(found.labels) == len(labels)
    for label, begin in zip(found.labels, labels, strict=True):
        assert label.startswith(begin)
    assert [found.at, found.consent(), found.refusal(), found.own_words()] == facts
    assert WORDS.get(name, "") in found.text
    for number, label in enumerate(found.labels):
        assert found.named(str(number + 1)) == number
        assert found.named(f"  {label.upper()}  ") == number


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "hermes"])
def test_a_screen_without_a_dialog_has_no_consent(agent) -> None:
    here, screen = scene_of(f"{agent}/idle")
    found = here.choices(screen)
    assert found is None or found.consent() is None


def test_the_narrowest_consent() -> None:
    text = (
        "Plan\n 1. Yes, and auto-accept edits\n ❯ 2. Yes, and manually approve edits\n 3. No, keep planning"
    )
    found = kind("claude").choices(Screen(text))
    assert (found.consent(), found.at) == (1, 1)
    only_wide = kind("claude").choices(Screen("❯ 1. Yes, always\n  2. No"))
    assert only_wide.consent() is None
