"""The options of `create`, checked before anything changes."""

from __future__ import annotations

from mam.app.context.unknown_options import refuse_unknown
from mam.app.sessions.first_prompt import check_prompt
from mam.core import names
from mam.core.errors import InvalidName, Refused, Usage
from mam.core.settings import PERMISSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypedDict, Unpack

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Placement
    from mam.core.session_row import Row

    class SessionOptions(TypedDict, total=False):
        """The options of `fleet.sessions.create`."""

        name: str | None
        role: str | None
        tmux_server: str | None
        prompt: str | None
        permissions: str | None
        # Answer the agent's trust dialog for the directory with yes.
        trust: bool
        # Start an ended session with the command of its row, which mam has not launched as it is.
        run_recorded: bool
        model: str | None
        env: Mapping[str, str] | None
        worktree: str | bool | None
        # Give the agent mam's own tools.
        mcp: bool
        args: Sequence[str]
        wait: bool
        timeout: float | None

    class AllOptions(SessionOptions, total=False):
        """The further options that other verbs of mam may pass."""

        job: str | None
        # What the name begins with, instead of the directory: a number makes the name free.
        stem: str | None
        # The window in which the session gets a pane, instead of a tmux session of its own.
        placement: Placement | None
        # Called in the transaction that records the intent.
        on_claim: Callable[[Transaction, Row], None] | None
        # Whether to limit the number of sessions that a calling session may start.
        child_limit: bool
        # What runs the command of a job in the pane, for the kind `exec`.
        runner: list[str] | None


def _parse_name(context: Context, text: str) -> str:
    """Return a valid name. A row of the original system is started anew under the name that it has."""
    try:
        return names.parse_name(text)
    except InvalidName:
        if all(row["name"] != text for row in context.registry.view().rows):
            raise
    return names.parse_row_name(text)


class CreateOptions:
    """The options of one `create`, checked as far as possible without tmux and the registry."""

    def __init__(self, context: Context, agent: str | None, **options: Unpack[AllOptions]) -> None:
        """Take the options by name."""
        # Each option is popped, so whatever remains at the end is unknown.
        name, model, prompt = (
            options.pop("name", None),
            options.pop("model", None),
            options.pop("prompt", None),
        )
        server = options.pop("tmux_server", None)
        self.agent = names.parse_kind(agent) if agent else None
        self.name = _parse_name(context, name) if name is not None else None
        self.role: str | None = names.parse_role(options.pop("role", None))
        self.server = context.server_name(server) if server else None
        self.permissions = options.pop("permissions", None)
        if self.permissions and self.permissions not in PERMISSIONS:
            raise Usage(f"permissions must be one of {', '.join(PERMISSIONS)}")
        self.model = names.parse_model(model) if model is not None else None
        self.prompt = check_prompt(prompt) if prompt is not None else None
        self.env = dict(options.pop("env", None) or {})
        self.args = list(options.pop("args", ()) or ())
        self.trust = options.pop("trust", False)
        self.run_recorded = options.pop("run_recorded", False)
        self.wait = options.pop("wait", True)
        self.timeout = options.pop("timeout", None)
        self.worktree = options.pop("worktree", None)
        self.job = options.pop("job", None)
        self.stem = options.pop("stem", None)
        self.placement = options.pop("placement", None)
        self.on_claim = options.pop("on_claim", None)
        self.mcp = options.pop("mcp", False)
        self.child_limit = options.pop("child_limit", False)
        self.runner = options.pop("runner", None)
        refuse_unknown(options)
        self.taken: set[str] = set()
        texts = [*self.args, *self.env, *self.env.values(), self.worktree]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise Usage("an option contains a NUL character")
        if self.prompt is not None and not self.wait:
            raise Usage(
                "mam sends the prompt when the agent is ready, so it has to wait",
                hint="leave out the prompt, or wait",
            )

    def look_for_names(self, context: Context) -> None:
        """Ask tmux which names are in use, before the registry is locked. tmux refuses a later clash."""
        if self.name is None:
            server = self.server or context.server_name(None)
            self.taken = {pane.session_name for pane in context.tmux(server).panes().panes}

    def check_kind(self, kind: Kind) -> None:
        """Refuse options that this agent kind does not support.

        A prompt needs a screen that mam can read: Enter on an unknown screen may answer a dialog.
        """
        if kind.runs_command_of_job and not self.runner:
            raise Usage(
                f"{kind.name} is no agent: such a session runs the command of one job, once",
                hint="submit a job: mam job submit --exec … -- PROGRAM ARG…",
            )
        if self.prompt is not None and kind.takes_prompt and not kind.reads_screen:
            raise Refused(
                f"mam cannot see whether {kind.name} waits for a prompt, so mam types none",
                hint="start it without a prompt and type it (mam attach), or pass it as an argument after --",
            )
        if self.mcp and not kind.takes_mcp:
            raise Refused(
                f"{kind.name} cannot get an MCP server for one launch",
                hint="if it supports MCP, add the command `mam mcp` to its own settings; see mam mcp --help",
            )
        for option, is_given, is_supported in (
            ("--permissions", self.permissions not in (None, "default"), kind.takes_permissions),
            ("--model", self.model is not None, kind.takes_model),
        ):
            if is_given and not is_supported:
                raise Refused(
                    f"mam does not know how {kind.name} takes {option}",
                    hint="pass the program's own options after --",
                )
