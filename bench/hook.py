"""The hook that every turn of every agent runs, beside a shell that does nothing."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from bench.measure import Budget, Row, alternate, run
from bench.stage import Stage
from mam.adapters.agents.hook_command import SCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTHING = "sh -c :"
_SIZE = 1024


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Feed both the same 1 KB."""
    tell("running hooks")
    with Stage() as stage:
        spool = stage.folder / "spool"
        spool.mkdir()
        payload = stage.folder / "payload"
        document = {"hook_event_name": "Stop", "session_id": "0" * 36, "last_message": ""}
        document["last_message"] = "x" * (_SIZE - len(json.dumps(document)))
        payload.write_text(json.dumps(document), encoding="utf-8")
        environ = {**stage.environ, "MAM_SESSION": "s_00000001"}
        found = alternate(
            3 if quick else 300,
            {
                NOTHING: partial(run, ["/bin/sh", "-c", ":"], environ, str(payload)),
                "hook": partial(run, ["/bin/sh", SCRIPT, str(spool)], environ, str(payload)),
            },
        )
        written = list(spool.iterdir())
        if len(written) != len(found["hook"].all) + 1 or any(one.stat().st_size != _SIZE for one in written):
            raise RuntimeError("the hook did not write what it was given")
    yield Row("hook, 1 KB payload", found["hook"], NOTHING, found[NOTHING], Budget("times", 5))
