"""mam completion: the completion script of a shell, made by shtab from the parsers.

Session names are completed by asking `mam ls --names` at the time. A registry file is written by
people, too, and bash inserts what it is given as it is: there, a name with any character that a
shell could read as something else is left out.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, ArgumentParser

    from mam.surfaces.cli.call import Call
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = "Print the script that completes verbs, options and session names in a shell."
EXAMPLES = """
  source <(mam completion bash)                              in ~/.bashrc
  mam completion zsh > ~/.zfunc/_mam
  mam completion fish > ~/.config/fish/completions/mam.fish
  mam completion tcsh > ~/.mam.tcsh"""
SHELLS = ("bash", "zsh", "tcsh", "fish")

_BASH = """
# $1: what is typed so far. The names are compared and printed, never expanded.
_mam_sessions() {
  local name index
  local -a where=()
  for ((index = 1; index < COMP_CWORD - 1; index++)); do
    case ${COMP_WORDS[index]} in
      --workspace | --registry) where+=("${COMP_WORDS[index]}" "${COMP_WORDS[index + 1]/#\\~/$HOME}") ;;
    esac
  done
  mam ls --names "${where[@]}" 2>/dev/null | while IFS= read -r name; do
    case $name in
      *[!a-z0-9-]*) ;;
      "$1"*) printf '%s\\n' "$name" ;;
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
"""
_NAMES = {
    "bash": "_mam_sessions",
    "zsh": "_mam_sessions",
    "tcsh": "`mam ls --names`",
    "fish": "(mam ls --names 2>/dev/null)",
    "preamble": {"bash": _BASH, "zsh": _ZSH},
}


def add_options(parser: Parser) -> None:
    """For which shell."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def run(call: Call) -> int:
    """Print the script."""
    shell = call.options.shell
    text = script(shell)
    return call.say({"shell": shell, "script": text}, text)


def script(shell: str) -> str:
    """Return the completion script for a shell."""
    import shtab

    from mam.surfaces.cli.parser import build_all

    parser = build_all()
    _teach(parser, {"NAME": _NAMES, "DIR": shtab.DIRECTORY, "FILE": shtab.FILE})
    return str(shtab.complete(parser, shell))


def _teach(parser: ArgumentParser, answers: dict[str, object]) -> None:
    """Say how each argument is completed, by what it is called in the help."""
    for action in parser._actions:
        _teach_one(parser, action, answers)


def _teach_one(parser: ArgumentParser, action: Action, answers: dict[str, object]) -> None:
    if isinstance(action.choices, dict):
        for below in action.choices.values():
            _teach(below, answers)
    is_new = parser.prog.endswith((" create", " adopt", " spawn", " register")) and action.dest == "session"
    # `NAME TEXT`: the first of several words is a name.
    called = action.metavar.partition(" ")[0] if isinstance(action.metavar, str) else ""
    if called in answers and not is_new:
        action.complete = answers[called]  # type: ignore[attr-defined]  # shtab's own attribute
