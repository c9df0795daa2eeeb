"""The kind of Claude Code: mam reads its hooks, state file, transcript and screen.

mam passes ids, hooks and permissions as arguments of one launch, and does not edit the user's configuration.
"""

from __future__ import annotations

import json
import os
import re

from mam.adapters.agents.ambiguous_width_characters import has_unsafe_width
from mam.adapters.agents.caller_arguments import Options
from mam.adapters.agents.claude import files, process_state, transcript
from mam.adapters.agents.jsonl import is_uuid
from mam.adapters.agents.kind import HookEvent, Launch
from mam.adapters.agents.kind_with_conversation_files import KindWithConversationFiles
from mam.adapters.agents.tool_request import tool_request
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
# The tool that asks the person a question. Without the matcher, the hook would run for every use of a tool.
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
_QUESTION_TOOL = "AskUserQuestion"
# A slash and one word may be a command, also one that a user defined. Spaces before it do not prevent that.
_COMMAND = re.compile(r"\s*/[^\s/]*(?:\s|\Z)")
# As the whole prompt, these end the program.
_EXIT_WORDS = re.compile(r"\s*(?:exit|quit|:q|:q!|:wq|:wq!)\s*\Z")
# Claude Code removes these from a paste, and then waits for another Enter.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_PERMISSIONS = {
    "ask": ["--permission-mode", "manual"],
    "auto": ["--permission-mode", "auto"],
    "skip": ["--dangerously-skip-permissions"],
}
# Options that choose a conversation, a directory, or another place to run: only mam may pass them.
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


class Claude(KindWithConversationFiles):
    """Launches `claude`, and reads its screen and its files."""

    name = "claude"
    exit_word = "/exit"
    takes_conversation_id = True
    can_resume = True
    can_fork = True
    has_hooks = True
    takes_permissions = True
    takes_model = True
    takes_mcp = True
    model_command = "/model"
    # The hook SessionStart runs before the input box is ready, and an Enter in between is lost.
    ready_by_hook = False
    has_state_file = True
    reads_screen = True
    interrupt_keys = ("Escape",)
    keeps_indent = True
    dialog_settle_seconds = 0.3
    special_first = "/!"
    queues = True
    records_queue = True
    folded_paste = r"\[Pasted text #\d+(?: \+(?P<breaks>\d+) lines)?\]"
    erase_key = "C-u"
    known_versions = ("2.1.300", "2.1.325")
    packages = ("@anthropic-ai/claude-code",)
    config_variable = files.CONFIG

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Keep CLAUDE_CONFIG_DIR only if the caller sets it: setting it would move .claude.json as well."""
        # This is no store. But root could not resume a session that skips permissions without it.
        sandbox = {_SANDBOX: "1"} if os.geteuid() == 0 and environ.get(_SANDBOX) == "1" else {}
        return {**super().stores(environ), **sandbox}

    def launch(self, request: Request) -> Launch:
        """Pass the id, the hooks and the permissions; the arguments of the caller come last."""
        args, settings = _take_settings(request.command[1:])
        _OPTIONS.refuse(args, _CHOOSES, of="the conversation and of the directory", hint=_HINT)
        if request.resume or request.fork_of:
            args = _OPTIONS.without_prompt(args)
        if request.permissions == "skip":
            _check_skip(request.environ)
            settings["skipDangerousModePermissionPrompt"] = True
        if request.hook:
            _add_hooks(settings, request.hook)
        argv = [request.program, *_conversation_options(request), *_PERMISSIONS.get(request.permissions, [])]
        if request.model:
            argv += ["--model", request.model]
        if request.attachment:
            argv.append(f"--mcp-config={_mcp_config(request.attachment)}")
            if request.permissions != "ask":
                _allow(settings, f"mcp__{request.attachment.name}")
        if settings:
            argv += ["--settings", json.dumps(settings)]
        unset = () if files.CONFIG in request.stores else (files.CONFIG,)
        return Launch([*argv, *args], unset=unset)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for a transcript with a message; Claude Code finds it only in the folder of the workspace."""
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
        """Return the conversations that began in this directory."""
        return files.transcripts(workspace, stores)

    def transcript_folder(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
        """Return the folder with the transcripts of the workspace."""
        path = files.transcript(conversation, workspace, stores)
        return os.path.dirname(path) if path else None

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the transcript and the other files of the conversation; the shared prompt history stays."""
        return files.paths_of(conversation, workspace, stores)

    def read_screen(self, screen: Screen) -> ScreenState:
        """Look for the input box; without one, look for a dialog."""
        from mam.adapters.agents.claude import screen as claude_screen

        return claude_screen.read_screen(screen)

    def answer_keys(self, screen_state: ScreenState, answer: str) -> list[str] | None:
        """Move to Yes first: the trust dialog opens with the pointer on No, and is soon drawn again."""
        from mam.adapters.agents.claude import screen as claude_screen

        if (screen_state.dialog, answer) != ("trust", "trust"):
            return None
        return ["Enter"] if screen_state.detail == claude_screen.YES else ["Down"]

    def text_to_type(self, text: str) -> str | None:
        """Add a space before `!` and unknown commands, and after a backslash at the end.

        A space does not neutralise a known command. A backslash before Enter would make a new line.
        """
        if _COMMAND.match(text) or _EXIT_WORDS.match(text) or _INVISIBLE.search(text):
            return None
        escaped = super().text_to_type(text) or text
        return f"{escaped} " if escaped.endswith("\\") else escaped

    def identity_commands(self, name: str, colour: str) -> list[str]:
        """Neither command calls the model; Claude Code tells the model its new name."""
        return [f"/color {colour}", f"/rename {name}"]

    def identity_took_effect(
        self, command: str, conversation: str, stores: Mapping[str, str], screen: Screen
    ) -> bool | None:
        """Claude Code writes each command into the transcript at once."""
        try:
            path = files.find_transcript(conversation, stores)
            colour, name = transcript.identity(path) if path else (None, None)
        except OSError:
            return None
        word, _, value = command.partition(" ")
        return value == (colour if word == "/color" else name)

    def keeps_unchanged(self, text: str) -> bool:
        """Claude Code composes accents, and in tmux signs of several parts damage its input box."""
        from unicodedata import is_normalized

        return super().keeps_unchanged(text) and not has_unsafe_width(text) and is_normalized("NFC", text)

    def read_hook(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what an event reports; an event of a subagent does not change the session's activity."""
        event = payload.get("hook_event_name")
        if not isinstance(event, str) or event not in _EVENTS:
            return None
        conversation, prompt = payload.get("session_id"), payload.get("prompt")
        if event == "SessionEnd" or not isinstance(conversation, str):
            # At /clear this event still names the old conversation, after which the new one begins.
            conversation = None
        elif not is_uuid(conversation):
            conversation = None
        state, waiting_for = (None, None) if payload.get("agent_id") else _state_of(event, payload)
        asks = tool_request(payload) if state == WAITING else None
        return HookEvent(
            event, state, waiting_for, conversation, prompt if isinstance(prompt, str) else None, asks
        )

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Read the state file of exactly this process, not that of an earlier one with the same pid."""
        return process_state.read_state(pid, start, stores)

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Read the state files: every Claude Code has one, also one that a person started."""
        return process_state.holders(conversation, stores)

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """Read the end of the transcript."""
        path = files.transcript(conversation, workspace, stores)
        evidence = transcript.read_turn(path) if path else None
        return [evidence] if evidence else []

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """Return the transcript, whatever workspace the conversation began in."""
        return files.find_transcript(conversation, stores)

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """Claude Code writes the user's line at submission, and another line for a queued prompt."""
        return any(_normalised(prompt) == _normalised(text) for prompt in transcript.prompts(path, since))

    def count_prompts(self, text: str, conversation: str, path: str, since: int) -> int:
        """A queued prompt has a line in the queue, and a line of the user once its turn begins."""
        taken = transcript.prompts(path, since, queued=False)
        count = sum(_normalised(prompt) == _normalised(text) for prompt in taken)
        return count or int(self.has_prompt(text, conversation, path, since))

    def count_taken(self, text: str, conversation: str, stores: Mapping[str, str], since: int) -> int | None:
        """A queued prompt begins a turn, or the running turn takes it in."""
        try:
            path = self.find_record(conversation, stores)
            if path is None:
                return 0
            places = (
                transcript.prompts(path, since, queued=False),
                transcript.prompts_in_running_turn(path, since),
            )
            wanted = _normalised(text)
            # Not the sum: no prompt may count twice.
            return max(sum(_normalised(prompt) == wanted for prompt in place) for place in places)
        except OSError:
            return None

    def read_turns(self, path: str, turns: int) -> Transcript | None:
        """Read the last 8 MB of the transcript."""
        return transcript.read(path, turns)


def _conversation_options(request: Request) -> list[str]:
    conversation = request.conversation or ""
    if request.fork_of:
        return ["--resume", request.fork_of, "--fork-session", "--session-id", conversation]
    if not conversation:
        return []
    return ["--resume" if request.resume else "--session-id", conversation]


def _check_skip(environ: Mapping[str, str]) -> None:
    if os.geteuid() == 0 and environ.get(_SANDBOX) != "1":
        raise NotAllowed(
            "Claude Code refuses to skip permissions as root",
            hint="run it as another user, or declare this machine a sandbox: IS_SANDBOX=1 mam …",
        )


def _add_hooks(settings: dict[str, Any], command: str) -> None:
    caller_hooks = settings.get("hooks")
    hooks: dict[str, Any] = dict(caller_hooks) if isinstance(caller_hooks, dict) else {}
    entry = {"type": "command", "command": command, "timeout": _HOOK_SECONDS}
    for event in _EVENTS:
        group: dict[str, Any] = {"hooks": [entry]}
        if event in _MATCHERS:
            group["matcher"] = _MATCHERS[event]
        groups = hooks.get(event)
        hooks[event] = [*(groups if isinstance(groups, list) else []), group]
    settings["hooks"] = hooks


def _mcp_config(server: Attachment) -> str:
    facts = {"command": server.argv[0], "args": server.argv[1:], "env": server.env}
    return json.dumps({"mcpServers": {server.name: facts}})


def _allow(settings: dict[str, Any], rule: str) -> None:
    """Allow a tool without a question: the person who started the session gave it to the agent."""
    caller_permissions = settings.get("permissions")
    permissions: dict[str, Any] = dict(caller_permissions) if isinstance(caller_permissions, dict) else {}
    rules = permissions.get("allow")
    permissions["allow"] = [*(rules if isinstance(rules, list) else []), rule]
    settings["permissions"] = permissions


def _take_settings(args: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments without --settings, and the settings: Claude Code takes only one --settings."""
    rest: list[str] = []
    settings: dict[str, Any] = {}
    remaining = iter(args)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if argument == "--":
            rest += [argument, *remaining]
        elif name != "--settings":
            rest.append(argument)
        else:
            settings |= _load_settings(value if equals else next(remaining, ""))
    return rest, settings


def _load_settings(text: str) -> dict[str, Any]:
    try:
        if not text.lstrip().startswith("{"):
            if not os.path.isabs(text):
                # A later resume may run in another directory.
                raise Usage("--settings names a file by a relative path", hint="use an absolute path")
            with open(text, encoding="utf-8") as file:
                text = file.read()
        settings = json.loads(text)
    except (OSError, ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise Usage("--settings is neither a JSON object nor a file with one")
    return settings


def _state_of(event: str, payload: Mapping[str, Any]) -> tuple[str | None, str | None]:
    is_question = payload.get("tool_name") == _QUESTION_TOOL
    if event == "SessionStart":
        # The source `compact` can come in the middle of a turn: the conversation was compacted.
        return (None, None) if payload.get("source") == "compact" else (IDLE, None)
    if event == "Notification":
        return _NOTICES.get(str(payload.get("notification_type")), (None, None))
    if event in ("PreToolUse", "PermissionRequest") and is_question:
        return WAITING, "question"
    return _STATES.get(event, (None, None))


def _normalised(text: str) -> str:
    """Return a prompt for a comparison: a paste replaces tabs with spaces and strips spaces at both ends."""
    return text.replace("\t", "    ").replace("\r\n", "\n").strip()
