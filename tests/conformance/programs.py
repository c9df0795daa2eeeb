"""The real agent programs, in the versions that the facts were seen with.

Each is installed once with npm into a cache outside the repository. Import this module at the top of a
test file: where the cache and npm's own settings lie is read at import, before the tests move HOME.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

INSTALL_DEADLINE = 300.0
_ENVIRONMENT = dict(os.environ)


@dataclass(frozen=True, slots=True)
class Package:
    """Where npm has a program, and the name of its command."""

    name: str
    command: str
    version: str


PACKAGES = {
    "claude": Package("@anthropic-ai/claude-code", "claude", "2.1.325"),
    "codex": Package("@openai/codex", "codex", "0.166.0"),
    "gemini": Package("@google/gemini-cli", "gemini", "0.61.0"),
    "opencode": Package("opencode-ai", "opencode", "1.18.33"),
}
KINDS = tuple(PACKAGES)
# No agents. Of the inspector the last version that runs on Node 20.
OTHERS = {"inspector": Package("@modelcontextprotocol/inspector", "mcp-inspector", "1.0.3")}


class Unavailable(Exception):
    """The program cannot be had on this machine; the text says why."""


def find_cache() -> Path:
    """Return the folder of the installed programs, as the environment at import says."""
    if chosen := _ENVIRONMENT.get("MAM_DEV_CACHE"):
        return Path(chosen) / "agents"
    base = _ENVIRONMENT.get("XDG_CACHE_HOME") or Path(_ENVIRONMENT.get("HOME", "/")) / ".cache"
    return Path(base) / "mam-dev" / "agents"


def program(kind: str, version: str | None = None) -> Path:
    """Return the executable of a kind, and install it if it is not there yet.

    Always an exact version: asked for the latest, npm silently takes an older one that fits its node.
    Raises `Unavailable` without npm, when the install fails, or when it outlasts the deadline.
    """
    package = (PACKAGES | OTHERS)[kind]
    version = version or package.version
    place = find_cache() / f"{kind}-{version}"
    executable = place / "node_modules" / ".bin" / package.command
    marker = place / ".installed"
    if marker.exists():
        return executable
    npm = shutil.which("npm", path=_ENVIRONMENT.get("PATH"))
    if npm is None:
        raise Unavailable(f"{kind} {version} is not installed, and there is no npm to install it with")
    deadline = time.monotonic() + INSTALL_DEADLINE
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_name(f"{place.name}.lock"), deadline):
        if not marker.exists():
            _install(npm, package.name, version, place, deadline)
            if not os.access(executable, os.X_OK):
                raise Unavailable(f"npm installed {package.name}@{version} without {package.command}")
            marker.write_text(f"{package.name}@{version}\n", encoding="utf-8")
    return executable


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


def _install(npm: str, name: str, version: str, place: Path, deadline: float) -> None:
    """Fill `place` anew: what an interrupted install left is not trusted."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    argv = [npm, "install", "--prefix", str(place), "--no-audit", "--no-fund", "--loglevel=error"]
    with (place / "npm.log").open("w", encoding="utf-8") as log:
        running = subprocess.Popen(
            [*argv, f"{name}@{version}"],
            cwd=place,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            status = running.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Unavailable(f"npm install of {name}@{version} outlasted its deadline") from None
        finally:
            if running.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
    if status != 0:
        said = (place / "npm.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise Unavailable(f"npm install of {name}@{version} failed: {said[0] if said else status}")
    found = json.loads((place / "node_modules" / name / "package.json").read_text(encoding="utf-8"))[
        "version"
    ]
    if found != version:
        raise Unavailable(f"npm installed {name} {found} instead of {version}")
