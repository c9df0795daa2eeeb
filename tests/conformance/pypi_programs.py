"""Hermes Agent from PyPI, in the version that the facts were seen with.

It is installed once, with pip, into a virtual environment in the cache of the other programs. Import this
module at the top of a test file: what the environment says is read at import, before the tests move HOME.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.conformance.programs import Unavailable, _locked, find_cache

PACKAGE, VERSION = "hermes-agent", "0.19.0"
INSTALL_DEADLINE = 600.0
# What the package itself asks for.
_PYTHONS = ((3, 11), (3, 14))
_ENVIRONMENT = dict(os.environ)


def hermes(version: str | None = None) -> Path:
    """Return the executable, and install it if it is not there yet; `Unavailable` says why it cannot be."""
    version = version or VERSION
    place = find_cache() / f"hermes-{version}"
    executable, marker = place / "bin" / "hermes", place / ".installed"
    if marker.exists():
        return executable
    if not _PYTHONS[0] <= sys.version_info[:2] < _PYTHONS[1]:
        raise Unavailable(f"{PACKAGE} {version} does not run on this Python")
    deadline = time.monotonic() + INSTALL_DEADLINE
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(f"{place.name}.lock"), deadline):
        if not marker.exists():
            shutil.rmtree(place, ignore_errors=True)
            log = place.with_name(f"{place.name}.log")
            _run([sys.executable, "-m", "venv", str(place)], log, deadline)
            pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
            _run([*pip, f"{PACKAGE}=={version}"], log, deadline)
            if not os.access(executable, os.X_OK):
                raise Unavailable(f"pip installed {PACKAGE}=={version} without a program")
            marker.write_text(f"{PACKAGE}=={version}\n", encoding="utf-8")
    return executable


def _run(argv: list[str], log: Path, deadline: float) -> None:
    with log.open("w", encoding="utf-8") as file:
        running = subprocess.Popen(
            argv,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            status = running.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Unavailable(f"the install of {PACKAGE} outlasted its deadline") from None
        finally:
            if running.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
    if status != 0:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Unavailable(f"the install of {PACKAGE} failed: {said[-1] if said else f'status {status}'}")
