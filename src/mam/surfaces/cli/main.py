"""The entry point of the command line: find the verb, import its module, and exit with its exit code.

Verbs must start fast, so this module imports nothing that some verb may not need.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType, ModuleType
    from typing import Any

INTERRUPTED, BROKEN_PIPE = 130, 141
_WITH_VALUE = ("--workspace", "--registry")
_REPEAT_SECONDS = 0.01


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. It never raises, and shows a traceback only on request.

    Without argv it runs the command line of this process, and ends the process.
    """
    if argv is not None:
        return _guarded(list(argv), [], [])
    import gc

    # Collecting garbage in a short command is a waste of time, and so is the regular shutdown of the
    # interpreter, which takes as long as a verb. Therefore os._exit below.
    gc.set_threshold(100_000)
    sys.unraisablehook = repeat_lost_interrupt
    notes: list[str] = []
    # To free the answer of a verb piece by piece, just before the process ends, is a waste of time as well:
    # for 1,000 sessions it takes as long as to print them.
    kept: list[object] = []
    code = _guarded(sys.argv[1:], notes, kept)
    if notes and sys.stderr is not None:
        print(*notes, sep="\n", file=sys.stderr)
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError:
        pass
    os._exit(code)


def repeat_lost_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise KeyboardInterrupt again a moment later if Python had to ignore it.

    Python ignores every exception in a callback of a weak reference, and each import has such a callback.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    import signal

    signal.signal(signal.SIGALRM, _interrupt_again)
    signal.setitimer(signal.ITIMER_REAL, _REPEAT_SECONDS)


def _interrupt_again(_number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not into the function above, where Python would ignore it again."""
    import signal

    while frame is not None:
        if frame.f_code is repeat_lost_interrupt.__code__:
            # On a busy machine the moment is over before that function is.
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_SECONDS)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _guarded(arguments: list[str], notes: list[str], kept: list[object]) -> int:
    """Run a command with output streams that accept every character."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is escaped instead of raising an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    return _run(arguments, notes, kept)


def _run(arguments: list[str], notes: list[str], kept: list[object]) -> int:
    """Run a command; add to `notes` what an interrupt cut short, and to `kept` what is not freed."""
    as_json = wants_json(arguments)
    try:
        code = dispatch(arguments, as_json, kept)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt as error:
        notes += getattr(error, "__notes__", [])
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Exception as error:
        return _fail(error, as_json)


def dispatch(arguments: list[str], as_json: bool, kept: list[object]) -> int:
    """Find the verb among the arguments and run it; common options may come before the verb."""
    before, verb, after = split(arguments)
    if verb is None:
        return _without_verb(before, as_json)
    if verb == "help":
        verb, after = _verb_of_help(after)
        if verb is None:
            return _without_verb(["--help"], as_json)
    from mam.surfaces.cli import verb_table

    if verb_table.module_of(verb) is None:
        raise _unknown(verb)
    from mam.surfaces.cli.invocation import Invocation

    with Invocation(_options(verb, verb_table.load(verb), before, after)) as call:
        kept.append(call)
        return int(verb_table.load(verb).run(call))


def _options(verb: str, module: ModuleType, before: list[str], after: list[str]) -> Any:
    """Return the parsed options of a verb; simple command lines are parsed without argparse."""
    if hasattr(module, "FLAGS"):
        from mam.surfaces.cli import fast_parse

        fast = fast_parse.read(module.FLAGS, module.UNSET, [*before, *after])
        if fast is not None:
            return fast
    if hasattr(module, "parse_fast"):
        fast = module.parse_fast(before, after)
        if fast is not None:
            return fast
    from mam.surfaces.cli import parser

    after, rest = _cut(after) if getattr(module, "TAKES_REST", False) else (after, [])
    options = parser.parse(parser.build(verb, module), [*before, *after])
    options.rest = rest
    return options


def split(arguments: list[str]) -> tuple[list[str], str | None, list[str]]:
    """Return the arguments before the verb, the verb, and the arguments after it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in _WITH_VALUE else 1
    if at >= len(arguments):
        return arguments, None, []
    return arguments[:at], arguments[at], arguments[at + 1 :]


def wants_json(arguments: list[str]) -> bool:
    """Tell whether --json is among the arguments, even if they cannot be parsed."""
    return "--json" in _cut(arguments)[0]


def _cut(arguments: list[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


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
        problem = f"there is no option '{unknown[0][:60]}'" if unknown else "no verb was given"
        raise Usage(problem, hint="mam --help lists the verbs")
    print(verb_table.overview(), file=sys.stderr)
    return Usage.exit_code


def _verb_of_help(after: list[str]) -> tuple[str | None, list[str]]:
    verbs = [word for word in after if not word.startswith("-")]
    return (verbs[0], [*verbs[1:2], "--help"]) if verbs else (None, [])


def _unknown(verb: str) -> Exception:
    from mam.core.errors import Usage
    from mam.surfaces.cli import verb_table

    near = verb_table.nearest(verb)
    hint = f"did you mean {near[0]}?" if near else "mam --help lists the verbs"
    return Usage(f"there is no verb '{verb[:60]}'", hint=hint)


def _fail(error: Exception, as_json: bool) -> int:
    from mam.surfaces.cli import output

    try:
        return output.fail(error, as_json)
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except OSError:
        # Neither stdout nor stderr can be written to; only the exit code can tell of the error.
        _discard_output()
        return output.as_mam_error(error).exit_code


def _discard_output() -> None:
    """Redirect stdout to /dev/null, so that the interpreter's last flush cannot fail."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError, AttributeError):
        pass
