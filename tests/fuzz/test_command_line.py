"""Command lines of every verb with any words: an answer or one of our errors, and no control character."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.store.making import new_row
from tests.conftest import settle_in
from tests.corpus import corpus
from tests.fuzz import oracle
from tests.fuzz.bad_input import TEXTS, examples
from tests.fuzz.command import run

import mam
from mam.adapters.agents.catalogue import kind
from mam.core import names
from mam.core.errors import Broken, InvalidName, MamError
from mam.core.message_rules import LARGEST, check_text
from mam.surfaces.cli import parser, verb_table

# These serve, show or wait until somebody ends them.
_ENDLESS = {"mcp", "demo", "monitor"}
_ENDLESS_OPTIONS = {"--watch", "--follow", "--subscribe", "--help", "-h"}
# Words with which a verb would leave the folders of the test.
_INSIDE = [text for text in TEXTS if not text.startswith(("/", "~")) and ".." not in text]
WORDS = (
    *_INSIDE,
    "one",
    "two",
    "s_00000001",
    "s_00000009",
    "1f00ab42",
    "claude",
    "practice",
    "default",
    "30s",
    "1",
    "m_1f00ab42",
    "a=b",
    "{}",
    '{"a": 1e999}',
    "[" * 5000,
    "x" * 1024 * 1024,
    os.fsdecode(b"\xff\xfe"),
)
CODES = {
    error.exit_code
    for error in vars(sys.modules[MamError.__module__]).values()
    if isinstance(error, type) and issubclass(error, MamError)
}
ALLOWED = (CODES - {Broken.exit_code}) | {0, 4}


@cache
def verbs() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each verb, and of each subcommand under both words."""
    found: dict[str, argparse.ArgumentParser] = {}
    for verb in sorted({*verb_table.VERBS, *verb_table.ALIASES} - _ENDLESS):
        built = parser.build(verb, verb_table.load(verb))
        below = next((act for act in built._actions if isinstance(act, argparse._SubParsersAction)), None)
        if below is None:
            found[verb] = built
        else:
            found |= {f"{verb} {name}": subparser for name, subparser in below.choices.items()}
    return found


@some.composite
def command_lines(draw: some.DrawFn, verb: str) -> list[str]:
    """Draw a command line of a verb: the options and words that it has, with strange values."""
    actions = [
        action for action in verbs()[verb]._actions if not set(action.option_strings) & _ENDLESS_OPTIONS
    ]
    line = verb.split()
    for action in actions:
        if action.option_strings and draw(some.integers(0, 3)):
            continue
        if action.option_strings:
            line.append(draw(some.sampled_from(action.option_strings)))
        if action.nargs == 0:
            continue
        least = 0 if action.nargs in ("?", "*") else 1
        most = 2 if action.nargs in ("*", "+") else 1
        values = list(action.choices or ()) if draw(some.booleans()) else []
        line += draw(some.lists(some.sampled_from(values or WORDS), min_size=least, max_size=most))
    return line + draw(some.sampled_from([[], [], ["--json"], ["--"], ["--nonsense"], [draw(words)]]))


words = some.sampled_from(WORDS) | some.text(max_size=10).filter(lambda text: text[:1] not in "/~.")


class Root:
    """A folder below folders of the test, with two sessions of which one has ended."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "a" / "b" / "c" / "d"
        self.folder.mkdir(parents=True)
        with mam.open(str(self.folder)) as fleet:
            fleet.init()
            context = fleet._access.context
            for number, fields in ((1, {"status": "stopped", "name": "one"}), (2, {"name": "two"})):
                row = new_row(number, workspace=str(self.folder), **fields)
                context.registry.change(lambda transaction, row=row: transaction.add(row))


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Iterator[Root]:
    with pytest.MonkeyPatch.context() as patch:
        settle_in(tmp_path_factory.mktemp("home"), patch)
        made = Root(tmp_path_factory.mktemp("root"))
        # Neither tmux nor git nor an agent is found.
        patch.setenv("PATH", str(made.folder))
        patch.chdir(made.folder)
        yield made


def check(root: Root, line: list[str]) -> None:
    code, out, err = run(line)
    shown = [word[:60] for word in line]
    assert code in ALLOWED, (shown, code, out[-2000:], err[-2000:])
    assert "Traceback" not in out + err
    # A text with a lone surrogate is escaped where it is printed.
    for text in (out, err):
        assert oracle.is_printable_screen(text), (shown, text[:500])
        assert len(text) < 2 * 1024 * 1024
    at = line.index("--") if "--" in line else len(line)
    if "--json" in line[:at] and "help" not in line:
        json.loads(out)


@pytest.mark.promise("P46")
@pytest.mark.parametrize("verb", sorted(verbs()))
def test_a_verb_with_any_words_answers_or_refuses(root, verb):
    @examples(5)
    @given(line=command_lines(verb))
    def try_line(line):
        check(root, line)

    try_line()


@examples(40)
@given(
    line=some.lists(
        words | some.sampled_from(["--json", "--version", "--workspace", "help", "ls"]), max_size=4
    )
)
def test_any_words_are_a_verb_or_refused(root, line):
    if not _ENDLESS & set(line):
        check(root, line)


def _names() -> list[str]:
    """Return 400 names: of each sign, in each place, and what other programs make of some."""
    signs = [chr(code) for code in (*range(0x20), *range(0x20, 0x7F), 0x7F, 0x80, 0x85, 0x9B, 0xA0)]
    signs += ["\u200b", "\u202e", "\u2066", "\ufeff", "é", "e\u0301", "漢", "\U0001f600", "\ud800", "²", "٣"]
    special = ["con", "nul", "prn", "default", "all", "none", "-", "--", "--help", "bill", "billing", "bil*"]
    special += [
        "=bill",
        "$1",
        "%1",
        "@1",
        "s_00000001",
        "m_1f00ab42",
        "../a",
        "a/../b",
        "#(touch hit)",
        "#{pane_id}",
    ]
    special += ["a;b", "a:b", "a.b", ".", "..", "", "x" * 100, "x" * 101, "x" * LARGEST, "a\n", "a\0"]
    return [*special, *signs, *(f"a{sign}b" for sign in signs), *(f"a{sign}" for sign in signs)]


def test_each_name_is_one_that_tmux_takes_literally_or_is_refused():
    found = _names()
    assert len(found) >= 400
    for text in found:
        for parse in (
            names.parse_name,
            names.parse_kind,
            names.parse_server,
            names.parse_model,
            names.parse_row_name,
            names.parse_role,
        ):
            parsed = oracle.read(parse, text)
            if isinstance(parsed, MamError):
                assert parsed.exit_code == 64
                continue
            assert parsed.isprintable()
            if parse is not names.parse_role:
                assert not parsed.startswith("-")
                assert not set(parsed) & set("#{}();$`'\"*?\\ \t\n"), text
        assert oracle.read(kind, text).name == text


def test_each_prompt_is_taken_as_it_is_or_refused():
    for text in (*corpus(), *TEXTS, "\0", "", " \n", "x" * (LARGEST + 1)):
        checked = oracle.read(check_text, text)
        assert checked == text or isinstance(checked, MamError)
        for name in ("claude", "codex", "gemini", "opencode", "hermes", "practice", "agy", "human"):
            agent = kind(name)
            typed = oracle.read(agent.text_to_type, text)
            assert typed is None or typed.strip() == text.strip()
            assert oracle.read(agent.keeps_unchanged, text) in (True, False)
            assert oracle.read(agent.pause, text) >= 0


@pytest.mark.parametrize("text", ["\ud800", "\0", "a b", "-x"])
def test_a_name_that_is_refused_is_shown_in_one_line(root, text):
    code, _, err = run(["create", "--agent", "practice", "--session", text])
    assert code == InvalidName.exit_code
    assert "Traceback" not in err
