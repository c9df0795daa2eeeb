"""The kind of Codex: mam reads its locks, rollout, title and screen.

mam passes everything as options of one launch, and does not edit the user's configuration. Codex runs hooks
only if the user also trusts those of the repository. So mam uses no hooks unless the operator allows it: the
rollout reports as much.
"""

from __future__ import annotations

import json
import re

from mam.adapters.agents import hook_command
from mam.adapters.agents.caller_arguments import REST, Options
from mam.adapters.agents.codex import files, process
from mam.adapters.agents.jsonl import is_uuid
from mam.adapters.agents.kind import HookEvent, Launch
from mam.adapters.agents.kind_with_conversation_files import KindWithConversationFiles
from mam.adapters.agents.tool_request import tool_request
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import IllegalTransition, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.agents.kind import Attachment, Request, Screen, ScreenState, Transcript
    from mam.core.activity import Evidence

_PERMISSIONS = {
    # Codex asks only before it leaves its sandbox. A sandbox that may write would never ask in the workspace.
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
# Subcommands that run something else, or choose a conversation: only mam may pass them.
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
# Codex runs the text after an exclamation mark in a shell, even with spaces before the mark.
_SHELL = re.compile(r"\s*!")
# Such a word opens a list of files or skills, and the list takes the Enter.
_MENTION = re.compile(r"(?:\A|\s)[@$]\S*\Z")


class Codex(KindWithConversationFiles):
    """Launches `codex`, and reads its screen and its files."""

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
    dialog_settle_seconds = 0.3
    # An Enter within about 50 ms after typed text is lost. After a paste it was not lost.
    pause_before_enter = 0.1
    special_first = "/"
    folded_paste = r"\[Pasted Content (?P<chars>\d+) chars\]"
    erase_key = "C-c"
    known_versions = ("0.161.0", "0.166.0")
    packages = ("@openai/codex",)
    # A folder that this variable names must exist.
    config_variable = files.CONFIG
    # In a working Codex, Enter interrupts the answer and adds the text to the same turn; Tab would queue it.
    queues = False

    def launch(self, request: Request) -> Launch:
        """Pass the conversation, the permissions and notify; the arguments of the caller come last.

        Without --no-daemon, turns run in a background server that outlives the session.
        """
        args = request.command[1:]
        _OPTIONS.refuse(args, _CHOOSES)
        _refuse_command(args)
        if request.resume or request.fork_of:
            args = _OPTIONS.without_prompt(args)
        argv = [request.program, *_conversation_arguments(request), "--no-daemon"]
        argv += _PERMISSIONS.get(request.permissions, [])
        if request.model:
            argv += ["-m", request.model]
        argv += _notify(request, args)
        if request.attachment:
            argv += ["-c", _mcp_server(request.attachment, asks=request.permissions == "ask")]
        if request.hook and request.settings.get("bypass_hook_trust"):
            argv += ["-c", f"hooks={_hooks(request.hook)}", "--dangerously-bypass-hook-trust"]
        unset = () if files.CONFIG in request.stores else (files.CONFIG,)
        return Launch([*argv, *args], unset=unset)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for the rollout. Codex writes it with the first message, and resumes it from any directory."""
        if files.config_folder(stores) is None:
            return None
        try:
            return files.find_rollout(conversation, stores) is not None
        except OSError:
            return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the conversations that began in this directory."""
        return files.conversations_in(workspace, stores)

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the rollout and its shell snapshot; refuse if a fork needs the rollout."""
        try:
            forks = files.forks_of(conversation, stores)
            paths = files.paths_of(conversation, stores)
        except OSError:
            return []
        if forks:
            raise IllegalTransition(
                f"the fork {forks[0]} begins with conversation {conversation}",
                hint="purge the fork first: Codex cannot read it without this conversation",
            )
        return paths

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """Codex also has entries in a database and an index; it refuses if a fork or a process needs them."""
        return [program, "delete", "--force", conversation]

    def read_screen(self, screen: Screen) -> ScreenState:
        """Look for the input box; without one, look for a dialog."""
        from mam.adapters.agents.codex import screen as codex_screen

        return codex_screen.read_screen(screen)

    def read_title(self, title: str) -> str:
        """Only the title shows that an answer is streaming."""
        from mam.adapters.agents.codex import screen as codex_screen

        return codex_screen.read_title(title)

    def answer_keys(self, screen_state: ScreenState, answer: str) -> list[str] | None:
        """The trust dialog opens with the pointer on Yes, its first option."""
        from mam.adapters.agents.codex import screen as codex_screen

        if (screen_state.dialog, answer) != ("trust", "trust"):
            return None
        return ["Enter"] if screen_state.detail == codex_screen.YES else ["Up"]

    def text_to_type(self, text: str) -> str | None:
        """Add a space before a slash, so that it is no command, and after a mention, to close its list."""
        if _SHELL.match(text):
            return None
        escaped = super().text_to_type(text) or text
        return f"{escaped} " if _MENTION.search(escaped) else escaped

    def read_hook(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a hook reports, or that `notify` reported the end of a turn.

        The end of a turn has no state here: its thread may be the hidden one that makes the title, and the
        rollout records the end at the same time. The report only makes mam look again.
        """
        if "hook_event_name" in payload:
            return _read_hook_event(payload)
        event, conversation = payload.get("type"), payload.get("thread-id")
        if event != "agent-turn-complete" or not isinstance(conversation, str):
            return None
        prompts = payload.get("input-messages")
        last = prompts[-1] if isinstance(prompts, list) and prompts else None
        prompt = last if isinstance(last, str) else None
        return HookEvent(event, None, None, conversation if is_uuid(conversation) else None, prompt)

    def is_agent_process(self, pid: int, pane_pid: int) -> bool:
        """Accept the child of npm's wrapper; a Codex that a tool started has another wrapper."""
        return process.is_program_of(pid, pane_pid)

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Return the conversation whose lock this process holds; it has the lock before its first message."""
        return process.read_state(pid, start, stores)

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Read the locks: every Codex locks its conversation, also one that a person started."""
        return process.holders(conversation, stores)

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """Read the end of the rollout."""
        try:
            path = files.find_rollout(conversation, stores)
        except OSError:
            return []
        evidence = files.read_turn(path, files.locked_since(conversation, stores)) if path else None
        return [evidence] if evidence else []

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """Return the rollout."""
        return files.find_rollout(conversation, stores)

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """Codex writes the user's line at submission, also if it joins a running turn."""
        return any(prompt.strip() == text.strip() for prompt in files.prompts(path, since))

    def count_prompts(self, text: str, conversation: str, path: str, since: int) -> int:
        """Each submission has one line."""
        return sum(prompt.strip() == text.strip() for prompt in files.prompts(path, since))

    def read_turns(self, path: str, turns: int) -> Transcript | None:
        """Read the end of the rollout; that of a fork holds only the messages since the fork."""
        from mam.adapters.agents.codex import transcript

        return transcript.read(path, turns)


def _hooks(command: str) -> str:
    """Return the hooks of a launch as TOML."""
    text = json.dumps(command, ensure_ascii=False)
    each = ",".join(f'{event}=[{{hooks=[{{type="command",command={text}}}]}}]' for event in _STATES)
    return "{" + each + "}"


def _read_hook_event(payload: Mapping[str, Any]) -> HookEvent | None:
    event = str(payload.get("hook_event_name"))
    if event not in _STATES:
        return None
    state, waiting_for = _STATES[event]
    conversation, prompt = payload.get("session_id"), payload.get("prompt")
    is_id = isinstance(conversation, str) and is_uuid(conversation)
    return HookEvent(
        event,
        state,
        waiting_for,
        str(conversation) if is_id else None,
        prompt if isinstance(prompt, str) else None,
        tool_request(payload) if state == WAITING else None,
    )


def _conversation_arguments(request: Request) -> list[str]:
    if request.fork_of:
        return ["fork", request.fork_of]
    return ["resume", request.conversation] if request.resume and request.conversation else []


def _refuse_command(args: list[str]) -> None:
    """Refuse a subcommand: only the first word can be one, and the others belong to a prompt."""
    first = next((part[0] for name, part in _OPTIONS.parts(args) if name in ("", REST)), None)
    if first in _COMMANDS:
        raise Usage(
            f"only mam may pass {first}: it keeps track of the conversation",
            hint="mam resume NAME, mam fork NAME, or mam adopt",
        )


def _mcp_server(server: Attachment, *, asks: bool) -> str:
    """Return an MCP server of this launch as TOML; a tool that waits for an agent needs a long timeout."""
    env = ",".join(f"{name}={_toml(value)}" for name, value in server.env.items())
    facts = {
        "command": _toml(server.argv[0]),
        "args": "[" + ",".join(map(_toml, server.argv[1:])) + "]",
        "env": "{" + env + "}",
        "startup_timeout_sec": "60",
        "tool_timeout_sec": "3660",
    }
    if not asks:
        # The person who started the session gave these tools to the agent.
        facts["default_tools_approval_mode"] = _toml("approve")
    each = ",".join(f"{name}={value}" for name, value in facts.items())
    return f"mcp_servers.{server.name}={{{each}}}"


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _notify(request: Request, args: list[str]) -> list[str]:
    """Return the option that makes Codex report the end of a turn; the caller's own notify has priority."""
    has_own = any(re.match(r"(?:--config=|-c)?\s*notify\s*=", word) for word in args)
    if not request.hook or has_own or files.has_notify(request.stores):
        return []
    value = json.dumps(hook_command.as_argv(request.hook), ensure_ascii=False)
    return ["-c", f"notify={value}"]
