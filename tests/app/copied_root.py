"""Copying a root in which a resident and agents are at work, as `cp -a` does."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path


def copy_root(source: str | Path, target: str | Path) -> None:
    """Copy a folder; a file that is removed meanwhile, such as the payload of a hook, is left out."""

    def copy_file(file: str, copy: str) -> str:
        with suppress(FileNotFoundError):
            shutil.copy2(file, copy)
        return copy

    shutil.copytree(source, target, copy_function=copy_file)
