"""The argparse parser of one verb, and of all verbs at once for completion.

A command line that argparse refuses raises Usage, so that it looks like any other error of mam and has
the exit code of wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys

from mam.core.errors import Usage
from mam.core.whole_number import whole_number
from mam.surfaces.cli import verb_table
from mam.surfaces.cli.style import Paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, NoReturn

    Namespace = argparse.Namespace
    # A summary in one line, and a function that adds the options.
    Subcommand = tuple[str, Callable[["Parser"], None]]


_WITH_VALUE = ("--workspace", "--registry")


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises Usage instead of printing and exiting."""

    has_subcommands = False
    # Options that another verb has, and what to use instead.
    ways: Mapping[str, str] | None = None

    def chosen(self, options: Namespace) -> Parser:
        """Return the parser of the subcommand that the options name; of a verb without any, this one."""
        for action in self._get_positional_actions():
            if isinstance(action, argparse._SubParsersAction):
                below = action.choices.get(getattr(options, action.dest))
                return below if isinstance(below, Parser) else self
        return self

    def error(self, message: str) -> NoReturn:
        """Raise Usage with argparse's message."""
        raise Usage(message, hint=f"{self.prog} --help explains its use")

    def refuse_unknown(self, arguments: list[str]) -> NoReturn:
        """Raise Usage for unknown arguments, with the most similar option as a hint."""
        from difflib import get_close_matches

        word = arguments[0].partition("=")[0][:60]
        near = get_close_matches(word, list(self._option_string_actions), n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help explains its use"
        hint = (self.ways or {}).get(word, hint)
        if any(action.dest == word.lstrip("-") for action in self._get_positional_actions()):
            hint = f"the {word.lstrip('-')} has no option; {self.prog} --help shows where it stands"
        problem = "there is no option" if word.startswith("-") else "unexpected argument:"
        raise Usage(f"{problem} '{word}'", hint=hint)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help texts as wide as the terminal, at most 100 columns.

    argparse creates a formatter for every option, and the default one asks shutil for the width. shutil
    imports four compression modules, which slows every verb.
    """

    def __init__(self, prog: str, **more: Any) -> None:
        """Choose the width."""
        width = whole_number(os.environ.get("COLUMNS", ""))
        width = (Paint(sys.stdout).width or 80) if width is None else width
        super().__init__(prog, **{"width": max(40, min(width, 100) - 2), **more})


def build(verb: str, module: ModuleType) -> Parser:
    """Return the parser of one verb."""
    parser = Parser(prog=f"mam {verb}", **_settings(module))
    _add_options(parser, module)
    return parser


def build_all() -> Parser:
    """Return one parser that has every verb as a subcommand."""
    root = Parser(prog="mam", allow_abbrev=False, formatter_class=Formatter)
    root.add_argument("--version", action="store_true", help="print the version")
    _add_common(root)
    below = root.add_subparsers(metavar="VERB", parser_class=Parser)
    for verb in (*verb_table.VERBS, *verb_table.ALIASES):
        module = verb_table.load(verb)
        summary = verb_table.VERBS[verb_table.ALIASES.get(verb, verb)][1]
        _add_options(below.add_parser(verb, help=summary, **_settings(module)), module)
    return root


def parse(parser: Parser, arguments: Sequence[str]) -> Namespace:
    """Return the options of a command line; positional arguments may stand anywhere among them."""
    options, rest = parser.parse_known_args(_with_help(parser, list(arguments)))
    if not rest:
        return options
    at = rest.index("--") if "--" in rest else len(rest)
    unknown = [word for word in rest[:at] if word.startswith("-")]
    positional = [*rest[:at], *rest[at + 1 :]]
    field = next((name for name in ("names", "words") if hasattr(options, name)), None)
    if unknown or field is None:
        parser.chosen(options).refuse_unknown(unknown or positional or rest)
    setattr(options, field, [*getattr(options, field), *positional])
    return options


def _with_help(parser: Parser, arguments: list[str]) -> list[str]:
    """Return the arguments; of a verb with subcommands, no subcommand and the word `help` ask for its usage.

    A program that asks for JSON is not given a text.
    """
    at = 0
    while at < len(arguments) and arguments[at].partition("=")[0] in _WITH_VALUE:
        at += 1 if "=" in arguments[at] else 2
    if not parser.has_subcommands or arguments[at : at + 1] not in ([], ["help"]):
        return arguments
    words = [word for word in arguments[at + 1 :] if not word.startswith("-")]
    return [*words[:1], "--help"]


def add_name(parser: Parser, help: str = "name or id of the session") -> None:
    """Add arguments for one session: a name, or --session."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=help)
    parser.add_argument("--session", metavar="NAME", help="the same, as an option")


def add_run_recorded(parser: Parser) -> None:
    """Add the option of every verb that starts the program of an existing row."""
    parser.add_argument(
        "--run-recorded",
        action="store_true",
        help="run the command of the row also if mam never launched it, or if it was edited since",
    )


def add_names(parser: Parser) -> None:
    """Add arguments for any number of sessions: names, or --session."""
    parser.add_argument("names", nargs="*", metavar="NAME", default=[], help="names or ids of sessions")
    parser.add_argument("--session", action="append", metavar="NAME", help="the same, as an option")


def add_subcommands(parser: Parser, subcommands: dict[str, Subcommand], examples: str) -> None:
    """Add subcommands, each with its own options; `options.subcommand` is the chosen one.

    The help of a subcommand shows those examples of the verb that use the subcommand.
    """
    parser.has_subcommands = True
    below = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True, parser_class=Parser)
    for name, (summary, add_options) in subcommands.items():
        lines = [
            line.rstrip()
            for line in examples.splitlines()
            if f"{line} ".startswith(f"  {parser.prog} {name} ")
        ]
        settings: dict[str, Any] = {
            "formatter_class": Formatter,
            "allow_abbrev": False,
            "epilog": f"examples:\n{chr(10).join(lines)}",
        }
        description = f"{summary[0].upper()}{summary[1:]}."
        subparser = below.add_parser(name, help=summary, description=description, **settings)
        add_options(subparser)
        # Without SUPPRESS, the defaults here would replace common options that stand before the subcommand.
        _add_common(subparser, default=argparse.SUPPRESS)


def span(text: str) -> float:
    """Return a duration in seconds; for `type=`."""
    from mam.core.times import parse_span

    try:
        return parse_span(text).total_seconds()
    except OverflowError:
        raise Usage(f"{text[:40]!r} is too long a duration", hint="write 30s, 5m, 2h, 7d or 1w") from None


def count(text: str) -> int:
    """Return a whole number from 1; for `type=`."""
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise Usage(f"{text[:40]!r} is not a whole number from 1", hint="write 1, 2, 3, …")
    return int(text)


def _settings(module: ModuleType) -> dict[str, Any]:
    return {
        "description": module.DESCRIPTION,
        "epilog": f"examples:\n{module.EXAMPLES.strip(chr(10)).rstrip()}",
        "formatter_class": Formatter,
        "allow_abbrev": False,
    }


def _add_options(parser: Parser, module: ModuleType) -> None:
    module.add_options(parser)
    _add_common(parser)


def _add_common(parser: Parser, **more: Any) -> None:
    group = parser.add_argument_group("everywhere")
    group.add_argument("--json", action="store_true", help="answer with one JSON document", **more)
    group.add_argument("--workspace", metavar="DIR", help="act as if started in DIR", **more)
    group.add_argument("--registry", metavar="FILE", help="use this registry file", **more)
