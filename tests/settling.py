"""Settling a root, and all that is recorded in it: a second settling changes nothing of that."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import mam
from mam.adapters.store.root_paths import of_root
from mam.app.context import claims

# News, and not recovery: what the hooks of live agents report meanwhile is taken in by every change, and once
# in a minute a change records from where it was made.
_NEWS = ('INSERT INTO "evidence"', "INSERT INTO \"meta\" VALUES('place'")


def settle(fleet: mam.Fleet) -> None:
    """Do what every changing verb does first, and a change that changes nothing."""
    fleet._access.begin()
    claims.change(fleet._access.context, lambda _draft: None)


def recorded(root: Path) -> list[str]:
    """Return all that is recorded but the news: the database line by line, and the file."""
    paths = of_root(str(root))
    dump = [line for line in dump_of(Path(paths.db)) if not line.startswith(_NEWS)]
    return [*dump, Path(paths.yaml).read_text(encoding="utf-8")]


def dump_of(path: Path) -> list[str]:
    """Return a database as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())
