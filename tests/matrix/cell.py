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
class Outcome:
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


def call(world: World, verb: Verb, seconds: float) -> Outcome:
    """Call a verb as the next command does."""
    outcome = Outcome(world.records())
    with world.open() as fleet:
        fleet.on_warning(outcome.warnings.append)
        try:
            outcome.result = verb.call(fleet, seconds)
        except MamError as error:
            outcome.error = error
    outcome.after = world.records()
    return outcome


def call_on_broken_disk(world: World, verb: Verb, disk: Disk) -> Outcome:
    """Call a verb in a process whose calls that change files fail."""
    outcome = Outcome(world.records())
    answer = world.run(verb.name, 1, disk.mode, disk.number)
    answered = json.loads(world.root.with_name(OUTCOME).read_text(encoding="utf-8"))
    outcome.result, outcome.warnings = answered["result"], answered["warnings"]
    if answer["error"] is not None:
        outcome.error = ERRORS[answer["error"]["code"]](answer["error"]["message"], hint=answered["hint"])
    outcome.after = world.records()
    return outcome


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
            outcome = call_on_broken_disk(world, verb, fault.disk) if fault.disk else call(world, verb, SHORT)
            has_pane = fault.keeps_panes and world.tmux.server_pid() is not None
        assert outcome.code == code, f"{outcome.code}: {outcome.error or outcome.result}"
        if outcome.error is not None:
            assert outcome.error.exit_code in (1, 2, 3, 64, 65)
            assert outcome.error.hint, f"no way out: {outcome.error}"
        if fault.damages_file and state != "file kept":
            assert outcome.after[1] == outcome.before[1], "the file of a person was overwritten"
        assert STATES[state][1](world, verb, outcome), f"not {state}: {outcome.error or outcome.result}"
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
