"""Codex: driven by options of one launch, read by its locks, rollout, title and screen.

Nothing of the user's configuration is edited. It has hooks, but only for whoever trusts those of the
repository as well, so mam does without unless the operator says so: its rollout says as much.
"""

from __future__ import annotations

import json
import re

from mam.adapters.agents import hook_command
from mam.adapters.agents.arguments import REST, Options
from mam.adapters.agents.codex import files, process
from mam.adapters.agents.codex import screen as codex_screen
from mam.adapters.agents.conversation_file import FileKind
from mam.adapters.agents.jsonl import UUID
from mam.adapters.agents.kind import HookEvent, Launch
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import IllegalTransition, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.agents.kind import Attachment, Request, Screen, ScreenState, Transcript
    from mam.core.activity import Evidence

_PERMISSIONS = {
    # It asks before it leaves its sandbox, so one that may write asks nothing inside the workspace.
    "ask": ["-a", "on-request", "-s", "read-only"],
    "auto": ["--approve-for-me"],
    "skip": ["--dangerously-bypass-approvals-and-sandbox"],
}
_STATES: dict[str, tuple[str | None, str | None]] = {
    "UserPromptSubmit": (WORKING, None),
    "PermissionRequest": (WAITING, "permission"),
    "PostToolUse": (WORKING, None),
    "Stop": (IDLE, None),
    "Interrupt": (IDLE, None),
}
_OPTIONS = Options(
    flags=(
        "--strict-config",
        "--oss",
        "--approve-for-me",
        "--dangerously-bypass-approvals-and-sandbox",
        "--dangerously-bypass-hook-trust",
        "--worktree",
        "--search",
        "--no-alt-screen",
        "--no-daemon",
        "-h",
        "--help",
        "-V",
        "--version",
    ),
    single=(
        "-c",
        "--config",
        "-m",
        "--model",
        "-p",
        "--profile",
        "-s",
        "--sandbox",
        "-a",
        "--ask-for-approval",
        "-C",
        "--cd",
        "--add-dir",
        "--enable",
        "--disable",
        "--remote",
        "--local-provider",
        "--remote-auth-token-env",
    ),
)
# Words that make it another program, or choose a conversation: that is mam's part.
_COMMANDS = (
    "agents",
    "exec",
    "e",
    "review",
    "login",
    "logout",
    "mcp",
    "plugin",
    "app-server",
    "remote-control",
    "completion",
    "update",
    "doctor",
    "sandbox",
    "debug",
    "apply",
    "a",
    "resume",
    "queue",
    "archive",
    "delete",
    "migrate-rollouts",
    "migrate-nfs-db",
    "unarchive",
    "fork",
    "cloud",
    "exec-server",
    "features",
    "help",
)
_CHOOSES = ("--last",)
# It runs what follows an exclamation mark in a shell, whatever blanks stand before it.
_SHELL = re.compile(r"\s*!")
# A list of files or skills opens for such a word, and takes the Enter.
_MENTION = re.compile(r"(?:\A|\s)[@$]\S*\Z")


class Codex(FileKind):
    """Launches `codex` and reads what it leaves."""

    name = "codex"
    exit_word = "/quit"
    can_resume = True
    can_fork = True
    has_hooks = True
    takes_permissions = True
    takes_model = True
    takes_mcp = True
    ready_by_hook = False
    has_state_file = True
    reads_screen = True
    interrupt_keys = ("Escape",)
    keeps_tabs = True
    dialog_settles = 0.3
    # An Enter within some 50 ms of typed text is lost; after a paste it was not.
    pause_before_enter = 0.1
    special_first = "/"
    known_versions = ("0.166.0",)
    packages = ("@openai/codex",)
    # A folder that is named must exist.
    config_variable = files.CONFIG
    # Enter while it works cuts the answer and joins the text to the same turn; Tab would queue it.
    queues = False

    def launch(self, request: Request) -> Launch:
        """Pass conversation, permissions and notify; what the caller passed comes last.

        Without --no-daemon a turn runs in a background server that outlives the session.
        """
        args = request.command[1:]
        _OPTIONS.refuse(args, _CHOOSES)
        _refuse_command(args)
        if request.resume or request.fork_of:
            args = _OPTIONS.without_prompt(args)
        argv = [request.program, *_conversation(request), "--no-daemon"]
        argv += _PERMISSIONS.get(request.permissions, [])
        if request.model:
            argv += ["-m", request.model]
        argv += _notify(request, args)
        if request.attachment:
            argv += ["-c", _mcp_server(request.attachment, asks=request.permissions == "ask")]
        if request.hook and request.settings.get("bypass_hook_trust"):
            argv += ["-c", f"hooks={_hooks(request.hook)}", "--dangerously-bypass-hook-trust"]
        without = () if files.CONFIG in request.stores else (files.CONFIG,)
        return Launch([*argv, *args], without=without)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """A rollout is written with the first message; one of another directory is resumed as well."""
        if files.config_folder(stores) is None:
            return None
        try:
            return files.find_rollout(conversation, stores) is not None
        except OSError:
            return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return those that began in this directory."""
        return files.began_in(workspace, stores)

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """The rollout and its shell snapshot; a fork lives on the rollout of what it was made of."""
        try:
            forks = files.forks_of(conversation, stores)
            found = files.paths_of(conversation, stores)
        except OSError:
            return []
        if forks:
            raise IllegalTransition(
                f"conversation {conversation} is the beginning of its fork {forks[0]}",
                hint="purge the fork first: without this one it cannot be read",
            )
        return found

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """Its database and its index have an entry each; it refuses while a fork or a process needs it."""
        return [program, "delete", "--force", conversation]

    def look(self, screen: Screen) -> ScreenState:
        """Find the box, else a dialog."""
        return codex_screen.look(screen)

    def read_title(self, title: str) -> str:
        """The title alone shows that an answer streams."""
        return codex_screen.read_title(title)

    def answer_keys(self, look: ScreenState, answer: str) -> list[str] | None:
        """The trust dialog stands on its Yes."""
        if (look.dialog, answer) != ("trust", "trust"):
            return None
        return ["Enter"] if look.detail == codex_screen.YES else ["Up"]

    def typed(self, text: str) -> str | None:
        """A space before a slash makes it a word, one after a mention closes the list of it."""
        if _SHELL.match(text):
            return None
        words = super().typed(text) or text
        return f"{words} " if _MENTION.search(words) else words

    def hear(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return that a turn was completed, as a mere wake-up; its hooks, where it has them, say more.

        The thread may be the hidden one that makes the title, and the rollout says the same at the same time.
        """
        if "hook_event_name" in payload:
            return _heard(payload)
        event, conversation = payload.get("type"), payload.get("thread-id")
        if event != "agent-turn-complete" or not isinstance(conversation, str):
            return None
        said = payload.get("input-messages")
        prompt = said[-1] if isinstance(said, list) and said and isinstance(said[-1], str) else None
        known = conversation if UUID.match(conversation) else None
        return HookEvent(event, None, None, known, prompt)

    def is_voice(self, pid: int, pane_pid: int) -> bool:
        """The program is a child of npm's wrapper; a Codex that a tool started has another wrapper."""
        return process.is_program_of(pid, pane_pid)

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """The conversation whose lock this very process holds, from before its first message."""
        return process.read_state(pid, start, stores)

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Every Codex locks its conversation, one that a person started too."""
        return process.holders(conversation, stores)

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """The end of the rollout."""
        try:
            path = files.find_rollout(conversation, stores)
        except OSError:
            return []
        said = files.read_turn(path, files.locked_since(conversation, stores)) if path else None
        return [said] if said else []

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """The rollout."""
        return files.find_rollout(conversation, stores)

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """The user's line is written at submission, also where it steers a turn that goes on."""
        return any(one.strip() == text.strip() for one in files.prompts(path, since))

    def read_turns(self, path: str, turns: int) -> Transcript | None:
        """What the rollout's end holds; a fork has no more than was said since."""
        from mam.adapters.agents.codex import transcript

        return transcript.read(path, turns)


def _hooks(command: str) -> str:
    """Return the hooks of a launch as TOML."""
    text = json.dumps(command, ensure_ascii=False)
    each = ",".join(f'{event}=[{{hooks=[{{type="command",command={text}}}]}}]' for event in _STATES)
    return "{" + each + "}"


def _heard(payload: Mapping[str, Any]) -> HookEvent | None:
    event = str(payload.get("hook_event_name"))
    if event not in _STATES:
        return None
    state, waiting_for = _STATES[event]
    conversation, prompt = payload.get("session_id"), payload.get("prompt")
    known = isinstance(conversation, str) and UUID.match(conversation)
    return HookEvent(
        event,
        state,
        waiting_for,
        str(conversation) if known else None,
        prompt if isinstance(prompt, str) else None,
    )


def _conversation(request: Request) -> list[str]:
    if request.fork_of:
        return ["fork", request.fork_of]
    return ["resume", request.conversation] if request.resume and request.conversation else []


def _refuse_command(args: list[str]) -> None:
    """Only the first word can be a command: after it they are those of a prompt."""
    first = next((words[0] for name, words in _OPTIONS.parts(args) if name in ("", REST)), None)
    if first in _COMMANDS:
        raise Usage(
            f"{first} is for mam to pass: it keeps track of the conversation",
            hint="mam resume NAME, mam fork NAME, or mam adopt",
        )


def _mcp_server(server: Attachment, *, asks: bool) -> str:
    """Return an MCP server of this launch as TOML; waiting for an agent takes longer than most tools."""
    env = ",".join(f"{name}={_toml(value)}" for name, value in server.env.items())
    facts = {
        "command": _toml(server.argv[0]),
        "args": "[" + ",".join(map(_toml, server.argv[1:])) + "]",
        "env": "{" + env + "}",
        "startup_timeout_sec": "60",
        "tool_timeout_sec": "3660",
    }
    if not asks:
        # The person who started it gave it these tools.
        facts["default_tools_approval_mode"] = _toml("approve")
    each = ",".join(f"{name}={value}" for name, value in facts.items())
    return f"mcp_servers.{server.name}={{{each}}}"


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _notify(request: Request, args: list[str]) -> list[str]:
    """Return the option that reports a finished turn; a notify of the caller's own stays as it is."""
    theirs = any(re.match(r"(?:--config=|-c)?\s*notify\s*=", word) for word in args)
    if not request.hook or theirs or files.has_notify(request.stores):
        return []
    value = json.dumps(hook_command.as_argv(request.hook), ensure_ascii=False)
    return ["-c", f"notify={value}"]
