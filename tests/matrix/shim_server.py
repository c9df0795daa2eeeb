"""The warm process of tests/faults/server.py with the verbs of the matrix. Run with the shim preloaded.

A verb leaves its result or its error in a file beside the root, because the answer has no room for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.faults import server
from tests.matrix.verbs import SHORT, VERBS, Verb

import mam
from mam.core.errors import MamError

OUTCOME = "outcome.json"


def _call(fleet: mam.Fleet, verb: Verb) -> None:
    warnings: list[str] = []
    fleet.on_warning(warnings.append)
    outcome: dict[str, Any] = {"result": None, "hint": None, "warnings": warnings}
    try:
        outcome["result"] = verb.call(fleet, SHORT)
    except MamError as error:
        outcome["hint"] = error.hint
        raise
    finally:
        # The folder of the root is not among those whose files cannot be written.
        Path(fleet.root).with_name(OUTCOME).write_text(json.dumps(outcome, default=str), encoding="utf-8")


server.VERBS.update(
    {verb.name: lambda fleet, verb=verb: _call(fleet, verb) for verb in VERBS.values()},
)

if __name__ == "__main__":
    server.serve()
