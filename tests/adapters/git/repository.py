"""A real repository in a temporary folder, with shortcuts for git commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which git reads no settings of a user."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "MAM_"))}
    identity = {
        f"GIT_{role}_{field}": "t@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for field in ("NAME", "EMAIL")
    }
    fast = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsync", "GIT_CONFIG_VALUE_0": "none"}
    no_settings = {
        "HOME": str(home),
        "MAM_STATE_HOME": str(home / "state"),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return {**env, **identity, **fast, **no_settings}


class Repository:
    """One repository; every method runs the git program."""

    def __init__(self, top: Path, env: dict[str, str], *arguments: str) -> None:
        self.top = top
        self.env = env
        top.mkdir(parents=True, exist_ok=True)
        if not (top / ".git").exists():
            self("init", "-q", "-b", "main", "--template=", *arguments)

    def __call__(self, *arguments: str, at: Path | str | None = None) -> str:
        result = subprocess.run(
            ["git", "-C", str(at or self.top), *arguments],
            env=self.env,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return os.fsdecode(result.stdout).removesuffix("\n")

    def commit(self, name: str = "file", text: str = "text\n", at: Path | str | None = None) -> str:
        """Commit one file and return the commit."""
        file = Path(at or self.top) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self("add", "--", name, at=at)
        self("commit", "-q", "-m", f"change {name}", at=at)
        return self.head(at)

    def head(self, at: Path | str | None = None) -> str:
        return self("rev-parse", "HEAD", at=at)

    def branches(self) -> set[str]:
        return set(self("for-each-ref", "--format=%(refname:short)", "refs/heads").split())

    def worktrees(self) -> list[str]:
        """Return the paths of all worktrees but the main one."""
        listed = self("worktree", "list", "--porcelain", "-z").split("\0")
        return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")][1:]

    def hook(self, text: str, name: str = "post-checkout") -> None:
        """Install a hook."""
        file = self.top / ".git" / "hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
