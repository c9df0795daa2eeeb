"""What the groups of verbs of one fleet share: the context, the caller, and how a change begins and ends."""

from __future__ import annotations

import functools
import os
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Concatenate, ParamSpec, TypeVar

    from mam.adapters.store.tables.teams import Member
    from mam.app.context.context import Context
    from mam.app.monitor.supervised_task import ResidentTask
    from mam.core.caller import Caller
    from mam.core.errors import RegistryCorrupt

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
        # Whether a verb has removed something that copies of the state may still have.
        self.has_removed = False
        self._caller = caller

    @property
    def caller(self) -> Caller:
        """The caller: the session that this process runs in, the user, or unknown."""
        if self._caller is None:
            from mam.app.context.caller import find_caller

            self._caller = find_caller(self.context, os.getpid())
        return self._caller

    def replaced(self, context: Context) -> Access:
        """Return the same access with another context."""
        access = Access(context, self.caller, child_limit=self.child_limit)
        context.root.is_proven_session = self.context.root.is_proven_session
        access.tasks = self.tasks
        access.records_folder = self.records_folder
        return access

    @property
    def reporter(self) -> Caller:
        """The caller of a report, who need not be recorded yet."""
        if self._caller is not None:
            return self._caller
        from mam.app.context.caller import find_reporter

        return find_reporter(self.context, os.getpid())

    def check(self, method: str) -> None:
        """Raise NotAllowed if the caller may not use the verb of a method, such as `Sessions.stop`."""
        from mam.app.api.verb_of_method import VERBS

        self.check_verb(VERBS[method])

    def check_verb(self, verb: str) -> None:
        """Raise NotAllowed if the caller may not use a verb, or a verb with an option: `init --trust`."""
        from mam.core import verb_rights
        from mam.core.errors import NotAllowed

        right = verb_rights.right_of(verb)
        # Every caller may watch, so nobody needs to be found out for that.
        if right is verb_rights.Right.WATCH:
            return
        is_report = right is verb_rights.Right.SIGNED
        try:
            verb_rights.check(self.reporter if is_report else self.caller, verb)
        except NotAllowed:
            self.settle()
            raise

    def close(self) -> None:
        """Close the context; several removals from the registry reach the copies of the state together."""
        try:
            if self.has_removed:
                from mam.app.monitor.backup_removal import remove_now

                remove_now(self.context)
        finally:
            self.context.close()

    def act_as_user(self) -> None:
        """Act for the user: mam itself has started this process, in the background and for nobody else."""
        from mam.core.caller import user

        self._caller = user(os.getpid())

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

    def settle(self) -> bool:
        """Finish what a dead process left half done, for a verb that begins no change. It never fails.

        It asks the database once, and returns whether something was left. Only then does it write anything
        and find the caller. A person who pressed Ctrl-C does not wait for it.
        """
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            return False
        context = self.context
        try:
            if not context.paths.exists() or context.root.refusal() is not None:
                return False
            from mam.app.context import claims

            if not claims.left_by_the_dead(context):
                return False
        except Exception:
            # Whoever reads the database says what is wrong with it, also with values of wrong types.
            return False
        try:
            from mam.app.sessions.steps_before_each_change import recover_if_needed

            recover_if_needed(context, self.caller)
        except Exception as error:
            # The verb that only reads can show what is there, whatever is wrong with the recovery.
            context.warn_once(f"what another command left half done stays so: {error}")
        return True

    @contextmanager
    def after_damage(self) -> Iterator[None]:
        """Say in the error of a damaged database that the verb may have acted before it met the damage."""
        from mam.core.errors import RegistryCorrupt

        try:
            yield
        except RegistryCorrupt as error:
            if error.message.startswith(self.context.paths.db):
                error.hint = f"what this command began may be done: {error.hint}; then look with mam ls"
            raise

    def damage_behind(self, error: BaseException | None) -> RegistryCorrupt | None:
        """Return what is damaged in a database, if that explains an error that nobody has foreseen.

        Verbs do not expect a number to be a text, which SQLite allows.
        """
        from mam.core.errors import MamError

        if isinstance(error, MamError) or not isinstance(
            error, (AttributeError, LookupError, TypeError, ValueError)
        ):
            return None
        from mam.adapters.store import soundness

        try:
            user_state = self.context.user_state.path
            if os.path.exists(user_state) and (damage := soundness.damage_of_user_state(user_state)):
                return damage
            is_ours = self.context.paths.exists() and self.context.root.verdict().is_ours
            return soundness.damage_of(self.context.paths.db) if is_ours else None
        except MamError:
            return None

    def end(self, *, starts_resident: bool = True) -> None:
        """Conclude a change: publish what it recorded, if no resident runs, and see to it that one does."""
        if self.context.root.refusal() is not None:
            # The database of somebody else may name any broker.
            return
        self._publish()
        if starts_resident:
            self.start_resident()

    def start_resident(self) -> None:
        """Start a resident if the root needs one and has none; a failure is only a warning.

        It comes after every change. It also records where the root is, and warns of wrong settings.
        """
        from mam.app.context.former_places import note_place
        from mam.app.context.resident_start_and_lock import ensure_if_needed
        from mam.app.context.settings_check import warn_of_settings
        from mam.core.errors import InvalidSettings, MamError, RootRefused

        try:
            if self.context.paths.exists() and self.context.root.refusal() is None:
                note_place(self.context)
                warn_of_settings(self.context, is_changing=True)
                ensure_if_needed(self.context)
        except RootRefused:
            # A verb that changes nothing of the root, such as `skills install`, works here all the same.
            return
        except InvalidSettings:
            warn_of_settings(self.context)
        except MamError as error:
            # What the verb was asked for is done, or has its own error.
            self.context.warn(f"mam cannot tell whether a resident runs: {error.message}")

    def _publish(self) -> None:
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
    """Mark a verb that changes something: it first finishes what a dead process left half done.

    A caller who may not use the verb is refused before that.
    """

    @functools.wraps(verb)
    def change(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.check(verb.__qualname__)
        self._access.begin()
        with self._access.after_damage():
            try:
                return verb(self, *arguments, **options)
            finally:
                self._access.end()

    return change


def reading(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that changes no session: it begins once the change of a dead process is finished.

    It may write elsewhere, as a backup does.
    """

    @functools.wraps(verb)
    def read(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.settle()
        return verb(self, *arguments, **options)

    return read


def watching(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that begins like a change, and is the resident: a person who ends it wants no other one."""

    @functools.wraps(verb)
    def watch(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.check(verb.__qualname__)
        self._access.begin()
        with self._access.after_damage():
            try:
                return verb(self, *arguments, **options)
            finally:
                self._access.end(starts_resident=False)

    return watch


def acting(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that changes something, and that in a foreign root acts on this user's own panes alone.

    It acts on a pane also where nothing can be recorded.
    """

    @functools.wraps(verb)
    def act(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        from mam.app.observation.foreign_root import is_foreign
        from mam.core.errors import Unwritable

        access = self._access
        access.check(verb.__qualname__)
        if is_foreign(access.context):
            return verb(self, *arguments, **options)
        try:
            access.begin()
        except Unwritable as error:
            access.context.warn(f"what another command left half done stays so: {error}")
        with access.after_damage():
            try:
                return verb(self, *arguments, **options)
            finally:
                access.end()

    return act


def in_own_root(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that is refused in a root that mam may not change, and begins no change by itself."""

    @functools.wraps(verb)
    def check(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        from mam.app.context.settings_check import warn_of_settings

        self._access.check(verb.__qualname__)
        self._access.context.root.check()
        warn_of_settings(self._context)
        return verb(self, *arguments, **options)

    return check


def publishing(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that may leave something to publish; it works even if the registry's file is broken.

    It finishes what a dead process left half done afterwards: to finish a stop may end the caller.
    """

    @functools.wraps(verb)
    def publish(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.check(verb.__qualname__)
        try:
            return verb(self, *arguments, **options)
        finally:
            self._access.settle()
            self._access.end()

    return publish


def checked(verb: Callable[Concatenate[GroupT, P], T]) -> Callable[Concatenate[GroupT, P], T]:
    """Mark a verb that changes something and needs no preparation.

    It finishes what a dead process left half done afterwards, as a `publishing` verb does.
    """

    @functools.wraps(verb)
    def check(self: GroupT, /, *arguments: P.args, **options: P.kwargs) -> T:
        self._access.check(verb.__qualname__)
        try:
            return verb(self, *arguments, **options)
        finally:
            self._access.settle()
            self._access.start_resident()

    return check
