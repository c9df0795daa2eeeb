"""The Python API: `mam.open()` gives a Fleet, a Fleet gives Sessions, and both have the verbs.

The command line is written on this and on nothing else. A verb's code is loaded when the verb is
called; an error is always one of `mam.core.errors`.
"""

from __future__ import annotations

from mam.app.api.agent_tools import AgentToolVerbs
from mam.app.api.boards import BoardVerbs
from mam.app.api.jobs import JobVerbs
from mam.app.api.messages import MessageVerbs
from mam.app.api.teams import TeamVerbs
from mam.app.context.context import open_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mam.app.monitor.resident import ResidentTask
    from mam.core.session_row import Row

    Document = dict[str, Any]


class Session:
    """One session of a fleet: a handle that is cheap to make and asks anew each time."""

    __slots__ = ("_fleet", "id", "name", "row")

    def __init__(self, fleet: Fleet, row: Row) -> None:
        """Wrap a row as it was when somebody looked."""
        self._fleet = fleet
        self.row = row
        self.id = row["id"]
        self.name = row["name"]

    def __repr__(self) -> str:
        """Show name and status."""
        return f"<Session {self.name} {self.row['status']}>"

    def status(self) -> Document:
        """Return the whole row with its activity, as it is now."""
        return self._fleet.status(self.id)

    def wait(self, condition: str, *, timeout: float | None = None) -> Document:
        """Wait until idle, working, waiting, exited or `text:REGEX`."""
        return self._fleet.wait(self.id, condition, timeout=timeout)

    def read(self, *, lines: int | None = None, scrollback: bool = False) -> str:
        """Return what the pane shows."""
        return self._fleet.read(self.id, lines=lines, scrollback=scrollback)

    def transcript(self, *, turns: int = 20) -> Document:
        """Return the last turns of the conversation, with model and tokens; see Fleet.transcript."""
        return self._fleet.transcript(self.id, turns=turns)

    def send(self, text: str, *, when: str = "ready", timeout: float = 0.0) -> Document:
        """Send words to the session; see Fleet.send."""
        return self._fleet.send(self.id, text, when=when, timeout=timeout)

    def interrupt(self) -> Document:
        """Cut its turn short; see Fleet.interrupt."""
        return self._fleet.interrupt(self.id)

    def answer(self, words: str, *, expect: str | None = None) -> Document:
        """Answer the dialog that is open; see Fleet.answer."""
        return self._fleet.answer(self.id, words, expect=expect)

    def explain(self) -> Document:
        """Return every piece of evidence about the activity, and the rule that decided."""
        return self._fleet.explain(self.id)

    def stop(
        self, *, reason: str | None = None, force: bool = False, purge_conversation: bool = False
    ) -> Session:
        """End the session; see Fleet.stop."""
        return self._fleet.stop(
            self.id, reason=reason, force=force, purge_conversation=purge_conversation
        ).session

    def resume(self, *, wait: bool = True, trust: bool = False, timeout: float | None = None) -> Session:
        """Take the conversation up again; see Fleet.resume."""
        return self._fleet.resume(self.id, wait=wait, trust=trust, timeout=timeout).session

    def restart(self, *, reason: str | None = None, force: bool = False) -> Session:
        """Stop and resume."""
        return self._fleet.restart(self.id, reason=reason, force=force).session

    def fork(self, *, name: str | None = None, role: str | None = None) -> Session:
        """Start a second session from a copy of the conversation."""
        return self._fleet.fork(self.id, name=name, role=role)

    def rename(self, name: str) -> Session:
        """Rename the session and its tmux session."""
        return self._fleet.rename(self.id, name)

    def archive(self) -> Session:
        """Put an ended session away."""
        return self._fleet.archive(self.id)


class Outcome:
    """What a verb did to a session: the session after it, and a note where there is something to say.

    `changed` is False when there was nothing to do.
    """

    __slots__ = ("changed", "note", "session")

    def __init__(self, session: Session, changed: bool = True, note: str | None = None) -> None:
        self.session = session
        self.changed = changed
        self.note = note


class Fleet(MessageVerbs, BoardVerbs, JobVerbs, TeamVerbs, AgentToolVerbs):
    """The sessions of one root."""

    def __enter__(self) -> Fleet:
        """Use as a context to close the database at the end."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Let go of everything that is open. Sessions keep running."""
        self.context.close()

    def in_directory(self, directory: str) -> Fleet:
        """Return the same fleet as if opened in a directory, named from where we are. They close together."""
        return Fleet(self.context.in_directory(directory), self._caller, child_limit=self._child_limit)

    def for_thread(self) -> Fleet:
        """Return the same fleet with connections of its own, for another thread; close it there."""
        return Fleet(self.context.for_thread(), self.caller, child_limit=self._child_limit)

    @property
    def root(self) -> str:
        """The directory that holds the state."""
        return self.context.paths.root

    @property
    def registry_file(self) -> str:
        """The YAML file that people read."""
        return self.context.paths.yaml

    def on_progress(self, tell: Callable[[str], None]) -> None:
        """Have long work tell what it is doing, one short sentence at a time."""
        self.context = self.context.replace(progress=tell)

    def on_warning(self, tell: Callable[[str], None]) -> None:
        """Hear what deserves attention and stops nothing."""
        self.context = self.context.replace(warn=tell)

    def accompany(self, task: ResidentTask) -> None:
        """Run a task with the resident whenever this fleet watches its root, in whichever way."""
        self._tasks.append(task)

    def init(self) -> str:
        """Make the current directory, or the workspace, a root; return the registry file."""
        from mam.app.sessions.init import init

        self._settle()
        return init(self.context, self.caller)

    def create(
        self,
        agent: str | None = None,
        *,
        name: str | None = None,
        role: str | None = None,
        tmux_server: str | None = None,
        prompt: str | None = None,
        permissions: str | None = None,
        trust: bool = False,
        model: str | None = None,
        env: Mapping[str, str] | None = None,
        worktree: str | bool | None = None,
        mcp: bool = False,
        args: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
        submit_job: str | None = None,
    ) -> Session:
        """Start an agent in a pane of its own and return when it is ready.

        A name that has ended is started anew in the same row, with a new conversation. `mcp` gives it mam's
        own tools, `submit_job` is a task that it gets as a job (`job_wait` follows it). Raises NotReady or
        DialogOpen while the session stays, NameTaken, AgentMissing, and what tmux and the disk may raise.
        """
        from mam.app.sessions.create import create

        if submit_job is not None:
            from mam.app.job_runner.submit import creating

            create = creating(submit_job, prompt=prompt, wait=wait)
            prompt = None
        self._settle()
        row = create(
            self.context,
            self.caller,
            agent,
            name=name,
            role=role,
            tmux_server=tmux_server,
            prompt=prompt,
            permissions=permissions,
            trust=trust,
            model=model,
            env=env,
            worktree=worktree,
            mcp=mcp,
            args=args,
            wait=wait,
            timeout=timeout,
            child_limit=self._child_limit,
        )
        return Session(self, row)

    def get(self, target: str) -> Session:
        """Return the session of that name or id."""
        return Session(self, self.context.registry.view().find(target))

    def sessions(self) -> list[Session]:
        """Return every session, in the order of the registry file."""
        return [Session(self, row) for row in self.context.registry.view().rows if row.get("id")]

    def stop(
        self, target: str, *, reason: str | None = None, force: bool = False, purge_conversation: bool = False
    ) -> Outcome:
        """End a session and prove it; an ended one is left as it is.

        `purge_conversation` also deletes the agent's files of this conversation, for good.
        """
        from mam.app.sessions.stop import stop

        self._settle()
        done = stop(self.context, self.caller, target, reason=reason, force=force, purge=purge_conversation)
        self._flush()
        return Outcome(Session(self, done.row), done.already is None, done.already)

    def stop_unregistered(
        self, name: str, *, tmux_server: str | None = None, reason: str | None = None
    ) -> Document:
        """End a tmux session of exactly this name that no row speaks of, and log it."""
        from mam.app.sessions.stop_unregistered import stop_unregistered

        self._settle()
        return stop_unregistered(self.context, self.caller, name, tmux_server, reason)

    def resume(
        self, target: str, *, wait: bool = True, trust: bool = False, timeout: float | None = None
    ) -> Outcome:
        """Take up a session's conversation in the same row; a running one is left as it is."""
        from mam.app.sessions.resume import resume
        from mam.app.teams.resume_placement import TeamHome

        self._settle()
        done = resume(
            self.context, self.caller, target, wait=wait, trust=trust, timeout=timeout, home=TeamHome()
        )
        return Outcome(Session(self, done.row), done.changed, done.note)

    def resumable(self, *, agent: str | None = None, stopped: bool = False) -> list[str]:
        """Return the names that `resume --all` means: those that died, and with `stopped` the others too."""
        from mam.app.sessions.resume import resumable

        self._settle()
        return resumable(self.context, agent=agent, stopped=stopped)

    def restart(
        self, target: str, *, reason: str | None = None, force: bool = False, timeout: float | None = None
    ) -> Outcome:
        """Stop a session and take its conversation up again."""
        from mam.app.sessions.restart import restart
        from mam.app.teams.resume_placement import TeamHome

        self._settle()
        done = restart(
            self.context, self.caller, target, reason=reason, force=force, timeout=timeout, home=TeamHome()
        )
        return Outcome(Session(self, done.row), done.changed, done.note)

    def fork(
        self,
        target: str,
        *,
        name: str | None = None,
        role: str | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Session:
        """Start a new session from a copy of another one's conversation."""
        from mam.app.sessions.fork import fork

        self._settle()
        return Session(
            self, fork(self.context, self.caller, target, name=name, role=role, wait=wait, timeout=timeout)
        )

    def reconcile(self, *, dry_run: bool = False, emit_diff: bool = False) -> Document:
        """Make one pass of the monitor: bring the registry in line with what is there, and report it.

        With `dry_run` nothing is written. `emit_diff` adds what a resident recorded since the last such pass.
        """
        from mam.app.sessions.reconcile import one_pass

        return one_pass(self.context, self.caller, dry_run=dry_run, emit_diff=emit_diff)

    def monitor(
        self,
        tell: Callable[[Document], None],
        *,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
        while_any: bool = False,
    ) -> str:
        """Watch the root and keep the registry in line, until told to stop; return why it ended.

        `tell` gets what each pass found. Raises ResidentRuns where somebody watches already: `attend`
        goes along with that one.
        """
        from mam.app.monitor.monitor_timeouts import MonitorTimeouts
        from mam.app.monitor.resident import Resident

        self._settle()
        return Resident(self.context, self.caller, tell, self._tasks).run(
            MonitorTimeouts(timeout, idle_timeout), while_any=while_any
        )

    def attend(
        self, tell: Callable[[Document], None], *, timeout: float = 0.0, idle_timeout: float = 0.0
    ) -> str:
        """Watch as `monitor` does; where somebody watches already, tell what that one finds until it ends."""
        from mam.app.monitor.follow_resident import attend
        from mam.app.monitor.monitor_timeouts import MonitorTimeouts

        self._settle()
        return attend(self.context, self.caller, tell, MonitorTimeouts(timeout, idle_timeout), self._tasks)

    def install_monitor(self) -> Document:
        """Have the machine start a resident of this root at login; `{unit, changed, notes}`."""
        from mam.app.monitor.login_service import install

        return install(self.context)

    def uninstall_monitor(self) -> Document:
        """Undo `install_monitor`."""
        from mam.app.monitor.login_service import uninstall

        return uninstall(self.context)

    def rename(self, target: str, name: str) -> Session:
        """Rename a session and its tmux session."""
        from mam.app.sessions.rename import rename

        self._settle()
        return Session(self, rename(self.context, self.caller, target, name))

    def archive(self, target: str) -> Session:
        """Put an ended session away; it can still be resumed."""
        from mam.app.sessions.archive import archive

        self._settle()
        return Session(self, archive(self.context, self.caller, target))

    def forget(self, target: str, *, worktree: bool = False) -> Document:
        """Drop an ended session's row; with `worktree` also its worktree, if nothing would be lost."""
        from mam.app.sessions.forget import forget

        self._settle()
        return forget(self.context, self.caller, target, worktree=worktree)

    def forgettable(self, *, older_than: float | None = None, status: Sequence[str] = ()) -> list[str]:
        """Return the names of ended sessions, those that ended more than so many seconds ago."""
        from mam.app.sessions.forget import forgettable

        return forgettable(self.context, older_than=older_than, status=status)

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

        self._settle()
        row = adopt(
            self.context,
            self.caller,
            tmux_session,
            agent=agent,
            name=name,
            role=role,
            pane=pane,
            tmux_server=tmux_server,
        )
        return Session(self, row)

    def attach(self, target: str | None = None, *, next_waiting: bool = False) -> Document:
        """Switch the tmux client that we sit in, or return the argv and environment to execute.

        `{session, switched: bool, argv: [...], environ: {...}}`
        """
        from mam.app.sessions.attach import attach

        return attach(self.context, target, next_waiting=next_waiting)


def open_fleet(
    root: str | None = None, *, registry: str | None = None, environ: Mapping[str, str] | None = None
) -> Fleet:
    """Return the fleet of the root that a directory belongs to; without one, of the current directory."""
    return Fleet(open_context(workspace=root, registry=registry, environ=environ))
