"""The practice agent: everything an agent has, without a model."""

from __future__ import annotations

import json
import os
import re
import sys

from mam.adapters.agents.input_box import find_box, screen_lines
from mam.adapters.agents.jsonl import parse
from mam.adapters.agents.kind import HookEvent, Kind, Launch, ScreenState, Transcript, Turn
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
_BUSY = re.compile(r"esc to interrupt|Retrying in \d+s")
_DIALOGS = (
    ("trust", re.compile(r"Yes, I trust this folder")),
    ("limit", re.compile(r"limit reached")),
    ("permission", re.compile(r"Do you want to proceed\?")),
    ("question", re.compile(r"Enter to select")),
)
_CHOICE = re.compile(r"^ ?❯ ?(?:\d\. )?\S", re.MULTILINE)
_RESET = re.compile(r"resets (\S+)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


class Practice(Kind):
    """Launches `python -m mam.practice` and reads its screen, hooks and transcript."""

    name = "practice"
    exit_word = "/exit"
    chooses_id = True
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

    def program(self, command: list[str]) -> str:
        """The program is this very Python."""
        return sys.executable

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Transcripts lie below XDG_DATA_HOME."""
        home = environ.get("HOME") or os.path.expanduser("~")
        return {STORE: os.path.abspath(environ.get(STORE) or os.path.join(home, ".local", "share"))}

    def launch(self, request: Request) -> Launch:
        """Pass id, hooks and permissions for this launch only."""
        # -P: a json.py in the workspace is not ours to run.
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
        """The transcript is the record."""
        path = _transcript(conversation, stores)
        return os.path.isfile(path) if path else None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Read the list of workspaces that the agent keeps beside its transcripts."""
        found: dict[str, None] = {}
        try:
            with open(
                os.path.join(stores.get(STORE, ""), _FOLDER, "workspaces.jsonl"), encoding="utf-8"
            ) as file:
                for line in file:
                    entry = parse(line)
                    if entry.get("cwd") == workspace and isinstance(entry.get("id"), str):
                        found.pop(entry["id"], None)
                        found[entry["id"]] = None
        except (OSError, UnicodeDecodeError):
            return []
        return [one for one in reversed(found) if self.on_disk(one, workspace, stores)]

    def record_folder(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
        """One folder for all."""
        return os.path.join(stores[STORE], _FOLDER) if stores.get(STORE) else None

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """One file."""
        if not _transcript(conversation, stores):
            return []
        return [(stores[STORE], os.path.join(_FOLDER, f"{conversation}.jsonl"))]

    def look(self, screen: Screen) -> ScreenState:
        """Judge only the last screenful: dialogs first, because Enter in one of them approves."""
        lines = screen_lines(screen.text)
        box = find_box(lines)
        if box is not None:
            return ScreenState(WORKING if _BUSY.search(box.above) else IDLE, box=box.state())
        tail = "\n".join(lines[-16:])
        if _CHOICE.search(tail):
            for name, pattern in _DIALOGS:
                if pattern.search(tail):
                    reset = _RESET.search(tail) if name == "limit" else None
                    return ScreenState(WAITING, dialog=name, detail=reset[1] if reset else "")
        return ScreenState(BOOTING if "Starting…" in tail else UNKNOWN)

    def read_title(self, title: str) -> str:
        """The title ends in the state."""
        return _TITLES.get(title.rpartition(" · ")[2], UNKNOWN)

    def dialog_keys(self, dialog: str, answer: str) -> list[str] | None:
        """The trust dialog stands on its No."""
        return ["Down", "Enter"] if (dialog, answer) == ("trust", "trust") else None

    def identity(self, name: str, colour: str) -> list[str]:
        """The commands are named as Claude's."""
        return [f"/color {colour}", f"/rename {name}"]

    def has_identity(
        self, command: str, conversation: str, stores: Mapping[str, str], screen: Screen
    ) -> bool | None:
        """The name stands on the edge of the box; a colour is not seen in text."""
        word, _, name = command.partition(" ")
        if word != "/rename":
            return None
        return any(line.endswith(f"─ {name} ──") for line in screen_lines(screen.text))

    def typed(self, text: str) -> str | None:
        """A question mark alone shows its help, whatever blanks stand around it."""
        return None if text.strip() == "?" else super().typed(text)

    def hear(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """The events are named as Claude's."""
        event = payload.get("hook_event_name")
        if not isinstance(event, str) or event not in _EVENTS:
            return None
        state, waiting_for = _STATES.get(event, (None, None))
        conversation, prompt = payload.get("session_id"), payload.get("prompt")
        return HookEvent(
            event,
            state,
            waiting_for,
            conversation if isinstance(conversation, str) and _UUID.match(conversation) else None,
            prompt if isinstance(prompt, str) else None,
        )

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """A last line of the user's means that an answer is due."""
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
        return [Evidence("transcript", state, at, detail=f"last line is of the {entries[-1].get('type')}")]

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """The user's line is written at submission, before any answer."""
        try:
            entries = _entries(_transcript(conversation, stores) or "", since)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        return any(entry.get("type") == "user" and entry.get("text") == text for entry in entries)

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """One line per turn; there is no model and there are no tokens."""
        path = _transcript(conversation, stores)
        try:
            entries = _entries(path or "", max(0, os.path.getsize(path or "") - _TAIL))
        except OSError:
            return None
        said = [
            Turn(entry["type"], str(entry.get("text")), str(entry.get("at")))
            for entry in entries
            if entry.get("type") in ("user", "assistant")
        ]
        return Transcript(said[-turns:] if turns else [])

    def record_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Bytes of the transcript."""
        try:
            return os.path.getsize(_transcript(conversation, stores) or "")
        except OSError:
            return 0


def _transcript(conversation: str, stores: Mapping[str, str]) -> str | None:
    if not _UUID.match(conversation) or not stores.get(STORE):
        return None
    return os.path.join(stores[STORE], _FOLDER, f"{conversation}.jsonl")


def _entries(path: str, since: int) -> list[dict[str, Any]]:
    with open(path, "rb") as file:
        file.seek(since)
        lines = file.read().decode("utf-8", "replace").split("\n")
    return [entry for entry in map(parse, lines) if entry]
