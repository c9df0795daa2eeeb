"""Spawn an agent beside the caller: a pane of the window, a role, a task, and somebody to report to.

What it is to be told is recorded in the transaction that claims its name, each message with its id, so a
spawner that dies half way leaves a member whom the next verb greets, and no message goes out twice.
"""

from __future__ import annotations

import os
import shlex

from mam.adapters.store.files import team_page_file as files
from mam.adapters.store.tables import messages, tasks, teams
from mam.adapters.system import load_adjusted_clock, process
from mam.app.context import own_command
from mam.app.context.caller import calling_row
from mam.app.context.liveness import see_one
from mam.app.sessions.create import begin, wait_until_ready
from mam.app.sessions.create_options import CreateOptions, refuse_unknown
from mam.app.sessions.launch import Where
from mam.app.teams import onboarding, register, team_page
from mam.app.teams.rebalance import arrange
from mam.app.teams.team_window import TeamWindow, check_room, find_site
from mam.core import task as task_rules
from mam.core import team as rules
from mam.core.errors import DialogOpen, MamError, NotReady, Refused, StartUnconfirmed
from mam.core.liveness import Liveness
from mam.core.message import MessageState
from mam.core.names import parse_name
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict, Unpack

    from mam.adapters.store.tables.teams import Member
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class MemberOptions(TypedDict, total=False):
        """What a caller may ask of every member of a team."""

        # The kind: the caller's own where an agent calls, else Claude.
        agent: str | None
        permissions: str | None
        model: str | None
        env: Mapping[str, str] | None
        args: Sequence[str]
        # Answer the agent's question whether it may trust the directory.
        trust: bool
        # Give the agent mam's own tools.
        mcp: bool
        timeout: float | None

    class SpawnOptions(MemberOptions, total=False):
        """What a caller of `fleet.teams.spawn` may ask for besides."""

        name: str | None
        task: str | None
        prompt: str | None
        colour: str | None


TRIES = 3
_COMMAND_SECONDS, _PROMPT_SECONDS = 10.0, 30.0
_DEFAULT_AGENT = "claude"


def spawn(
    context: Context,
    caller: Caller,
    role: str,
    *,
    team: str | None = None,
    child_limit: bool = False,
    **options: Unpack[SpawnOptions],
) -> dict[str, Any]:
    """Start one more member and return it once it was told what to do."""
    caller = register.know_caller(context, caller)
    site = find_site(context, caller, team)
    one = Spawn(context, caller, site, role, child_limit=child_limit, **options)
    one.run()
    done = one.finish()
    if one.dialog is not None:
        hint = f"{one.dialog.hint or ''}; what it is to be told goes out by itself then".lstrip("; ")
        raise DialogOpen(one.dialog.message, hint=hint, session=done["session"])
    return done


class Spawn:
    """One member on its way into a team."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        site: TeamWindow,
        role: str,
        *,
        child_limit: bool = False,
        **options: Unpack[SpawnOptions],
    ) -> None:
        """Take what is asked for; nothing is started."""
        # Each option is taken out, and one that is left is none of ours.
        name, task = options.pop("name", None), options.pop("task", None)
        self.context = context
        self.caller = caller
        self.site = site
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
        self._forget_try()

    def _forget_try(self) -> None:
        self.row: Row | None = None
        self.launch_file = ""
        self.member: Member | None = None
        self.is_fresh = False
        self.task_seq: int | None = None
        self.added_task = False

    def _usual_agent(self) -> str:
        """Return the caller's own kind where an agent calls, else Claude."""
        row = calling_row(self.context, self.caller)
        return row["agent"] if row and self.context.kind(row["agent"]).takes_prompt else _DEFAULT_AGENT

    def _permissions(self, asked: str | None) -> str:
        wanted = asked or self.context.settings().team_permissions
        if asked is None and wanted != "default" and not self.kind.takes_permissions:
            return "default"
        return wanted

    def run(self, *, is_started: bool = False) -> None:
        """Start it and wait for it, at most three times; raises NotReady with nothing left behind."""
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
                self.take_back()
        raise NotReady(
            f"the {self.role} agent did not start in {TRIES} tries: {failure.message}", hint=failure.hint
        )

    def start(self) -> None:
        """Start it in its pane and put the window in order."""
        self._forget_try()
        check_room(self.context, self.site)
        order = self.order()
        try:
            self.row, self.launch_file = begin(self.context, self.caller, order)
            self._stand()
        except StartUnconfirmed:
            raise
        except MamError:
            self.take_back()
            raise

    def order(self) -> CreateOptions:
        """Return what create is asked for."""
        self._order = CreateOptions(
            self.context,
            self.agent,
            role=self.role,
            tmux_server=self.site.server,
            permissions=self.permissions,
            name=self.name,
            stem=self.role,
            where=Where(window_id=self.site.window_id, session_name=self.site.team_id),
            also=self._enrol,
            trust=self.trust,
            timeout=self.timeout,
            child_limit=self.child_limit,
            model=self.model,
            env=self.env,
            args=self.args,
            mcp=self.mcp,
        )
        return self._order

    def _enrol(self, draft: Transaction, row: Row) -> None:
        """Record team, member, task and first words with the intent of the start."""
        by = self.caller.name
        self.site.open(draft, by)
        known = [one for one in teams.members(draft, self.site.team_id) if teams.is_open(one)]
        if len(known) >= rules.MOST_MEMBERS:
            raise Refused(f"a team has at most {rules.MOST_MEMBERS} members", hint="mam close NAME")
        self.is_fresh = draft.get(row["id"]) is None
        found = self._take_task(draft, row, by)
        prompt = self._prompt(draft, found)
        if not self.kind.takes_prompt:
            self._order.prompt = prompt
        self.member = teams.join(
            draft,
            team_id=self.site.team_id,
            session_id=row["id"],
            name=row["name"],
            role=self.role,
            colour=self.colour,
            name_source=rules.MANUAL if self.name else rules.AUTO,
            workspace=row["workspace"],
            state=rules.SPAWNING,
            owner=process.me().as_json(),
            words=self._words(prompt),
        )

    def _take_task(self, draft: Transaction, row: Row, by: str) -> tasks.Task | None:
        if self.task is not None:
            found: tasks.Task | None = tasks.add(
                draft, role=self.role, text=self.task, by=by, team_id=self.site.team_id
            )
            self.added_task = True
        else:
            found = tasks.oldest(draft, self.role, self.site.team_id)
        if found is None:
            return None
        self.task_seq = found.seq
        return tasks.claim(draft, found.seq, row["id"], None)

    def _prompt(self, draft: Transaction, found: tasks.Task | None) -> str:
        spawner = draft.get(self.caller.name)
        return rules.first_words(
            role=self.role,
            team=self.site.team_id,
            spawner=spawner["name"] if spawner else None,
            work=rules.work_line(found.seq, found.text) if found else None,
            prompt=self.prompt,
            command=shlex.join(own_command.named(self.context.environ.get("PATH", os.defpath))),
        )

    def _words(self, prompt: str) -> list[dict[str, Any]]:
        """Return the messages that it is greeted with, in order; each has its id from the start."""
        if not self.kind.reads_screen:
            return []
        commands = self.kind.identity(self.name or rules.agent_name(self.role), self.colour)
        words = [{"id": messages.new_id(), "text": one, "command": True} for one in commands]
        return [*words, {"id": messages.new_id(), "text": prompt, "command": False}]

    def _stand(self) -> None:
        """Record where it stands, write on its border, and put the window in order."""
        assert self.row is not None and self.member is not None
        self.member = onboarding.settle_in(self.context, self.row, self.member)
        if self.site.window_id is None:
            self.site.window_id = self.member.window_id
        arrange(self.context, self.site.team_id)

    def wait(self) -> None:
        """Wait until it is ready, and give it its colour and name; an open dialog ends the waiting."""
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
        commands = [one for one in self.member.words if one["command"]]
        patience = 0.0 if self.dialog else load_adjusted_clock.stretched(_COMMAND_SECONDS)
        self.receipts = [onboarding.identify(self.context, self.row, one, patience) for one in commands]
        if see_one(self.context, self.row).state != Liveness.ALIVE:
            raise NotReady(f"'{self.row['name']}' ended when it was given its name", session=self.row)

    def take_back(self) -> None:
        """Leave nothing of a try behind: no process, pane, row, member, or task of ours."""
        member = self.member
        if member is None:
            return
        withdraw(self.context, self.caller, member.session_id, is_fresh=self.is_fresh)

        def work(draft: Transaction) -> None:
            for one in member.words:
                said = messages.find(draft, one["id"])
                if said is not None and said.state == MessageState.HELD:
                    messages.update(
                        draft, said.id, state=MessageState.FAILED, reason="its spawn was taken back"
                    )
            teams.leave(draft, member)
            if self.task_seq is not None and self.added_task:
                tasks.remove(draft, self.task_seq)
            tasks.release(draft, member.session_id)
            teams.remove(draft, self.site.team_id)

        self.context.registry.note(work)
        self.site.look_again(self.context)
        self._forget_try()

    def finish(self) -> dict[str, Any]:
        """Give it its first words; return the member, its task, and what became of the words."""
        assert self.row is not None and self.member is not None
        patience = 0.0 if self.dialog else load_adjusted_clock.stretched(_PROMPT_SECONDS)
        # The master first: what this one reports may come soon.
        onboarding.name_master(self.context, self.site)
        receipt = onboarding.tell(self.context, self.row, self.member, patience)
        self.context.registry.note(lambda draft: onboarding.introduced(draft, self.row))
        team_page.write(self.context, [self.site.team_id])
        return self._document(receipt)

    def _document(self, receipt: dict[str, Any] | None) -> dict[str, Any]:
        assert self.row is not None
        session_id = self.row["id"]

        def read(draft: Transaction) -> dict[str, Any]:
            member = teams.member(draft, session_id)
            found = tasks.find(draft, self.task_seq) if self.task_seq else None
            return {
                "session": draft.get(session_id) or self.row,
                "member": team_page.describe(draft, member) if member else None,
                "team": self.site.team_id,
                "permissions": self.permissions,
                "dialog": self.dialog.message if self.dialog else None,
                "task": team_page.described(draft, found) if found else None,
                "identity": self.receipts,
                "receipt": receipt,
                "session_file": files.path_of(self.context.paths, self.site.team_id),
            }

        nothing: dict[str, Any] = {}
        return self.context.registry.peek(read, nothing)


def withdraw(context: Context, caller: Caller, session_id: str, *, is_fresh: bool) -> None:
    """End a session of a try that failed, and drop the row that it made."""
    from mam.app.sessions.forget import forget, remove_dead_pane
    from mam.app.sessions.stop import stop

    row = context.registry.view().by_id(session_id)
    if row is None:
        return
    if is_running(row):
        stop(context, caller, session_id, reason="spawn failed", force=True)
    if is_fresh:
        forget(context, caller, session_id)
    else:
        remove_dead_pane(context, row)
