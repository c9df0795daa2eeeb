"""opencode: driven by the configuration of one launch, read by a plugin, its database and its screen.

Nothing of the user's configuration is edited: what mam adds is in OPENCODE_CONFIG_CONTENT of this launch,
which opencode merges with the files.
"""

from __future__ import annotations

import json
import os
import re
import shlex

from mam.adapters.agents.arguments import Options
from mam.adapters.agents.dialog_options import read
from mam.adapters.agents.kind import HookEvent, Kind, Launch
from mam.adapters.agents.opencode import files
from mam.adapters.agents.opencode import screen as opencode_screen
from mam.adapters.agents.read_only_sqlite import Unreadable
from mam.adapters.agents.unsafe_width import go_astray
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
# A page without a box, shown until the copy is there: else the box of a new conversation is, for seconds.
_FORKING = {"type": "plugin", "id": "fork"}
_HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN, DELETE = os.path.join(_HERE, "plugin.js"), os.path.join(_HERE, "delete.sh")
# What changes something or leaves the machine; the tools of an MCP server are named SERVER_TOOL.
_ASK = {"*_*": "ask", "bash": "ask", "edit": "ask", "webfetch": "ask", "websearch": "ask"}
# The nearest that it has to both: it allows whatever is not denied.
_ARGUMENTS = {"auto": ["--auto"], "skip": ["--auto"]}
# Options that choose a conversation: that is mam's part, and two of them contradict each other.
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
# What an opencode sets for what it starts. For other programs the word may mean something else.
_INHERITED = ("AGENT",)
_STATUSES: dict[str, str] = {"busy": WORKING, "retry": WORKING, "idle": IDLE}
_ASKED = ("permission", "question")
_EVENTS = ("session.created", "session.status", "session.error", "chat.message", "asked", "replied")
_FORK = re.compile(r".*\(fork #\d+\)\Z", re.DOTALL)
# The whole prompt would end the program, or be taken for the path of a file to attach.
_LEAVES = ("exit", "quit", ":q")
_ATTACHES = re.compile(r"""['"]?\S+\.(?:png|jpe?g|gif|webp|avif|bmp|svg|pdf)['"]?\Z""", re.IGNORECASE)
# From here on a paste is shown as `[Pasted ~N lines]`, is trimmed, and has a space after it.
_FOLDED_LENGTH, _FOLDED_LINES = 150, 3
_MENTION = re.compile(r"(?:^|\s)@\S*\Z")


class Opencode(Kind):
    """Launches `opencode` and reads what it leaves."""

    name = "opencode"
    # `/exit` depends on a menu that must have opened before Enter; this one does not.
    exit_word = "exit"
    can_resume = True
    can_fork = True
    has_hooks = True
    takes_permissions = True
    takes_model = True
    takes_mcp = True
    # The plugin is loaded before the box is there, and says nothing before the first message.
    ready_by_hook = False
    reads_screen = True
    # The first one only announces it.
    interrupt_keys = ("Escape", "Escape")
    opens_own_words = True
    dialog_settles = 0.3
    keeps_tabs = True
    special_first = "/!"
    # A lock that a start which was cut short left behind holds up the next one for a minute.
    boot_seconds = 90.0
    queues = True
    counts_for_all = True
    known_versions = ("1.18.33",)
    packages = ("opencode-ai",)

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The folder of its data, named also where it is the usual one."""
        return files.stores_of(environ)

    def launch(self, request: Request) -> Launch:
        """Pass conversation, plugin and permissions; what the caller passed comes last."""
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
            ("opencode --pure runs no plugins: mam sees its screen only, and not which conversation it has",)
            if "--pure" in args or request.environ.get("OPENCODE_PURE")
            else ()
        )
        chosen = files.DATABASE
        without = _INHERITED if chosen in request.stores else (*_INHERITED, chosen)
        return Launch([*argv, *args], env, notes=notes, without=without)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """A conversation in the database with a message."""
        return files.has_history(conversation, stores)

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return those of this directory, without those of subagents."""
        return files.begun_in(workspace, stores)

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """All conversations share a database, so opencode itself deletes."""
        if not files.ID.match(conversation):
            return None
        return ["/bin/sh", DELETE, program, conversation]

    def look(self, screen: Screen) -> ScreenState:
        """Find a menu, the box, else a dialog."""
        return opencode_screen.look(screen)

    def choices(self, screen: Screen) -> Choices | None:
        """The options of a permission stand side by side; which one is chosen shows in its colour alone."""
        return opencode_screen.read_permission(screen.text) or read(opencode_screen.dialog_words(screen.text))

    def typed(self, text: str) -> str | None:
        """A space neutralises `/` and `!` of a short prompt; of a long one it is taken off again."""
        words = text.strip()
        if words in _LEAVES or _ATTACHES.match(words):
            return None
        if _is_folded(words):
            return None if words[0] in self.special_first else words
        words = super().typed(text.rstrip()) or ""
        # A name after @ at the end opens a menu, and Enter would choose from it.
        return f"{words} " if _MENTION.search(words) else words

    def keeps(self, text: str) -> bool:
        """Signs that join others stay behind in its box, which then never looks empty again."""
        return super().keeps(text) and not go_astray(text)

    def hear(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what the plugin wrote; it leaves out what a subagent does, except what that asks."""
        event = payload.get("event")
        if payload.get("agent") != self.name or event not in _EVENTS:
            return None
        conversation, prompt = payload.get("session"), payload.get("prompt")
        if not isinstance(conversation, str) or not files.ID.match(conversation):
            conversation = None
        state, waiting_for = _state_of(str(event), payload)
        return HookEvent(
            str(event),
            state,
            waiting_for,
            conversation,
            _unfolded(prompt) if isinstance(prompt, str) else None,
        )

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """The last message of the conversation."""
        said = files.read_turn(conversation, stores)
        return [said] if said else []

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """The user's message is written at submission; before the first one there is no conversation."""
        try:
            said = files.prompts(conversation, stores, since)
            return any(_unfolded(one) == text for one in said)
        except Unreadable:
            return None if conversation else False

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """The last messages; how many tokens fit is not in the database."""
        return files.read_transcript(conversation, stores, turns)

    def record_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """The time of the newest message, which later ones are beyond of."""
        return files.last_message(conversation, stores)


def _check(args: list[str], model: str | None) -> None:
    _OPTIONS.refuse(args, _CHOOSES)
    words = _OPTIONS.words(args)
    if words:
        raise Usage(
            f"opencode takes '{words[0]}' for a command or a directory: that is mam's part",
            hint="mam create --workspace DIR for another directory, --prompt TEXT for a first prompt",
        )
    if model is not None and not all(model.partition("/")):
        raise Usage(
            f"'{model}' is no model of opencode", hint="it names them PROVIDER/MODEL: opencode models"
        )


def _environment(request: Request) -> dict[str, str]:
    """Return the configuration of this launch: the caller's own, with the plugin and the permissions."""
    asks = request.permissions == "ask"
    if not request.hook and not asks and not request.attachment:
        return {}
    config = _config(request.environ.get(CONFIG) or "{}")
    env = {}
    if request.hook:
        ours = _url(PLUGIN)
        plugins = config.get("plugin")
        others = [one for one in plugins if one != ours] if isinstance(plugins, list) else []
        config["plugin"] = [*others, ours]
        # The last word of the hook's command; the plugin writes there itself, without a process per event.
        env[SPOOL] = shlex.split(request.hook)[-1]
    if request.attachment:
        servers = config.get("mcp")
        config["mcp"] = {**(servers if isinstance(servers, dict) else {}), **_mcp(request.attachment)}
    if asks:
        theirs = config.get("permission")
        config["permission"] = {**(theirs if isinstance(theirs, dict) else {}), **_ASK}
    return {CONFIG: json.dumps(config), **env}


def _mcp(server: Attachment) -> dict[str, Any]:
    # Left to itself it gives up a request after five seconds; waiting for an agent takes longer.
    facts: dict[str, Any] = {"type": "local", "enabled": True, "timeout": 3_660_000}
    return {server.name: {**facts, "command": server.argv, "environment": server.env}}


def _config(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Usage(
            f"{CONFIG} is set and is not a JSON object, so mam cannot add to it",
            hint="mend or unset it; comments are not allowed in it here",
        )
    return found


def _url(path: str) -> str:
    from urllib.parse import quote

    return f"file://{quote(path)}"


def _state_of(event: str, payload: Mapping[str, Any]) -> tuple[str | None, str | None]:
    waiting_for = payload.get("waiting_for")
    if event in ("asked", "replied") and waiting_for in _ASKED:
        return WAITING, str(waiting_for)
    if event == "session.created":
        # It is created by the first message, except for a fork, which waits for one.
        return (IDLE if _FORK.match(str(payload.get("title"))) else WORKING), None
    if event == "session.status":
        if payload.get("status") == "retry" and payload.get("reason"):
            return WAITING, "limit"
        return _STATUSES.get(str(payload.get("status"))), None
    return {"chat.message": WORKING, "replied": WORKING, "session.error": IDLE}.get(event), None


def _is_folded(words: str) -> bool:
    return len(words) > _FOLDED_LENGTH or words.count("\n") + 1 >= _FOLDED_LINES


def _unfolded(prompt: str) -> str:
    """Return a prompt as it was pasted: a folded one has a space after it."""
    return prompt[:-1] if prompt.endswith(" ") and _is_folded(prompt.strip()) else prompt
