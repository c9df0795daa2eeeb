"""One call of the command line: its options, its fleet, and how it prints its answer."""

from __future__ import annotations

import sys

from mam.core.errors import Usage
from mam.surfaces.cli.output import write_json, write_lines
from mam.surfaces.cli.style import Paint, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.progress import Progress


class Invocation:
    """The argument of every verb. It opens the fleet at the first use."""

    def __init__(self, options: Any) -> None:
        """Keep the parsed options."""
        self.options = options
        self.as_json: bool = options.json
        self._progress: Progress | None = None
        self._fleet: Fleet | None = None
        self._warnings: list[str] = []
        # The answer of a verb that keeps it; see `main`.
        self.document: object = None

    def __enter__(self) -> Invocation:
        """Enter a context that closes the fleet at its end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Erase the progress line and close the fleet."""
        self.clear_progress()
        if isinstance(error, KeyboardInterrupt) and self._progress is not None and self._progress.last:
            # `main` prints the note only for the command of this process, not for one that `demo` runs.
            error.add_note(f"mam: interrupted while {self._progress.last}; {self._progress.after}")
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            fleet.__exit__(kind, error, trace)

    @property
    def fleet(self) -> Fleet:
        """The fleet of --workspace, --registry, the --registry-dir of jobs, or the current directory."""
        if self._fleet is None:
            from mam.app.api.fleet_object import open_fleet

            for name in ("workspace", "registry"):
                # An empty value may be an unset variable of a script; it must not mean this directory.
                if getattr(self.options, name) == "":
                    raise Usage(f"--{name} is empty", hint="give it a value, or leave it out")
            self._fleet = open_fleet(
                self.options.workspace,
                registry=self.options.registry,
                records_folder=getattr(self.options, "records_folder", None),
            )
            self._fleet.on_progress(self.show_progress)
            self._fleet.on_warning(self.show_warning)
        return self._fleet

    def show_progress(self, text: str, **more: str) -> None:
        """Show what the verb is doing; see Progress.show."""
        if self._progress is None:
            from mam.surfaces.cli.progress import Progress

            self._progress = Progress()
        self._progress.show(text, **more)

    def show_warning(self, text: str) -> None:
        """Print a problem that does not stop the verb, once; the JSON document has it as well."""
        if text not in self._warnings:
            self._warnings.append(text)
            self.show_progress(f"warning: {text}")

    def show_note(self, text: str) -> None:
        """Print a line for a person on stderr, which stays; not with JSON, which is for programs."""
        from mam.core.safe_text import one_line

        self.clear_progress()
        if sys.stderr is not None and not self.as_json:
            print(f"mam: {one_line(text, 500)}", file=sys.stderr, flush=True)

    def clear_progress(self) -> None:
        """Erase the progress line."""
        if self._progress is not None:
            self._progress.clear()

    def close(self) -> None:
        """Close the fleet; the next use opens it again."""
        if self._fleet is not None:
            self._fleet.close()
            self._fleet = None

    def paint(self) -> Paint:
        """Return the colours and the width of stdout."""
        return Paint(sys.stdout)

    def say(self, document: Any, *lines: str) -> int:
        """Print the document as JSON or the lines as text; return 0."""
        self.clear_progress()
        if self.as_json:
            write_json(self.with_warnings(document))
        else:
            write_lines(lines)
        return 0

    def with_warnings(self, document: Any) -> Any:
        """Return a document with the warnings of this call, if there are any."""
        return (
            {**document, "warnings": self._warnings}
            if self._warnings and isinstance(document, dict)
            else document
        )

    def may_ask(self) -> bool:
        """Tell whether a person can answer a question."""
        return not self.as_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)

    def ask(self, question: str) -> bool:
        """Ask a person; return True only if the answer is yes."""
        self.clear_progress()
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer.endswith("\n"):
            # After ^D the cursor still stands behind the question.
            print(file=sys.stderr, flush=True)
        return answer.strip().lower() in ("y", "yes")
