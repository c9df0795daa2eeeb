"""One call of the command line: its options, the fleet they mean, and how it answers."""

from __future__ import annotations

import sys

from mam.surfaces.cli.answer import write_json, write_lines
from mam.surfaces.cli.paint import Paint, is_terminal
from mam.surfaces.cli.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from types import TracebackType
    from typing import Any

    from mam.app.fleet import Fleet


class Call:
    """What a verb gets. The fleet is opened when it is first used."""

    def __init__(self, options: Namespace, umask: int) -> None:
        """Take the parsed options; `umask` is the caller's own, for a program that replaces this one."""
        self.options = options
        self.as_json: bool = options.json
        self.umask = umask
        self.progress = Progress()
        self._fleet: Fleet | None = None

    def __enter__(self) -> Call:
        """Use as a context to leave nothing open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the progress line away and close the fleet."""
        self.progress.clear()
        self.close()

    @property
    def fleet(self) -> Fleet:
        """The fleet that --workspace, --registry and the current directory mean."""
        if self._fleet is None:
            from mam.app.fleet import open_fleet

            self._fleet = open_fleet(self.options.workspace, registry=self.options.registry)
            self._fleet.on_progress(self.progress.tell)
        return self._fleet

    def close(self) -> None:
        """Close the fleet; it is opened again if it is used again."""
        if self._fleet is not None:
            self._fleet.close()
            self._fleet = None

    def paint(self) -> Paint:
        """Return how stdout may look."""
        return Paint(sys.stdout)

    def say(self, document: Any, *lines: str) -> int:
        """Answer with the document or, for a person, with the lines; return the exit code of success."""
        self.progress.clear()
        if self.as_json:
            write_json(document)
        else:
            write_lines(lines)
        return 0

    def may_ask(self) -> bool:
        """Tell whether there is a person who can be asked."""
        return not self.as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)

    def ask(self, question: str) -> bool:
        """Ask for a yes; anything else, also the end of the input, is a no."""
        self.progress.clear()
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")
