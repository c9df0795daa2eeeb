"""Holds the options of a submission, checked before anything is recorded or started."""

from __future__ import annotations

import os

from mam.app.brokers import config
from mam.app.context.unknown_options import refuse_unknown
from mam.app.job_runner.check import script_path
from mam.app.job_runner.command_attempt import find_program
from mam.app.job_runner.script_copy import read_script
from mam.app.job_runner.tellable_kind import check_tellable
from mam.core import command_template, names
from mam.core import job_rules as rules
from mam.core.errors import InvalidPath, Usage
from mam.core.message_rules import LARGEST, check_text
from mam.core.settings import PERMISSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict, Unpack

    from mam.app.context.context import Context

    class JobOptions(TypedDict, total=False):
        """The options of `fleet.jobs.submit`."""

        # The agent kind ("claude") for a new session, a running session, or the name for a new session.
        agent: str | None
        session: str | None
        agent_session: str | None
        workdir: str | None
        # once, loop or human. Only a loop has a reviewer; it ends after max_rounds rounds.
        type: str | None
        reviewer: str | None
        reviewer_session: str | None
        max_rounds: int | None
        # Seconds until the job times out: in all, and without any activity. 0 means never.
        timeout: float | None
        idle_timeout: float | None
        # A script that checks a `completed`, and paths that must exist then.
        validate: str | None
        expect: Sequence[str]
        permissions: str | None
        # Answer the agent's question whether it may trust the directory.
        trust: bool
        # Give the agent mam's own tools.
        mcp: bool
        args: Sequence[str]
        # A program with its arguments that carries out the job, instead of an agent.
        command: Sequence[str] | None
        broker: str | None
        # Another folder of records than the root's own.
        folder: str | None
        # What runs the job, and on which machine.
        runner: str
        place: str

    class AllJobOptions(JobOptions, total=False):
        """The option that the API adds: whether the caller is a session with a limit of child sessions."""

        child_limit: bool


HUMAN = "human"
_TMUX = "tmux:"
# The space that the instructions around a task may take in a message.
_HEADER_BYTES = 4096


class Submission:
    """The checked options of one job."""

    def __init__(self, context: Context, prompt: str | None, **options: Unpack[AllJobOptions]) -> None:
        """Check the options and make their paths absolute. Only a command needs no prompt."""
        _refuse_empty(options)
        # Each known option is popped, so that `refuse_unknown` sees only unknown ones.
        reviewer = options.pop("reviewer", None)
        self.prompt = check_text(prompt, "prompt", LARGEST - _HEADER_BYTES) if prompt is not None else ""
        agent, wanted_type = options.pop("agent", None), options.pop("type", None)
        self.workdir = _directory(context, options.pop("workdir", None))
        self.command, self.program = None, None
        if (command := options.pop("command", None)) is not None:
            self.command = list(command)
            _refuse_options_of_agents(agent, wanted_type, options)
            agent, options["runner"] = rules.EXEC, rules.EXEC
            command_template.check(self.command)
            self.program = find_program(context, self.command, self.workdir)
        self.agent = names.parse_kind(agent or (HUMAN if wanted_type == rules.HUMAN else "claude"))
        self.existing = options.pop("session", None)
        self.wanted_name = _session_name(options.pop("agent_session", None))
        self.type = wanted_type or (rules.HUMAN if self.agent == HUMAN else rules.ONCE)
        self.reviewer = names.parse_kind(reviewer) if reviewer else None
        self.reviewer_name = _session_name(options.pop("reviewer_session", None))
        self.max_rounds = options.pop("max_rounds", None) or rules.MOST_ROUNDS
        self.timeout = _seconds(options.pop("timeout", None), rules.TIMEOUT_SECONDS)
        # A person works without reporting events, and a program may print nothing before its end. So silence
        # does not mean that they are idle.
        usual = 0.0 if self.type == rules.HUMAN or self.command else rules.IDLE_SECONDS
        self.idle_timeout = _seconds(options.pop("idle_timeout", None), usual)
        script = options.pop("validate", None)
        self.validate = None if script is None else script_path(context, script)
        self.script = None if self.validate is None else read_script(self.validate)
        self.expect = [_expected(str(path)) for path in options.pop("expect", ()) or ()]
        permissions = options.pop("permissions", None) or context.settings().job_permissions
        self.permissions = permissions if self.command is None or self.reviewer else None
        self.records_folder = options.pop("folder", None)
        self.broker = config.find(context, options.pop("broker", None))
        self.args = list(options.pop("args", ()) or ())
        self.trust = options.pop("trust", False)
        self.mcp = options.pop("mcp", False)
        self.runner = options.pop("runner", rules.RUNNERS[0])
        self.place = options.pop("place", rules.PLACES[0])
        self.child_limit = options.pop("child_limit", False)
        refuse_unknown(options)
        self._check()
        if prompt is None:
            self._check_without_prompt()
        if not self.existing:
            check_tellable(context, self.agent)
        if self.reviewer:
            check_tellable(context, self.reviewer, is_reviewer=True)
        if self.command is not None:
            # A prompt that cannot be an argument is refused before anything is recorded.
            command_template.expand(self.command, prompt=self.prompt, prompt_file="/", workdir=self.workdir)

    def _check(self) -> None:
        for option, value, values in (
            ("permissions are", self.permissions, (*PERMISSIONS, *([None] if self.command else []))),
            ("the runner of a job is", self.runner, rules.RUNNERS),
            ("the place of a job is", self.place, rules.PLACES),
            ("the type of a job is", self.type, rules.TYPES),
        ):
            if value not in values:
                raise Usage(f"{option} one of {', '.join(map(str, values))}")
        if (rules.EXEC in (self.runner, self.agent)) != bool(self.command):
            raise Usage(
                "only a job with a command has the runner exec",
                hint="mam job submit --exec … -- PROGRAM ARG…",
            )
        self._check_type()
        if self.existing and self.wanted_name:
            raise Usage(
                "--session names an existing session, --agent-session names a new one",
                hint="give only one of them",
            )
        if self.existing and self.args:
            raise Usage("arguments after -- are for a newly started agent", hint="omit --session")

    def _check_without_prompt(self) -> None:
        if self.command is None:
            problem = "say what the agent should do"
        elif not command_template.takes_stdin(self.command):
            problem = "the command has {prompt} or {prompt_file}, and there is no prompt"
        elif self.reviewer:
            problem = "a reviewer needs the prompt, which says what the command should do"
        else:
            return
        raise Usage(problem, hint="--prompt TEXT or --prompt-file FILE")

    def _check_type(self) -> None:
        if (self.type == rules.LOOP) != bool(self.reviewer):
            raise Usage(
                "a job of the type loop needs a reviewer, and no other type takes one",
                hint="--type loop --reviewer codex",
            )
        if self.type == rules.LOOP and HUMAN in (self.agent, self.reviewer):
            raise Usage(
                "worker and reviewer of a loop are agents", hint="use the type human for a job of a person"
            )
        if (self.type == rules.HUMAN) != (self.agent == HUMAN):
            raise Usage(
                "a job for a person has the type human and no other agent", hint="--type human, or --agent"
            )
        if self.type == rules.HUMAN and (self.existing or self.wanted_name):
            raise Usage("a job for a person has no session", hint="omit --session and --agent-session")

    def name(self, job_id: str) -> str:
        """Return the name of the new session for the job."""
        return self.wanted_name or names.default_name(self.workdir, self.agent, label=job_id)

    def facts(self, job_id: str) -> dict[str, Any]:
        """Return the fields of the job's record."""
        session = self.existing or (None if self.type == rules.HUMAN else self.name(job_id))
        return {
            "agent": self.agent,
            "agent_session": f"{_TMUX}{session}" if session else None,
            "type": self.type,
            "workdir": self.workdir,
            "command": self.command,
            "program": self.program,
            "timeout_sec": self.timeout,
            "idle_timeout_sec": self.idle_timeout,
            "expected_artifacts": self.expect,
            "validate": self.validate,
            "reviewer": self.reviewer,
            "reviewer_session": f"{_TMUX}{self.reviewer_name}" if self.reviewer_name else None,
            "max_rounds": self.max_rounds if self.type == rules.LOOP else None,
            "permissions": self.permissions,
            "registry_dir": self.records_folder,
            "broker": self.broker.as_json() if self.broker else None,
            "topic_prefix": self.broker.prefix if self.broker else None,
            "args": self.args,
            "trust": self.trust,
            "mcp": self.mcp,
        }


def _refuse_options_of_agents(agent: str | None, wanted_type: str | None, options: Mapping[str, Any]) -> None:
    """Raise Usage for an option that only means something to an agent."""
    given = ["--agent"] if agent is not None else []
    given += ["--type human"] if wanted_type == rules.HUMAN else []
    given += [f"--{name}" for name in ("session", "permissions", "mcp", "trust") if options.get(name)]
    given += ["arguments beside the command"] if options.get("args") else []
    if given:
        raise Usage(
            f"--exec runs a command and no agent, so it does not go with {' and '.join(given)}",
            hint="leave one of them out",
        )


def _refuse_empty(options: Mapping[str, Any]) -> None:
    """Refuse an empty text: it may be an unset variable of a script, and must not mean the default."""
    for name in ("agent", "session", "agent_session", "workdir", "reviewer", "reviewer_session", "validate"):
        if options.get(name) == "":
            raise Usage(f"--{name.replace('_', '-')} is empty", hint="give it a value, or leave it out")


def _directory(context: Context, path_text: str | None) -> str:
    path = os.path.realpath(os.path.join(context.workspace, path_text or "."))
    if not os.path.isdir(path):
        raise InvalidPath(f"{path} is not a directory", hint="name a directory that exists")
    return path


def _expected(path: str) -> str:
    if not path.strip() or "\0" in path:
        raise Usage("a path to expect is empty or contains a NUL character", hint="--expect report.md")
    return path


def _session_name(text: str | None) -> str | None:
    return None if text is None else names.parse_name(text.removeprefix(_TMUX))


def _seconds(seconds: float | None, usual: float) -> float:
    if seconds is None:
        return usual
    if not 0 <= seconds < 1e9:
        raise Usage("a timeout is a number of seconds, 0 or more", hint="at most 1653w; 0 means never")
    return float(seconds)
