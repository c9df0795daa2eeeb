"""The real agent programs are installed in the versions that the facts were seen with.

Each is installed once, with npm or pip, into a cache outside the repository. Import this module at the top of
a test file: what the environment says of cache and installers is read at import, before the tests move HOME.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conformance.program import PROGRAMS, Package

DEADLINES = {"npm": 300.0, "pip": 600.0}
_ENVIRONMENT = dict(os.environ)
# No agents. Of the inspector the last version that runs on Node 20.
OTHERS = {"inspector": Package("npm", "@modelcontextprotocol/inspector", "mcp-inspector", "1.0.3")}


class Unavailable(Exception):
    """The program cannot be had on this machine; the text says why."""


def find_cache() -> Path:
    """Return the folder of the installed programs, as the environment at import says."""
    if chosen := _ENVIRONMENT.get("MAM_DEV_CACHE"):
        return Path(chosen) / "agents"
    base = _ENVIRONMENT.get("XDG_CACHE_HOME") or Path(_ENVIRONMENT.get("HOME", "/")) / ".cache"
    return Path(base) / "mam-dev" / "agents"


def installed(name: str, version: str | None = None) -> Path:
    """Return the executable of a program, and install it if it is not there yet.

    Always an exact version: asked for the latest, npm silently takes an older one that fits its node.
    Raises `Unavailable` without the installer, when the install fails, or when it outlasts the deadline.
    """
    package = PROGRAMS[name].install if name in PROGRAMS else OTHERS[name]
    version = version or package.version
    place = find_cache() / f"{name}-{version}"
    is_npm = package.installer == "npm"
    executable = place / ("node_modules/.bin" if is_npm else "bin") / package.command
    marker = place / ".installed"
    if marker.exists():
        return executable
    npm = _find_npm(f"{name} {version}") if is_npm else ""
    if package.pythons and not package.pythons[0] <= sys.version_info[:2] < package.pythons[1]:
        raise Unavailable(f"{package.package} {version} does not run on this Python")
    deadline = time.monotonic() + DEADLINES[package.installer]
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(f"{place.name}.lock"), deadline):
        if not marker.exists():
            # What an interrupted install left is not trusted.
            shutil.rmtree(place, ignore_errors=True)
            if is_npm:
                _install_with_npm(npm, package.package, version, place, deadline)
            else:
                _install_with_pip(package.package, version, place, deadline)
            if not os.access(executable, os.X_OK):
                raise Unavailable(
                    f"{package.installer} installed {package.package} {version} without {package.command}"
                )
            marker.write_text(f"{package.package} {version}\n", encoding="utf-8")
    return executable


def _find_npm(wanted: str) -> str:
    npm = shutil.which("npm", path=_ENVIRONMENT.get("PATH"))
    if npm is None:
        raise Unavailable(f"{wanted} is not installed, and there is no npm to install it with")
    return npm


@contextmanager
def _locked(path: Path, deadline: float) -> Iterator[None]:
    """Hold the lock file alone; the kernel drops it when its holder dies."""
    with path.open("w", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Unavailable(f"another install holds {path.name}") from None
                time.sleep(0.2)
        yield


def _install_with_npm(npm: str, package: str, version: str, place: Path, deadline: float) -> None:
    place.mkdir()
    argv = [npm, "install", "--prefix", str(place), "--no-audit", "--no-fund", "--loglevel=error"]
    what = f"npm install of {package}@{version}"
    status, lines = _run([*argv, f"{package}@{version}"], place, place / "npm.log", deadline, what)
    if status != 0:
        raise Unavailable(f"{what} failed: {lines[0] if lines else status}")
    about = (place / "node_modules" / package / "package.json").read_text(encoding="utf-8")
    if (found := json.loads(about)["version"]) != version:
        raise Unavailable(f"npm installed {package} {found} instead of {version}")


def _install_with_pip(package: str, version: str, place: Path, deadline: float) -> None:
    """Make a virtual environment of the program's own."""
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    what, log = f"the install of {package}", place.with_name(f"{place.name}.log")
    for argv in ([sys.executable, "-m", "venv", str(place)], [*pip, f"{package}=={version}"]):
        status, lines = _run(argv, None, log, deadline, what)
        if status != 0:
            raise Unavailable(f"{what} failed: {lines[-1] if lines else f'status {status}'}")


def _run(
    argv: list[str], folder: Path | None, log: Path, deadline: float, what: str
) -> tuple[int, list[str]]:
    """Return the exit status and the lines that were printed; nothing of it runs on after the deadline."""
    with log.open("w", encoding="utf-8") as file:
        running = subprocess.Popen(
            argv,
            cwd=folder,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            status = running.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{what} outlasted its deadline") from None
        finally:
            if running.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
    return status, log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
