"""The contract of an agent kind: what mam must know about one program, as the class `Kind`.

The defaults of `Kind` describe a program that mam knows nothing about: it has no exit word, no conversations
and no hooks, and mam cannot read its screen. A kind overrides what mam knows about its program. The methods
only describe and read: none of them types, kills or writes. A method that looks for something returns None
where nobody can tell.
"""

from __future__ import annotations

from mam.adapters.agents.ambiguous_width_characters import JOINER
from mam.core.activity import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.adapters.agents.box_contents import BoxContents
    from mam.adapters.agents.dialog_options import Choices
    from mam.core.activity import Evidence
    from mam.core.terminal_cells import Cell, StyledScreen
    from mam.core.token_count import TokenCount


class Attachment:
    """An MCP server that mam gives to an agent for one launch: its command and its variables."""

    __slots__ = ("argv", "env", "name")

    def __init__(self, name: str, argv: list[str], env: dict[str, str]) -> None:
        self.name = name
        self.argv = argv
        self.env = env


class Request:
    """The launch that a caller asks for."""

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
        "runner",
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
        runner: list[str] | None = None,
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
        # The settings of the operator that concern this kind alone.
        self.settings = settings or {}
        # What runs the command of a job, with its arguments, for a kind that `runs_command_of_job`.
        self.runner = runner or []


class Launch:
    """What to execute: argv with an absolute program, variables to add, and notes for the caller.

    mam writes `text` into a private file and passes its path in MAM_TEXT_FILE, because other users can see
    argv and environment. `settings` is a pair of a variable and a content: mam writes the content into a
    private file, one per session, and passes its path in the variable. `unset` names variables of the caller
    that the program must not inherit.
    """

    __slots__ = ("argv", "env", "notes", "settings", "text", "unset")

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str] | None = None,
        *,
        text: str | None = None,
        settings: tuple[str, str] | None = None,
        notes: tuple[str, ...] = (),
        unset: tuple[str, ...] = (),
    ) -> None:
        self.argv = argv
        self.env = env or {}
        self.text = text
        self.settings = settings
        self.notes = notes
        self.unset = unset


class Screen:
    """The visible text of a pane, the position of its cursor, and on request the cells of a row.

    `captured` is what tmux wrote, with or without the sequences of its styles. Without them every cell is in
    the normal style. A cursor at (0, 0) is unknown.
    """

    __slots__ = ("_captured", "_styled", "cursor_x", "cursor_y", "text")

    def __init__(self, captured: str, cursor_x: int = 0, cursor_y: int = 0) -> None:
        from mam.core.terminal_cells import plain_text

        self.text = plain_text(captured)
        self.cursor_x = cursor_x
        self.cursor_y = cursor_y
        self._captured = captured
        self._styled: StyledScreen | None = None

    @property
    def is_monochrome(self) -> bool:
        """Whether the screen has neither colours nor dim text, as with NO_COLOR; bold and reversed may be."""
        from mam.core.terminal_cells import is_monochrome

        return is_monochrome(self._captured)

    def cells(self, row: int) -> list[Cell]:
        """Return the cells of a row, counted from 0."""
        if self._styled is None:
            from mam.core.terminal_cells import StyledScreen

            self._styled = StyledScreen(self._captured)
        return self._styled.row(row)


class ScreenState:
    """What a screen shows: the activity, an open dialog by name, and the input box (empty, draft, None).

    `draft` is the text of a draft, row by row as the input box shows it; suggestions are left out.
    `shows_end_only` means that the box is full, so that more of the draft may be above what it shows.
    `has_suggestion` means that the box is empty and shows a suggestion.
    `is_on_new_line` means that the cursor is on an empty line of the input box, just below a text.
    """

    __slots__ = (
        "box",
        "detail",
        "dialog",
        "draft",
        "has_suggestion",
        "is_on_new_line",
        "shows_end_only",
        "state",
    )

    def __init__(
        self,
        state: str = UNKNOWN,
        *,
        dialog: str | None = None,
        box: str | None = None,
        contents: BoxContents | None = None,
        detail: str = "",
        is_on_new_line: bool = False,
    ) -> None:
        """By default the screen shows nothing that mam recognises. `contents` says what is in the box."""
        self.state = state
        self.dialog = dialog
        self.box = box if contents is None else contents.box
        self.draft = "" if contents is None else contents.draft
        self.shows_end_only = contents is not None and contents.shows_end_only
        self.has_suggestion = contents is not None and contents.has_suggestion
        self.detail = detail
        self.is_on_new_line = is_on_new_line


class HookEvent:
    """What the payload of a hook reports."""

    __slots__ = ("asks", "conversation", "event", "prompt", "state", "waiting_for")

    def __init__(
        self,
        event: str,
        state: str | None = None,
        waiting_for: str | None = None,
        conversation: str | None = None,
        prompt: str | None = None,
        asks: str | None = None,
    ) -> None:
        """A state of None means that the event does not change the activity.

        `asks` is what a permission is asked for, as `TOOL:WHAT`.
        """
        self.event = event
        self.state = state
        self.waiting_for = waiting_for
        self.conversation = conversation
        self.prompt = prompt
        self.asks = asks


class Turn:
    """One message of a transcript: its role (`user` or `assistant`), its text, and its time if recorded.

    `last_text` is what an agent wrote after its last tool call, a part of `text`.
    """

    __slots__ = ("at", "last_text", "role", "text")

    def __init__(self, role: str, text: str, at: str | None = None) -> None:
        self.role = role
        self.text = text
        self.at = at
        self.last_text = text


def add_turn(turns: list[Turn], role: str, text: str, at: object) -> None:
    """Add a message to the turns; the parts of an answer before and after tool calls become one turn."""
    if turns and turns[-1].role == role == "assistant":
        turns[-1].text += "\n" + text
        turns[-1].last_text = text
    else:
        turns.append(Turn(role, text, at if isinstance(at, str) else None))


class Transcript:
    """The end of a transcript: its last turns, the model and the tokens.

    `tokens_in` and `tokens_out` count the whole conversation where the agent records totals; otherwise they
    count the part that mam has read. Of `tokens_in`, `tokens_cache_read` were read from the cache of the
    provider, and `tokens_cache_write` written to it. `context` is the number of tokens of the last request,
    `window` is how many tokens fit into one. None means unknown.

    `token_counts` has all requests of the conversation with their models, for what they cost. It is None
    where the record does not tell, and where mam has read only a part of it.
    """

    __slots__ = (
        "context",
        "model",
        "token_counts",
        "tokens_cache_read",
        "tokens_cache_write",
        "tokens_in",
        "tokens_out",
        "turns",
        "window",
    )

    def __init__(self, turns: list[Turn], **facts: Any) -> None:
        self.turns = turns
        self.model: str | None = facts.get("model")
        self.tokens_in: int | None = facts.get("tokens_in")
        self.tokens_out: int | None = facts.get("tokens_out")
        self.tokens_cache_read: int | None = facts.get("tokens_cache_read")
        self.tokens_cache_write: int | None = facts.get("tokens_cache_write")
        self.token_counts: Sequence[TokenCount] | None = facts.get("token_counts")
        self.context: int | None = facts.get("context")
        self.window: int | None = facts.get("window")


class Kind:
    """One agent kind. The defaults describe a program that mam knows nothing about."""

    name = ""
    # The text that ends the agent when typed into its empty input box. None: there is none, mam tries Ctrl-C.
    exit_word: str | None = None
    # Whether Ctrl-C can end an agent without an exit word.
    ends_on_interrupt = True
    # Whether the program takes the id of a new conversation from mam.
    takes_conversation_id = False
    can_resume = False
    can_fork = False
    has_hooks = False
    # Whether the first hook proves that the agent takes input. If not, the screen must show the input box.
    ready_by_hook = True
    # Whether the kind implements `read_state`.
    has_state_file = False
    # Whether the kind implements `read_screen`.
    reads_screen = False
    # Seconds for which a dialog must have been on the screen, unchanged, before it takes keys.
    dialog_settle_seconds = 0.0
    # Seconds that the program needs between a paste and Enter.
    pause_before_enter = 0.0
    # The pattern of what the input box shows instead of a long paste. Of its groups `breaks` counts the line
    # breaks of the paste, `lines` its lines and `chars` its characters.
    folded_paste: str | None = None
    # The key that deletes a draft, or a line of it. None: mam knows none, and leaves every draft alone.
    erase_key: str | None = None
    # Whether an Enter that the program reads too soon after a paste makes a new line in the input box.
    early_enter_makes_new_line = False
    # First characters that make the program take a text for a command; a space before them prevents that.
    special_first = ""
    # The keys that interrupt a turn, each pressed on its own, and the keys that refuse an open dialog.
    interrupt_keys: tuple[str, ...] = ("C-c",)
    refuse_keys: tuple[str, ...] = ("Escape",)
    # Two Ctrl-C within this many seconds end the program. 0: they never do.
    interrupt_gap_seconds = 0.0
    # Whether the option for a free text opens its input line only after Enter.
    free_text_needs_enter = False
    # Whether mam can pass permissions and a model to the program.
    takes_permissions = False
    takes_model = False
    # The command that changes the model of a running agent; the name of the model follows it.
    model_command: str | None = None
    # Whether mam can give an MCP server to one launch.
    takes_mcp = False
    # Whether mam types the first prompt (True) or passes it at launch as instructions (False).
    takes_prompt = True
    # Whether a session runs the command of one job, once: nobody can create, resume or restart it.
    runs_command_of_job = False
    # Whether the program works for as long as it runs.
    works_while_alive = False
    # Whether a working agent queues a new prompt for its next turn, instead of interrupting this one.
    queues = False
    # Whether the record shows at once what the agent has queued: then `has_submitted` finds it, too.
    records_queue = False
    # Whether a `transcript_size` also holds for other conversations: it is a time, or counts all messages.
    has_global_transcript_size = False
    # What the program passes to the model unchanged: tabs, and spaces before the first word.
    keeps_tabs = False
    keeps_indent = False
    # The longest text that mam types; mam sends a longer one as a file.
    longest_text = 50_000
    # mam waits at least this many seconds for a start, even if the settings say less.
    boot_seconds = 0.0
    # Seconds for which the input box must have been on the screen: some programs draw it, then open a dialog.
    ready_settle_seconds = 0.0
    # The versions that the conformance tests run. Of any other version the screen alone proves nothing.
    # Empty: mam does not look at versions.
    known_versions: tuple[str, ...] = ()
    # The npm packages of the program: mam reads the version from their package.json and need not run it.
    packages: tuple[str, ...] = ()

    def __init__(self, name: str = "") -> None:
        """A kind without a name of its own takes the name of the program."""
        self.name = name or type(self).name

    @property
    def is_known(self) -> bool:
        """Whether mam knows this agent; False for an arbitrary program."""
        return type(self) is not Kind

    def program(self, command: list[str]) -> str:
        """Return the program to look for on PATH."""
        return command[0]

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables, with absolute values, that say where the program keeps its files."""
        return {}

    def session_variables(self) -> dict[str, str]:
        """Return variables that identify the launches of one session; mam keeps them with its stores."""
        return {}

    def launch(self, request: Request) -> Launch:
        """Return what to execute. The launch must not change the user's configuration."""
        return Launch([request.program, *request.command[1:]])

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Tell whether the transcript of a conversation exists."""
        return None

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the conversations of a workspace that are on disk, newest first."""
        return []

    def transcript_folder(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
        """Return the folder in which the transcript of a conversation appears, if it is cheap to watch."""
        return None

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the files of one conversation as (folder of the store, path below it)."""
        return []

    def leftovers(self, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return empty files, as (store, path below it), that make the next start delete conversations."""
        return []

    def read_screen(self, screen: Screen) -> ScreenState:
        """Return what a screen shows; a screen that mam does not recognise is unknown, never idle."""
        return ScreenState()

    def box_shows(self, screen_state: ScreenState, text: str) -> bool:
        """Tell whether the input box shows exactly this text, as it was pasted, and nothing else."""
        from mam.adapters.agents.box_contents import shows_text

        return screen_state.box == "draft" and shows_text(
            screen_state.draft, text, shows_end_only=screen_state.shows_end_only, folded=self.folded_paste
        )

    def box_surely_shows(self, screen_state: ScreenState, text: str) -> bool:
        """Tell the same of a text that mam did not paste just now, and that a person could have written."""
        from mam.adapters.agents.box_contents import surely_shows_text

        return screen_state.box == "draft" and surely_shows_text(
            screen_state.draft, text, shows_end_only=screen_state.shows_end_only, folded=self.folded_paste
        )

    def box_shows_part(self, screen_state: ScreenState, text: str, *, is_sure: bool = True) -> bool:
        """Tell whether the input box shows the beginning of this text; if `is_sure`, enough of it."""
        from mam.adapters.agents.box_contents import shows_part

        return screen_state.box == "draft" and shows_part(
            screen_state.draft, text, shows_end_only=screen_state.shows_end_only, is_sure=is_sure
        )

    def box_may_show(self, screen_state: ScreenState, text: str) -> bool:
        """Tell whether this text may stand in the input box, or be a part of what stands there."""
        from mam.adapters.agents.box_contents import may_show_text

        return screen_state.box == "draft" and may_show_text(
            screen_state.draft, text, shows_end_only=screen_state.shows_end_only, folded=self.folded_paste
        )

    def read_title(self, title: str) -> str:
        """Return the activity that the title of the pane names, or unknown."""
        return UNKNOWN

    def dialog_keys(self, dialog: str, answer: str) -> list[str] | None:
        """Return the keys that give an answer (`trust`) to an open dialog; None if mam does not know them."""
        return None

    def answer_keys(self, screen_state: ScreenState, answer: str) -> list[str] | None:
        """Return the next keys on the way to an answer; mam calls this again after the dialog has changed."""
        return self.dialog_keys(screen_state.dialog or "", answer)

    def choices(self, screen: Screen) -> Choices | None:
        """Return the options of the dialog on a screen; None if the screen shows none."""
        from mam.adapters.agents.dialog_options import read

        return read(screen.text)

    def text_to_type(self, text: str) -> str | None:
        """Return what to paste so that this text arrives; None if the program would take it for a command."""
        return f" {text}" if text[:1] and text[0] in self.special_first else text

    def keeps_unchanged(self, text: str) -> bool:
        """Tell whether the program passes a typed text to the model unchanged, and its input box shows it.

        With a joiner tmux 3.3a keeps at most 21 bytes in a cell and leaves out what follows, so the box never
        shows the text as it is, and mam would not press Enter.
        """
        if JOINER in text or (not self.keeps_tabs and "\t" in text):
            return False
        return text == text.rstrip() and (self.keeps_indent or text == text.lstrip())

    def pause(self, text: str) -> float:
        """Return the seconds that the program needs between the paste of a text and Enter."""
        return self.pause_before_enter

    def identity_commands(self, name: str, colour: str) -> list[str]:
        """Return the program's own commands that set its colour and its name, to type one at a time."""
        return []

    def identity_took_effect(
        self, command: str, conversation: str, stores: Mapping[str, str], screen: Screen
    ) -> bool | None:
        """Tell whether one of the identity commands took effect; None if the program does not show that."""
        return None

    def read_hook(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what the payload of a hook reports; None if the payload is not of this kind."""
        return None

    def read_transcript_evidence(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[Evidence]:
        """Return what the transcript says about the activity."""
        return []

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Return what the files of exactly this process say: its activity, and the id of its conversation."""
        return None

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Return (pid, start) of the processes that claim to have a conversation open; some may be dead."""
        return []

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """Tell whether the transcript beyond `since`, an earlier `transcript_size`, has this user message."""
        return None

    def count_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> int | None:
        """Return how often the transcript beyond `since` has this user message, or fewer."""
        is_submitted = self.has_submitted(text, conversation, stores, since)
        return None if is_submitted is None else int(is_submitted)

    def count_taken(self, text: str, conversation: str, stores: Mapping[str, str], since: int) -> int | None:
        """Return how often the agent worked on this user message beyond `since`, or fewer.

        Unlike `count_submitted` it does not count what the record shows in the queue.
        """
        return self.count_submitted(text, conversation, stores, since)

    def is_agent_process(self, pid: int, pane_pid: int) -> bool:
        """Tell whether a hook's parent is the agent of the pane, and not a child that inherited its hooks."""
        return pid == pane_pid

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """Return the last turns, the model and the tokens; this reads only the end of the transcript."""
        return None

    @property
    def deletes_conversations(self) -> bool:
        """Whether a purge may run the program itself, see `purge_command`."""
        return type(self).purge_command is not Kind.purge_command

    def purge_command(self, conversation: str, program: str) -> list[str] | None:
        """Return the program's own command that deletes one conversation, if deleting files is not enough."""
        return None

    def transcript_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Return how far the transcript of a conversation reaches now: bytes, a number or a time."""
        return 0
