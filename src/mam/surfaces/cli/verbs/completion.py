"""mam completion: the completion script of a shell, made by shtab from the parsers.

Sessions and jobs are completed by asking `mam ls --names` and `mam job list --ids` at the time. A
registry file is written by people, too, and bash inserts what it is given as it is: there, a name
with any character that a shell could read as something else is left out.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, ArgumentParser
    from collections.abc import Sequence
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = "Print the script that completes verbs, options, sessions and jobs in a shell."
EXAMPLES = """
  source <(mam completion bash)                              in ~/.bashrc
  mam completion zsh > ~/.zfunc/_mam
  mam completion fish > ~/.config/fish/completions/mam.fish
  mam completion tcsh > ~/.mam.tcsh"""
_CONDITIONS = ("idle", "working", "waiting", "exited", "text:")
SHELLS = ("bash", "zsh", "tcsh", "fish")

_BASH = """
_mam_sessions() { _mam_offer "$1" ls --names; }
_mam_jobs() { _mam_offer "$1" job list --ids; }
# $1: what is typed so far; then what lists the names. They are compared and printed, never expanded.
_mam_offer() {
  local typed=$1 name index
  local -a where=()
  for ((index = 1; index < COMP_CWORD - 1; index++)); do
    case ${COMP_WORDS[index]} in
      --workspace | --registry) where+=("${COMP_WORDS[index]}" "${COMP_WORDS[index + 1]/#\\~/$HOME}") ;;
    esac
  done
  mam "${@:2}" "${where[@]}" 2>/dev/null | while IFS= read -r name; do
    case $name in
      *[!a-z0-9-]*) ;;
      "$typed"*) printf '%s\\n' "$name" ;;
    esac
  done
}
"""
_ZSH = """
_mam_sessions() {
  local -a names
  names=(${(f)"$(mam ls --names 2>/dev/null)"})
  compadd "$@" -a names
}
_mam_jobs() {
  local -a ids
  ids=(${(f)"$(mam job list --ids 2>/dev/null)"})
  compadd "$@" -a ids
}
"""
_PREAMBLE = {"bash": _BASH, "zsh": _ZSH}
_SESSIONS = {
    "bash": "_mam_sessions",
    "zsh": "_mam_sessions",
    "tcsh": "`mam ls --names`",
    "fish": "(mam ls --names 2>/dev/null)",
    "preamble": _PREAMBLE,
}
_JOBS = {
    "bash": "_mam_jobs",
    "zsh": "_mam_jobs",
    "tcsh": "`mam job list --ids`",
    "fish": "(mam job list --ids 2>/dev/null)",
    "preamble": _PREAMBLE,
}


def add_options(parser: Parser) -> None:
    """For which shell."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def run(call: Invocation) -> int:
    """Print the script."""
    shell = call.options.shell
    text = script(shell, call.fleet.sessions.kinds(), call.fleet.teams.list()["presets"])
    return call.say({"shell": shell, "script": text}, text)


def script(shell: str, kinds: Sequence[str], presets: Sequence[str]) -> str:
    """Return the completion script for a shell."""
    import shtab

    from mam.surfaces.cli.parser import build_all

    asked = {"NAME": _SESSIONS, "ID": _JOBS, "DIR": shtab.DIRECTORY, "FILE": shtab.FILE}
    known = {"KIND": kinds, "COND": _CONDITIONS, "PRESET|FILE": presets}
    parser = build_all()
    _teach(parser, asked, known)
    return str(shtab.complete(parser, shell))


def _teach(parser: ArgumentParser, asked: dict[str, Any], known: dict[str, Any]) -> None:
    """Say how each argument is completed, by what it is called in the help."""
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                _teach(below, asked, known)
        else:
            _teach_one(parser, action, asked, known)


def _teach_one(parser: ArgumentParser, action: Action, asked: dict[str, Any], known: dict[str, Any]) -> None:
    is_new = parser.prog.endswith((" create", " adopt", " spawn", " register")) and action.dest == "session"
    # `NAME TEXT`: the first of several words is a name.
    called = action.metavar.partition(" ")[0] if isinstance(action.metavar, str) else ""
    if called == "ID" and " job " not in f" {parser.prog} ":
        return
    if called in known:
        # This parser reads no command line: what it names first is not all that there is.
        action.choices = known[called]
    elif called in asked and not is_new:
        action.complete = asked[called]  # type: ignore[attr-defined]  # shtab's own attribute
