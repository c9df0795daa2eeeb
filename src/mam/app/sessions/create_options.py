"""What a caller of `create` asked for, checked before anything is touched."""

from __future__ import annotations

from mam.app.sessions.first_prompt import check_prompt
from mam.core import names
from mam.core.errors import Refused, Usage
from mam.core.settings import PERMISSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypedDict, Unpack

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Where
    from mam.core.session_row import Row

    class SessionOptions(TypedDict, total=False):
        """What a caller of `fleet.sessions.create` may ask for."""

        name: str | None
        role: str | None
        tmux_server: str | None
        prompt: str | None
        permissions: str | None
        # Answer the agent's question whether it may trust the directory.
        trust: bool
        model: str | None
        env: Mapping[str, str] | None
        worktree: str | bool | None
        # Give the agent mam's own tools.
        mcp: bool
        args: Sequence[str]
        wait: bool
        timeout: float | None

    class AllOptions(SessionOptions, total=False):
        """What the other verbs may ask for besides."""

        job: str | None
        # What its name begins with, instead of the directory's: the first that is free is taken.
        stem: str | None
        # The window that it is to have a pane of, instead of a tmux session of its own.
        where: Where | None
        # What is to be recorded together with the intent.
        also: Callable[[Transaction, Row], None] | None
        # Whether the caller is a session that may start only so many others.
        child_limit: bool


class CreateOptions:
    """What the caller asked for, checked as far as it can be without looking at the world."""

    def __init__(self, context: Context, agent: str | None, **options: Unpack[AllOptions]) -> None:
        """Take the options by name."""
        # Each option is taken out, and one that is left is none of ours.
        name, model, prompt = (
            options.pop("name", None),
            options.pop("model", None),
            options.pop("prompt", None),
        )
        server = options.pop("tmux_server", None)
        self.agent = names.parse_kind(agent) if agent else None
        self.name = names.parse_name(name) if name is not None else None
        self.role: str | None = names.parse_role(options.pop("role", None))
        self.server = context.server_name(server) if server else None
        self.permissions = options.pop("permissions", None)
        if self.permissions and self.permissions not in PERMISSIONS:
            raise Usage(f"permissions are one of {', '.join(PERMISSIONS)}")
        self.model = names.parse_model(model) if model is not None else None
        self.prompt = check_prompt(prompt) if prompt is not None else None
        self.env = dict(options.pop("env", None) or {})
        self.args = list(options.pop("args", ()) or ())
        self.trust = options.pop("trust", False)
        self.wait = options.pop("wait", True)
        self.timeout = options.pop("timeout", None)
        self.worktree = options.pop("worktree", None)
        self.job = options.pop("job", None)
        self.stem = options.pop("stem", None)
        self.where = options.pop("where", None)
        self.also = options.pop("also", None)
        self.mcp = options.pop("mcp", False)
        self.child_limit = options.pop("child_limit", False)
        refuse_unknown(options)
        self.taken: set[str] = set()
        words = [*self.args, *self.env, *self.env.values(), self.worktree]
        if any(isinstance(word, str) and "\0" in word for word in words):
            raise Usage("no option holds a NUL")
        if self.prompt is not None and not self.wait:
            raise Usage("a prompt is given once the agent is ready", hint="leave out the prompt, or wait")

    def look_for_names(self, context: Context) -> None:
        """Ask tmux which names are in use, before the registry is locked; tmux refuses a later clash."""
        if self.name is None:
            server = self.server or context.server_name(None)
            self.taken = {pane.session_name for pane in context.tmux(server).panes().panes}

    def check_kind(self, kind: Kind) -> None:
        """Refuse what could only be done blindly: Enter on an unseen screen may answer a dialog."""
        if self.prompt is not None and kind.takes_prompt and not kind.reads_screen:
            raise Refused(
                f"mam cannot see whether {kind.name} waits for a prompt, so it types none",
                hint="start it without one and give it after mam attach, or as an argument after --",
            )
        if self.mcp and not kind.takes_mcp:
            raise Refused(
                f"{kind.name} takes no MCP server for one launch",
                hint="where it has MCP at all, add the command `mam mcp` to its own settings: docs/mcp.md",
            )
        for option, value, known in (
            ("--permissions", self.permissions not in (None, "default"), kind.takes_permissions),
            ("--model", self.model is not None, kind.takes_model),
        ):
            if value and not known:
                raise Refused(
                    f"mam does not know how {kind.name} takes {option}",
                    hint="pass the program's own options after --",
                )


def refuse_unknown(left: Mapping[str, object]) -> None:
    """Refuse options that nobody took, as Python does for arguments that a function does not have."""
    if left:
        raise TypeError(f"unknown options: {', '.join(left)}")
