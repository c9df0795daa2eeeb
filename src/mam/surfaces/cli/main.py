"""The entry of the command line: pick the verb, load only that verb, and end with its exit code.

Start-up is part of the product, so nothing is imported here that a verb may not need.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

INTERRUPTED, BROKEN_PIPE = 130, 141
_WITH_VALUE = ("--workspace", "--registry")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Never raises, and never shows a traceback unasked.

    Without argv this is the command itself, and the process ends here.
    """
    if argv is not None:
        return _guarded(list(argv), [])
    import gc

    # A command ends before its garbage is worth looking for; taking the interpreter apart at the
    # end costs as much as a verb.
    gc.set_threshold(100_000)
    notes: list[str] = []
    code = _guarded(sys.argv[1:], notes)
    if notes and sys.stderr is not None:
        print(*notes, sep="\n", file=sys.stderr)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        pass
    os._exit(code)


def _guarded(words: list[str], notes: list[str]) -> int:
    """Run, whatever the streams can show."""
    for stream in (sys.stdout, sys.stderr):
        # What a terminal cannot show is shown as its number instead of ending the verb.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    return _run(words, notes)


def _run(words: list[str], notes: list[str]) -> int:
    """Run; what an interrupt cut short is added to the notes."""
    as_json = wants_json(words)
    try:
        code = dispatch(words, as_json)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt as error:
        notes += getattr(error, "__notes__", [])
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except Exception as error:
        return _fail(error, as_json)


def dispatch(words: list[str], as_json: bool) -> int:
    """Find the verb among the words and run it; options that every verb has may stand before it."""
    before, word, after = split(words)
    if word is None:
        return _without_verb(before, as_json)
    if word == "help":
        word, after = _meant_by_help(after)
        if word is None:
            return _without_verb(["--help"], as_json)
    from mam.surfaces.cli import verb_table

    if verb_table.module_of(word) is None:
        raise _unknown(word)
    from mam.surfaces.cli.invocation import Invocation

    with Invocation(_options(word, verb_table.load(word), before, after)) as call:
        return int(verb_table.load(word).run(call))


def _options(word: str, module: ModuleType, before: list[str], after: list[str]) -> Any:
    """Return the parsed options of a verb, without argparse where the line is simple."""
    if hasattr(module, "FLAGS"):
        from mam.surfaces.cli import fast_parse

        found = fast_parse.read(module.FLAGS, module.UNSET, [*before, *after])
        if found is not None:
            return found
    if hasattr(module, "quickly"):
        found = module.quickly(before, after)
        if found is not None:
            return found
    from mam.surfaces.cli import parser

    after, rest = _cut(after) if getattr(module, "TAKES_REST", False) else (after, [])
    options = parser.parse(parser.build(word, module), [*before, *after])
    options.rest = rest
    return options


def split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Return what stands before the verb, the verb, and what stands after it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _WITH_VALUE else 1
    if at >= len(words):
        return words, None, []
    return words[:at], words[at], words[at + 1 :]


def wants_json(words: list[str]) -> bool:
    """Tell whether the answer is to be JSON, also where the words cannot be parsed."""
    return "--json" in _cut(words)[0]


def _cut(words: list[str]) -> tuple[list[str], list[str]]:
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _without_verb(before: list[str], as_json: bool) -> int:
    if "--version" in before:
        from mam import __version__

        print(f'{{"version": "{__version__}"}}' if as_json else f"mam {__version__}")
        return 0
    from mam.surfaces.cli import verb_table

    if "--help" in before or "-h" in before:
        print(verb_table.overview())
        return 0
    from mam.core.errors import Usage

    unknown = [word for word in before if word != "--json" and word.partition("=")[0] not in _WITH_VALUE]
    if unknown or as_json:
        what = f"there is no option '{unknown[0][:60]}'" if unknown else "no verb was given"
        raise Usage(what, hint="mam --help lists the verbs")
    print(verb_table.overview(), file=sys.stderr)
    return Usage.exit_code


def _meant_by_help(after: list[str]) -> tuple[str | None, list[str]]:
    named = [word for word in after if not word.startswith("-")]
    return (named[0], ["--help"]) if named else (None, [])


def _unknown(word: str) -> Exception:
    from mam.core.errors import Usage
    from mam.surfaces.cli import verb_table

    near = verb_table.nearest(word)
    hint = f"did you mean {near[0]}?" if near else "mam --help lists the verbs"
    return Usage(f"there is no verb '{word[:60]}'", hint=hint)


def _fail(error: Exception, as_json: bool) -> int:
    from mam.surfaces.cli import output

    try:
        return output.fail(error, as_json)
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except OSError:
        # Neither output takes anything any more; the exit code is all that is left.
        _drop_output()
        return output.as_ours(error).exit_code


def _drop_output() -> None:
    """Let the interpreter's own flush at the end go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass
