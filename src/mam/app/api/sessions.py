"""The verbs of `fleet.sessions`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, acting, changing, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Unpack

    from mam.adapters.tmux.parse import Listing
    from mam.app.api.verb_group import Access
    from mam.app.observation.ls import Filters
    from mam.app.sessions.create_options import SessionOptions
    from mam.core.session_row import Row

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]

_NOT_RECORDED = "nothing is recorded in a root that somebody else made"


def _discard(requests: dict[str, Callable[[], Listing]]) -> None:
    """Wait for the listings that nobody looks at: each is a process of tmux."""
    for collect in requests.values():
        collect()


class Session:
    """One session of a fleet. The handle is cheap, and each method reads the current state."""

    __slots__ = ("_access", "id", "name", "row")

    def __init__(self, access: Access, row: Row) -> None:
        """Wrap a row; `row` is not updated later."""
        self._access = access
        self.row = row
        self.id = row["id"]
        self.name = row["name"]

    def __repr__(self) -> str:
        """Show name and status."""
        return f"<Session {self.name} {self.row['status']}>"

    def status(self) -> Document:
        """Return the current row with its activity."""
        return Sessions(self._access).status(self.id)

    def wait(self, condition: str, *, timeout: float | None = None) -> Document:
        """Wait until idle, working, waiting, exited or `text:REGEX`."""
        return Sessions(self._access).wait(self.id, condition, timeout=timeout)

    def read(self, *, lines: int | None = None, scrollback: bool = False) -> str:
        """Return what the pane shows."""
        return Sessions(self._access).read(self.id, lines=lines, scrollback=scrollback)

    def transcript(self, *, turns: int = 20) -> Document:
        """Return the last turns of the conversation, with model and tokens; see Sessions.transcript."""
        return Sessions(self._access).transcript(self.id, turns=turns)

    def send(self, text: str, *, when: str = "ready", timeout: float = 0.0) -> Document:
        """Send a message to the session; see Messages.send."""
        from mam.app.api.messages import Messages

        return Messages(self._access).send(self.id, text, when=when, timeout=timeout)

    def interrupt(self) -> Document:
        """Interrupt its turn; see Messages.interrupt."""
        from mam.app.api.messages import Messages

        return Messages(self._access).interrupt(self.id)

    def answer(self, words: str, *, expect: str | None = None) -> Document:
        """Answer the open dialog; see Messages.answer."""
        from mam.app.api.messages import Messages

        return Messages(self._access).answer(self.id, words, expect=expect)

    def explain(self) -> Document:
        """Return every piece of evidence about the activity, and the rule that decided."""
        return Sessions(self._access).explain(self.id)

    def stop(
        self,
        *,
        reason: str | None = None,
        force: bool = False,
        purge_conversation: bool = False,
        run_recorded: bool = False,
    ) -> Session:
        """End the session; see Sessions.stop."""
        return (
            Sessions(self._access)
            .stop(
                self.id,
                reason=reason,
                force=force,
                purge_conversation=purge_conversation,
                run_recorded=run_recorded,
            )
            .session
        )

    def resume(
        self,
        *,
        wait: bool = True,
        trust: bool = False,
        run_recorded: bool = False,
        timeout: float | None = None,
    ) -> Session:
        """Continue the conversation in a new launch; see Sessions.resume."""
        return (
            Sessions(self._access)
            .resume(self.id, wait=wait, trust=trust, run_recorded=run_recorded, timeout=timeout)
            .session
        )

    def restart(
        self, *, reason: str | None = None, force: bool = False, run_recorded: bool = False
    ) -> Session:
        """Stop and resume."""
        return (
            Sessions(self._access)
            .restart(self.id, reason=reason, force=force, run_recorded=run_recorded)
            .session
        )

    def fork(
        self, *, name: str | None = None, role: str | None = None, run_recorded: bool = False
    ) -> Session:
        """Start a second session from a copy of the conversation."""
        return Sessions(self._access).fork(self.id, name=name, role=role, run_recorded=run_recorded)

    def rename(self, name: str) -> Session:
        """Rename the session and its tmux session."""
        return Sessions(self._access).rename(self.id, name)

    def archive(self) -> Session:
        """Archive an ended session."""
        return Sessions(self._access).archive(self.id)


class Outcome:
    """The result of a verb: the session afterwards, and a note if there is something to add.

    `changed` is False if there was nothing to do. `left_running` is for a stop: the processes that the
    session detached and that still run, as `{pid, command}`.
    """

    __slots__ = ("changed", "left_running", "note", "session")

    def __init__(
        self,
        session: Session,
        changed: bool = True,
        note: str | None = None,
        left_running: Documents | None = None,
    ) -> None:
        self.session = session
        self.changed = changed
        self.note = note
        self.left_running = left_running


class Sessions(VerbGroup):
    """The sessions of the root: start and stop them, and read their activity and their log."""

    __slots__ = ()

    @reading
    def get(self, target: str) -> Session:
        """Return the session of that name or id."""
        return Session(self._access, self._context.view_to_show().find(target))

    @reading
    def list(self) -> list[Session]:
        """Return every session, in the order of the registry file."""
        return [Session(self._access, row) for row in self._context.view_to_show().rows if row.get("id")]

    def names(self, *, status: Sequence[str] = ()) -> Names:
        """Return the names of all sessions, or of those with some statuses; nothing else is this cheap."""
        rows = self._context.view_to_show().rows
        return [row["name"] for row in rows if not status or row["status"] in status]

    def ls(self, *, all_roots: bool = False, **filters: Unpack[Filters]) -> Document:
        """Return `{schema_version, root, sessions}` with the activity of each; reads only.

        Filters: status, agent, role (sequences; a session must match one entry of each), waiting.
        """
        from mam.app.context.liveness import request_listings

        # tmux is asked before this import, so that it answers while Python loads the module.
        requests = {} if all_roots else request_listings(self._context)
        if self._access.settle():
            _discard(requests)
            requests = {} if all_roots else request_listings(self._context)
        from mam.app.observation.ls import ls

        try:
            return ls(self._context, all_roots=all_roots, requests=requests, **filters)
        except BaseException:
            _discard(requests)
            raise

    @reading
    def watch(
        self, interval: float = 1.0, *, all_roots: bool = False, **filters: Unpack[Filters]
    ) -> Iterator[Document]:
        """Yield what `ls` returns, at once and whenever it changes."""
        from mam.app.observation.ls import watch

        return watch(self._context, interval, all_roots=all_roots, **filters)

    @reading
    def status(self, target: str) -> Document:
        """Return one session as `ls` shows it, with the whole row; reads only."""
        from mam.app.observation.status import status

        return status(self._context, target)

    @reading
    def explain(self, target: str) -> Document:
        """Return every piece of evidence about a session's activity, and the rule that decided."""
        from mam.app.observation.explain import explain

        return explain(self._context, target)

    @reading
    def read(self, target: str, *, lines: int | None = None, scrollback: bool = False) -> str:
        """Return what a session's pane shows, cleaned for a terminal; once ended, its last screen."""
        from mam.app.observation.read import read

        return read(self._context, target, lines=lines, scrollback=scrollback)

    @reading
    def transcript(self, target: str, *, turns: int = 20) -> Document:
        """Return the last turns of a session's transcript, with model, tokens and cost.

        `{session, conversation, turns: [{role, text, at}], model, tokens_in, tokens_out, tokens_cache_read,
        tokens_cache_write, context, window, context_percent, cost_usd}`; a value that the transcript does not
        have is None.
        """
        from mam.app.observation.transcript import transcript

        return transcript(self._context, target, turns)

    @reading
    def wait(self, target: str, condition: str, *, timeout: float | None = None) -> Document:
        """Return the session's status once the condition holds; raise TimedOut.

        Conditions: idle, working, waiting, exited, `text:REGEX`.
        """
        from mam.app.sessions.wait import wait

        return wait(self._context, target, condition, timeout=timeout)

    @reading
    def log(self, target: str | None = None, *, limit: int = 50, since: float | None = None) -> Documents:
        """Return who did what to which session, and why; oldest first."""
        from mam.app.observation.log import log

        return log(self._context, target, limit=limit, since=since)

    def kinds(self) -> Names:
        """Return the names of the kinds that mam knows; any other name is a program on PATH."""
        from mam.adapters.agents.catalogue import BUILT_IN, entry_point_kinds

        return sorted({*BUILT_IN, *entry_point_kinds()})

    @changing
    def create(
        self, agent: str | None = None, *, submit_job: str | None = None, **options: Unpack[SessionOptions]
    ) -> Session:
        """Start an agent in a new pane, and return when it is ready.

        Options: name, role, tmux_server, prompt, permissions, trust, run_recorded, model, env, worktree, mcp
        (mam's own tools), args, wait, timeout. The name of an ended session starts a new conversation in the
        same row; `run_recorded` runs the command of that row also if mam has not launched it as it is.
        `submit_job` is a task that the agent gets as a job (`jobs.wait` follows it). Raises NotReady or
        DialogOpen, both of which leave the session running, NameTaken, AgentMissing, and errors of tmux and
        the disk.
        """
        limit = self._access.child_limit
        if submit_job is not None:
            from mam.app.job_runner.submit import create_with_job

            row = create_with_job(
                self._context, self._caller, agent, submit_job, child_limit=limit, **options
            )
        else:
            from mam.app.sessions.create import create

            row = create(self._context, self._caller, agent, child_limit=limit, **options)
        return Session(self._access, row)

    @acting
    def stop(
        self,
        target: str,
        *,
        reason: str | None = None,
        force: bool = False,
        purge_conversation: bool = False,
        run_recorded: bool = False,
    ) -> Outcome:
        """End a session and verify its end; an ended session is not touched.

        Processes that the session detached are not ended; `left_running` of the result names them.
        `purge_conversation` also deletes the agent's files of this conversation, irrevocably. For some kinds
        the program of the row does it; `run_recorded` runs it also if mam has not launched it as it is. In a
        root that somebody else made, this ends a live pane of this user's tmux that carries the id of the
        root, and records nothing.
        """
        from mam.app.observation.foreign_root import is_foreign

        if is_foreign(self._context) and not purge_conversation:
            from mam.app.sessions.stop_in_foreign_root import stop_in_foreign_root

            return Outcome(
                Session(self._access, stop_in_foreign_root(self._context, target)), True, _NOT_RECORDED
            )
        from mam.app.sessions.stop import stop

        result = stop(
            self._context,
            self._caller,
            target,
            reason=reason,
            force=force,
            purge=purge_conversation,
            run_recorded=run_recorded,
        )
        self._access.has_removed |= purge_conversation
        session = Session(self._access, result.row)
        return Outcome(session, result.changed, result.note, result.left_running)

    @reading
    def find_unregistered(self, name: str, *, tmux_server: str | None = None) -> Documents:
        """Return the tmux servers that have a session of exactly this name, for `stop_unregistered`."""
        from mam.app.sessions.stop_unregistered import find_unregistered

        return find_unregistered(self._context, name, tmux_server)

    @changing
    def stop_unregistered(
        self, name: str, *, tmux_server: str | None = None, reason: str | None = None
    ) -> Document:
        """End the tmux session of exactly this name, which has no row, and log it."""
        from mam.app.sessions.stop_unregistered import stop_unregistered

        return stop_unregistered(self._context, self._caller, name, tmux_server, reason)

    @changing
    def resume(
        self,
        target: str,
        *,
        wait: bool = True,
        trust: bool = False,
        run_recorded: bool = False,
        timeout: float | None = None,
    ) -> Outcome:
        """Continue a session's conversation in the same row; a running session is not touched.

        A row that mam never launched, or that was edited since, is refused with NotAllowed: `run_recorded`
        runs it all the same. Only the user may give it.
        """
        from mam.app.sessions.resume import resume
        from mam.app.teams.resume_placement import TeamPlacementFinder

        result = resume(
            self._context,
            self._caller,
            target,
            wait=wait,
            trust=trust,
            run_recorded=run_recorded,
            timeout=timeout,
            placement_finder=TeamPlacementFinder(),
        )
        return Outcome(Session(self._access, result.row), result.changed, result.note)

    @changing
    def resumable(self, *, agent: str | None = None, stopped: bool = False) -> Names:
        """Return the names for `resume --all`: sessions that died, and with `stopped` stopped ones too."""
        from mam.app.sessions.resume import resumable

        return resumable(self._context, agent=agent, stopped=stopped)

    @changing
    def restart(
        self,
        target: str,
        *,
        reason: str | None = None,
        force: bool = False,
        run_recorded: bool = False,
        timeout: float | None = None,
    ) -> Outcome:
        """Stop a session, and continue its conversation."""
        from mam.app.sessions.restart import restart
        from mam.app.teams.resume_placement import TeamPlacementFinder

        result = restart(
            self._context,
            self._caller,
            target,
            reason=reason,
            force=force,
            run_recorded=run_recorded,
            timeout=timeout,
            placement_finder=TeamPlacementFinder(),
        )
        return Outcome(Session(self._access, result.row), result.changed, result.note)

    @changing
    def fork(
        self,
        target: str,
        *,
        name: str | None = None,
        role: str | None = None,
        wait: bool = True,
        run_recorded: bool = False,
        timeout: float | None = None,
    ) -> Session:
        """Start a new session from a copy of another session's conversation."""
        from mam.app.sessions.fork import fork

        return Session(
            self._access,
            fork(
                self._context,
                self._caller,
                target,
                name=name,
                role=role,
                wait=wait,
                run_recorded=run_recorded,
                timeout=timeout,
            ),
        )

    def drill(
        self,
        targets: Sequence[str] = (),
        *,
        agent: str | None = None,
        run: bool = False,
        timeout: float | None = None,
    ) -> Document:
        """Check whether each session would come back after a reboot; reads only, unless `run` is given.

        Without `targets`: all sessions that run or can be resumed. With `run` a fork of each is resumed and
        removed again; it gets no message. Only the user may give `run`. `timeout` is how long to wait for
        each fork. Returns `{root, results, ok, unproven, failed}`; see docs/drill.md.
        """
        if run:
            return self._drill_run(targets, agent=agent, timeout=timeout)
        self._access.settle()
        from mam.app.sessions.drill import drill

        return drill(self._context, self._caller, targets, agent=agent)

    @changing
    def _drill_run(
        self, targets: Sequence[str], *, agent: str | None = None, timeout: float | None = None
    ) -> Document:
        from mam.app.sessions.drill_run import drill_run
        from mam.app.sessions.steps_before_each_change import recover_if_needed

        try:
            return drill_run(self._context, self._caller, targets, agent=agent, timeout=timeout)
        finally:
            recover_if_needed(self._context, self._caller)

    @changing
    def rename(self, target: str, name: str) -> Session:
        """Rename a session and its tmux session."""
        from mam.app.sessions.rename import rename

        return Session(self._access, rename(self._context, self._caller, target, name))

    @changing
    def archive(self, target: str) -> Session:
        """Archive an ended session; it can still be resumed."""
        from mam.app.sessions.archive import archive

        return Session(self._access, archive(self._context, self._caller, target))

    @changing
    def forget(self, target: str, *, worktree: bool = False) -> Document:
        """Delete an ended session's row and the messages to it.

        With `worktree` also its worktree, if no work would be lost.
        """
        from mam.app.sessions.forget import forget

        document = forget(self._context, self._caller, target, worktree=worktree)
        self._access.has_removed = True
        return document

    @reading
    def forgettable(self, *, older_than: float | None = None, status: Sequence[str] = ()) -> Names:
        """Return the names of ended sessions; with `older_than` of those that ended so many seconds ago."""
        from mam.app.sessions.forget import forgettable

        return forgettable(self._context, older_than=older_than, status=status)

    @changing
    def adopt(
        self,
        tmux_session: str,
        *,
        agent: str,
        name: str | None = None,
        role: str | None = None,
        pane: str | None = None,
        tmux_server: str | None = None,
    ) -> Session:
        """Register an agent that runs in tmux already."""
        from mam.app.sessions.adopt import adopt

        row = adopt(
            self._context,
            self._caller,
            tmux_session,
            agent=agent,
            name=name,
            role=role,
            pane=pane,
            tmux_server=tmux_server,
        )
        return Session(self._access, row)

    @reading
    def attach(self, target: str | None = None, *, next_waiting: bool = False) -> Document:
        """Switch the tmux client that this process runs in, or return argv and environment to execute.

        `{session, switched: bool, argv: [...], environ: {...}}`
        """
        from mam.app.sessions.attach import attach

        return attach(self._context, target, next_waiting=next_waiting)
