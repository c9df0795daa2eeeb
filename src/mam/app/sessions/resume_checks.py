"""What must hold for a resume, one check after the other.

`resume` ends with the error of the first check that fails, `restart` does so before it stops the session, and
`drill` lists the errors of all. So a drill finds what a resume finds. The checks only read.
"""

from __future__ import annotations

from mam.app.observation import conversations
from mam.app.sessions import launch, row_trust
from mam.app.sessions.death import row_after_death
from mam.core import session_transitions
from mam.core.errors import IllegalTransition
from mam.core.names import parse_row_name
from mam.core.resume_choice import Choice
from mam.core.session_row import has_mcp_server, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def refuse_command_of_job(context: Context, row: Row) -> None:
    """Raise IllegalTransition for a session that ran the command of a job: it has nothing to go on with."""
    if context.kind(row["agent"]).runs_command_of_job:
        raise IllegalTransition(
            f"'{row['name']}' runs the command of a job once, and cannot be resumed",
            hint="submit the job again: mam job submit --exec … -- PROGRAM ARG…",
        )


def fork_origin(context: Context, row: Row, choice: Choice) -> str | None:
    """Return the conversation that a fork copies, while the fork itself is not on disk yet."""
    entry = next((item for item in row.get("conversations") or [] if item["id"] == choice.id), None)
    origin = entry.get("fork_of") if entry and not choice.on_disk else None
    return origin if origin and conversations.on_disk(context, row, origin) else None


def as_after_its_end(context: Context, view: View, row: Row) -> Row:
    """Return the row of a running session as it would be recorded after the end of its process."""
    if not is_running(row):
        return row
    reported = conversations.reported_conversation(context, row)
    last_row = conversations.with_conversation(context, row, reported, lambda: view.rows)
    return row_after_death(context, last_row, "died")


class ResumeChecks:
    """The checks of one resume of one ended session. Each raises the error with which a resume would end."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        row: Row,
        rows: Sequence[Row],
        identities: dict[str, Any],
        *,
        run_recorded: bool = False,
        listed: dict[Any, list[str]] | None = None,
        runs: bool = False,
    ) -> None:
        """Take the row, with the other rows and the identity cache of its registry.

        `listed` is a cache of the conversations on disk, for several sessions. `runs` tells that the session
        runs, and that the row is what it will be after its end.
        """
        self.context = context
        self.caller = caller
        self.row = row
        self.rows = rows
        self.identities = identities
        self.run_recorded = run_recorded
        self.listed = listed
        self.runs = runs
        self.kind = context.kind(row["agent"])
        # What would be resumed, and the full path of the program that does it: known after their checks.
        self.choice = Choice(None, None, None)
        self.program = ""

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the caller, with the variables of the row."""
        return {**self.context.environ, **(self.row.get("stores") or {})}

    def run(self) -> Choice:
        """Run all checks; return what is resumed."""
        for check in CHECKS:
            check.run(self)
        return self.choice

    def check_status(self) -> None:
        """Refuse a session that is running."""
        session_transitions.next_status(self.row["status"], "resume", self.row["name"])

    def check_kind(self) -> None:
        """Refuse a session that ran the command of a job."""
        refuse_command_of_job(self.context, self.row)

    def check_row(self) -> None:
        """Refuse a name that tmux cannot have, and values that a program would take for something else."""
        parse_row_name(self.row["name"])
        row_trust.refuse_flaws(self.row)

    def check_workspace(self) -> None:
        """Refuse a session whose workspace is gone, or is another directory since the root was moved."""
        launch.check_recorded_workspace(self.context, self.row["workspace"])

    def check_command(self) -> None:
        """Refuse a command that mam has not launched as it is."""
        row_trust.refuse(self.context, self.caller, self.row, run_recorded=self.run_recorded)

    def check_conversation(self) -> None:
        """Choose the conversation; refuse a session that has none to resume, or that another one holds."""
        if not self.kind.can_resume:
            return
        self.choice = conversations.resume_choice(
            self.context, self.row, self.rows, self.identities, self.listed
        )
        reason = conversations.resume_refusal(self.row, self.choice)
        if self.choice.id:
            # While another process resumes the conversation, its file may have no history for a moment.
            conversations.refuse_if_held(self.context, self.row, self.choice.id, runs=self.runs)
        if reason:
            raise IllegalTransition(
                f"'{self.row['name']}' cannot be resumed: {reason}",
                hint=conversations.way_to_begin_anew(self.row, runs=self.runs),
            )

    def check_program(self) -> None:
        """Refuse a program that is not on PATH."""
        command = self.row.get("start_command") or [self.row["agent"]]
        self.program = launch.find_program(self.context, self.kind, command, self.environ)

    def check_launch(self) -> None:
        """Refuse arguments and permissions that the program would not take."""
        has_tools = has_mcp_server(self.row)
        launch.describe_launch(
            self.context,
            self.row,
            self.program,
            self.environ,
            # Nothing is started, so there is no secret.
            attachment=launch.attachment_of(self.context, self.row, "") if has_tools else None,
            conversation=self.choice.id,
            resume=bool(self.choice.on_disk),
            fork_of=fork_origin(self.context, self.row, self.choice),
        )


class Check:
    """One check: its name, and the checks without which it says nothing."""

    __slots__ = ("name", "needs", "run")

    def __init__(self, name: str, run: Callable[[ResumeChecks], None], needs: tuple[str, ...] = ()) -> None:
        self.name = name
        self.run = run
        self.needs = needs


CHECKS = (
    Check("status", ResumeChecks.check_status),
    Check("kind", ResumeChecks.check_kind),
    Check("row", ResumeChecks.check_row),
    Check("workspace", ResumeChecks.check_workspace),
    Check("command", ResumeChecks.check_command, needs=("row",)),
    Check("conversation", ResumeChecks.check_conversation, needs=("kind", "row")),
    Check("program", ResumeChecks.check_program, needs=("kind", "row")),
    Check("launch", ResumeChecks.check_launch, needs=("conversation", "program")),
)
