"""The kind of Gemini CLI: mam reads its chat file, log of prompts, title and screen.

mam passes everything as options of one launch, and does not edit the user's configuration. Gemini takes hooks
only from the settings of the user or the project, or from a file and folders that belong to root. mam can
change none of these for one launch, so it uses no hooks.
"""

from __future__ import annotations

import re

from mam.adapters.agents.caller_arguments import Options
from mam.adapters.agents.gemini import files, open_conversation, record
from mam.adapters.agents.kind import Launch
from mam.adapters.agents.kind_with_conversation_files import KindWithConversationFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Request, Screen, ScreenState, Transcript
    from mam.core.activity import Evidence

_PERMISSIONS = {
    "ask": ["--approval-mode", "default"],
    "auto": ["--approval-mode", "auto_edit"],
    "skip": ["--approval-mode", "yolo"],
}
# Options that choose a conversation or a directory: only mam may pass them.
_CHOOSES = (
    "--session-id",
    "--sessionId",
    "--session-file",
    "--sessionFile",
    "--resume",
    "-r",
    "--list-sessions",
    "--listSessions",
    "--delete-session",
    "--deleteSession",
    "--worktree",
    "-w",
)
_HINT = "mam resume NAME, mam adopt, or mam create --worktree"
_PROMPTS = ("-i", "--prompt-interactive", "--promptInteractive")
_OPTIONS = Options(
    flags=(
        "-d",
        "--debug",
        "--skip-trust",
        "-s",
        "--sandbox",
        "-y",
        "--yolo",
        "--acp",
        "--experimental-acp",
        "-l",
        "--list-extensions",
        "--screen-reader",
        "--raw-output",
        "--accept-raw-output-risk",
        "-h",
        "--help",
        "-v",
        "--version",
    ),
    single=("-m", "--model", "-p", "--prompt", "--approval-mode", "-o", "--output-format", *_PROMPTS),
)
# Gemini sets the first variable for its children. There the second one would skip the question about trust.
# Elsewhere a person may have set it.
_MARK, _INHERITED_INSIDE = "GEMINI_CLI", ("GEMINI_CLI_TRUST_WORKSPACE",)
# A slash and one word may be a command, also one that a user defined. Gemini drops spaces before it.
_COMMAND = re.compile(r"\s*/(?![/*])[^\s/]*(?:\s|\Z)")
# Gemini removes these from a paste.
_INVISIBLE = re.compile("[\x80-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
# Gemini takes the text after such an @, anywhere in a prompt, for the name of a file.
_MENTION = re.compile(r"(?<!\\)@(?:[^ \t\n\r,;!?()\[\]{}.]|\.(?![ \t\n\r]|\Z))")
# Such a word opens a list of files, and the list takes the Enter. After a backslash, Enter makes a new line.
_TAKES_ENTER = re.compile(r"(?:@\S*|\\)\Z")


class Gemini(KindWithConversationFiles):
    """Launches `gemini`, and reads its screen and its files."""

    name = "gemini"
    exit_word = "/quit"
    takes_conversation_id = True
    can_resume = True
    takes_permissions = True
    takes_model = True
    has_state_file = True
    reads_screen = True
    interrupt_keys = ("Escape",)
    keeps_tabs = True
    # A dialog may replace an input box that Gemini has just drawn.
    ready_settle_seconds = 0.3
    dialog_settle_seconds = 0.3
    # An Enter that Gemini reads within 40 ms after a paste makes a new line.
    pause_before_enter = 0.5
    early_enter_makes_new_line = True
    folded_paste = r"\[Pasted Text: (?:(?P<lines>\d+) lines|(?P<chars>\d+) chars)\]"
    erase_key = "C-u"
    known_versions = ("0.57.0", "0.61.0")
    packages = ("@google/gemini-cli",)
    # The variable names the home, not the folder `.gemini` in it.
    config_variable = files.CONFIG

    def launch(self, request: Request) -> Launch:
        """Pass the id and the permissions; the arguments of the caller come last."""
        args = request.command[1:]
        _OPTIONS.refuse(args, _CHOOSES, of="the conversation and of the directory", hint=_HINT)
        if request.resume:
            args = _OPTIONS.without_prompt(args, _PROMPTS)
        argv = [request.program]
        if request.conversation:
            argv += [
                open_conversation.RESUME if request.resume else open_conversation.NEW,
                request.conversation,
            ]
        argv += _PERMISSIONS.get(request.permissions, [])
        if request.model:
            argv += ["--model", request.model]
        unset = _INHERITED_INSIDE if request.environ.get(_MARK) else ()
        if files.CONFIG not in request.stores:
            unset = (*unset, files.CONFIG)
        return Launch([*argv, *args], unset=unset)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for a chat file with a history; Gemini finds it only from the same workspace."""
        if files.store(stores) is None:
            return None
        try:
            folder = files.project_folder(workspace, stores)
            path = files.chat_of(conversation, folder) if folder else None
            return path is not None and files.owner_of(path) == conversation and files.has_history(path)
        except OSError:
            return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the conversations of this workspace."""
        return files.conversations(workspace, stores)

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the chat files, also of subagents, plans and outputs; the shared log of prompts stays."""
        try:
            return files.paths_of(conversation, workspace, stores)
        except OSError:
            return []

    def leftovers(self, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return empty files of resumed conversations: they make the next start delete the full ones."""
        try:
            return files.leftovers(workspace, stores)
        except OSError:
            return []

    def read_screen(self, screen: Screen) -> ScreenState:
        """Look for the input box; without one, look for a dialog."""
        from mam.adapters.agents.gemini import screen as gemini_screen

        return gemini_screen.read_screen(screen)

    def read_title(self, title: str) -> str:
        """The title shows that Gemini is working or waiting."""
        from mam.adapters.agents.gemini import screen as gemini_screen

        return gemini_screen.read_title(title)

    def answer_keys(self, screen_state: ScreenState, answer: str) -> list[str] | None:
        """The trust dialog opens with the pointer on Yes, its first option."""
        from mam.adapters.agents.gemini import screen as gemini_screen

        if (screen_state.dialog, answer) != ("trust", "trust"):
            return None
        return ["Enter"] if screen_state.detail == gemini_screen.YES else ["Up"]

    def text_to_type(self, text: str) -> str | None:
        """Add a space at the end, which Gemini drops: it closes the list of files that a mention opens."""
        if _COMMAND.match(text) or _INVISIBLE.search(text):
            return None
        return f"{text} " if _TAKES_ENTER.search(text) else text

    def keeps_unchanged(self, text: str) -> bool:
        """Gemini replaces a mention by the file."""
        return super().keeps_unchanged(text) and not _MENTION.search(text)

    def pause(self, text: str) -> float:
        """Wait longer for a long paste: the 40 ms begin when Gemini has taken it in."""
        return self.pause_before_enter + len(text) / 100_000

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Return the conversation, and that Gemini is working just after a prompt."""
        return open_conversation.read_state(pid, start, stores)

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Return the processes that got the id at their start; a later resume inside Gemini is invisible."""
        return open_conversation.holders(conversation)

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """Read the end of the chat file."""
        path = _find_chat(conversation, workspace, stores)
        evidence = record.read_turn(path) if path else None
        return [evidence] if evidence else []

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """Return the chat file, whatever workspace the conversation is of."""
        return files.find_chat(conversation, stores)

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """The log has the prompt at once, the chat file only after Gemini has chosen a model."""
        return record.has_prompt(text, conversation, path, since)

    def count_prompts(self, text: str, conversation: str, path: str, since: int) -> int:
        """Each submission has one entry; before that, only the log has it."""
        count = record.count_prompts(text, path, since)
        return count or int(record.has_prompt(text, conversation, path, since))

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """Read the end of the chat file."""
        path = _find_chat(conversation, workspace, stores)
        return record.read_transcript(path, turns) if path else None


def _find_chat(conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
    try:
        folder = files.project_folder(workspace, stores)
        return files.chat_of(conversation, folder) if folder else None
    except OSError:
        return None
