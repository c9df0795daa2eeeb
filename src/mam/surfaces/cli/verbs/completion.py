"""mam completion: print the completion script of a shell, which shtab makes from the parsers.

The script calls `mam ls --names` and `mam job list --ids` to complete sessions and jobs. People can edit the
registry file, and bash inserts a completion unquoted. So the bash script leaves out names with a character
that is special to a shell.
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
# $1 is the typed text, the rest is the mam command that lists names. Names are never expanded.
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
    """Add the options: the shell."""
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

    dynamic = {"NAME": _SESSIONS, "ID": _JOBS, "DIR": shtab.DIRECTORY, "FILE": shtab.FILE}
    fixed = {"KIND": kinds, "COND": _CONDITIONS, "PRESET|FILE": presets}
    parser = build_all()
    _set_completions(parser, dynamic, fixed)
    return str(shtab.complete(parser, shell))


def _set_completions(parser: ArgumentParser, dynamic: dict[str, Any], fixed: dict[str, Any]) -> None:
    """Set how each argument is completed, by its metavar."""
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                _set_completions(below, dynamic, fixed)
        else:
            _set_completion(parser, action, dynamic, fixed)


def _set_completion(
    parser: ArgumentParser, action: Action, dynamic: dict[str, Any], fixed: dict[str, Any]
) -> None:
    is_new = parser.prog.endswith((" create", " adopt", " spawn", " register")) and action.dest == "session"
    # In a metavar such as `NAME TEXT` only the first argument is completed.
    metavar = action.metavar.partition(" ")[0] if isinstance(action.metavar, str) else ""
    if metavar == "ID" and " job " not in f" {parser.prog} ":
        return
    if metavar in fixed:
        # Other values are valid, too. But this parser only makes the script and never reads a command line.
        action.choices = fixed[metavar]
    elif metavar in dynamic and not is_new:
        action.complete = dynamic[metavar]  # type: ignore[attr-defined]  # shtab's own attribute
