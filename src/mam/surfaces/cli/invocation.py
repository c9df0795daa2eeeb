"""One call of the command line: its options, the fleet they mean, and how it answers."""

from __future__ import annotations

import sys

from mam.core.errors import Usage
from mam.surfaces.cli.output import write_json, write_lines
from mam.surfaces.cli.style import Paint, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from mam.app.api.fleet import Fleet
    from mam.surfaces.cli.progress import Progress


class Invocation:
    """What a verb gets. The fleet is opened when it is first used."""

    def __init__(self, options: Any) -> None:
        """Take the parsed options."""
        self.options = options
        self.as_json: bool = options.json
        self._progress: Progress | None = None
        self._fleet: Fleet | None = None

    def __enter__(self) -> Invocation:
        """Use as a context to leave nothing open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the progress line away and close the fleet."""
        self.quiet()
        if isinstance(error, KeyboardInterrupt) and self._progress is not None and self._progress.last:
            # Shown by the command itself, and by nobody who runs it as a part of something else.
            error.add_note(f"mam: interrupted while {self._progress.last}; {self._progress.after}")
        self.close()

    @property
    def fleet(self) -> Fleet:
        """The fleet that --workspace, --registry and the current directory mean."""
        if self._fleet is None:
            from mam.app.api.fleet import open_fleet

            for name in ("workspace", "registry"):
                # An unset variable of a script must not mean the current directory.
                if getattr(self.options, name) == "":
                    raise Usage(f"--{name} is empty")
            self._fleet = open_fleet(self.options.workspace, registry=self.options.registry)
            self._fleet.on_progress(self.tell)
            self._fleet.on_warning(lambda text: self.tell(f"warning: {text}"))
        return self._fleet

    def tell(self, text: str, **more: str) -> None:
        """Show what is being done, until something else is said; see Progress.tell."""
        if self._progress is None:
            from mam.surfaces.cli.progress import Progress

            self._progress = Progress()
        self._progress.tell(text, **more)

    def quiet(self) -> None:
        """Take the progress line away."""
        if self._progress is not None:
            self._progress.clear()

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
        self.quiet()
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
        self.quiet()
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")
