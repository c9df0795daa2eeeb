"""Tries one cell: a fresh world, the fault, the verb; then the fault is lifted, and the verb works."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.matrix.faults import Disk, Fault
from tests.matrix.shim_server import OUTCOME
from tests.matrix.states import STATES
from tests.matrix.table import expected
from tests.matrix.verbs import LONG, SHORT, Verb
from tests.matrix.world import Records, World

from mam.core import errors
from mam.core.errors import MamError

ERRORS = {
    one.code: one
    for _, one in inspect.getmembers(errors, inspect.isclass)
    if issubclass(one, errors.MamError)
}


@dataclass
class Seen:
    """What a verb did: its error or its result, its warnings, and the records around it."""

    before: Records
    error: MamError | None = None
    result: Any = None
    after: Records = ([], None)
    warnings: list[str] = field(default_factory=list)

    @property
    def code(self) -> str:
        """The word of the table for the outcome."""
        return self.error.code if self.error is not None else "done"


def call(world: World, verb: Verb, seconds: float) -> Seen:
    """Call a verb as the next command does."""
    seen = Seen(world.records())
    with world.open() as fleet:
        fleet.on_warning(seen.warnings.append)
        try:
            seen.result = verb.call(fleet, seconds)
        except MamError as error:
            seen.error = error
    seen.after = world.records()
    return seen


def call_on_broken_disk(world: World, verb: Verb, disk: Disk) -> Seen:
    """Call a verb in a process whose calls that change files fail."""
    seen = Seen(world.records())
    answer = world.run(verb.name, 1, disk.mode, disk.number)
    outcome = json.loads(world.root.with_name(OUTCOME).read_text(encoding="utf-8"))
    seen.result, seen.warnings = outcome["result"], outcome["warnings"]
    if answer["error"] is not None:
        seen.error = ERRORS[answer["error"]["code"]](answer["error"]["message"], hint=outcome["hint"])
    seen.after = world.records()
    return seen


def try_cell(world: World, fault: Fault, verb: Verb, cell: str, *, goes_on: bool = False) -> None:
    """Try a cell; raise AssertionError where the table is wrong.

    With `goes_on` it takes the world that the last verb has only looked at, and that was mended since.
    """
    code, state = expected(cell)
    if not goes_on:
        world.begin()
        verb.arrange(world)
    with pytest.MonkeyPatch.context() as patch:
        with fault.inject(world, patch):
            seen = call_on_broken_disk(world, verb, fault.disk) if fault.disk else call(world, verb, SHORT)
            has_pane = fault.keeps_panes and world.tmux.server_pid() is not None
        assert seen.code == code, f"{seen.code}: {seen.error or seen.result}"
        if seen.error is not None:
            assert seen.error.exit_code in (1, 2, 3, 64, 65)
            assert seen.error.hint, f"no way out: {seen.error}"
        if fault.damages_file and state != "file kept":
            assert seen.after[1] == seen.before[1], "the file of a person was overwritten"
        assert STATES[state][1](world, verb, seen), f"not {state}: {seen.error or seen.result}"
        world.check_strangers(with_pane=has_pane)
        verb.clear_up(world)
        fault.mend(world)
        world.check(agent_reports=True)
        if (code, state) != ("done", "done"):
            _works(world, verb)


def _works(world: World, verb: Verb) -> None:
    """Check that the verb works once the fault is lifted."""
    verb.before_again(world)
    again = call(world, verb, LONG)
    if again.code in verb.settled:
        return
    assert again.code == "done", f"afterwards: {again.error}"
    assert verb.is_done(world, again.result), f"afterwards: {again.result}"
    if not verb.is_look:
        verb.clear_up(world)
        world.check(agent_reports=True)
