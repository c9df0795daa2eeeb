"""Starts a program that outlives mam, such as the resident."""

from __future__ import annotations

from mam.adapters.system.concurrent_program import Running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DETACH_SECONDS = 5.0


def detach(argv: list[str], environ: Mapping[str, str], cwd: str, output: str = "/dev/null") -> bool:
    """Start a program that outlives this process and is not its child; False if the start failed.

    What it prints is appended to the file `output`.
    """
    # The shell starts the program and ends at once, so that this process need not reap the program.
    script = 'cd "$1" && output=$2 && shift 2 && "$@" </dev/null >>"$output" 2>&1 &'
    words = ["/bin/sh", "-c", script, "sh", cwd, output, *argv]
    return Running(words, environ).finish(_DETACH_SECONDS).status == 0
