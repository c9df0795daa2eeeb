"""mam 0.1.0 from its kept wheel, run as a program beside the mam of today."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

WHEELS = Path(__file__).resolve().parents[1] / "golden" / "wheels"


class Program:
    """One version of mam as a person types it, in one root."""

    def __init__(self, root: Path, packages: Path | None = None) -> None:
        """`packages` is the folder of another mam; without it this is today's."""
        self.root = root
        self.packages = packages

    def environ(self) -> dict[str, str]:
        """Return the environment of this process; an older mam comes first on the path of its modules."""
        return {**os.environ, **({"PYTHONPATH": str(self.packages)} if self.packages else {})}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb to its end."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "mam", *words],
            cwd=self.root,
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def __call__(self, *words: str) -> str:
        """Run a verb that succeeds, and return what it prints."""
        done = self.run(*words)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str) -> dict:
        """Run a verb with --json, and return its document."""
        return json.loads(self(*words, "--json"))

    def statuses(self) -> dict[str, str]:
        """Return the status of each session by name, as `ls` shows it."""
        return {row["name"]: row["status"] for row in self.json("ls")["sessions"]}


def unpack(version: str, folder: Path) -> Path:
    """Unpack the wheel of a release; what it depends on is installed for today's mam."""
    with ZipFile(WHEELS / f"multi_agent_mux-{version}-py3-none-any.whl") as wheel:
        wheel.extractall(folder)
    return folder


def take_over_user_state() -> None:
    """Give today's mam the user state of mam 0.1, where MAM_STATE_HOME keeps it from looking by itself."""
    former = Path(os.environ["XDG_STATE_HOME"]) / "mam" / "host.db"
    target = Path(os.environ["MAM_STATE_HOME"]) / "user.db"
    if former != target and former.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(former, target)
        target.chmod(0o600)
