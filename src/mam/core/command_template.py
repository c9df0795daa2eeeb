"""The command of a job with --exec: which placeholders it has, and what takes their place. Pure.

A placeholder is a word of lower case letters and `_` in braces: `{prompt_file}`, `{prompt}`, `{workdir}`. An
unknown one is refused, because it is probably mistyped. `{{word}}` stands for `{word}`. All other braces are
ordinary characters: `{}`, `{"a": 1}`, `${HOME}`.
"""

from __future__ import annotations

import re

from mam.core.errors import InvalidPrompt, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROMPT_FILE, PROMPT, WORKDIR = PLACEHOLDERS = ("prompt_file", "prompt", "workdir")
LONGEST_PROMPT = 100 * 1024
# Linux takes no argument of 128 KB or more.
_LONGEST_ARGUMENT = 127 * 1024
_IN_FILE = "put the bytes into a file, and name the file"
_WORD = r"[a-z][a-z_]*"
_BRACES = re.compile(rf"\{{\{{({_WORD})\}}\}}|\{{({_WORD})\}}")


def check(command: Sequence[str]) -> None:
    """Raise Usage for a command that no launch could run, whatever the prompt is."""
    if not command or not command[0]:
        raise Usage(
            "--exec needs a program and its arguments", hint="mam job submit --exec … -- PROGRAM ARG…"
        )
    for argument in command:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise Usage("an argument of the command is not UTF-8", hint=_IN_FILE) from None
        if "\0" in argument:
            raise Usage("an argument of the command contains a NUL character", hint=_IN_FILE)
        unknown = next((name for name in _names(argument) if name not in PLACEHOLDERS), None)
        if unknown is not None:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise Usage(
                f"there is no placeholder {{{unknown}}}; the placeholders are {known}",
                hint=f"for the word itself in braces write {{{{{unknown}}}}}",
            )
    if {PROMPT, PROMPT_FILE} & set(_names(command[0])):
        raise Usage("the prompt cannot be the program", hint="name a program before it")


def takes_stdin(command: Sequence[str]) -> bool:
    """Tell whether the program gets the prompt on stdin: no placeholder carries it."""
    return not {PROMPT, PROMPT_FILE} & {name for argument in command for name in _names(argument)}


def expand(command: Sequence[str], *, prompt: str, prompt_file: str, workdir: str) -> list[str]:
    """Return the command with the placeholders filled in."""
    values = {PROMPT: prompt, PROMPT_FILE: prompt_file, WORKDIR: workdir}
    return [_expanded(argument, values) for argument in command]


def _expanded(argument: str, values: Mapping[str, str]) -> str:
    names = _names(argument)
    if PROMPT in names and len(values[PROMPT].encode()) > LONGEST_PROMPT:
        raise InvalidPrompt(
            f"a prompt of more than {LONGEST_PROMPT // 1024} KB cannot be an argument",
            hint="use {prompt_file}, or no placeholder: then the program reads it on stdin",
        )
    text = _BRACES.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], argument)
    if text.startswith("-") and not argument.startswith("-"):
        raise InvalidPrompt(
            "the program would take this prompt for an option, because it begins with '-'",
            hint="use {prompt_file} or stdin, or write the option and the prompt as one: --message={prompt}",
        )
    if names and len(text.encode()) > _LONGEST_ARGUMENT:
        raise InvalidPrompt("an argument of the command is too long", hint="use {prompt_file} or stdin")
    return text


def _names(argument: str) -> list[str]:
    return [match[2] for match in _BRACES.finditer(argument) if match[2]]
