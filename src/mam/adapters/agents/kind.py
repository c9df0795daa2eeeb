"""What mam asks of an agent kind.

`Kind` is the whole contract, and at the same time the honest answer of a program that nothing is
known about: it has no exit word, no conversations, no hooks, and its screen says nothing. A kind
overrides what it knows. None of these methods types, kills or writes; they say what to do and
read what is there. Each answer about the world is present, absent or unknown (None).
"""

from __future__ import annotations

from mam.core.activity import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.adapters.agents.dialog_options import Choices
    from mam.core.activity import Evidence


class Attachment:
    """An MCP server that an agent gets for one launch: what to start, and the variables that it needs."""

    __slots__ = ("argv", "env", "name")

    def __init__(self, name: str, argv: list[str], env: dict[str, str]) -> None:
        self.name = name
        self.argv = argv
        self.env = env


class Request:
    """One launch as the caller wants it."""

    __slots__ = (
        "attachment",
        "command",
        "conversation",
        "environ",
        "fork_of",
        "hook",
        "instructions",
        "model",
        "name",
        "permissions",
        "program",
        "resume",
        "role",
        "settings",
        "stores",
    )

    def __init__(
        self,
        *,
        command: list[str],
        program: str,
        environ: Mapping[str, str],
        stores: dict[str, str] | None = None,
        name: str = "",
        role: str | None = None,
        permissions: str | None = None,
        model: str | None = None,
        conversation: str | None = None,
        resume: bool = False,
        fork_of: str | None = None,
        hook: str | None = None,
        instructions: str | None = None,
        attachment: Attachment | None = None,
        settings: Mapping[str, bool] | None = None,
    ) -> None:
        self.command = command
        self.program = program
        self.environ = environ
        self.stores = stores or {}
        self.name = name
        self.role = role
        self.permissions = permissions or "default"
        self.model = model
        self.conversation = conversation
        self.resume = resume
        self.fork_of = fork_of
        self.hook = hook
        self.instructions = instructions
        self.attachment = attachment
        # What the operator set for this kind alone.
        self.settings = settings or {}


class Launch:
    """What to execute: argv with an absolute program, variables to add, and notes for the caller.

    `text` is put into a private file whose path the program finds in MAM_TEXT_FILE: a caller's words
    stand neither in argv nor in the environment. `settings` is a variable and a content: the content is put
    into a private file, one per session, whose path the variable names. `without` names variables of the
    caller that the program must not inherit.
    """

    __slots__ = ("argv", "env", "notes", "settings", "text", "without")

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str] | None = None,
        *,
        text: str | None = None,
        settings: tuple[str, str] | None = None,
        notes: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
    ) -> None:
        self.argv = argv
        self.env = env or {}
        self.text = text
        self.settings = settings
        self.notes = notes
        self.without = without


class Screen:
    """The visible text of a pane with its cursor."""

    __slots__ = ("cursor_x", "cursor_y", "text")

    def __init__(self, text: str, cursor_x: int = 0, cursor_y: int = 0) -> None:
        self.text = text
        self.cursor_x = cursor_x
        self.cursor_y = cursor_y


class ScreenState:
    """What a screen shows: the state, an open dialog by name, and the input box (empty, draft, or None)."""

    __slots__ = ("box", "detail", "dialog", "state")

    def __init__(
        self, state: str = UNKNOWN, *, dialog: str | None = None, box: str | None = None, detail: str = ""
    ) -> None:
        """Say nothing unless told otherwise."""
        self.state = state
        self.dialog = dialog
        self.box = box
        self.detail = detail


class HookEvent:
    """What a hook payload says."""

    __slots__ = ("conversation", "event", "prompt", "state", "waiting_for")

    def __init__(
        self,
        event: str,
        state: str | None = None,
        waiting_for: str | None = None,
        conversation: str | None = None,
        prompt: str | None = None,
    ) -> None:
        """A state of None means that the event says nothing about the activity."""
        self.event = event
        self.state = state
        self.waiting_for = waiting_for
        self.conversation = conversation
        self.prompt = prompt


class Turn:
    """One message of a conversation as its record has it: `user` or `assistant`, and when, if it says so."""

    __slots__ = ("at", "role", "text")

    def __init__(self, role: str, text: str, at: str | None = None) -> None:
        self.role = role
        self.text = text
        self.at = at


def add_turn(turns: list[Turn], role: str, words: str, at: object) -> None:
    """Add what was said; parts of one answer, between which tools were used, are one turn."""
    if turns and turns[-1].role == role == "assistant":
        turns[-1].text += "\n" + words
    else:
        turns.append(Turn(role, words, at if isinstance(at, str) else None))


class Transcript:
    """The end of a conversation: its last turns, and what the record says of model and tokens.

    `tokens_in` and `tokens_out` are of the whole conversation where the record has totals, else of what was
    read of it. `context` is how many tokens the last request held, `window` how many fit; None is unknown.
    """

    __slots__ = ("context", "model", "tokens_in", "tokens_out", "turns", "window")

    def __init__(self, turns: list[Turn], **facts: Any) -> None:
        self.turns = turns
        self.model: str | None = facts.get("model")
        self.tokens_in: int | None = facts.get("tokens_in")
        self.tokens_out: int | None = facts.get("tokens_out")
        self.context: int | None = facts.get("context")
        self.window: int | None = facts.get("window")


class Kind:
    """One kind of agent. The defaults are those of a program that nothing is known about."""

    name = ""
    # The words that end it when typed into its empty box; None: it has none, and Ctrl-C is tried.
    exit_word: str | None = None
    # Whether Ctrl-C is worth trying where there is no exit word.
    ends_on_interrupt = True
    # Whether mam chooses the id of a new conversation.
    chooses_id = False
    can_resume = False
    can_fork = False
    has_hooks = False
    # Whether the first hook proves that it takes input; else its box must be seen.
    ready_by_hook = True
    # Whether `read_state` can say anything.
    has_state_file = False
    # Whether `look` can say anything.
    reads_screen = False
    # Seconds that a dialog must have stood unchanged before it takes keys.
    dialog_settles = 0.0
    # Seconds between a paste and Enter that the program needs.
    pause_before_enter = 0.0
    # First characters that the program would take as a command; a space before them makes them words.
    special_first = ""
    # The keys that cut its turn short, each pressed on its own, and those that refuse an open dialog.
    interrupt_keys: tuple[str, ...] = ("C-c",)
    refuse_keys: tuple[str, ...] = ("Escape",)
    # Seconds between two Ctrl-C that it does not take for the wish to leave; 0: it never does.
    interrupts_apart = 0.0
    # Whether the option for words of one's own opens a line for them only with Enter.
    opens_own_words = False
    # Whether mam knows how to hand over permissions and a model.
    takes_permissions = False
    takes_model = False
    # The command with which a running one takes another model, followed by its name.
    model_command: str | None = None
    # Whether an MCP server can be given to one launch.
    takes_mcp = False
    # Whether a first prompt is typed (True) or handed over at launch as instructions (False).
    takes_prompt = True
    # Whether it keeps what is entered while it works for its next turn, instead of cutting this one.
    queues = False
    # Whether the size of a record is counted for all conversations together, as times and numbers are.
    counts_for_all = False
    # What of a text it hands on as it is: tabs, and blanks before the first word.
    keeps_tabs = False
    keeps_indent = False
    # The longest text that is typed; more goes as a file.
    longest_text = 50_000
    # Seconds that a start may take at least, whatever the settings say.
    boot_seconds = 0.0
    # Seconds that the box must have stood before it counts: some show it before their first dialog.
    ready_settles = 0.0
    # The versions that the conformance tests run; of any other the screen alone proves nothing. Empty: it
    # has no versions that matter.
    known_versions: tuple[str, ...] = ()
    # The npm packages that hold the program: their package.json names the version without running it.
    packages: tuple[str, ...] = ()

    def __init__(self, name: str = "") -> None:
        """A kind without a name of its own is called as it was asked for."""
        self.name = name or type(self).name

    @property
    def is_known(self) -> bool:
        """Whether this is an agent of which something is known, and not any program by its name."""
        return type(self) is not Kind

    def program(self, command: list[str]) -> str:
        """Return the program to look for on PATH."""
        return command[0]

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables, with absolute values, that say where this launch keeps its files."""
        return {}

    def marks(self) -> dict[str, str]:
        """Return variables that tell the launches of one session from all others; kept with its stores."""
        return {}

    def launch(self, request: Request) -> Launch:
        """Return what to execute. Must touch no configuration of the user's."""
        return Launch([request.program, *request.command[1:]])

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Tell whether a conversation's record exists."""
        return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the conversations of a workspace that are on disk, newest first."""
        return []

    def record_folder(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
        """Return the folder in which a conversation's record appears, if it is cheap to watch."""
        return None

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the files of one conversation as (folder of the store, path below it)."""
        return []

    def leftovers(self, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return empty files as (store, path below it) for which a start would delete conversations."""
        return []

    def look(self, screen: Screen) -> ScreenState:
        """Return what a screen shows; what it does not recognise is unknown and never idle."""
        return ScreenState()

    def read_title(self, title: str) -> str:
        """Return the state that the pane's title names, or unknown."""
        return UNKNOWN

    def dialog_keys(self, dialog: str, answer: str) -> list[str] | None:
        """Return the keys that give an answer (`trust`) to an open dialog; None where that is not known."""
        return None

    def answer_keys(self, look: ScreenState, answer: str) -> list[str] | None:
        """Return the next keys towards an answer; asked again when the dialog has changed by them."""
        return self.dialog_keys(look.dialog or "", answer)

    def choices(self, screen: Screen) -> Choices | None:
        """Return the options of the dialog that a screen shows; None where they are not seen."""
        from mam.adapters.agents.dialog_options import read

        return read(screen.text)

    def typed(self, text: str) -> str | None:
        """Return what to paste so that these words arrive; None where the program would alter them."""
        return f" {text}" if text[:1] and text[0] in self.special_first else text

    def keeps(self, text: str) -> bool:
        """Tell whether these words reach the model as they are once they are typed."""
        if not self.keeps_tabs and "\t" in text:
            return False
        return text == text.rstrip() and (self.keeps_indent or text == text.lstrip())

    def pause(self, text: str) -> float:
        """Return the seconds between the paste of a text and Enter that the program needs."""
        return self.pause_before_enter

    def identity(self, name: str, colour: str) -> list[str]:
        """Return its own commands that give it a colour and a name, one at a time; none where it has none."""
        return []

    def has_identity(
        self, command: str, conversation: str, stores: Mapping[str, str], screen: Screen
    ) -> bool | None:
        """Tell whether one of these commands had its effect; None where the program does not show it."""
        return None

    def hear(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a hook payload says, or None for one that is not of this kind."""
        return None

    def read_records(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> list[Evidence]:
        """Return what the agent's own files say about its activity."""
        return []

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Return what the state file of exactly this process says: activity, and its conversation's id."""
        return None

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Return (pid, start) of processes that say that they have a conversation open; some may be dead."""
        return []

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """Tell whether the conversation's record beyond `since`, its size then, holds this user message."""
        return None

    def is_voice(self, pid: int, pane_pid: int) -> bool:
        """Tell whether a hook's parent is the agent of the pane, and not a child that inherited its hooks."""
        return pid == pane_pid

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """Return the last turns with model and tokens; only the end of the record is read."""
        return None

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """Return the program's own command that deletes one conversation, where files alone are not it."""
        return None

    def record_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Return how long the conversation's record is now."""
        return 0
