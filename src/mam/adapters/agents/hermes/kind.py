"""Hermes Agent: its classic interface, read by its screen and its database.

It has hooks, but only from the user's own configuration, which is not ours to edit. What is mam's stands in
the arguments and the environment of one launch: above all a source of its own for each session, which the
program writes beside every conversation that the session begins.
"""

from __future__ import annotations

import re
import secrets

from mam.adapters.agents.hermes import files
from mam.adapters.agents.hermes import screen as hermes_screen
from mam.adapters.agents.kind import Kind, Launch
from mam.adapters.agents.read_only_sqlite import Unreadable
from mam.core.activity import UNKNOWN, Evidence
from mam.core.errors import NotAllowed, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Request, Screen, ScreenState, Transcript

# Options that choose a conversation or a home: that is mam's part. Hermes takes any beginning of them.
_OURS = ("--resume", "--continue", "--source", "--profile")
_OURS_SHORT = ("-r", "-c", "-p")
_WHY = {
    "--source": "mam tells its sessions apart by it",
    "--profile": "name the profile's folder in HERMES_HOME instead: --env HERMES_HOME=…/profiles/NAME",
    "-p": "name the profile's folder in HERMES_HOME instead: --env HERMES_HOME=…/profiles/NAME",
}
# These a person may have set as well: they are taken away only inside of a Hermes.
_INHERITED_INSIDE = ("HERMES_YOLO_MODE", "TERMINAL_CWD")
# At the beginning of a text a slash is a command, and the path of a file is replaced by the file.
_COMMAND_OR_FILE = re.compile(r"""\s*['"]?(?:/|~|\.{1,2}/|file://|[A-Za-z]:[\\/])""")
# Anywhere in it, these are replaced by what they name.
_REFERENCE = re.compile(r"(?<![\w/])@(?:(?:diff|staged)\b|(?:file|folder|git|url):\S)")


class Hermes(Kind):
    """Launches `hermes chat --cli` and reads what it leaves."""

    name = "hermes"
    exit_word = "/exit"
    can_resume = True
    takes_permissions = True
    takes_model = True
    has_state_file = True
    counts_for_all = True
    reads_screen = True
    refuse_keys = ("C-c",)
    interrupts_apart = 2.5
    opens_own_words = True
    keeps_tabs = True
    known_versions = ("0.19.0",)

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The home of the chosen profile."""
        return {files.HOME: files.home_of(environ)}

    def marks(self) -> dict[str, str]:
        """A source that no other session has: Hermes writes it down with each conversation."""
        return {files.SOURCE: f"mam-{secrets.token_hex(4)}"}

    def launch(self, request: Request) -> Launch:
        """Pass the conversation and permissions; what the caller passed comes last."""
        args = _checked(request.command[1:])
        home = request.stores.get(files.HOME) or files.home_of(request.environ)
        argv = [request.program]
        if not files.is_profile(home):
            # Else a profile that the user chose since then would lead to another home.
            argv += ["-p", "default"]
        argv += ["chat", "--cli"]
        if request.resume and request.conversation:
            argv += ["--resume", request.conversation, "--no-restore-cwd"]
        argv += _permissions(request.permissions)
        if request.model:
            argv += ["--model", request.model]
        is_inside = "HERMES_SESSION_ID" in request.environ
        return Launch([*argv, *args], without=_INHERITED_INSIDE if is_inside else ())

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """A row in the database with a message; Hermes finds it from any directory."""
        return files.has_history(conversation, stores)

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """The session's own by its source; else those that a person began in this directory."""
        return files.begun_in(workspace, stores)

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """All conversations share a database. Hermes takes parts of an id: only a whole one is passed."""
        if not files.ID.match(conversation):
            return None
        return [program, "sessions", "delete", conversation, "--yes"]

    def look(self, screen: Screen) -> ScreenState:
        """Read the sign before the prompt's arrow."""
        return hermes_screen.look(screen)

    def typed(self, text: str) -> str | None:
        """Commands, paths at the beginning and references anywhere would not arrive as they are."""
        return None if _COMMAND_OR_FILE.match(text) or _REFERENCE.search(text) else text

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """The conversation, by the session's source; the database says nothing about the activity now."""
        found = files.current(stores)
        if found is None:
            return None
        return Evidence("state-file", UNKNOWN, 0.0, detail=f"conversation {found}"), found

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """The last message."""
        said = files.read_turn(conversation, stores) if files.ID.match(conversation) else None
        return [said] if said else []

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """The user's message is written when the turn begins."""
        mine = files.current(stores) or conversation
        try:
            return any(one.strip() == text.strip() for one in files.prompts(mine, stores, since))
        except Unreadable:
            return None

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """The messages of the conversation."""
        return files.read_transcript(conversation, stores, turns)

    def record_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Messages are numbered across all conversations."""
        return files.last_message(stores)


def _checked(args: list[str]) -> list[str]:
    """Return the caller's arguments, refused where they are mam's to pass or lead to another interface."""
    if args[:1] == ["chat"]:
        args = args[1:]
    if args and not args[0].startswith("-"):
        raise Usage(f"mam runs Hermes' chat, not `hermes {args[0]}`", hint="pass options only")
    for word in args:
        name = word.partition("=")[0]
        if name == "--tui":
            raise Usage("mam reads Hermes' classic interface only", hint="leave out --tui")
        if _is_ours(name):
            raise Usage(
                f"{name} is for mam to pass: it keeps track of the conversation",
                hint=_WHY.get(name, "mam resume NAME, or mam adopt"),
            )
    return args


def _is_ours(name: str) -> bool:
    if name.startswith("--"):
        return len(name) > 2 and name != "--cli" and any(one.startswith(name) for one in _OURS)
    return name[:2] in _OURS_SHORT


def _permissions(wish: str) -> list[str]:
    if wish == "skip":
        return ["--yolo"]
    if wish != "default":
        raise NotAllowed(
            f"Hermes has no option for the permissions '{wish}': its setting approvals.mode decides",
            hint="leave it out, or use skip",
        )
    return []
