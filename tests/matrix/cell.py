"""Tries one cell: a fresh world, the fault, the verb; then the fault is lifted, and the verb works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.matrix.faults import Fault
from tests.matrix.states import STATES
from tests.matrix.table import expected
from tests.matrix.verbs import VERBS, Verb
from tests.matrix.world import Records, World

from mam.core.errors import MamError

# Seconds that a verb may wait: while the fault lasts, and afterwards.
SHORT, LONG = 0.2, 20.0


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


def try_cell(world: World, fault: Fault, verb_name: str, cell: str) -> None:
    """Try a cell; raise AssertionError where the table is wrong."""
    verb = VERBS[verb_name]
    code, state = expected(cell)
    world.begin()
    verb.arrange(world)
    with pytest.MonkeyPatch.context() as patch:
        with fault.inject(world, patch):
            seen = call(world, verb, SHORT)
            has_pane = fault.keeps_panes and world.tmux.server_pid() is not None
        assert seen.code == code, f"{seen.code}: {seen.error or seen.result}"
        if seen.error is not None:
            assert seen.error.exit_code in (1, 2, 3, 64, 65)
            assert seen.error.hint, f"no way out: {seen.error}"
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
    verb.clear_up(world)
    world.check(agent_reports=True)
