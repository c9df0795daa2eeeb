"""An ordinary turn: think, perhaps use a tool, answer."""

from __future__ import annotations

from .answers import asks_for_history, compose, recall, thinking_words
from .tools import tool_for
from .turn_actions import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .job_turn import Job
    from .turn_actions import Turn


def ordinary_turn(stage: Stage, prompt: str, earlier: list[str]) -> Turn:
    """Answer a prompt; `earlier` are the person's earlier messages."""
    yield stage.seconds(thinking_words(prompt))
    job = _job_of(prompt, earlier)
    if job is not None:
        return (yield from _delegated_turn(stage, job))
    if asks_for_history(prompt):
        answer = recall(earlier)
    else:
        command = tool_for(prompt)
        if command and not (yield from stage.use_tool(command)):
            return None
        answer = compose(prompt, after_tool=command)
    yield from stage.say(answer)
    return answer


def _job_of(prompt: str, earlier: list[str]) -> Job | None:
    if " job event " not in prompt and not prompt.startswith("Read the file "):
        return None
    from .job_turn import job_of, message_in

    return job_of(message_in(prompt), earlier)


def _delegated_turn(stage: Stage, job: Job) -> Turn:
    """Work on a job: report the start, do the task, report the end."""
    if not job.is_unreported and not (yield from stage.use_tool(job.started())):
        return None
    command = tool_for(job.task)
    if command and not (yield from stage.use_tool(command)):
        return None
    answer = compose(job.task or "the job", after_tool=command)
    yield from stage.say(answer)
    if not job.is_unreported and not (yield from stage.use_tool(job.ended())):
        return None
    return answer
