"""Claude Code: driven by options of one launch, read by its hooks, state file, transcript and screen.

Nothing of the user's configuration is edited: ids, hooks and permissions are arguments of this launch.
"""

from __future__ import annotations

import json
import os
import re
from unicodedata import is_normalized

from mam.adapters.agents.arguments import Options
from mam.adapters.agents.claude import files
from mam.adapters.agents.claude import screen as claude_screen
from mam.adapters.agents.conversation_file import FileKind
from mam.adapters.agents.jsonl import UUID
from mam.adapters.agents.kind import HookEvent, Launch
from mam.adapters.agents.unsafe_width import go_astray
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import NotAllowed, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.agents.kind import Attachment, Request, Screen, ScreenState, Transcript
    from mam.core.activity import Evidence

_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
# A tool that only asks the person something; every other use of the event would cost a process per tool.
_MATCHERS = {"PreToolUse": "AskUserQuestion"}
_HOOK_SECONDS = 10
_STATES: dict[str, tuple[str, str | None]] = {
    "UserPromptSubmit": (WORKING, None),
    "PermissionRequest": (WAITING, "permission"),
    "PostToolUse": (WORKING, None),
    "Stop": (IDLE, None),
    "StopFailure": (IDLE, None),
}
_NOTICES: dict[str, tuple[str, str | None]] = {
    "permission_prompt": (WAITING, "permission"),
    "idle_prompt": (IDLE, None),
}
_ASKS = "AskUserQuestion"
# A slash and one word may be a command of anybody's making, and blanks before it do not help.
_COMMAND = re.compile(r"\s*/[^\s/]*(?:\s|\Z)")
# Alone in the box these end it, as they end an editor or a shell.
_LEAVES = re.compile(r"\s*(?:exit|quit|:q|:q!|:wq|:wq!)\s*\Z")
# It takes these out of what is pasted, and waits for another Enter.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_PERMISSIONS = {
    "ask": ["--permission-mode", "manual"],
    "auto": ["--permission-mode", "auto"],
    "skip": ["--dangerously-skip-permissions"],
}
# Options that choose a conversation, a directory, or another place to run: that is mam's part.
_CHOOSES = (
    "--session-id",
    "--resume",
    "-r",
    "--continue",
    "-c",
    "--fork-session",
    "--from-pr",
    "--teleport",
    "--no-session-persistence",
    "--worktree",
    "-w",
    "--tmux",
    "--bg",
    "--background",
    "--cloud",
    "--desktop",
)
_OPTIONS = Options(
    flags=(
        "--allow-dangerously-skip-permissions",
        "--ax-screen-reader",
        "--bare",
        "--brief",
        "--chrome",
        "--dangerously-skip-permissions",
        "--disable-slash-commands",
        "--ide",
        "--no-chrome",
        "--restricted",
        "--exclude-dynamic-system-prompt-sections",
        "--safe-mode",
        "--strict-mcp-config",
        "--verbose",
        "--print",
        "-p",
        "--help",
        "-h",
        "--version",
        "-v",
    ),
    single=(
        "--agent",
        "--agents",
        "--append-system-prompt",
        "--autocompact",
        "--debug-file",
        "--effort",
        "--fallback-model",
        "--model",
        "--name",
        "-n",
        "--permission-mode",
        "--plugin-dir",
        "--plugin-url",
        "--setting-sources",
        "--settings",
        "--system-prompt",
        "--system-prompt-snapshot",
        "--append-system-prompt-file",
        "--system-prompt-file",
        "--remote-control-session-name-prefix",
    ),
)
_HINT = "mam resume NAME, mam fork NAME, mam adopt, or mam create --worktree"
_SANDBOX = "IS_SANDBOX"


class Claude(FileKind):
    """Launches `claude` and reads what it leaves."""

    name = "claude"
    exit_word = "/exit"
    chooses_id = True
    can_resume = True
    can_fork = True
    has_hooks = True
    takes_permissions = True
    takes_model = True
    takes_mcp = True
    model_command = "/model"
    # SessionStart comes before the box, and an Enter in between is lost.
    ready_by_hook = False
    has_state_file = True
    reads_screen = True
    interrupt_keys = ("Escape",)
    keeps_indent = True
    dialog_settles = 0.3
    special_first = "/!"
    queues = True
    known_versions = ("2.1.325",)
    packages = ("@anthropic-ai/claude-code",)
    config_variable = files.CONFIG

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Name CLAUDE_CONFIG_DIR only if the caller did: setting it would move .claude.json as well."""
        # No store, but without it a session of root's that skips permissions could never be resumed.
        kept = {_SANDBOX: "1"} if os.geteuid() == 0 and environ.get(_SANDBOX) == "1" else {}
        return {**super().stores(environ), **kept}

    def launch(self, request: Request) -> Launch:
        """Pass id, hooks and permissions; what the caller passed comes last."""
        args, settings = _take_settings(request.command[1:])
        _OPTIONS.refuse(args, _CHOOSES, of="the conversation and of the directory", hint=_HINT)
        if request.resume or request.fork_of:
            args = _OPTIONS.without_prompt(args)
        if request.permissions == "skip":
            _check_skip(request.environ)
            settings["skipDangerousModePermissionPrompt"] = True
        if request.hook:
            _add_hooks(settings, request.hook)
        argv = [request.program, *_conversation(request), *_PERMISSIONS.get(request.permissions, [])]
        if request.model:
            argv += ["--model", request.model]
        if request.attachment:
            argv.append(f"--mcp-config={_mcp_config(request.attachment)}")
            if request.permissions != "ask":
                _allow(settings, f"mcp__{request.attachment.name}")
        if settings:
            argv += ["--settings", json.dumps(settings)]
        without = () if files.CONFIG in request.stores else (files.CONFIG,)
        return Launch([*argv, *args], without=without)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """A transcript in which something was said; Claude finds it from its own directory only."""
        path = files.transcript(conversation, workspace, stores)
        if path is None:
            return None
        try:
            return files.has_history(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return those that began in this directory."""
        return files.transcripts(workspace, stores)

    def record_folder(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
        """The folder of the workspace's transcripts."""
        path = files.transcript(conversation, workspace, stores)
        return os.path.dirname(path) if path else None

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """The transcript and what lies beside it; the user's list of prompts is shared and stays."""
        return files.paths_of(conversation, workspace, stores)

    def look(self, screen: Screen) -> ScreenState:
        """Find the box, else a dialog."""
        return claude_screen.look(screen)

    def answer_keys(self, look: ScreenState, answer: str) -> list[str] | None:
        """The trust dialog stands on its No, and is drawn anew shortly after it came: Enter only on Yes."""
        if (look.dialog, answer) != ("trust", "trust"):
            return None
        return ["Enter"] if look.detail == claude_screen.YES else ["Down"]

    def typed(self, text: str) -> str | None:
        """A space neutralises `!` and unknown commands only; a backslash at the end needs one after it."""
        if _COMMAND.match(text) or _LEAVES.match(text) or _INVISIBLE.search(text):
            return None
        words = super().typed(text) or text
        return f"{words} " if words.endswith("\\") else words

    def identity(self, name: str, colour: str) -> list[str]:
        """Neither calls the model; the name it is told of."""
        return [f"/color {colour}", f"/rename {name}"]

    def has_identity(
        self, command: str, conversation: str, stores: Mapping[str, str], screen: Screen
    ) -> bool | None:
        """Each is a line of the transcript, written at once."""
        try:
            path = files.find_transcript(conversation, stores)
            colour, name = files.identity(path) if path else (None, None)
        except OSError:
            return None
        word, _, wanted = command.partition(" ")
        return wanted == (colour if word == "/color" else name)

    def keeps(self, text: str) -> bool:
        """It puts accents together, and signs of several parts make it draw over its own box in tmux."""
        return super().keeps(text) and not go_astray(text) and is_normalized("NFC", text)

    def hear(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what an event says; one of a subagent says nothing about the session."""
        event = payload.get("hook_event_name")
        if not isinstance(event, str) or event not in _EVENTS:
            return None
        conversation, prompt = payload.get("session_id"), payload.get("prompt")
        if event == "SessionEnd" or not isinstance(conversation, str):
            # At /clear it still names the old one, after which the new one begins.
            conversation = None
        elif not UUID.match(conversation):
            conversation = None
        state, waiting_for = (None, None) if payload.get("agent_id") else _state_of(event, payload)
        return HookEvent(event, state, waiting_for, conversation, prompt if isinstance(prompt, str) else None)

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """The file of this very process; another's with the same pid says nothing."""
        return files.read_state(pid, start, stores)

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Every Claude keeps a state file, one that a person started too."""
        return files.holders(conversation, stores)

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """The end of the transcript."""
        path = files.transcript(conversation, workspace, stores)
        said = files.read_turn(path) if path else None
        return [said] if said else []

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """The transcript, whatever workspace the conversation began in."""
        return files.find_transcript(conversation, stores)

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """The user's line is written at submission; one in the queue has a line of its own."""
        return any(_plain(one) == _plain(text) for one in files.prompts(path, since))

    def read_turns(self, path: str, turns: int) -> Transcript | None:
        """The last 8 MB of the transcript."""
        from mam.adapters.agents.claude import transcript

        return transcript.read(path, turns)


def _conversation(request: Request) -> list[str]:
    chosen = request.conversation or ""
    if request.fork_of:
        return ["--resume", request.fork_of, "--fork-session", "--session-id", chosen]
    if not chosen:
        return []
    return ["--resume" if request.resume else "--session-id", chosen]


def _check_skip(environ: Mapping[str, str]) -> None:
    if os.geteuid() == 0 and environ.get(_SANDBOX) != "1":
        raise NotAllowed(
            "Claude Code refuses to skip permissions as root",
            hint="run it as another user, or say that this is a sandbox: IS_SANDBOX=1 mam …",
        )


def _add_hooks(settings: dict[str, Any], command: str) -> None:
    theirs = settings.get("hooks")
    hooks: dict[str, Any] = dict(theirs) if isinstance(theirs, dict) else {}
    entry = {"type": "command", "command": command, "timeout": _HOOK_SECONDS}
    for event in _EVENTS:
        group: dict[str, Any] = {"hooks": [entry]}
        if event in _MATCHERS:
            group["matcher"] = _MATCHERS[event]
        others = hooks.get(event)
        hooks[event] = [*(others if isinstance(others, list) else []), group]
    settings["hooks"] = hooks


def _mcp_config(server: Attachment) -> str:
    facts = {"command": server.argv[0], "args": server.argv[1:], "env": server.env}
    return json.dumps({"mcpServers": {server.name: facts}})


def _allow(settings: dict[str, Any], rule: str) -> None:
    """Let it use without asking what the person who started it gave it."""
    theirs = settings.get("permissions")
    permissions: dict[str, Any] = dict(theirs) if isinstance(theirs, dict) else {}
    others = permissions.get("allow")
    permissions["allow"] = [*(others if isinstance(others, list) else []), rule]
    settings["permissions"] = permissions


def _take_settings(args: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments without the caller's own --settings, and what these say: it takes just one."""
    rest: list[str] = []
    settings: dict[str, Any] = {}
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif name != "--settings":
            rest.append(word)
        else:
            settings |= _load_settings(value if equals else next(words, ""))
    return rest, settings


def _load_settings(text: str) -> dict[str, Any]:
    try:
        if not text.lstrip().startswith("{"):
            if not os.path.isabs(text):
                # A later resume is called from elsewhere.
                raise Usage("--settings names a file by a relative path", hint="name it by an absolute one")
            with open(text, encoding="utf-8") as file:
                text = file.read()
        found = json.loads(text)
    except (OSError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Usage("--settings is neither a JSON object nor a file with one")
    return found


def _state_of(event: str, payload: Mapping[str, Any]) -> tuple[str | None, str | None]:
    asks = payload.get("tool_name") == _ASKS
    if event == "SessionStart":
        # In the middle of a turn it says that the conversation was compacted.
        return (None, None) if payload.get("source") == "compact" else (IDLE, None)
    if event == "Notification":
        return _NOTICES.get(str(payload.get("notification_type")), (None, None))
    if event in ("PreToolUse", "PermissionRequest") and asks:
        return WAITING, "question"
    return _STATES.get(event, (None, None))


def _plain(text: str) -> str:
    """Return a prompt as it is compared: a paste turns tabs into spaces and drops blanks at the ends."""
    return text.replace("\t", "    ").replace("\r\n", "\n").strip()
