"""`python -m mam.practice`: checks the command line, then runs the loop."""

from __future__ import annotations

import os
import sys

from . import VERSION
from .options import HELP, Usage, parse
from .text_width import clean


def main(arguments: list[str]) -> int:
    """Run the agent; return its exit code."""
    try:
        options = parse(arguments)
    except Usage as usage:
        return _refuse(f"Error: {usage}", 2)
    if options.help or options.version:
        print(HELP if options.help else f"Practice agent v{VERSION}")
        return 0

    from .settings import load_hooks
    from .transcript import Refused, open_conversation

    try:
        folder = os.getcwd()
        conversation = open_conversation(options)
        commands = load_hooks(options.settings)
    except Refused as refused:
        return _refuse(str(refused), 1)
    except OSError as error:
        return _refuse(f"Error: {error.strerror}", 1)
    if not (os.isatty(0) and os.isatty(1)):
        return _refuse("Error: the practice agent needs a terminal on standard input and output", 2)

    from .agent import Agent
    from .hooks import Hooks
    from .loop import Loop
    from .redraw import Screen
    from .scrollback import Output
    from .signal_pipe import Signals
    from .terminal import Terminal
    from .turn_runner import Session

    signals = Signals(ignore_endings=options.ignore_sigterm)
    terminal = Terminal(signals.is_stopping)
    hooks = Hooks(commands)
    session = Session(options, conversation, hooks, folder, Output(terminal.size()[0]))
    agent = Agent(options, session)
    screen = Screen(colours=not os.environ.get("NO_COLOR"))
    return Loop(agent, hooks, terminal, signals, screen).run()


def _refuse(reason: str, code: int) -> int:
    print(clean(reason), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
