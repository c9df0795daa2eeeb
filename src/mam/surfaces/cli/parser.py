"""The parser of one verb, and of all verbs at once for completion.

argparse reads the words; what is wrong with them is one of our errors, so that it looks the same
as any other and has the exit code of wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys

from mam.core.errors import Usage
from mam.surfaces.cli import verb_table
from mam.surfaces.cli.style import Paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

    Namespace = argparse.Namespace
    # A word below a verb: what it does in one line, and its options.
    Word = tuple[str, Callable[["Parser"], None]]


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises Usage where others print and exit."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line in one line."""
        raise Usage(message, hint=f"{self.prog} --help shows how it is used")

    def refuse_unknown(self, words: list[str]) -> NoReturn:
        """Refuse words that mean nothing here, with the nearest options that exist."""
        from difflib import get_close_matches

        word = words[0].partition("=")[0][:60]
        near = get_close_matches(word, list(self._option_string_actions), n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help shows how it is used"
        what = "there is no option" if word.startswith("-") else "one word too many:"
        raise Usage(f"{what} '{word}'", hint=hint)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, at most 100.

    argparse makes one for every option it adds and asks shutil for the width each time; shutil
    imports four compression modules.
    """

    def __init__(self, prog: str, **more: Any) -> None:
        """Choose the width."""
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isascii() and columns.isdigit() else Paint(sys.stdout).width or 80
        super().__init__(prog, **{"width": max(40, min(width, 100) - 2), **more})


def build(word: str, module: ModuleType) -> Parser:
    """Return the parser of one verb."""
    parser = Parser(prog=f"mam {word}", **_looks(module))
    _furnish(parser, module)
    return parser


def build_all() -> Parser:
    """Return one parser with every verb below it."""
    root = Parser(prog="mam", allow_abbrev=False, formatter_class=Formatter)
    root.add_argument("--version", action="store_true", help="print the version")
    _add_everywhere(root)
    below = root.add_subparsers(metavar="VERB", parser_class=Parser)
    for word in (*verb_table.VERBS, *verb_table.ALIASES):
        module = verb_table.load(word)
        summary = verb_table.VERBS[verb_table.ALIASES.get(word, word)][1]
        _furnish(below.add_parser(word, help=summary, **_looks(module)), module)
    return root


def parse(parser: Parser, words: Sequence[str]) -> Namespace:
    """Return the options of a command line; several names or words may stand anywhere among the options."""
    options, rest = parser.parse_known_args(list(words))
    if not rest:
        return options
    at = rest.index("--") if "--" in rest else len(rest)
    strays = [word for word in rest[:at] if word.startswith("-")]
    more = [*rest[:at], *rest[at + 1 :]]
    field = next((name for name in ("names", "words") if hasattr(options, name)), None)
    if strays or field is None:
        parser.refuse_unknown(strays or more or rest)
    setattr(options, field, [*getattr(options, field), *more])
    return options


def add_name(parser: Parser, help: str = "name or id of the session") -> None:
    """Take one session, as a word or with --session."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=help)
    parser.add_argument("--session", metavar="NAME", help="the same, as an option")


def add_names(parser: Parser) -> None:
    """Take any number of sessions, as words or with --session."""
    parser.add_argument("names", nargs="*", metavar="NAME", default=[], help="names or ids of sessions")
    parser.add_argument("--session", action="append", metavar="NAME", help="the same, as an option")


def add_words(parser: Parser, words: dict[str, Word], examples: str) -> None:
    """Take one of these words next, each with options of its own; `options.word` says which.

    The examples of a word are those of the verb that use it.
    """
    below = parser.add_subparsers(dest="word", metavar="WORD", required=True, parser_class=Parser)
    for word, (summary, add_options) in words.items():
        lines = [line for line in examples.splitlines() if f"{line} ".startswith(f"  {parser.prog} {word} ")]
        looks: dict[str, Any] = {
            "formatter_class": Formatter,
            "allow_abbrev": False,
            "epilog": f"examples:\n{chr(10).join(lines)}",
        }
        one = below.add_parser(word, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", **looks)
        add_options(one)
        # What stands before the word must not be undone by what is not said behind it.
        _add_everywhere(one, default=argparse.SUPPRESS)


def span(text: str) -> float:
    """Return the seconds that a span of time means; for `type=`."""
    from mam.core.times import parse_span

    try:
        return parse_span(text).total_seconds()
    except OverflowError:
        raise Usage(f"{text[:40]!r} is too long a time") from None


def count(text: str) -> int:
    """Return a whole number from 1; for `type=`."""
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise Usage(f"{text[:40]!r} is not a number from 1")
    return int(text)


def _looks(module: ModuleType) -> dict[str, Any]:
    return {
        "description": module.DESCRIPTION,
        "epilog": f"examples:\n{module.EXAMPLES.strip(chr(10))}",
        "formatter_class": Formatter,
        "allow_abbrev": False,
    }


def _furnish(parser: Parser, module: ModuleType) -> None:
    module.add_options(parser)
    _add_everywhere(parser)


def _add_everywhere(parser: Parser, **more: Any) -> None:
    group = parser.add_argument_group("everywhere")
    group.add_argument("--json", action="store_true", help="answer with one JSON document", **more)
    group.add_argument("--workspace", metavar="DIR", help="act as if started in DIR", **more)
    group.add_argument("--registry", metavar="FILE", help="use this registry file", **more)
