"""Spawn an agent beside the caller: it gets a pane of the window, a role, a task, and a spawner to report to.

The transaction that claims its name also records its onboarding messages, each with its id. So if the
spawner dies half way, the next verb finishes the onboarding, and no message is sent twice.
"""

from __future__ import annotations

import os
import shlex

from mam.adapters.store.files import team_page_file as files
from mam.adapters.store.tables import messages, tasks, teams
from mam.adapters.system import load_adjusted_clock, process
from mam.app.context import own_command
from mam.app.context.caller import calling_row
from mam.app.context.liveness import check_liveness
from mam.app.context.unknown_options import refuse_unknown
from mam.app.messages.launch_end import hold_again
from mam.app.sessions import row_trust
from mam.app.sessions.create import RENEWED, start_session, wait_until_ready
from mam.app.sessions.create_options import CreateOptions
from mam.app.sessions.launch import Placement
from mam.app.teams import onboarding_steps, register, team_page
from mam.app.teams.rebalance import arrange
from mam.app.teams.team_window import TeamWindow, check_room, find_team_window
from mam.core import task_format as task_rules
from mam.core import team_plan as rules
from mam.core.errors import DialogOpen, MamError, NotReady, Refused, StartUnconfirmed
from mam.core.liveness_values import Liveness
from mam.core.message_rules import MessageState
from mam.core.names import parse_name
from mam.core.session_row import has_mcp_server, is_running, merged, own_id_field
from mam.core.session_transitions import alive_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict, Unpack

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Member
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class MemberOptions(TypedDict, total=False):
        """The options that apply to every member of a team."""

        # The agent kind; by default that of the calling agent, else Claude.
        agent: str | None
        permissions: str | None
        model: str | None
        env: Mapping[str, str] | None
        args: Sequence[str]
        # Answer the agent's trust dialog for the directory with yes.
        trust: bool
        # Give the agent mam's own tools.
        mcp: bool
        timeout: float | None

    class SpawnOptions(MemberOptions, total=False):
        """The options of `fleet.teams.spawn`."""

        name: str | None
        task: str | None
        prompt: str | None
        colour: str | None


TRIES = 3
_COMMAND_SECONDS, _PROMPT_SECONDS = 10.0, 30.0
_DEFAULT_AGENT = "claude"
# What a start and a stop change in a row, beside the fields of `RENEWED` and of a running row.
_LAUNCH_FIELDS = ("status", "pane", "tmux_session_id", "conversations", "last_action")


def spawn(
    context: Context,
    caller: Caller,
    role: str,
    *,
    team: str | None = None,
    child_limit: bool = False,
    **options: Unpack[SpawnOptions],
) -> dict[str, Any]:
    """Start one more member and return it once it has its first prompt."""
    caller = register.register_caller(context, caller)
    team_window = find_team_window(context, caller, team)
    member_spawn = Spawn(context, caller, team_window, role, child_limit=child_limit, **options)
    member_spawn.run()
    document = member_spawn.finish()
    if member_spawn.dialog is not None:
        hint = f"{member_spawn.dialog.hint or ''}; mam sends the held messages afterwards".lstrip("; ")
        raise DialogOpen(member_spawn.dialog.message, hint=hint, session=document["session"])
    return document


class Spawn:
    """The start and onboarding of one member."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        team_window: TeamWindow,
        role: str,
        *,
        child_limit: bool = False,
        **options: Unpack[SpawnOptions],
    ) -> None:
        """Check the options; nothing starts yet."""
        # Each option is popped, so whatever remains at the end is unknown.
        name, task = options.pop("name", None), options.pop("task", None)
        self.context = context
        self.caller = caller
        self.team_window = team_window
        self.role = task_rules.parse_role(role)
        self.agent = options.pop("agent", None) or self._usual_agent()
        self.kind = context.kind(self.agent)
        self.colour = options.pop("colour", None) or rules.colour_of(self.role)
        self.name = parse_name(name) if name else None
        self.task = task_rules.parse_text(task) if task else None
        self.permissions = self._permissions(options.pop("permissions", None))
        self.prompt = options.pop("prompt", None)
        self.trust = options.pop("trust", False)
        self.timeout = options.pop("timeout", None)
        self.model = options.pop("model", None)
        self.env = options.pop("env", None)
        self.args = options.pop("args", ())
        self.mcp = options.pop("mcp", False)
        self.child_limit = child_limit
        refuse_unknown(options)
        self.dialog: DialogOpen | None = None
        self.receipts: list[dict[str, Any]] = []
        self._reset()

    def _reset(self) -> None:
        self.row: Row | None = None
        self.launch_file = ""
        self.member: Member | None = None
        # The ended session whose name and row this try uses.
        self.former_row: Row | None = None
        self.task_seq: int | None = None
        self.added_task = False

    def _usual_agent(self) -> str:
        """Return the kind of the calling agent; without one, Claude."""
        row = calling_row(self.context, self.caller)
        return row["agent"] if row and self.context.kind(row["agent"]).takes_prompt else _DEFAULT_AGENT

    def _permissions(self, option: str | None) -> str:
        permissions = option or self.context.settings().team_permissions
        if option is None and permissions != "default" and not self.kind.takes_permissions:
            return "default"
        return permissions

    def run(self, *, is_started: bool = False) -> None:
        """Start the agent and wait for it, in at most three tries. NotReady leaves nothing behind."""
        failure = NotReady()
        for number in range(1, TRIES + 1):
            if number > 1:
                self.context.progress(f"trying again: {failure.message}")
            try:
                if number > 1 or not is_started:
                    self.start()
                self.wait()
                return
            except NotReady as error:
                failure = error
                self.undo()
        raise NotReady(
            f"the {self.role} agent did not start in {TRIES} tries: {failure.message}",
            hint=f"mam create --agent {self.agent} starts it alone, and mam read shows its screen",
        )

    def start(self) -> None:
        """Start the agent in its pane and arrange the window."""
        self._reset()
        check_room(self.context, self.team_window)
        create_options = self.create_options()
        try:
            self.row, self.launch_file = start_session(self.context, self.caller, create_options)
            self._place_in_window()
        except StartUnconfirmed:
            raise
        except MamError:
            self.undo()
            raise

    def create_options(self) -> CreateOptions:
        """Return the options for `create`."""
        self._create_options = CreateOptions(
            self.context,
            self.agent,
            role=self.role,
            tmux_server=self.team_window.server,
            permissions=self.permissions,
            name=self.name,
            stem=self.role,
            placement=Placement(window_id=self.team_window.window_id, session_name=self.team_window.team_id),
            on_claim=self._record_member,
            trust=self.trust,
            timeout=self.timeout,
            child_limit=self.child_limit,
            model=self.model,
            env=self.env,
            args=self.args,
            mcp=self.mcp,
        )
        return self._create_options

    def _record_member(self, transaction: Transaction, row: Row) -> None:
        """Record team, member, task and onboarding messages, in the transaction of the intent."""
        by = self.caller.name
        self.team_window.open(transaction, by)
        open_members = [
            member for member in teams.members(transaction, self.team_window.team_id) if teams.is_open(member)
        ]
        if len(open_members) >= rules.MOST_MEMBERS:
            raise Refused(f"a team has at most {rules.MOST_MEMBERS} members", hint="mam close NAME")
        self.former_row = transaction.get(row["id"])
        task = self._take_task(transaction, row, by)
        prompt = self._prompt(transaction, task)
        if not self.kind.takes_prompt:
            self._create_options.prompt = prompt
        self.member = teams.add_member(
            transaction,
            team_id=self.team_window.team_id,
            session_id=row["id"],
            name=row["name"],
            role=self.role,
            colour=self.colour,
            name_source=rules.MANUAL if self.name else rules.AUTO,
            workspace=row["workspace"],
            state=rules.SPAWNING,
            owner=process.me().as_json(),
            words=self._onboarding_messages(prompt),
        )

    def _take_task(self, transaction: Transaction, row: Row, by: str) -> tasks.Task | None:
        if self.task is not None:
            task: tasks.Task | None = tasks.add(
                transaction, role=self.role, text=self.task, by=by, team_id=self.team_window.team_id
            )
            self.added_task = True
        else:
            task = tasks.oldest(transaction, self.role, self.team_window.team_id)
        if task is None:
            return None
        self.task_seq = task.seq
        return tasks.claim(transaction, task.seq, row["id"], None)

    def _prompt(self, transaction: Transaction, task: tasks.Task | None) -> str:
        spawner = transaction.get(self.caller.name)
        return rules.first_message(
            role=self.role,
            team=self.team_window.team_id,
            spawner=spawner["name"] if spawner else None,
            work=rules.work_line(task.seq, task.text) if task else None,
            prompt=self.prompt,
            command=shlex.join(own_command.any_command(self.context.environ.get("PATH", os.defpath))),
        )

    def _onboarding_messages(self, prompt: str) -> list[dict[str, Any]]:
        """Return the onboarding messages in their order. Each has its id already, so none is sent twice."""
        if not self.kind.reads_screen:
            return []
        commands = self.kind.identity_commands(self.name or rules.agent_name(self.role), self.colour)
        identity = [{"id": messages.new_id(), "text": command, "command": True} for command in commands]
        return [*identity, {"id": messages.new_id(), "text": prompt, "command": False}]

    def _place_in_window(self) -> None:
        """Record the pane of the member, label it, and arrange the window."""
        assert self.row is not None and self.member is not None
        self.member = onboarding_steps.place_member(self.context, self.row, self.member)
        if self.team_window.window_id is None:
            self.team_window.window_id = self.member.window_id
        arrange(self.context, self.team_window.team_id)

    def wait(self) -> None:
        """Wait until the agent is ready, and send it its colour and name. An open dialog ends the wait."""
        assert self.row is not None and self.member is not None
        try:
            self.row = wait_until_ready(
                self.context,
                self.caller,
                self.row,
                self.launch_file,
                trust=self.trust,
                seconds=self.timeout,
            )
        except DialogOpen as error:
            self.dialog = error
        commands = [message for message in self.member.words if message["command"]]
        patience = 0.0 if self.dialog else load_adjusted_clock.stretched(_COMMAND_SECONDS)
        self.receipts = [
            onboarding_steps.send_identity(self.context, self.row, message, patience) for message in commands
        ]
        if check_liveness(self.context, self.row).state != Liveness.ALIVE:
            raise NotReady(f"'{self.row['name']}' ended when mam sent it its name", session=self.row)

    def undo(self) -> None:
        """Undo one try: remove its process, pane, row, member, and the task that it added."""
        member = self.member
        if member is None:
            return
        end_failed_session(self.context, self.caller, member, self.former_row)

        def work(transaction: Transaction) -> None:
            for entry in member.words:
                message = messages.find(transaction, entry["id"])
                if message is not None and message.state == MessageState.HELD:
                    messages.update(
                        transaction, message.id, state=MessageState.FAILED, reason="its spawn was undone"
                    )
            teams.remove_member(transaction, member)
            if self.task_seq is not None and self.added_task:
                tasks.remove(transaction, self.task_seq)
            tasks.release(transaction, member.session_id)
            self.team_window.undo_open(transaction)

        self.context.registry.note(work)
        team_page.write(self.context, [self.team_window.team_id])
        self.team_window.remove_made_folders()
        self.team_window.forget_closed_window(self.context)
        self._reset()

    def finish(self) -> dict[str, Any]:
        """Send the first prompt; return the member, its task, and the receipts."""
        assert self.row is not None and self.member is not None
        patience = 0.0 if self.dialog else load_adjusted_clock.stretched(_PROMPT_SECONDS)
        # Name the master first, because the new member may report soon.
        onboarding_steps.name_master(self.context, self.team_window)
        receipt = onboarding_steps.send_first_prompt(self.context, self.row, self.member, patience)
        self.context.registry.note(lambda transaction: onboarding_steps.mark_active(transaction, self.row))
        team_page.write(self.context, [self.team_window.team_id])
        return self._document(receipt)

    def _document(self, receipt: dict[str, Any] | None) -> dict[str, Any]:
        assert self.row is not None
        session_id = self.row["id"]

        def read(transaction: Transaction) -> dict[str, Any]:
            member = teams.member(transaction, session_id)
            task = tasks.find(transaction, self.task_seq) if self.task_seq else None
            return {
                "session": transaction.get(session_id) or self.row,
                "member": team_page.describe_member(transaction, member) if member else None,
                "team": self.team_window.team_id,
                "permissions": self.permissions,
                "dialog": self.dialog.message if self.dialog else None,
                "task": team_page.describe_task(transaction, task) if task else None,
                "identity": self.receipts,
                "receipt": receipt,
                "session_file": files.path_of(self.context.paths, self.team_window.team_id),
            }

        empty: dict[str, Any] = {}
        return self.context.registry.peek(read, empty)


def _row_of_try(context: Context, caller: Caller, session_id: str) -> Row | None:
    """Return the row of the session that a failed try has started; None if it has started none.

    Where the row could not be recorded, as on a full disk, the claim on it would have the session started by
    the next recovery. So it is recovered now, and then ended.
    """
    view = context.registry.view()
    row = view.by_id(session_id)
    if row is None and any(intent.session_id == session_id for intent in view.intents):
        from mam.app.sessions.steps_before_each_change import recover_if_needed

        recover_if_needed(context, caller)
        row = context.registry.view().by_id(session_id)
    return row


def end_failed_session(context: Context, caller: Caller, member: Member, former_row: Row | None) -> None:
    """End the session of a failed try. Remove its row, or restore what the try changed in it.

    What somebody else changed meanwhile, such as the name, stays. The messages of the former launch are held
    again.
    """
    from mam.app.sessions.forget import forget, remove_dead_pane
    from mam.app.sessions.stop import stop

    session_id = member.session_id
    row = _row_of_try(context, caller, session_id)
    if row is None:
        return
    if is_running(row):
        stop(context, caller, session_id, reason="spawn failed", force=True)
    if former_row is None:
        forget(context, caller, session_id)
        return
    remove_dead_pane(context, row)

    def restore(transaction: Transaction) -> None:
        current = transaction.get(session_id)
        if current is not None and not is_running(current):
            # A resume opens the last conversation of the row, and no agent ever began that of this try.
            fields = (*_LAUNCH_FIELDS, *RENEWED, *alive_fields(), own_id_field(current["agent"]))
            former = {key: value for key, value in former_row.items() if key in fields}
            hold_again(transaction, transaction.put(merged(current, **former)), member.spawned_at)

    context.registry.change(restore)
    # The start of the try was allowed because of this command, so the next start of the session may have it.
    row_trust.note_launch(context, former_row, mcp=has_mcp_server(former_row))
    row_trust.confirm_launch(context, former_row)
