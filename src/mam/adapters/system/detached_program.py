"""Starts a program that outlives mam, such as the resident."""

from __future__ import annotations

from mam.adapters.system.concurrent_program import Running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DETACH_SECONDS = 5.0


def detach(argv: list[str], environ: Mapping[str, str], cwd: str) -> bool:
    """Start a program that outlives this process and is not its child; False if the start failed."""
    # The shell starts the program and ends at once, so that this process need not reap the program.
    script = 'cd "$1" && shift && "$@" </dev/null >/dev/null 2>&1 &'
    return Running(["/bin/sh", "-c", script, "sh", cwd, *argv], environ).finish(_DETACH_SECONDS).status == 0
