"""Names of sessions, agent kinds and tmux servers: which are allowed, and how default names are made.

tmux expands `#(…)`, splits at `;` and matches prefixes, so only a short list of characters is allowed in
names that reach tmux.
"""

from __future__ import annotations

from mam.core.errors import InvalidName, Usage

# Patterns are compiled at their first use, so that the start of every command does not pay for them.
_NAME = r"[a-z0-9][a-z0-9-]{0,99}\Z"
_STARTABLE = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z"
_KIND = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}\Z"
_SERVER = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z"
_MODEL = r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,99}\Z"
_ENV_KEY = r"[A-Za-z_][A-Za-z0-9_]*\Z"
_LONGEST = 100
_MARK = "-creator-"

KIND_ALIASES = {"claude-code": "claude", "antigravity": "agy"}
# The kinds that mam itself has.
KNOWN_KINDS = ("agy", "claude", "codex", "gemini", "hermes", "human", "opencode", "practice")
# The kind of a row that does not show what it runs.
UNKNOWN_KIND = "unknown"
_BEFORE_PROGRAM = ("command", "env", "exec", "nohup")


def parse_name(text: str) -> str:
    """Return a valid session name, or raise InvalidName."""
    if not _matches(_NAME, text):
        raise InvalidName(
            f"{_quoted(text)} is not a session name",
            hint="use a-z, 0-9 and '-', starting with a letter or digit, at most 100 characters",
        )
    return text


def parse_row_name(text: str) -> str:
    """Return the name of a row that mam can start: it may have capitals and `_`, which a new name may not."""
    if not _matches(_STARTABLE, text):
        from shlex import quote

        raise InvalidName(
            f"mam cannot start a session named {_quoted(text)}",
            hint=f"give it another name first: mam rename {quote(text[:_LONGEST])} NEW",
        )
    return text


def is_session_id(text: str) -> bool:
    """Tell whether text has the form of a session id."""
    return len(text) == 10 and text.startswith("s_") and not text[2:].strip("0123456789abcdef")


def parse_kind(text: str) -> str:
    """Return the name of an agent kind, given its name or one of its aliases."""
    if not _matches(_KIND, text):
        raise InvalidName(f"{_quoted(text)} is not an agent kind", hint="name a kind or a program on PATH")
    return KIND_ALIASES.get(text, text)


def parse_server(text: str) -> str:
    """Return a tmux server: a `-L` name, or an absolute socket path without control characters."""
    if text.startswith("/"):
        if text.isprintable() and len(text) < 100:
            return text
    elif _matches(_SERVER, text):
        return text
    raise InvalidName(
        f"{_quoted(text)} is not a tmux server", hint="use a plain name (tmux -L) or an absolute socket path"
    )


def parse_role(text: str | None) -> str | None:
    """Return a role that the registry accepts, or raise InvalidName."""
    if text is None:
        return None
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST:
        raise InvalidName("a role is a short text that is not empty", hint="use a word such as developer")
    return text


def parse_model(text: str) -> str:
    """Return the name of a model. It may not begin with `-`: the program would read it as an option."""
    if not _matches(_MODEL, text):
        raise Usage(f"{_quoted(text)} is not the name of a model", hint="use the name that the program takes")
    return text


def is_environment_key(text: str) -> bool:
    """Tell whether text can be the name of a variable."""
    return _matches(_ENV_KEY, text)


def parse_environment(items: list[str]) -> dict[str, str]:
    """Return K=V items as a mapping."""
    variables = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not is_environment_key(key) or "\0" in value:
            raise InvalidName(f"{_quoted(item)} is not of the form NAME=VALUE", hint="--env EDITOR=vi")
        if key.startswith(("MAM_", "TMUX")) or key == "TERM":
            raise InvalidName(f"mam and tmux set {key} themselves", hint="leave it out")
        variables[key] = value
    return variables


def default_name(workspace: str, kind: str, number: int = 1, *, label: str = "") -> str:
    """Return the default name of a session; a number from 2, or a label, comes before `-creator-`."""
    parts = [part for part in workspace.split("/") if part][-2:] or ["root"]
    stem = slug("-".join(parts)) or "workspace"
    tail = (f"-{label}" if label else f"-{number}" if number > 1 else "") + _MARK + slug(kind)
    return stem[: _LONGEST - len(tail)].rstrip("-") + tail


def numbered(stem: str, number: int) -> str:
    """Return a name with a number behind its stem; number 1 is left out."""
    tail = f"-{number}" if number > 1 else ""
    return stem[: _LONGEST - len(tail)].rstrip("-") + tail


def kind_of_name(name: str) -> str | None:
    """Return the agent kind at the end of a name of the original system's pattern, `STEM-creator-KIND`."""
    _, mark, kind = name.rpartition(_MARK)
    return kind if mark and _matches(_KIND, kind) else None


def kind_of_command(words: list[str]) -> str | None:
    """Return the known kind of the program that a command runs; None if it runs any other program.

    The program may be a path. Variables and words such as `env` may stand before it.
    """
    for word in words:
        if "=" in word or word in _BEFORE_PROGRAM:
            continue
        program = word.rpartition("/")[2]
        kind = KIND_ALIASES.get(program, program)
        return kind if kind in KNOWN_KINDS else None
    return None


def slug(text: str) -> str:
    """Return a text as a part of a name: lower case, with one `-` for each run of other characters."""
    import re

    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


def _matches(pattern: str, text: str) -> bool:
    import re

    return re.match(pattern, text) is not None
