"""What the groups of verbs of one fleet share: the context, the caller, and how a change begins and ends."""

from __future__ import annotations

import functools
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate, ParamSpec, TypeVar

    from mam.adapters.store.tables.teams import Member
    from mam.app.context.context import Context
    from mam.app.monitor.resident import ResidentTask
    from mam.core.caller import Caller

    GroupT = TypeVar("GroupT", bound="VerbGroup")
    P = ParamSpec("P")
    T = TypeVar("T")


class Access:
    """A fleet's access to its root. Only the API holds it."""

    def __init__(self, context: Context, caller: Caller | None = None, *, child_limit: bool = False) -> None:
        """Without a caller, the caller is determined when a verb first needs it."""
        self.context = context
        self.child_limit = child_limit
        self.tasks: list[ResidentTask] = []
        # The folder of job records that the verbs of jobs use, instead of the root's own.
        self.records_folder: str | None = None
        self._caller = caller

    @property
    def caller(self) -> Caller:
        """The caller: the session that this process runs in, or the user."""
        if self._caller is None:
            from mam.app.context.caller import find_caller

            self._caller = find_caller(self.context, os.getpid())
        return self._caller

    def replaced(self, context: Context) -> Access:
        """Return the same access with another context."""
        access = Access(context, self.caller, child_limit=self.child_limit)
        access.tasks = self.tasks
        access.records_folder = self.records_folder
        return access

    @property
    def reporter(self) -> Caller:
        """The caller, without reading the registry's file: a report must work even if that file is broken."""
        if self._caller is not None:
            return self._caller
        from mam.app.context.caller import find_reporter

        return find_reporter(self.context, os.getpid())

    def begin(self) -> None:
        """Prepare a change: finish what a dead process left half done, and deliver held messages.

        Raises RootRefused for a root that this user's mam may not change, before anything is done there.
        """
        from mam.adapters.store.tables import teams
        from mam.app.sessions.steps_before_each_change import begin_change

        self.context.root.check()
        begin_change(self.context, self.caller)
        none: list[Member] = []
        if self.context.registry.peek(teams.starting, none):
            from mam.app.teams.onboarding_steps import finish_spawns

            finish_spawns(self.context)

    def end(self) -> None:
        """Conclude a change: publish what it recorded, if no resident runs."""
        if self.context.root.refusal() is not None:
            # The database of somebody else may name any broker.
            return
        from mam.adapters.store.tables import outbox

        nothing: list[str] = []
        if self.context.registry.peek(outbox.waiting_jobs, nothing):
            from mam.app.brokers.publish import flush

            flush(self.context)


class VerbGroup:
    """A group of verbs of a fleet."""

    __slots__ = ("_access",)

    def __init__(self, access: Access) -> None:
        """Do not call this; use the attributes of a Fleet."""
        self._access = access

    @property
    def _context(self) -> Context:
        return self._access.context

    @property
    def _caller(self) -> Caller:
        return self._access.caller


def changing(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that changes something: it first finishes what a dead process left half done."""

    @functools.wraps(verb)
    def change(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.begin()
        try:
            return verb(self, *arguments, **options)
        finally:
            self._access.end()

    return change


def acting(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that changes something, and that in a foreign root acts on this user's own panes alone."""
    change = changing(verb)

    @functools.wraps(verb)
    def act(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        from mam.app.observation.foreign_root import is_foreign

        if is_foreign(self._access.context):
            return verb(self, *arguments, **options)
        return change(self, *arguments, **options)

    return act


def in_own_root(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that is refused in a root that mam may not change, and begins no change by itself."""

    @functools.wraps(verb)
    def checked(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.context.root.check()
        return verb(self, *arguments, **options)

    return checked


def publishing(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that may leave something to publish; it works even if the registry's file is broken."""

    @functools.wraps(verb)
    def publish(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            return verb(self, *arguments, **options)
        finally:
            self._access.end()

    return publish
