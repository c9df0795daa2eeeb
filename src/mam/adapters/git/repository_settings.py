"""The settings of a repository that would run programs, and the options of git that switch them off.

A repository may come from somebody else, and an agent may have written its settings. Its filters, hooks and
drivers of diffs are switched off. A filter that the user's own settings have too, such as that of git-lfs,
runs as the user's settings say.
"""

from __future__ import annotations

import os

from mam.core.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What no repository may decide. git takes an empty path of a file monitor as none, in every version.
ALWAYS_OFF = (
    "-c",
    "core.fsmonitor=",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "submodule.recurse=false",
)
# Prints the settings that `switched_off` reads. It runs nothing.
LIST_PROGRAMS = ("config", "--show-scope", "-z", "--get-regexp", r"^(filter|hook|diff)\.")
# Before git 2.26 nobody can tell whose a setting is.
LIST_PROGRAMS_WITHOUT_SCOPE = ("config", "-z", "--get-regexp", r"^(filter|hook|diff)\.")
_OF_REPOSITORY = ("local", "worktree")
_OF_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}
_OF_DIFF = ("command", "external", "textconv")


def scoped_settings(answer: bytes) -> list[tuple[str, str, str]]:
    """Return scope, key and value of each setting in the answer to `LIST_PROGRAMS`, in git's order."""
    fields = answer.split(b"\0")
    return [
        (os.fsdecode(scope), *_setting(text)) for scope, text in zip(fields[::2], fields[1::2], strict=False)
    ]


def unscoped_settings(answer: bytes) -> list[tuple[str, str, str]]:
    """Return the same for `LIST_PROGRAMS_WITHOUT_SCOPE`; every setting counts as one of the repository."""
    return [(_OF_REPOSITORY[0], *_setting(text)) for text in answer.split(b"\0") if text]


def _setting(text: bytes) -> tuple[str, str]:
    key, equals, value = text.partition(b"\n")
    # A key without a value is true.
    return os.fsdecode(key), os.fsdecode(value) if equals else "true"


def switched_off(settings: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return the options for git that replace every setting of the repository that runs a program."""
    of_user: dict[str, str] = {}
    replaced: dict[str, str] = {}
    for scope, key, value in settings:
        if scope not in _OF_REPOSITORY:
            of_user[key] = value
        elif (replacement := _replacement(key)) is not None:
            replaced.update([replacement])
    options = []
    for key, value in replaced.items():
        if "=" in key:
            # git would read the option as another key.
            raise Refused(
                f"the repository has a setting that mam cannot switch off: {key}",
                hint="remove it from the settings of the repository: git config --local --list",
            )
        options += ["-c", f"{key}={of_user.get(key, value)}"]
    return options


def _replacement(key: str) -> tuple[str, str] | None:
    """Return the key and the value that switch a setting of the repository off; None if it runs nothing."""
    section, _, rest = key.partition(".")
    name, _, variable = rest.rpartition(".")
    if section == "filter" and variable in _OF_FILTER:
        return key, _OF_FILTER[variable]
    if section == "diff" and variable in _OF_DIFF:
        return key, ""
    if section == "hook" and name:
        return f"hook.{name}.enabled", "false"
    return None
