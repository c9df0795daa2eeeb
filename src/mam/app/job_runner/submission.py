"""What a job is to be, checked before anything is recorded or started."""

from __future__ import annotations

import os
import shlex

from mam.app.brokers import config
from mam.app.context import own_command
from mam.app.sessions.create_options import refuse_unknown
from mam.core import job as rules
from mam.core import names
from mam.core.errors import InvalidPath, InvalidPrompt, Usage
from mam.core.message import LARGEST, check_size
from mam.core.settings import PERMISSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypedDict, Unpack

    from mam.app.context.context import Context

    class JobOptions(TypedDict, total=False):
        """What a caller of `fleet.jobs.submit` may ask for."""

        # The kind that does it ("claude"), in a new session or in one that runs.
        agent: str | None
        session: str | None
        agent_session: str | None
        workdir: str | None
        # once, loop or human; a loop has a reviewer and ends after so many rounds.
        type: str | None
        reviewer: str | None
        reviewer_session: str | None
        max_rounds: int | None
        # Seconds until the job ends, and without any sign of it; 0 is never.
        timeout: float | None
        idle_timeout: float | None
        # A script that decides about `completed`, and paths that must be there then.
        validate: str | None
        expect: Sequence[str]
        permissions: str | None
        # Answer the agent's question whether it may trust the directory.
        trust: bool
        # Give the agent mam's own tools.
        mcp: bool
        args: Sequence[str]
        broker: str | None
        # Another folder of records than the root's own.
        folder: str | None
        # What carries it out, and on which machine.
        runner: str
        place: str

    class AllJobOptions(JobOptions, total=False):
        """What the API adds: whether the caller is a session that may start only so many others."""

        child_limit: bool


HUMAN = "human"
_TMUX = "tmux:"
# What stands around a task in a message.
_HEADER_BYTES = 4096


class Submission:
    """A job as its caller wants it, checked."""

    def __init__(self, context: Context, prompt: str, **options: Unpack[AllJobOptions]) -> None:
        """Take the options by name. Paths are made absolute before anybody changes a directory."""
        # Each option is taken out, and one that is left is none of ours.
        reviewer = options.pop("reviewer", None)
        self.prompt = _task(prompt)
        self.agent = names.parse_kind(options.pop("agent", None) or "claude")
        self.workdir = _directory(context, options.pop("workdir", None))
        self.existing = options.pop("session", None)
        self.wanted_name = _session_name(options.pop("agent_session", None))
        self.type = options.pop("type", None) or (rules.HUMAN if self.agent == HUMAN else rules.ONCE)
        self.reviewer = names.parse_kind(reviewer) if reviewer else None
        self.reviewer_name = _session_name(options.pop("reviewer_session", None))
        self.max_rounds = options.pop("max_rounds", None) or rules.MOST_ROUNDS
        self.timeout = _seconds(options.pop("timeout", None), rules.TIMEOUT_SECONDS)
        # A person is not idle because nothing is heard of them.
        usual = 0.0 if self.type == rules.HUMAN else rules.IDLE_SECONDS
        self.idle_timeout = _seconds(options.pop("idle_timeout", None), usual)
        self.validate = _script(context, options.pop("validate", None))
        self.expect = [str(path) for path in options.pop("expect", ()) or ()]
        self.permissions = options.pop("permissions", None) or context.settings().job_permissions
        self.registry_dir = options.pop("folder", None)
        self.broker = config.find(context, options.pop("broker", None))
        self.args = list(options.pop("args", ()) or ())
        self.trust = options.pop("trust", False)
        self.mcp = options.pop("mcp", False)
        self.runner = options.pop("runner", rules.RUNNERS[0])
        self.place = options.pop("place", rules.PLACES[0])
        self.child_limit = options.pop("child_limit", False)
        refuse_unknown(options)
        self._check()

    def _check(self) -> None:
        if self.permissions not in PERMISSIONS:
            raise Usage(f"permissions are one of {', '.join(PERMISSIONS)}")
        if self.runner not in rules.RUNNERS:
            raise Usage(f"a job is carried out by one of {', '.join(rules.RUNNERS)}")
        if self.place not in rules.PLACES:
            raise Usage(f"a job is carried out at one of {', '.join(rules.PLACES)}")
        if self.type not in rules.TYPES:
            raise Usage(f"a job is one of {', '.join(rules.TYPES)}")
        if (self.type == rules.LOOP) != bool(self.reviewer):
            raise Usage(
                "a loop has a reviewer, and nothing else has one", hint="--type loop --reviewer codex"
            )
        if self.type == rules.LOOP and HUMAN in (self.agent, self.reviewer):
            raise Usage("a loop is between two agents", hint="a job of the type human is done by a person")
        if self.type == rules.HUMAN and (self.existing or self.wanted_name):
            raise Usage("a job for a person has no session", hint="leave --session and --agent-session away")
        if self.existing and self.wanted_name:
            raise Usage(
                "--session is one that exists, --agent-session one that is to be made",
                hint="take one of them",
            )
        if self.existing and self.args:
            raise Usage("words after -- are for an agent that is started", hint="leave --session away")

    def name(self, job_id: str) -> str:
        """Return the name of the session that is made for the job."""
        return self.wanted_name or names.default_name(self.workdir, self.agent, label=job_id)

    def facts(self, job_id: str) -> dict[str, Any]:
        """Return what the job's record keeps of it."""
        session = self.existing or (None if self.type == rules.HUMAN else self.name(job_id))
        return {
            "agent": self.agent,
            "agent_session": f"{_TMUX}{session}" if session else None,
            "type": self.type,
            "workdir": self.workdir,
            "timeout_sec": self.timeout,
            "idle_timeout_sec": self.idle_timeout,
            "expected_artifacts": self.expect,
            "validate": self.validate,
            "reviewer": self.reviewer,
            "reviewer_session": f"{_TMUX}{self.reviewer_name}" if self.reviewer_name else None,
            "max_rounds": self.max_rounds if self.type == rules.LOOP else None,
            "permissions": self.permissions,
            "registry_dir": self.registry_dir,
            "broker": self.broker.as_json() if self.broker else None,
            "topic_prefix": self.broker.prefix if self.broker else None,
            "args": self.args,
            "trust": self.trust,
            "mcp": self.mcp,
        }


def command(context: Context, job_id: str, attempt: int) -> str:
    """Return the beginning of every command that reports on a job, for any shell in any directory."""
    if context.paths.state.endswith("/.mam"):
        where = ["--workspace", context.paths.root]
    else:
        where = ["--registry", context.paths.yaml]
    program = own_command.typed(context.environ.get("PATH", ""))
    return shlex.join([*program, "job", "event", *where, "--job", job_id, "--attempt", str(attempt)])


def message_of(context: Context, job_id: str, attempt: int, task: str) -> str:
    """Return the whole message for an agent: what it is told of its job, and then its task."""
    return rules.prompt(rules.instructions(job_id, command(context, job_id, attempt)), task)


def _task(prompt: str) -> str:
    if not prompt.strip():
        raise InvalidPrompt("the prompt is empty")
    if "\0" in prompt:
        raise InvalidPrompt("a prompt holds no NUL")
    check_size(prompt, LARGEST - _HEADER_BYTES)
    return prompt


def _directory(context: Context, given: str | None) -> str:
    path = os.path.realpath(os.path.join(context.workspace, given or "."))
    if not os.path.isdir(path):
        raise InvalidPath(f"{path} is not a directory", hint="name a directory that exists")
    return path


def _script(context: Context, given: str | None) -> str | None:
    if given is None:
        return None
    path = os.path.realpath(os.path.join(context.workspace, given))
    if not os.path.isfile(path):
        raise InvalidPath(f"the script {path} does not exist", hint="name one that exists")
    return path


def _session_name(given: str | None) -> str | None:
    return None if given is None else names.parse_name(given.removeprefix(_TMUX))


def _seconds(given: float | None, usual: float) -> float:
    if given is None:
        return usual
    if not 0 <= given < 1e9:
        raise Usage("a timeout is a number of seconds from 0")
    return float(given)
