"""Write the golden registries of this version, once: python -m tests.golden.make"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from tests.adapters.store.making import FIRST, Store, new_row
from tests.adapters.store.test_legacy import AGY, LEGACY

import mam
from mam.adapters.store.intents import Intent
from mam.adapters.store.registry import Registry
from mam.core import session_transitions

HERE = Path(__file__).resolve().parent
ACTION = {"by": "user", "verb": "test", "at_epoch": 1794744060}


def every_status(store: Store) -> None:
    """One session of each status, with a person's keys and comments."""
    store.add(
        new_row(1, role="developer", note="ünï ☂ 'quoted' # no comment", last_visible_note="a\n  b\n"),
        new_row(
            2, agent="practice", name="two", conversations=[{"id": "c-2", "source": "chosen", "since": "x"}]
        ),
        new_row(3, name="three", start_command=["claude", "--model", "a b"]),
        new_row(4, name="four", claude_session_id_own="c-4"),
    )
    store.registry.change(
        lambda draft: draft.set_identity("claude", {"session_id": "c-4", "project_cwd": "/w"})
    )
    for number, event in ((2, "stop"), (3, "died"), (4, "stop")):
        row = store.rows()[f"s_{number:08x}"]
        if event == "stop":
            ended = session_transitions.stopped(
                row, ACTION, reason="manual_stop", mode="graceful", exit_status=0
            )
        else:
            ended = session_transitions.died(row, ACTION, on_disk=True, exit_status=137)
        store.registry.change(lambda draft, ended=ended: draft.put(ended))
    store.registry.change(
        lambda draft: draft.put(session_transitions.archived(draft.get("s_00000004"), ACTION))
    )
    store.edit("- id: s_00000003", "# mine, above\n- id: s_00000003")
    store.edit("schema_version", "team: blue  # ours\nschema_version")
    store.touch()


def behind(store: Store) -> None:
    """Changes that were committed while the process died before it wrote the file."""
    store.add(
        new_row(1), new_row(2, name="two", status="stopped"), new_row(3, name="three", status="stopped")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Registry, "project", lambda *_arguments: None)
        store.put(FIRST, delegate_job_id="job-1")
        store.registry.change(lambda draft: draft.remove("s_00000002"))
        store.add(new_row(4, name="four"))


def in_flight(store: Store) -> None:
    """A stop and a create whose processes are long gone."""
    store.add(new_row(1))
    owner = {"pid": 4_000_000, "start": 1, "boot": "another boot"}
    row = {key: value for key, value in new_row(2, name="two").items() if key not in ("pane", "status")}
    plan = {
        "id": "s_00000002",
        "anew": False,
        "row": row,
        "launch_file": "/nowhere/x.launch",
        "conversation": None,
    }
    stop = {"reason": "manual_stop", "purge": False, "force": False}
    store.registry.note(
        lambda draft: draft.intents.put(Intent(FIRST, "one", "stop", owner=owner, at=1.0, data=stop))
    )
    store.registry.note(
        lambda draft: draft.intents.put(Intent("s_00000002", "two", "create", owner=owner, at=2.0, data=plan))
    )


def legacy(store: Store) -> None:
    """A registry of the original system, one row of which was changed."""
    store.write(LEGACY)
    store.registry.change(lambda draft: draft.put({**draft.named(AGY), "favourite": 5}))


def empty(store: Store) -> None:
    """Nothing yet."""
    store.touch()


STATES = {
    "every-status": every_status,
    "behind": behind,
    "in-flight": in_flight,
    "legacy": legacy,
    "empty": empty,
}


def main() -> None:
    """Write every state of this version."""
    target = HERE / mam.__version__
    target.mkdir()
    for name, make in STATES.items():
        root = Path(tempfile.mkdtemp())
        store = Store(root)
        make(store)
        rows, intents = store.registry.view().rows, store.registry.view().intents
        store.registry.close()
        folder = target / name
        folder.mkdir()
        shutil.copyfile(store.yaml, folder / "agent-sessions.yaml")
        connection = sqlite3.connect(store.paths.db)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        script = [*connection.iterdump(), f"PRAGMA user_version={version};"]
        connection.close()
        (folder / "state.sql").write_text("\n".join(script) + "\n", encoding="utf-8")
        expected = {"rows": rows, "intents": [[one.session_id, one.verb] for one in intents]}
        (folder / "expected.json").write_text(
            json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
