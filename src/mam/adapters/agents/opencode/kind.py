"""The kind of opencode: mam reads a plugin's reports, the database and the screen.

mam does not edit the user's configuration. It passes its additions in OPENCODE_CONFIG_CONTENT of one launch,
which opencode merges with its files.
"""

from __future__ import annotations

import json
import os
import re
import shlex

from mam.adapters.agents.ambiguous_width_characters import has_unsafe_width
from mam.adapters.agents.caller_arguments import Options
from mam.adapters.agents.dialog_options import read
from mam.adapters.agents.kind import HookEvent, Kind, Launch
from mam.adapters.agents.opencode import conversation_database
from mam.adapters.agents.read_only_sqlite import Unreadable
from mam.adapters.agents.tool_request import request_of
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.agents.dialog_options import Choices
    from mam.adapters.agents.kind import Attachment, Request, Screen, ScreenState, Transcript
    from mam.core.activity import Evidence

CONFIG, SPOOL, ROUTE = "OPENCODE_CONFIG_CONTENT", "MAM_SPOOL", "OPENCODE_ROUTE"
# opencode shows this page until the fork is copied. Without it, the screen shows for some seconds the input
# box of a new conversation.
_FORKING = {"type": "plugin", "id": "fork"}
_HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN, DELETE = os.path.join(_HERE, "plugin.js"), os.path.join(_HERE, "delete.sh")
# The tools that change something or use the network; the tools of an MCP server are named SERVER_TOOL.
_ASK = {"*_*": "ask", "bash": "ask", "edit": "ask", "webfetch": "ask", "websearch": "ask"}
# opencode has one option for both permissions: it allows whatever is not denied.
_ARGUMENTS = {"auto": ["--auto"], "skip": ["--auto"]}
# Options that choose a conversation: only mam may pass them, and some contradict each other.
_CHOOSES = ("--session", "-s", "--continue", "-c", "--fork", "--no-continue", "--no-fork")
_PROMPTS = ("--prompt",)
_OPTIONS = Options(
    flags=(
        "--print-logs",
        "--pure",
        "--mdns",
        "--auto",
        "--mini",
        "--no-replay",
        "-h",
        "--help",
        "-v",
        "--version",
    ),
    single=(
        "--log-level",
        "--port",
        "--hostname",
        "--mdns-domain",
        "-m",
        "--model",
        "--agent",
        *_PROMPTS,
        "--replay-limit",
    ),
)
# opencode sets this variable for its children. Another program may give it another meaning.
_INHERITED = ("AGENT",)
_STATUSES: dict[str, str] = {"busy": WORKING, "retry": WORKING, "idle": IDLE}
_DIALOGS = ("permission", "question")
_EVENTS = ("session.created", "session.status", "session.error", "chat.message", "asked", "replied")
_FORK = re.compile(r".*\(fork #\d+\)\Z", re.DOTALL)
# As the whole prompt, such a text would end opencode, or name a file to attach.
_EXIT_WORDS = ("exit", "quit", ":q")
_ATTACHES = re.compile(r"""['"]?\S+\.(?:png|jpe?g|gif|webp|avif|bmp|svg|pdf)['"]?\Z""", re.IGNORECASE)
# opencode shows a paste from this size on as `[Pasted ~N lines]`, trims it, and adds a space after it.
_FOLDED_LENGTH, _FOLDED_LINES = 150, 3
_MENTION = re.compile(r"(?:^|\s)@\S*\Z")


class Opencode(Kind):
    """Launches `opencode`, and reads its screen and its database."""

    name = "opencode"
    # For `/exit` a menu must open before Enter; for `exit` there is no menu.
    exit_word = "exit"
    can_resume = True
    can_fork = True
    has_hooks = True
    takes_permissions = True
    takes_model = True
    takes_mcp = True
    # opencode loads the plugin before it draws the input box, and the plugin reports nothing before the first
    # message.
    ready_by_hook = False
    reads_screen = True
    # After the first Escape, opencode only asks for a second one.
    interrupt_keys = ("Escape", "Escape")
    free_text_needs_enter = True
    dialog_settle_seconds = 0.3
    keeps_tabs = True
    special_first = "/!"
    # An interrupted start leaves a lock, which delays the next start for a minute.
    boot_seconds = 90.0
    # opencode has a queue. But a dialog that opens takes an Enter before opencode draws or reports it, and
    # that Enter allows what the dialog asks for.
    queues = False
    has_global_transcript_size = True
    folded_paste = r"\[Pasted ~(?P<lines>\d+) lines\]"
    erase_key = "C-u"
    known_versions = ("1.18.25", "1.18.33")
    packages = ("opencode-ai",)

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the folder of the data, also if it is the default one."""
        return conversation_database.stores_of(environ)

    def launch(self, request: Request) -> Launch:
        """Pass the conversation, the plugin and the permissions; the arguments of the caller come last."""
        args = request.command[1:]
        _check(args, request.model)
        if request.resume or request.fork_of:
            args = _OPTIONS.without_prompt(args, _PROMPTS)
        argv, env = [request.program], _environment(request)
        if request.fork_of:
            argv += ["--session", request.fork_of, "--fork"]
            env[ROUTE] = json.dumps(_FORKING)
        elif request.conversation and request.resume:
            argv += ["--session", request.conversation]
        argv += _ARGUMENTS.get(request.permissions, [])
        if request.model:
            argv += ["--model", request.model]
        notes = (
            ("opencode --pure runs no plugins: mam sees only its screen, and not its conversation",)
            if "--pure" in args or request.environ.get("OPENCODE_PURE")
            else ()
        )
        chosen = conversation_database.DATABASE
        unset = _INHERITED if chosen in request.stores else (*_INHERITED, chosen)
        return Launch([*argv, *args], env, notes=notes, unset=unset)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for a message of the conversation in the database."""
        return conversation_database.has_history(conversation, stores)

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the conversations of this directory, without those of subagents."""
        return conversation_database.conversations_in(workspace, stores)

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """Let opencode delete, because all conversations share a database."""
        if not conversation_database.ID.match(conversation):
            return None
        return ["/bin/sh", DELETE, program, conversation]

    def read_screen(self, screen: Screen) -> ScreenState:
        """Look for a menu, then for the input box, then for a dialog."""
        from mam.adapters.agents.opencode import screen as opencode_screen

        return opencode_screen.read_screen(screen)

    def choices(self, screen: Screen) -> Choices | None:
        """The options of a permission are side by side; only a colour shows which of them is chosen."""
        from mam.adapters.agents.opencode import screen as opencode_screen

        return opencode_screen.read_permission(screen.text) or read(opencode_screen.dialog_text(screen.text))

    def text_to_type(self, text: str) -> str | None:
        """Add a space before `/` and `!` of a short prompt; opencode would strip it from a long one."""
        stripped = text.strip()
        if stripped in _EXIT_WORDS or _ATTACHES.match(stripped):
            return None
        if _is_folded(stripped):
            return None if stripped[0] in self.special_first else stripped
        escaped = super().text_to_type(text.rstrip()) or ""
        # A name after @ at the end opens a menu, and Enter would choose from it.
        return f"{escaped} " if _MENTION.search(escaped) else escaped

    def keeps_unchanged(self, text: str) -> bool:
        """Refuse joining signs: opencode leaves them in its input box, which then never looks empty again."""
        return super().keeps_unchanged(text) and not has_unsafe_width(text)

    def read_hook(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what the plugin reports; of a subagent it reports only questions and permissions."""
        event = payload.get("event")
        if payload.get("agent") != self.name or event not in _EVENTS:
            return None
        conversation, prompt = payload.get("session"), payload.get("prompt")
        if not isinstance(conversation, str) or not conversation_database.ID.match(conversation):
            conversation = None
        state, waiting_for = _state_of(str(event), payload)
        return HookEvent(
            str(event),
            state,
            waiting_for,
            conversation,
            _as_pasted(prompt) if isinstance(prompt, str) else None,
            request_of(payload.get("tool"), payload.get("what")) if state == WAITING else None,
        )

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """Read the last message of the conversation."""
        evidence = conversation_database.read_turn(conversation, stores)
        return [evidence] if evidence else []

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """opencode writes the user's message at submission; there is no conversation before the first one."""
        count = self.count_submitted(text, conversation, stores, since)
        return None if count is None else count > 0

    def count_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> int | None:
        """Each submission is one message."""
        try:
            prompts = conversation_database.prompts(conversation, stores, since)
            return sum(_as_pasted(prompt) == text for prompt in prompts)
        except Unreadable:
            return None if conversation else 0

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """Read the last messages; the database does not have the size of the context window."""
        return conversation_database.read_transcript(conversation, stores, turns)

    def transcript_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Return the time of the newest message; later messages have a later time in any conversation."""
        return conversation_database.last_message(conversation, stores)


def _check(args: list[str], model: str | None) -> None:
    _OPTIONS.refuse(args, _CHOOSES)
    words = _OPTIONS.words(args)
    if words:
        raise Usage(
            f"opencode takes '{words[0]}' for a command or a directory, and only mam may pass these",
            hint="mam create --workspace DIR for another directory, --prompt TEXT for a first prompt",
        )
    if model is not None and not all(model.partition("/")):
        raise Usage(
            f"'{model}' is not the name of a model",
            hint="opencode names models PROVIDER/MODEL: opencode models",
        )


def _environment(request: Request) -> dict[str, str]:
    """Return the variables of this launch: the caller's configuration, with the additions of mam."""
    asks = request.permissions == "ask"
    if not request.hook and not asks and not request.attachment:
        return {}
    config = _parse_config(request.environ.get(CONFIG) or "{}")
    env = {}
    if request.hook:
        url = _url(PLUGIN)
        plugins = config.get("plugin")
        caller_plugins = [plugin for plugin in plugins if plugin != url] if isinstance(plugins, list) else []
        config["plugin"] = [*caller_plugins, url]
        # The spool is the last word of the hook command. The plugin writes there without starting a process.
        env[SPOOL] = shlex.split(request.hook)[-1]
    if request.attachment:
        servers = config.get("mcp")
        config["mcp"] = {**(servers if isinstance(servers, dict) else {}), **_mcp(request.attachment)}
    if asks:
        rules = config.get("permission")
        config["permission"] = {**(rules if isinstance(rules, dict) else {}), **_ASK}
    return {CONFIG: json.dumps(config), **env}


def _mcp(server: Attachment) -> dict[str, Any]:
    # By default opencode gives up a request after five seconds; a tool that waits for an agent takes longer.
    facts: dict[str, Any] = {"type": "local", "enabled": True, "timeout": 3_660_000}
    return {server.name: {**facts, "command": server.argv, "environment": server.env}}


def _parse_config(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise Usage(
            f"{CONFIG} is set and is not a JSON object, so mam cannot add to it",
            hint="correct or unset the variable; mam cannot read comments in it",
        )
    return config


def _url(path: str) -> str:
    from urllib.parse import quote

    return f"file://{quote(path)}"


def _state_of(event: str, payload: Mapping[str, Any]) -> tuple[str | None, str | None]:
    waiting_for = payload.get("waiting_for")
    if event in ("asked", "replied") and waiting_for in _DIALOGS:
        return WAITING, str(waiting_for)
    if event == "session.created":
        # The first message creates a conversation. A fork exists before its first message, and waits for it.
        return (IDLE if _FORK.match(str(payload.get("title"))) else WORKING), None
    if event == "session.status":
        if payload.get("status") == "retry" and payload.get("reason"):
            return WAITING, "limit"
        return _STATUSES.get(str(payload.get("status"))), None
    return {"chat.message": WORKING, "replied": WORKING, "session.error": IDLE}.get(event), None


def _is_folded(text: str) -> bool:
    return len(text) > _FOLDED_LENGTH or text.count("\n") + 1 >= _FOLDED_LINES


def _as_pasted(prompt: str) -> str:
    """Return a prompt as mam pasted it: opencode adds a space after a folded one."""
    return prompt[:-1] if prompt.endswith(" ") and _is_folded(prompt.strip()) else prompt
