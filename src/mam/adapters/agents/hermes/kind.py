"""The kind of Hermes Agent, in its classic interface: mam reads its screen and its database.

Hermes takes hooks only from the user's configuration, which mam does not edit. mam passes everything in the
arguments and the environment of one launch. The most important part is a different source for each session:
Hermes records it with every conversation that the session begins.
"""

from __future__ import annotations

import re
import secrets

from mam.adapters.agents.hermes import conversation_database
from mam.adapters.agents.kind import Kind, Launch
from mam.adapters.agents.read_only_sqlite import Unreadable
from mam.core.activity import UNKNOWN, Evidence
from mam.core.errors import NotAllowed, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Request, Screen, ScreenState, Transcript

# Options that choose a conversation or a home: only mam may pass them. Hermes also accepts abbreviations.
_REFUSED = ("--resume", "--continue", "--source", "--profile")
_REFUSED_SHORT = ("-r", "-c", "-p")
_HINTS = {
    "--source": "mam distinguishes its sessions by the source",
    "--profile": "name the profile's folder in HERMES_HOME instead: --env HERMES_HOME=…/profiles/NAME",
    "-p": "name the profile's folder in HERMES_HOME instead: --env HERMES_HOME=…/profiles/NAME",
}
# A person may have set these as well, so mam removes them only if it runs inside a Hermes.
_INHERITED_INSIDE = ("HERMES_YOLO_MODE", "TERMINAL_CWD")
# At the beginning of a text, a slash begins a command, and Hermes replaces the path of a file with the file.
_COMMAND_OR_FILE = re.compile(r"""\s*['"]?(?:/|~|\.{1,2}/|file://|[A-Za-z]:[\\/])""")
# Hermes replaces these with what they name, anywhere in a text.
_REFERENCE = re.compile(r"(?<![\w/])@(?:(?:diff|staged)\b|(?:file|folder|git|url):\S)")


class Hermes(Kind):
    """Launches `hermes chat --cli`, and reads its screen and its database."""

    name = "hermes"
    exit_word = "/exit"
    can_resume = True
    takes_permissions = True
    takes_model = True
    has_state_file = True
    has_global_transcript_size = True
    reads_screen = True
    refuse_keys = ("C-c",)
    interrupt_gap_seconds = 2.5
    free_text_needs_enter = True
    keeps_tabs = True
    folded_paste = r"\[Pasted text #\d+: (?P<lines>\d+) lines → .+\]"
    erase_key = "C-u"
    known_versions = ("0.19.0",)

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the home of the chosen profile."""
        return {conversation_database.HOME: conversation_database.home_of(environ)}

    def session_variables(self) -> dict[str, str]:
        """Return a source that no other session has; Hermes records it with each conversation."""
        return {conversation_database.SOURCE: f"mam-{secrets.token_hex(4)}"}

    def launch(self, request: Request) -> Launch:
        """Pass the conversation and the permissions; the arguments of the caller come last."""
        args = _check_arguments(request.command[1:])
        home = request.stores.get(conversation_database.HOME) or conversation_database.home_of(
            request.environ
        )
        argv = [request.program]
        if not conversation_database.is_profile(home):
            # Otherwise, a profile that the user chose later would change the home.
            argv += ["-p", "default"]
        argv += ["chat", "--cli"]
        if request.resume and request.conversation:
            argv += ["--resume", request.conversation, "--no-restore-cwd"]
        argv += _permissions(request.permissions)
        if request.model:
            argv += ["--model", request.model]
        is_inside = "HERMES_SESSION_ID" in request.environ
        return Launch([*argv, *args], unset=_INHERITED_INSIDE if is_inside else ())

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for a message in the database; Hermes finds a conversation from any directory."""
        return conversation_database.has_history(conversation, stores)

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the conversation of the session's source; without one, a person's in this directory."""
        return conversation_database.conversations_in(workspace, stores)

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """Let Hermes delete: conversations share a database. Pass a whole id, as Hermes accepts parts."""
        if not conversation_database.ID.match(conversation):
            return None
        return [program, "sessions", "delete", conversation, "--yes"]

    def read_screen(self, screen: Screen) -> ScreenState:
        """Read the sign before the arrow of the prompt."""
        from mam.adapters.agents.hermes import screen as hermes_screen

        return hermes_screen.read_screen(screen)

    def text_to_type(self, text: str) -> str | None:
        """Refuse commands, paths at the beginning, and references anywhere: Hermes would replace them."""
        return None if _COMMAND_OR_FILE.match(text) or _REFERENCE.search(text) else text

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Return the conversation by the session's source; the database does not show the activity."""
        conversation = conversation_database.current(stores)
        if conversation is None:
            return None
        return Evidence("state-file", UNKNOWN, 0.0, detail=f"conversation {conversation}"), conversation

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """Read the last message."""
        evidence = (
            conversation_database.read_turn(conversation, stores)
            if conversation_database.ID.match(conversation)
            else None
        )
        return [evidence] if evidence else []

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """Hermes writes the user's message when the turn begins."""
        count = self.count_submitted(text, conversation, stores, since)
        return None if count is None else count > 0

    def count_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> int | None:
        """Each submission is one message."""
        current = conversation_database.current(stores) or conversation
        try:
            prompts = conversation_database.prompts(current, stores, since)
            return sum(prompt.strip() == text.strip() for prompt in prompts)
        except Unreadable:
            return None

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """Read the messages of the conversation."""
        return conversation_database.read_transcript(conversation, stores, turns)

    def transcript_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Return the number of the newest message; Hermes numbers all conversations together."""
        return conversation_database.last_message(stores)


def _check_arguments(args: list[str]) -> list[str]:
    """Return the caller's arguments. Raises Usage for those of mam, and for another interface."""
    if args[:1] == ["chat"]:
        args = args[1:]
    if args and not args[0].startswith("-"):
        raise Usage(f"mam runs `hermes chat`, not `hermes {args[0]}`", hint="pass options only")
    for argument in args:
        name = argument.partition("=")[0]
        if name == "--tui":
            raise Usage("mam can read only the classic interface of Hermes", hint="leave out --tui")
        if _is_refused(name):
            raise Usage(
                f"only mam may pass {name}: it keeps track of the conversation",
                hint=_HINTS.get(name, "mam resume NAME, or mam adopt"),
            )
    return args


def _is_refused(name: str) -> bool:
    if name.startswith("--"):
        return len(name) > 2 and name != "--cli" and any(option.startswith(name) for option in _REFUSED)
    return name[:2] in _REFUSED_SHORT


def _permissions(permissions: str) -> list[str]:
    if permissions == "skip":
        return ["--yolo"]
    if permissions != "default":
        raise NotAllowed(
            f"Hermes has no option for the permissions '{permissions}': its setting approvals.mode decides",
            hint="leave it out, or use skip",
        )
    return []
