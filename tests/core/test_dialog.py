"""What a dialog asks, by its words; and its fingerprint."""

from __future__ import annotations

import pytest

from mam.core.dialog import DialogWords, fingerprint, summary

CLAUDE = DialogWords(
    "permission",
    "Bash command\nTip: choose auto mode below\nmake a file\ntouch made-by-tool\nDo you want to proceed?\n"
    "1. Yes\n2. Yes, and always allow access to /w/demo\n3. No",
    ["Yes", "Yes, and always allow access to /w/demo", "No"],
)
CODEX = DialogWords(
    "permission",
    "Would you like to run the following command?\nEnvironment: local\nReason: May I make a file?\n"
    "$ touch made-by-tool\n1. Yes, proceed (y)\n2. No, and tell Codex what to do differently (esc)",
    ["Yes, proceed (y)", "No, and tell Codex what to do differently (esc)"],
)
GEMINI = DialogWords(
    "permission",
    "touch made-by-tool\nAllow execution of [Shell]?\n1. Allow once\n2. No, suggest changes (esc)",
    ["Allow once", "No, suggest changes (esc)"],
)
OPENCODE = DialogWords(
    "permission",
    "△ Permission required\n# Shell command\n$ touch made-by-tool\nAllow once   Allow always   Reject",
    ["Allow once", "Allow always", "Reject"],
)
QUESTION = DialogWords("question", "☐ Color\nWhich color?\n1. Red\nthe red one\n2. Green", ["Red", "Green"])
TRUST = DialogWords(
    "trust",
    "Accessing workspace:\n/w/demo\nIs this a project you trust?\nNo, exit\nYes, I trust",
    ["No, exit"],
)


@pytest.mark.parametrize(
    ("words", "title", "command", "question"),
    [
        (CLAUDE, "Bash command", "touch made-by-tool", "Do you want to proceed?"),
        (
            CODEX,
            "Would you like to run the following command?",
            "touch made-by-tool",
            "Would you like to run the following command?",
        ),
        (
            GEMINI,
            "Allow execution of [Shell]?",
            "touch made-by-tool",
            "Allow execution of [Shell]?",
        ),
        (OPENCODE, "Permission required", "touch made-by-tool", None),
        (QUESTION, "Color", None, "Which color?"),
        (TRUST, "Accessing workspace:", None, "Is this a project you trust?"),
        (DialogWords("login", "", []), None, None, None),
        (DialogWords("permission", "1. Yes", ["Yes"]), None, None, None),
    ],
    ids=["claude", "codex", "gemini", "opencode", "question", "trust", "no words", "only options"],
)
def test_what_a_dialog_asks(words, title, command, question) -> None:
    assert summary(words) == {"title": title, "command": command, "question": question}


def test_a_fingerprint_is_of_one_opening_of_one_dialog_of_one_session() -> None:
    first = fingerprint("s_00000001", "7:1", "e1", GEMINI)
    assert len(first) == 64
    assert first == fingerprint("s_00000001", "7:1", "e1", GEMINI)
    others = [
        fingerprint("s_00000002", "7:1", "e1", GEMINI),
        fingerprint("s_00000001", "8:1", "e1", GEMINI),
        fingerprint("s_00000001", "7:1", "e2", GEMINI),
        fingerprint("s_00000001", "7:1", "e1", CODEX),
        fingerprint("s_00000001", "7:1", "e1", DialogWords("permission", GEMINI.text, ["Allow once"])),
        fingerprint("s_00000001", "7:1e", "1", GEMINI),
    ]
    assert len({first, *others}) == 7


def test_words_that_are_not_valid_unicode_have_a_fingerprint() -> None:
    assert fingerprint("s_00000001", "7:1", "e1", DialogWords("trust", "a\udc80b", []))
