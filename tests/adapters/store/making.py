"""Makes rows and registries for the tests of the store, and checks them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import yaml

from mam.adapters.store import root_paths
from mam.adapters.store.registry import Registry
from mam.adapters.store.yaml import document, yaml_text
from mam.core.session_row import STATUSES, Row, with_all_fields

NOON = 1_794_744_000.0
FIRST = "s_00000001"


def new_row(number: int = 1, **fields) -> Row:
    """Return a complete row as a verb makes it."""
    ended = fields.get("status", "running") != "running"
    row: Row = {
        "id": f"s_{number:08x}",
        "name": f"demo-app-{number}-creator-claude",
        "agent": "claude",
        "workspace": "/abs/demo/app",
        "status": "running",
        "resumable": True,
        "tmux_server": "mam-none",
        "tmux_session_id": f"${number}",
        "start_command": ["claude"],
        "pane": {"id": f"%{number}", "pid": 4_000_000 + number, "cmd": "claude", "cwd": "/abs/demo/app"},
        "created_at": "2026-11-15T12:00:00Z",
        "created_at_epoch": int(NOON),
        "last_action": {"by": "user", "verb": "create", "at_epoch": int(NOON)},
    }
    if ended:
        row |= {"stopped_at": "2026-11-15T12:01:00Z", "stop_reason": "manual_stop"}
    return {**row, **fields}


class Store:
    """A root in a folder, with the actions of verbs, people and crashes."""

    def __init__(self, root: Path, clock=lambda: NOON) -> None:
        self.root = root
        self.paths = root_paths.of_root(str(root))
        self.yaml = Path(self.paths.yaml)
        self.backup = Path(self.paths.yaml + ".bak")
        self.db = Path(self.paths.db)
        self.clock = clock
        self.registry = Registry(self.paths, clock)

    def again(self) -> Registry:
        """Close the registry and open it again, as the next command does."""
        self.registry.close()
        self.registry = Registry(self.paths, self.clock)
        return self.registry

    def add(self, *rows: Row) -> None:
        """Register sessions, one change each."""
        for row in rows:
            self.registry.change(lambda transaction, row=row: transaction.add(row))

    def put(self, session_id: str, **fields) -> Row:
        """Change fields of a session as a verb does."""
        return self.registry.change(
            lambda transaction: transaction.put({**transaction.get(session_id), **fields})
        )

    def touch(self, confirm=None) -> None:
        """Make an empty change, which records an edit of the file and updates the file."""
        self.registry.change(lambda transaction: None, confirm)

    def text(self) -> str:
        """Return the file."""
        return self.yaml.read_text(encoding="utf-8")

    def blocks(self) -> list[str]:
        """Return the text of each session in the file."""
        read = document.read(self.yaml.read_bytes(), str(self.yaml))
        assert read is not None
        assert read.parts is not None
        return read.parts.blocks

    def write(self, text: str | bytes) -> bytes:
        """Replace the file as an editor does: another file, renamed."""
        data = text.encode() if isinstance(text, str) else text
        self.yaml.parent.mkdir(exist_ok=True)
        beside = self.yaml.with_name("edited")
        beside.write_bytes(data)
        beside.rename(self.yaml)
        return data

    def edit(self, old: str, new: str) -> bytes:
        """Change a part of the file as a person does."""
        text = self.text()
        assert old in text, f"{old!r} is not in the file"
        return self.write(text.replace(old, new, 1))

    def rows(self) -> dict[str, Row]:
        """Return the rows of the database, without mam's own reader."""
        with sqlite3.connect(self.paths.db) as connection:
            rows = connection.execute("SELECT id, data FROM sessions ORDER BY position").fetchall()
        connection.close()
        return {session_id: json.loads(data) for session_id, data in rows}

    def dump(self) -> list[str]:
        """Return the complete database as SQL."""
        connection = sqlite3.connect(self.paths.db)
        try:
            return list(connection.iterdump())
        finally:
            connection.close()

    def log(self) -> list[str]:
        """Return the verbs of the log."""
        connection = sqlite3.connect(self.paths.db)
        try:
            return [verb for (verb,) in connection.execute("SELECT verb FROM log ORDER BY seq")]
        finally:
            connection.close()

    def strays(self) -> list[str]:
        """Return the files beside the registry that do not belong there."""
        expected = {self.yaml.name, self.backup.name, ".gitignore"}
        # The pages of teams lie there as well, and the next page takes the place of an unfinished one.
        paths = (path for path in self.yaml.parent.iterdir() if not path.name.endswith((".md", ".md.tmp")))
        return sorted({path.name for path in paths} - expected)


def file_rows(path: Path) -> list[dict]:
    """Return the rows of the file, with times as text."""
    document = yaml_text.parse(path.read_bytes(), str(path))
    return [dict(row) for row in document["tmux_sessions"] or []]


def check_invariants(store: Store) -> None:
    """I2: every record has the current form. I3: the file shows exactly the database."""
    rows = store.rows()
    for session_id, row in rows.items():
        assert row["id"] == session_id
        assert row["status"] in STATUSES
        assert list(row) == list(with_all_fields(row))
    shown = file_rows(store.yaml)
    # A row of another program gets its id in the file with its first change.
    ids = [row.get("id") or session_id for row, session_id in zip(shown, rows, strict=True)]
    complete = [with_all_fields(row, session_id) for row, session_id in zip(shown, ids, strict=True)]
    assert complete == list(rows.values())
    plain = yaml.load(store.yaml.read_text(encoding="utf-8"), yaml_text.Loader)  # noqa: TID251
    assert [row["id"] for row in plain["tmux_sessions"] or []] == list(rows)
    assert not store.strays(), store.strays()
