"""A stand-in for Antigravity's `agy`, which no registry has. It is not that program.

It keeps to what documents say of it, and to nothing else: a prompt that answers, `Exit` leaves,
`--conversation ID` goes on with a conversation, and with the first message it writes `conversations/ID.db`,
`brain/ID/` and the map `cache/last_conversations.json` below `~/.gemini/antigravity-cli`. That it keeps its
database open is an assumption; `AGY_STAND_IN_CLOSES` makes it close the database after each message.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import uuid
from pathlib import Path

FOLDER = Path.home() / ".gemini" / "antigravity-cli"


class Conversation:
    """One conversation: its database is made with the first message."""

    def __init__(self, ident: str | None) -> None:
        self.ident = ident or str(uuid.uuid4())
        self.path = FOLDER / "conversations" / f"{self.ident}.db"
        self._database: sqlite3.Connection | None = None
        if ident and not self.path.exists():
            sys.exit(f"stand-in: no conversation {ident}")

    def say(self, text: str) -> int:
        """Keep a message, and return how many there are."""
        database = self._opened()
        with database:
            database.execute("insert into said values (?)", (text,))
        count: int = database.execute("select count(*) from said").fetchone()[0]
        self._remember()
        if os.environ.get("AGY_STAND_IN_CLOSES"):
            database.close()
            self._database = None
        return count

    def words(self) -> list[str]:
        return [row[0] for row in self._opened().execute("select text from said")]

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path)
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("create table if not exists said (text)")
        return self._database

    def _remember(self) -> None:
        brain = FOLDER / "brain" / self.ident
        brain.mkdir(parents=True, exist_ok=True)
        (brain / "task.md").write_text("a stand-in was here\n", encoding="utf-8")
        known = FOLDER / "cache" / "last_conversations.json"
        known.parent.mkdir(parents=True, exist_ok=True)
        last = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
        known.write_text(json.dumps(last | {str(Path.cwd()): self.ident}), encoding="utf-8")


def main() -> int:
    print("This is a STAND-IN for Antigravity (agy), made for tests.", flush=True)
    asked = sys.argv[1:]
    conversation = Conversation(asked[1] if asked[:1] == ["--conversation"] else None)
    while True:
        print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line or line.strip() == "Exit":
            return 0
        if line.strip() == "recall":
            print("earlier:", ", ".join(conversation.words()), flush=True)
        elif line.strip():
            print(f"answer {conversation.say(line.strip())}: {line.strip()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
