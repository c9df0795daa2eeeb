"""What can hold after a verb, by the names that the table uses: a sentence, and a check of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.matrix.verbs import Verb
from tests.matrix.world import JOB, World

from mam.adapters.store.tables import outbox
from mam.adapters.system import process
from mam.core.job_rules import OPEN

if TYPE_CHECKING:
    from tests.matrix.cell import Outcome

Check = Callable[[World, Verb, "Outcome"], object]


def done(world: World, verb: Verb, outcome: Outcome) -> object:
    """Check that the verb did what it is for."""
    return verb.is_done(world, outcome.result)


def unchanged(world: World, _verb: Verb, outcome: Outcome) -> object:
    """Check that records and file are as they were."""
    assert outcome.after[1] == outcome.before[1], "the registry file was changed"
    added = [line for line in outcome.after[0] if line not in outcome.before[0]]
    lost = [line for line in outcome.before[0] if line not in outcome.after[0]]
    assert not added and not lost, f"changed: {added} {lost}"
    return True


def held(world: World, _verb: Verb, outcome: Outcome) -> object:
    return outcome.result["state"] == "held" and bool(outcome.result["reason"])


def said(_world: World, _verb: Verb, outcome: Outcome) -> object:
    unchanged(_world, _verb, outcome)
    return outcome.error is not None and "mam read one --parsed" in str(outcome.error.hint)


def job_died(_world: World, _verb: Verb, outcome: Outcome) -> object:
    return [job["status"] for job in outcome.result] == ["error"]


def job_failed(world: World, _verb: Verb, _outcome: Outcome) -> object:
    with world.open() as fleet:
        (job,) = [job for job in fleet.jobs.list() if job["job_id"] != JOB]
    return job["status"] == "error" and not any(row["name"] != "one" for row in world.rows().values())


def is_open(world: World, _verb: Verb, _outcome: Outcome) -> object:
    with world.open() as fleet:
        ended = [
            (job["status"], job["terminal_detail"]) for job in fleet.jobs.list() if job["status"] not in OPEN
        ]
    assert not ended, f"ended: {ended}"
    return True


def died(_world: World, _verb: Verb, outcome: Outcome) -> object:
    return [drift["field"] for drift in outcome.result["drifts"]] == ["status"]


def loose(_world: World, _verb: Verb, outcome: Outcome) -> object:
    if "drifts" not in outcome.result:
        return _alive(outcome.result) is True and _session(outcome.result)["drift"] == "A"
    return ["runs without its pane" in drift["message"] for drift in outcome.result["drifts"]] == [True]


def gone(_world: World, _verb: Verb, outcome: Outcome) -> object:
    return _alive(outcome.result) is False


def unknown(_world: World, _verb: Verb, outcome: Outcome) -> object:
    if "tmux_confirmed" in outcome.result:
        return outcome.result["tmux_confirmed"] is False and not outcome.result["drifts"]
    return _alive(outcome.result) is None


def asking(_world: World, verb: Verb, outcome: Outcome) -> object:
    if verb.name == "read":
        return "touch foo" in outcome.result
    if verb.name in ("ls", "status"):
        return _session(outcome.result)["activity"] == "waiting"
    return verb.is_done(_world, outcome.result)


def taken_or_held(_world: World, _verb: Verb, outcome: Outcome) -> object:
    return outcome.result["state"] in ("submitted", "queued", "held")


def as_it_is(_world: World, _verb: Verb, outcome: Outcome) -> object:
    return "flood" in outcome.result


def file_kept(world: World, verb: Verb, outcome: Outcome) -> object:
    kept = Path(os.environ["MAM_STATE_HOME"]).rglob("kept/**/agent-sessions.yaml")
    assert outcome.before[1] in [path.read_bytes() for path in kept], "the file of a person is nowhere"
    return verb.is_done(world, outcome.result)


def recorded(world: World, _verb: Verb, outcome: Outcome) -> object:
    with world.open() as fleet:
        waiting = fleet._access.context.registry.peek(outbox.waiting_jobs, [])
    return outcome.error.recorded and world.job()["status"] == "completed" and waiting == [JOB]


def ended(world: World, _verb: Verb, _outcome: Outcome) -> object:
    assert world.row()["status"] == "running", "nothing could be recorded"
    return process.identify(world.agent_pid()) is None


def warned(_world: World, verb: Verb, outcome: Outcome) -> object:
    return bool(outcome.warnings) and verb.is_done(_world, outcome.result)


def named(_world: World, _verb: Verb, outcome: Outcome) -> object:
    return [finding["message"] for finding in outcome.result if finding["ok"] is False and finding["mend"]]


def _session(document: dict[str, Any]) -> dict[str, Any]:
    return document["sessions"][0] if "sessions" in document else document


def _alive(document: dict[str, Any]) -> object:
    return _session(document)["tmux_alive"]


STATES: dict[str, tuple[str, Check]] = {
    "done": ("", done),
    "unchanged": ("nothing has changed", unchanged),
    "held": ("the message is held (exit 4), and typed when the session can take it", held),
    "said": ("the hint, `mam read NAME --parsed`, shows the conversation", said),
    "job died": ("the job has ended with an error, because its session is gone", job_died),
    "job failed": ("the job is recorded, and has ended with this error", job_failed),
    "open": ("the job is still open", is_open),
    "died": ("the death is recorded", died),
    "loose": ("the agent without a pane is reported", loose),
    "gone": ("the session is shown as not alive", gone),
    "unknown": ("the session is shown as unknown, and not as dead", unknown),
    "asking": ("the question stays open", asking),
    "warned": ("a warning says what is wrong", warned),
    "taken or held": (
        "the agent has the message, or it is held until the input box is seen",
        taken_or_held,
    ),
    "as it is": ("the screen of this moment", as_it_is),
    "file kept": ("the former registry file is kept in the user state", file_kept),
    "recorded": ("the event is recorded, and published later", recorded),
    "ended": ("the session has ended, and the next command records it", ended),
    "named": ("it names what is wrong, and the way out", named),
}
