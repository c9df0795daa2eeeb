"""After any sequence of changes, edits and crashes the registry equals a plain dictionary.

I1: every acknowledged change exists. I2: every record has its form. I3: after the next change the file
shows exactly the database. I8: another change after that writes nothing.
"""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule
from tests.adapters.store.making import Store, check_invariants, new_row

from mam.adapters.store.yaml import projection, yaml_text
from mam.core.errors import Conflict, EditRefused

MOMENTS = ["_render", "_write", "_put", "_keep", "flush_folder", "_record_written"]
notes = some.text(some.characters(exclude_categories=["Cs"]), max_size=8)


class Death(BaseException):
    """The process dies at this moment."""


class RegistryModel(RuleBasedStateMachine):
    """A dictionary beside a registry, and all actions on the registry."""

    sessions = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(prefix="mam-t-", dir=memory if memory.is_dir() else None))
        self.store = Store(self.folder)
        self.expected: dict[str, dict] = {}
        self.number = 0

    def teardown(self) -> None:
        self.store.touch()
        check_invariants(self.store)
        before = self.store.dump(), self.store.text()
        self.store.again()
        self.store.touch()
        assert (self.store.dump(), self.store.text()) == before
        self.store.registry.close()
        shutil.rmtree(self.folder)

    def change(self, work, expected: dict, moment: str | None) -> None:
        """Make a change; with a moment, die at that moment after the commit."""
        self.store.touch()
        if moment is None:
            self.store.registry.change(work)
        else:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(projection, moment, die)
                with pytest.raises(Death):
                    self.store.registry.change(work)
            self.store.again()
        self.expected = expected

    @rule(target=sessions, status=some.sampled_from(["running", "stopped"]), moment=some.none())
    def create(self, status, moment):
        self.number += 1
        row = new_row(self.number, status=status)
        self.change(lambda transaction: transaction.add(row), {**self.expected, row["id"]: row}, moment)
        return row["id"]

    @rule(target=sessions, moment=some.sampled_from(MOMENTS))
    def create_and_die(self, moment):
        if moment == "_keep" and not self.store.yaml.exists():
            return multiple()
        return self.create("stopped", moment)

    @rule(session=sessions, note=notes, moment=some.none() | some.sampled_from(MOMENTS))
    def put(self, session, note, moment):
        expected = copy.deepcopy(self.expected)
        expected[session]["note"] = note
        self.change(
            lambda transaction: transaction.put({**transaction.get(session), "note": note}), expected, moment
        )

    @rule(session=sessions)
    def put_an_old_version(self, session):
        row = self.store.registry.view().find(session)
        with pytest.raises(Conflict):
            self.store.registry.change(
                lambda transaction: transaction.put({**row, "version": row["version"] - 1})
            )

    @rule(session=consumes(sessions), moment=some.none() | some.sampled_from(MOMENTS))
    def remove(self, session, moment):
        expected = {key: row for key, row in self.expected.items() if key != session}
        self.change(lambda transaction: transaction.remove(session), expected, moment)

    @rule(session=sessions, note=notes | some.lists(some.integers() | some.booleans(), max_size=3))
    def edit_by_hand(self, session, note):
        plain = self.read_file()
        for row in plain["tmux_sessions"]:
            if row["id"] == session:
                row["mine"] = note
                self.expected = copy.deepcopy(self.expected)
                self.expected[session]["mine"] = note
        self.store.write(dump(plain))

    @rule(session=sessions, key=some.sampled_from(["name", "version", "workspace"]))
    def edit_wrongly_by_hand(self, session, key):
        plain = self.read_file()
        original = self.store.yaml.read_bytes()
        if session not in [row["id"] for row in plain["tmux_sessions"]]:
            return
        for row in plain["tmux_sessions"]:
            if row["id"] == session:
                row[key] = 999 if key == "version" else "other"
        edited = self.store.write(dump(plain, sort_keys=True))
        with pytest.raises(EditRefused):
            self.store.touch()
        assert self.store.yaml.read_bytes() == edited
        self.store.write(original)

    @rule(session=consumes(sessions))
    def remove_by_hand(self, session):
        plain = self.read_file()
        listed = [row["id"] for row in plain["tmux_sessions"]]
        if session not in listed or self.expected[session]["status"] == "running":
            self.remove(session, None)
            return
        plain["tmux_sessions"] = [row for row in plain["tmux_sessions"] if row["id"] != session]
        self.store.write(dump(plain))
        self.expected = {key: row for key, row in self.expected.items() if key != session}

    @rule(comment=some.sampled_from(["# one\n", "# two\n\n"]))
    def comment_by_hand(self, comment):
        if self.store.yaml.exists():
            self.store.write(comment + self.store.text())

    @rule()
    def lose_the_file(self):
        self.store.touch()
        self.store.yaml.unlink(missing_ok=True)

    @rule()
    def lose_the_database(self):
        self.store.touch()
        self.store.registry.close()
        for path in self.store.db.parent.glob("state.db*"):
            path.unlink()
        self.store.again()

    @rule()
    def reopen(self):
        self.store.again()

    @rule()
    def check(self):
        self.store.touch()
        check_invariants(self.store)

    @invariant()
    def everything_acknowledged_is_there(self):
        rows = {row["id"]: row for row in self.store.registry.view().rows}
        assert set(rows) == set(self.expected)
        for session, row in self.expected.items():
            for key in row.keys() - {"last_action"}:
                value = row[key]
                assert rows[session][key] == value, (session, key)

    def read_file(self) -> dict:
        """Return the content of the file after all acknowledged changes are in it."""
        self.store.touch()
        return json.loads(json.dumps(yaml_text.parse(self.store.yaml.read_bytes(), "")))


def dump(plain: dict, *, sort_keys: bool = False) -> str:
    """Return the file as another program would write it."""
    return yaml.dump(plain, Dumper=yaml_text.Dumper, sort_keys=sort_keys)


def die(*_arguments) -> None:
    raise Death


TestModel = RegistryModel.TestCase
TestModel.settings = settings(stateful_step_count=40, max_examples=40)


@pytest.mark.long
class TestModelAtLength(RegistryModel.TestCase):
    """The same with the usual number of examples."""

    settings = settings(stateful_step_count=40)
