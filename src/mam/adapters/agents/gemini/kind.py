"""Gemini CLI: driven by options of one launch, read by its chat file, the log of prompts, title and screen.

Nothing of the user's configuration is edited. It has hooks, but takes them from settings of the user, of the
project, or of a file that belongs to root in folders of root's alone: none of them is for one launch.
"""

from __future__ import annotations

import re

from mam.adapters.agents.arguments import Options
from mam.adapters.agents.conversation_file import FileKind
from mam.adapters.agents.gemini import files, process, record
from mam.adapters.agents.gemini import screen as gemini_screen
from mam.adapters.agents.kind import Launch

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
# Options that choose a conversation or a directory: that is mam's part.
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
# Inside of a Gemini its mark is set: there this would skip the question about trust. A person may set it too.
_MARK, _INHERITED_INSIDE = "GEMINI_CLI", ("GEMINI_CLI_TRUST_WORKSPACE",)
# A slash and one word may be a command of anybody's making; blanks before it are dropped.
_COMMAND = re.compile(r"\s*/(?![/*])[^\s/]*(?:\s|\Z)")
# It takes these out of what is pasted.
_INVISIBLE = re.compile("[\x80-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
# What follows such a sign, wherever it stands, is looked for among the files.
_MENTION = re.compile(r"(?<!\\)@(?:[^ \t\n\r,;!?()\[\]{}.]|\.(?![ \t\n\r]|\Z))")
# A list of files opens for such a word, and takes the Enter; after a backslash Enter is a new line.
_TAKES_ENTER = re.compile(r"(?:@\S*|\\)\Z")


class Gemini(FileKind):
    """Launches `gemini` and reads what it leaves."""

    name = "gemini"
    exit_word = "/quit"
    chooses_id = True
    can_resume = True
    takes_permissions = True
    takes_model = True
    has_state_file = True
    reads_screen = True
    interrupt_keys = ("Escape",)
    keeps_tabs = True
    # A dialog may take the place of a box that was just drawn.
    ready_settles = 0.3
    dialog_settles = 0.3
    # An Enter within 40 ms after a paste was taken in is a new line.
    pause_before_enter = 0.5
    known_versions = ("0.61.0",)
    packages = ("@google/gemini-cli",)
    # It stands for the home, not for the folder in it.
    config_variable = files.CONFIG

    def launch(self, request: Request) -> Launch:
        """Pass id and permissions; what the caller passed comes last."""
        args = request.command[1:]
        _OPTIONS.refuse(args, _CHOOSES, of="the conversation and of the directory", hint=_HINT)
        if request.resume:
            args = _OPTIONS.without_prompt(args, _PROMPTS)
        argv = [request.program]
        if request.conversation:
            argv += [process.RESUME if request.resume else process.NEW, request.conversation]
        argv += _PERMISSIONS.get(request.permissions, [])
        if request.model:
            argv += ["--model", request.model]
        without = _INHERITED_INSIDE if request.environ.get(_MARK) else ()
        if files.CONFIG not in request.stores:
            without = (*without, files.CONFIG)
        return Launch([*argv, *args], without=without)

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """A chat file in which something was said; Gemini finds it from its own directory only."""
        if files.store(stores) is None:
            return None
        try:
            folder = files.project_folder(workspace, stores)
            path = files.chat_of(conversation, folder) if folder else None
            return path is not None and files.owner_of(path) == conversation and files.has_history(path)
        except OSError:
            return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return those of this directory."""
        return files.conversations(workspace, stores)

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Its chat files, those of its helpers, plans and outputs; the log of prompts is shared and stays."""
        try:
            return files.paths_of(conversation, workspace, stores)
        except OSError:
            return []

    def leftovers(self, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
        """Empty chat files of resumed conversations, for which the next start would delete the full ones."""
        try:
            return files.leftovers(workspace, stores)
        except OSError:
            return []

    def look(self, screen: Screen) -> ScreenState:
        """Find the box, else a dialog."""
        return gemini_screen.look(screen)

    def read_title(self, title: str) -> str:
        """The title shows that it works or asks."""
        return gemini_screen.read_title(title)

    def answer_keys(self, look: ScreenState, answer: str) -> list[str] | None:
        """The trust dialog stands on its Yes."""
        if (look.dialog, answer) != ("trust", "trust"):
            return None
        return ["Enter"] if look.detail == gemini_screen.YES else ["Up"]

    def typed(self, text: str) -> str | None:
        """A blank at the end closes the list of files that a mention opens, and is dropped."""
        if _COMMAND.match(text) or _INVISIBLE.search(text):
            return None
        return f"{text} " if _TAKES_ENTER.search(text) else text

    def keeps(self, text: str) -> bool:
        """It looks for the file of a mention, and puts its name and its content in the place."""
        return super().keeps(text) and not _MENTION.search(text)

    def pause(self, text: str) -> float:
        """A long paste takes its time, and the 40 ms begin after it."""
        return self.pause_before_enter + len(text) / 100_000

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """The conversation alone: what it does is shown by title and screen."""
        return process.read_state(pid, start, stores)

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Those that were started with its id; one that took it up by itself is not known."""
        return process.holders(conversation)

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """The end of the chat file."""
        path = _chat(conversation, workspace, stores)
        said = record.read_turn(path) if path else None
        return [said] if said else []

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """The chat file, of whatever directory."""
        return files.find_chat(conversation, stores)

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """The log has it at once, the chat file when a model was chosen."""
        return record.has_prompt(text, conversation, path, since)

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """The end of the chat file."""
        path = _chat(conversation, workspace, stores)
        return record.read_transcript(path, turns) if path else None


def _chat(conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
    try:
        folder = files.project_folder(workspace, stores)
        return files.chat_of(conversation, folder) if folder else None
    except OSError:
        return None
