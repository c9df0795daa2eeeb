"""The kind of the practice agent: mam's own agent without a model, for tests and the demo."""

from __future__ import annotations

import os
import sys

from mam.adapters.agents.jsonl import is_uuid, parse
from mam.adapters.agents.kind import HookEvent, Kind, Launch, ScreenState, Transcript, Turn
from mam.adapters.system import json_text as json
from mam.core.activity import BOOTING, IDLE, UNKNOWN, WAITING, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.agents.kind import Request, Screen

STORE = "XDG_DATA_HOME"
_FOLDER = "mam-practice"
_TAIL = 64 * 1024
_EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PermissionRequest",
    "PostToolUse",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
_STATES: dict[str, tuple[str, str | None]] = {
    "SessionStart": (IDLE, None),
    "UserPromptSubmit": (WORKING, None),
    "PermissionRequest": (WAITING, "permission"),
    "PostToolUse": (WORKING, None),
    "Stop": (IDLE, None),
    "StopFailure": (IDLE, None),
}
_TITLES = {"ready": IDLE, "working": WORKING, "waiting": WAITING}
# Patterns are compiled when they are first used: a listing reads no screen.
_BUSY = r"esc to interrupt|Retrying in \d+s"
_DIALOGS = (
    ("trust", "Yes, I trust this folder"),
    ("limit", "limit reached"),
    ("permission", "Do you want to proceed?"),
    ("question", "Enter to select"),
)
_CHOICE = r"(?m)^ ?❯ ?(?:\d\. )?\S"
_RESET = r"resets (\S+)"
# The column in which the text of the input box begins.
_TEXT_COLUMN = 2


class Practice(Kind):
    """Launches `python -m mam.practice` and reads its screen, hooks and transcript."""

    name = "practice"
    exit_word = "/exit"
    takes_conversation_id = True
    can_resume = True
    can_fork = True
    has_hooks = True
    takes_permissions = True
    takes_model = True
    reads_screen = True
    interrupt_keys = ("Escape",)
    keeps_indent = True
    special_first = "/"
    queues = True
    folded_paste = r"\[Pasted text #\d+ \+(?P<breaks>\d+) lines\]"
    erase_key = "C-u"

    def program(self, command: list[str]) -> str:
        """Run the Python that runs mam."""
        return sys.executable

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The practice agent keeps its transcripts below XDG_DATA_HOME."""
        home = environ.get("HOME") or os.path.expanduser("~")
        return {STORE: os.path.abspath(environ.get(STORE) or os.path.join(home, ".local", "share"))}

    def launch(self, request: Request) -> Launch:
        """Pass the conversation, the hooks and the permissions as arguments."""
        # -P keeps Python from importing a json.py of the workspace.
        argv = [request.program, "-P", "-m", "mam.practice", *request.command[1:]]
        if request.fork_of:
            argv += [
                "--resume",
                request.fork_of,
                "--fork-session",
                "--session-id",
                request.conversation or "",
            ]
        elif request.conversation:
            argv += ["--resume" if request.resume else "--session-id", request.conversation]
        if request.hook:
            argv += ["--settings", json.dumps({"hooks": dict.fromkeys(_EVENTS, request.hook)})]
        if request.permissions != "default":
            argv += ["--permissions", request.permissions]
        if request.model:
            argv += ["--model", request.model]
        if request.role:
            argv += ["--name", request.role]
        return Launch(argv, {STORE: request.stores.get(STORE) or self.stores(request.environ)[STORE]})

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for the transcript file."""
        path = _transcript(conversation, stores)
        return os.path.isfile(path) if path else None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Read the list of workspaces that the practice agent keeps beside its transcripts."""
        newest_last: dict[str, None] = {}
        try:
            with open(
                os.path.join(stores.get(STORE, ""), _FOLDER, "workspaces.jsonl"), encoding="utf-8"
            ) as file:
                for line in file:
                    entry = parse(line)
                    if entry.get("cwd") == workspace and isinstance(entry.get("id"), str):
                        newest_last.pop(entry["id"], None)
                        newest_last[entry["id"]] = None
        except (OSError, UnicodeDecodeError):
            return []
        return [ident for ident in reversed(newest_last) if self.on_disk(ident, workspace, stores)]

    def transcript_folder(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
        """All conversations share one folder."""
        return os.path.join(stores[STORE], _FOLDER) if stores.get(STORE) else None

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """A conversation has one file."""
        if not _transcript(conversation, stores):
            return []
        return [(stores[STORE], os.path.join(_FOLDER, f"{conversation}.jsonl"))]

    def read_screen(self, screen: Screen) -> ScreenState:
        """Look for the input box; without one, look for a dialog."""
        import re

        from mam.adapters.agents.input_box import find_box, read_contents, screen_lines

        lines = screen_lines(screen.text)
        box = find_box(lines)
        if box is not None:
            contents = read_contents(screen, box.top, box.bottom, _TEXT_COLUMN)
            return ScreenState(WORKING if re.search(_BUSY, box.above) else IDLE, contents=contents)
        tail = "\n".join(lines[-16:])
        if re.search(_CHOICE, tail):
            for name, words in _DIALOGS:
                if words in tail:
                    reset = re.search(_RESET, tail) if name == "limit" else None
                    return ScreenState(WAITING, dialog=name, detail=reset[1] if reset else "")
        return ScreenState(BOOTING if "Starting…" in tail else UNKNOWN)

    def read_title(self, title: str) -> str:
        """The title ends with the activity."""
        return _TITLES.get(title.rpartition(" · ")[2], UNKNOWN)

    def dialog_keys(self, dialog: str, answer: str) -> list[str] | None:
        """The pointer of the trust dialog is on No, and Yes is below it."""
        return ["Down", "Enter"] if (dialog, answer) == ("trust", "trust") else None

    def identity_commands(self, name: str, colour: str) -> list[str]:
        """The commands have the names that Claude Code uses."""
        return [f"/color {colour}", f"/rename {name}"]

    def identity_took_effect(
        self, command: str, conversation: str, stores: Mapping[str, str], screen: Screen
    ) -> bool | None:
        """The name is on the edge of the input box; plain text does not show a colour."""
        word, _, name = command.partition(" ")
        if word != "/rename":
            return None
        from mam.adapters.agents.input_box import screen_lines

        return any(line.endswith(f"─ {name} ──") for line in screen_lines(screen.text))

    def text_to_type(self, text: str) -> str | None:
        """A single question mark shows the help, with or without spaces around it."""
        return None if text.strip() == "?" else super().text_to_type(text)

    def read_hook(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """The events have the names that Claude Code uses."""
        from mam.adapters.agents.tool_request import tool_request

        event = payload.get("hook_event_name")
        if not isinstance(event, str) or event not in _EVENTS:
            return None
        state, waiting_for = _STATES.get(event, (None, None))
        conversation, prompt = payload.get("session_id"), payload.get("prompt")
        return HookEvent(
            event,
            state,
            waiting_for,
            conversation if isinstance(conversation, str) and is_uuid(conversation.lower()) else None,
            prompt if isinstance(prompt, str) else None,
            tool_request(payload) if state == WAITING else None,
        )

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """The agent is working while the last line of the transcript is the user's."""
        path = _transcript(conversation, stores)
        try:
            size = os.path.getsize(path or "")
            at = os.path.getmtime(path or "")
            entries = _entries(path or "", max(0, size - _TAIL))
        except OSError:
            return []
        if not entries:
            return []
        state = WORKING if entries[-1].get("type") == "user" else IDLE
        return [Evidence("transcript", state, at, detail=f"the last line is the {entries[-1].get('type')}'s")]

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """The agent writes the user's line at submission, before any answer."""
        count = self.count_submitted(text, conversation, stores, since)
        return None if count is None else count > 0

    def count_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> int | None:
        """Each submission has one line of the user."""
        try:
            entries = _entries(_transcript(conversation, stores) or "", since)
        except FileNotFoundError:
            return 0
        except OSError:
            return None
        return sum(1 for entry in entries if entry.get("type") == "user" and entry.get("text") == text)

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """The transcript has one line per turn, and neither a model nor tokens."""
        path = _transcript(conversation, stores)
        try:
            entries = _entries(path or "", max(0, os.path.getsize(path or "") - _TAIL))
        except OSError:
            return None
        messages = [
            Turn(entry["type"], str(entry.get("text")), str(entry.get("at")))
            for entry in entries
            if entry.get("type") in ("user", "assistant")
        ]
        return Transcript(messages[-turns:] if turns else [])

    def transcript_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Return the bytes of the transcript."""
        try:
            return os.path.getsize(_transcript(conversation, stores) or "")
        except OSError:
            return 0


def _transcript(conversation: str, stores: Mapping[str, str]) -> str | None:
    if not is_uuid(conversation.lower()) or not stores.get(STORE):
        return None
    # Not os.path.join, which takes longer than the look at the file; a listing has a path for each session.
    return f"{stores[STORE]}/{_FOLDER}/{conversation}.jsonl"


def _entries(path: str, since: int) -> list[dict[str, Any]]:
    with open(path, "rb") as file:
        file.seek(since)
        lines = file.read().decode("utf-8", "replace").split("\n")
    return [entry for entry in map(parse, lines) if entry]
