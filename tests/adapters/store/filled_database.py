"""Makes a database of a root with rows in every table, by the code that records them, and a copy of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.adapters.store.making import NOON, Store, new_row

from mam.adapters.store import database, schema
from mam.adapters.store.tables import jobs, messages, tasks, teams
from mam.core.job_file_format import DEFAULTS

ROOT_ID = "00112233445566ff"
MESSAGE = {
    "sender": "user",
    "is_command": False,
    "wanted": "ready",
    "state": "held",
    "reason": "it waits its turn",
    "reason_code": "not_tried",
    "conversation": None,
}


def fresh(path: Path) -> sqlite3.Connection:
    """Make an empty database of today's schema."""
    return database.connect(str(path), schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=True)


class FilledDatabase:
    """A database in one file, a copy that is older by some changes, and what the database holds."""

    def __init__(self, folder: Path, count: int = 60) -> None:
        self.store = Store(folder)
        self.count = count
        registry = self.store.registry
        registry.ensure_exists()
        registry.note(lambda transaction: transaction.set_meta("root_id", ROOT_ID))
        registry.note(lambda transaction: [self._fill(transaction, number) for number in range(count)])
        self.copy = folder / "copy.db"
        self._save_copy()
        # Some builds of SQLite overwrite what is deleted.
        registry.writer().execute("PRAGMA secure_delete=OFF")
        registry.note(self._change)
        self.path = Path(registry.paths.db)
        registry.writer().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        registry.close()
        self.content = self.path.read_bytes()
        self.rows = rows_of(self.path)
        self.copied_rows = rows_of(self.copy)

    def _save_copy(self) -> None:
        target = sqlite3.connect(self.copy)
        self.store.registry.writer().backup(target)
        target.close()

    def _fill(self, transaction, number: int) -> None:
        session_id, job_id, team = f"s_{number:08x}", f"{number:08x}", "20261115-team-00aa"
        row = transaction.add(new_row(number, note="n" * 300))
        transaction.log("user", "create", row, detail="d" * 100)
        transaction.set_meta("identities", {"claude": {"session_id": "abc"}})
        for part in range(3):
            text = "a long text " * (1500 if number % 20 == 0 and part == 0 else 10)
            fields = {"id": f"m_{number:04x}{part:04x}", "session_id": session_id, "text": text}
            messages.add(transaction, {**MESSAGE, **fields})
        long = "x" * 9000 if number % 15 == 0 else "x" * 50
        jobs.add(transaction, job_id, f"do {number} {long}", {**DEFAULTS, "dropped": 0}, status="running")
        for seq in (1, 2):
            event = {
                "seq": seq,
                "job_id": job_id,
                "event": "started" if seq == 1 else "progress",
                "timestamp": "2026-11-16T08:57:29Z",
                "detail": "e" * 40,
                "data": {"attempt": 1},
            }
            jobs.add_entry(transaction, job_id, str(event["event"]), event, attempt=1)
        tasks.add(transaction, role="developer", text=f"task {number}", by="user")
        if number == 0:
            teams.add(transaction, **TEAM)
        teams.note(transaction, team, f"m_{number:04x}0000", "line " * 40)
        insert = transaction.connection.execute
        card = f"t_{number:08x}"
        insert(
            "INSERT INTO board_tasks(id, title, status, created_at) VALUES(?, ?, 'ready', ?)",
            (card, f"card {number}", int(NOON)),
        )
        insert(
            "INSERT INTO board_comments(task_id, author, body, created_at) VALUES(?, 'user', ?, ?)",
            (card, "comment " * 20, int(NOON)),
        )
        insert("INSERT INTO board_links VALUES(?, ?)", (card, f"t_{number + 1:08x}"))

    def _change(self, transaction) -> None:
        """Change some rows, delete some and add some, so that the copy is older."""
        for number in range(3):
            session_id = f"s_{number:08x}"
            transaction.put({**transaction.get(session_id), "note": "changed"})
        for number in range(self.count, self.count + 3):
            self._fill(transaction, number)
        transaction.connection.execute("DELETE FROM log WHERE seq <= 40")
        transaction.connection.execute("DELETE FROM tasks WHERE seq = (SELECT max(seq) FROM tasks)")
        transaction.connection.execute("DELETE FROM board_comments WHERE id <= 40")
        transaction.connection.execute("DELETE FROM messages WHERE id='m_00140000'")


TEAM = {
    "id": "20261115-team-00aa",
    "name": "team",
    "server": "mam-none",
    "server_pid": None,
    "window_id": "@1",
    "master_pane": "%1",
    "master_id": None,
    "layout": "tiled",
    "by": "user",
    "ended_at": None,
}


def rows_of(path: Path | sqlite3.Connection) -> dict[str, dict[tuple, dict]]:
    """Return the rows of each table that is salvaged, by primary key; without columns that are not."""
    from mam.adapters.store import checked_copy

    connection = sqlite3.connect(path) if isinstance(path, Path) else path
    found: dict[str, dict[tuple, dict]] = {}
    for table in checked_copy.TABLES:
        facts = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (table,)).fetchall()
        names = [name for name, _ in facts]
        keys = [name for name, pk in facts if pk]
        skipped = checked_copy.SKIPPED.get(table, ())
        found[table] = {}
        for values in connection.execute(f"SELECT * FROM {table} NOT INDEXED"):
            row = dict(zip(names, values, strict=True))
            key = tuple(row[name] for name in keys)
            found[table][key] = {name: value for name, value in row.items() if name not in skipped}
    if isinstance(path, Path):
        connection.close()
    return found
