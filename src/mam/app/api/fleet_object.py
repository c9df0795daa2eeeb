"""The Python API: `mam.open()` returns a Fleet, whose attributes are groups of verbs.

The command line uses only this API. A verb's code is loaded when the verb is called, which keeps the start
short. Every error is one of `mam.core.errors`.
"""

from __future__ import annotations

import os

from mam.app.api.job_and_team_listeners import LISTENERS
from mam.app.api.verb_group import Access
from mam.app.context.context import open_all_contexts, open_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from mam.app.agent_tools.connected_client import ConnectedClient
    from mam.app.api.agent_tools import Agents
    from mam.app.api.boards import Boards
    from mam.app.api.demo import Demo
    from mam.app.api.jobs import Jobs
    from mam.app.api.mcp_connection import Mcp
    from mam.app.api.messages import Messages
    from mam.app.api.monitor import Monitor
    from mam.app.api.sessions import Sessions
    from mam.app.api.skills import Skills
    from mam.app.api.tasks import Tasks
    from mam.app.api.teams import Teams
    from mam.app.monitor.supervised_task import ResidentTask
    from mam.core.caller import Caller
    from mam.core.settings import Settings

    Document = dict[str, Any]


class Fleet:
    """The sessions of one root. Each group of verbs is loaded when it is first used."""

    __slots__ = ("_access",)

    def __init__(self, access: Access) -> None:
        """Do not call this; use mam.open()."""
        self._access = access

    def __enter__(self) -> Fleet:
        """Use as a context to close the database at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; an error that a damaged database explains becomes RegistryCorrupt."""
        try:
            damage = self._access.damage_behind(error)
        finally:
            self.close()
        if damage is not None:
            raise damage from error

    def close(self) -> None:
        """Close the database and all connections. Sessions keep running."""
        self._access.close()

    @property
    def sessions(self) -> Sessions:
        """The sessions: start and stop them, and read their activity and their log."""
        from mam.app.api.sessions import Sessions

        return Sessions(self._access)

    @property
    def messages(self) -> Messages:
        """Messages, answers to dialogs, and keys for sessions."""
        from mam.app.api.messages import Messages

        return Messages(self._access)

    @property
    def jobs(self) -> Jobs:
        """Delegated work with events and an end."""
        from mam.app.api.jobs import Jobs

        return Jobs(self._access)

    @property
    def teams(self) -> Teams:
        """Several sessions with roles in one window."""
        from mam.app.api.teams import Teams

        return Teams(self._access)

    @property
    def tasks(self) -> Tasks:
        """Tasks for roles."""
        from mam.app.api.tasks import Tasks

        return Tasks(self._access)

    @property
    def boards(self) -> Boards:
        """Cards of the root's own board, or of Hermes'."""
        from mam.app.api.boards import Boards

        return Boards(self._access)

    @property
    def monitor(self) -> Monitor:
        """The monitor, which keeps the registry in line with what exists."""
        from mam.app.api.monitor import Monitor

        return Monitor(self._access)

    @property
    def agents(self) -> Agents:
        """The verbs for agents that run other agents."""
        from mam.app.api.agent_tools import Agents

        return Agents(self._access)

    @property
    def skills(self) -> Skills:
        """Skills that teach agents these verbs."""
        from mam.app.api.skills import Skills

        return Skills(self._access)

    @property
    def mcp(self) -> Mcp:
        """The MCP server of the root and its clients."""
        from mam.app.api.mcp_connection import Mcp

        return Mcp(self._access)

    @property
    def demo(self) -> Demo:
        """The tmux server of a demonstration."""
        from mam.app.api.demo import Demo

        return Demo(self._access)

    def init(self) -> str:
        """Make the current directory, or the workspace, a root; return the registry file."""
        from mam.app.roots.init import init

        self._access.check("Fleet.init")
        if self._access.context.paths.root != self._access.context.workspace:
            return init(self._access.context, self._access.caller)
        self._access.begin()
        try:
            return init(self._access.context, self._access.caller)
        finally:
            self._access.end()

    def init_trust(self, *, keep: bool = False) -> Document:
        """Take in a root that somebody else made; with `keep`, release at once what was parked.

        Returns `{registry, changed, kept, taken, parked, dropped, left_out, left_out_count, files_left}`, and
        with `keep` also `released`; in a root that is this user's already only `{registry, changed}`. Raises
        Refused in a root of another state, and NotAllowed if the caller is a session.
        """
        from mam.app.roots.init_trust import trust

        self._access.check("Fleet.init_trust")
        document = trust(self._access.context, self._access.caller)
        if keep and document["changed"]:
            # The task of a job goes out with its job.
            jobs = self.jobs.release()
            document["released"] = {"jobs": jobs, "messages": self.messages.release()}
        self._access.start_resident()
        return document

    def init_copy(self) -> Document:
        """Make the copy of a root a root of its own; conversations, jobs and messages stay with the original.

        Returns what `init_trust` returns, with the `original`. Raises Refused, NotAllowed.
        """
        from mam.app.roots.init_trust import make_own

        self._access.check("Fleet.init_copy")
        document = make_own(self._access.context, self._access.caller)
        self._access.start_resident()
        return document

    def init_take_over(self) -> Document:
        """Change a root from here that another machine or container has changed, and has left for a while.

        Returns `{registry, changed, former}`. Raises RootElsewhere while it is in use there, and Refused and
        NotAllowed as `init_trust`.
        """
        from mam.app.roots.init_take_over import take_over

        self._access.check("Fleet.init_take_over")
        document = take_over(self._access.context, self._access.caller)
        self._access.start_resident()
        return document

    def init_new(self) -> Document:
        """Begin anew in a root whose state is gone; `panes` are live agents that `sessions.adopt` takes back.

        Returns `{registry, changed, panes}`. Raises Refused, NotAllowed.
        """
        from mam.app.roots.init_new import begin_anew

        self._access.check("Fleet.init_new")
        document = begin_anew(self._access.context, self._access.caller)
        self._access.start_resident()
        return document

    def restore(
        self, file: str | None = None, *, is_confirmed: bool = False, dry_run: bool = False
    ) -> Document:
        """Bring the state back from a copy, or from what a damaged database still holds.

        Without `file` it takes the newest copy that can be read, where the state is gone, or the damaged
        database with the newest copy for its gaps. With `file` it goes back in time, which needs
        `is_confirmed` if there is a state. `dry_run` changes nothing. docs/api.md describes the answer.
        Raises Refused, NeedsConfirmation, NotAllowed, RegistryBusy and RegistryCorrupt.
        """
        from mam.app.roots.restore import restore

        self._access.check("Fleet.restore")
        context, caller = self._access.context, self._access.caller
        return restore(context, caller, file, is_confirmed=is_confirmed, dry_run=dry_run)

    @property
    def root(self) -> str:
        """The directory that holds the state."""
        return self._access.context.paths.root

    @property
    def workspace(self) -> str:
        """The directory that the fleet was opened in."""
        return self._access.context.workspace

    @property
    def exists(self) -> bool:
        """Whether the root has a registry yet."""
        return self._access.context.paths.exists()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._access.context.settings()

    @property
    def registry_file(self) -> str:
        """The YAML file that people read."""
        return self._access.context.paths.yaml

    @property
    def caller(self) -> Caller:
        """The caller: the session that this process runs in, the user, or unknown."""
        return self._access.caller

    def in_directory(self, directory: str) -> Fleet:
        """Return the same fleet as if opened in `directory`, relative to this one. They close together."""
        access = self._access
        return Fleet(access.replaced(access.context.in_directory(directory)))

    def for_thread(self) -> Fleet:
        """Return the same fleet with connections of its own, for another thread; close it there."""
        return Fleet(self._access.replaced(self._access.context.for_thread()))

    def on_progress(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with short sentences about the progress of long work."""
        self._access.context = self._access.context.replace(progress=tell)

    def on_warning(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with each warning: a problem that does not stop the verb."""
        self._access.context = self._access.context.replace(warn=tell)

    def add_resident_task(self, task: ResidentTask) -> None:
        """Add a resident task, which runs whenever this fleet is the resident of its root."""
        self._access.tasks.append(task)


class Fleets:
    """The fleets of every root that mam has recorded for this user. Iterate over it; close it at the end."""

    __slots__ = ("_fleets", "missing")

    def __init__(self, fleets: Sequence[Fleet], missing: Sequence[str]) -> None:
        """Do not call this; use mam.open_all()."""
        self._fleets = tuple(fleets)
        # The recorded roots that have no registry any more.
        self.missing = tuple(missing)

    def __enter__(self) -> Fleets:
        """Use as a context to close every database at the end."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def __iter__(self) -> Iterator[Fleet]:
        """Yield the fleets in the order of their roots."""
        return iter(self._fleets)

    def __len__(self) -> int:
        """Return how many roots there are."""
        return len(self._fleets)

    def close(self) -> None:
        """Close every fleet. Sessions keep running."""
        for fleet in self._fleets:
            fleet.close()


def fleet_of_client(client: ConnectedClient) -> Fleet:
    """Return a fleet with the directory, environment and rights of a client of the MCP server."""
    context = client.context()
    caller = client.caller(context)
    return Fleet(Access(context, caller, child_limit=not caller.is_user))


def open_fleet(
    root: str | None = None,
    *,
    registry: str | None = None,
    records_folder: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Fleet:
    """Return the fleet of the root that a directory, or the current directory, belongs to.

    `records_folder` is a folder of job records. The folder of a root means that root, unless `registry` names
    one. Any other folder is what the methods of `fleet.jobs` that take a `folder` use by default.
    """
    if records_folder:
        from mam.app.jobs.find import registry_of

        records_folder = os.path.abspath(records_folder)
        owner = registry_of(records_folder)
        if owner is not None:
            registry, records_folder = registry or owner, None
    access = Access(open_context(workspace=root, registry=registry, environ=environ, listeners=LISTENERS))
    access.records_folder = records_folder
    return Fleet(access)


def open_all(*, environ: Mapping[str, str] | None = None) -> Fleets:
    """Return the fleets of every root of this user. Each is read only when it is used."""
    contexts = open_all_contexts(environ, LISTENERS)
    present = [Fleet(Access(context)) for context in contexts if context.paths.exists()]
    return Fleets(present, [context.paths.root for context in contexts if not context.paths.exists()])
