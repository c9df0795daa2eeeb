"""What a caller of `create` asked for, checked before anything is touched."""

from __future__ import annotations

from mam.app.sessions.first_prompt import check_prompt
from mam.core import names
from mam.core.errors import Refused, Usage
from mam.core.settings import PERMISSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Where
    from mam.core.session_row import Row


class CreateOptions:
    """What the caller asked for, checked as far as it can be without looking at the world."""

    def __init__(self, context: Context, agent: str | None, **options: Any) -> None:
        """Take the options of `create` by name; see Fleet.create for their meaning."""
        self.agent = names.parse_kind(agent) if agent else None
        self.name = names.parse_name(options["name"]) if options.get("name") is not None else None
        self.role: str | None = names.parse_role(options.get("role"))
        self.server = context.server_name(options.get("tmux_server")) if options.get("tmux_server") else None
        self.permissions: str | None = options.get("permissions")
        if self.permissions and self.permissions not in PERMISSIONS:
            raise Usage(f"permissions are one of {', '.join(PERMISSIONS)}")
        self.model = names.parse_model(options["model"]) if options.get("model") is not None else None
        self.prompt = check_prompt(options["prompt"]) if options.get("prompt") is not None else None
        self.env: dict[str, str] = dict(options.get("env") or {})
        self.args: list[str] = list(options.get("args") or [])
        self.trust = bool(options.get("trust"))
        self.wait = bool(options.get("wait", True))
        self.timeout: float | None = options.get("timeout")
        self.worktree: str | bool | None = options.get("worktree")
        self.job: str | None = options.get("job")
        # What its name begins with, instead of the directory's: the first that is free is taken.
        self.stem: str | None = options.get("stem")
        # The window that it is to have a pane of, instead of a tmux session of its own.
        self.where: Where | None = options.get("where")
        # What is to be recorded together with the intent.
        self.also: Callable[[Transaction, Row], None] | None = options.get("also")
        self.mcp = bool(options.get("mcp"))
        # Whether the caller is a session that may start only so many others.
        self.child_limit = bool(options.get("child_limit"))
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
