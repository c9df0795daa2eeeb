"""The verbs of `fleet.monitor`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, checked, in_own_root, reading, watching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Document = dict[str, Any]


class Monitor(VerbGroup):
    """The monitor, which keeps the registry in line with what exists."""

    __slots__ = ()

    @in_own_root
    def once(self, *, dry_run: bool = False, emit_diff: bool = False) -> Document:
        """Make one pass: bring the registry in line with what exists, and report the drifts.

        With `dry_run` nothing is written. `emit_diff` adds what a resident recorded since the last such pass.
        """
        from mam.app.sessions.reconcile import one_pass

        return one_pass(self._context, self._caller, dry_run=dry_run, emit_diff=emit_diff)

    def run(
        self,
        tell: Callable[[Document], None],
        *,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
        while_any: bool = False,
    ) -> str:
        """Be the resident of the root until told to stop; return why it ended.

        `tell` gets what each pass found. Raises ResidentRuns if a resident runs already; `attend` follows
        that one. mam itself starts this in the background, also when a session calls, so it acts for the
        user.
        """
        self._access.act_as_user()
        return self._run(tell, timeout=timeout, idle_timeout=idle_timeout, while_any=while_any)

    @watching
    def _run(
        self, tell: Callable[[Document], None], *, timeout: float, idle_timeout: float, while_any: bool
    ) -> str:
        from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
        from mam.app.monitor.resident import Resident

        return Resident(self._context, self._caller, tell, self._access.tasks).run(
            MonitorTimeouts(timeout, idle_timeout), while_any=while_any
        )

    @watching
    def attend(
        self, tell: Callable[[Document], None], *, timeout: float = 0.0, idle_timeout: float = 0.0
    ) -> str:
        """Watch as `run` does; if a resident runs already, first follow it until it ends.

        Raises RootMissing if it ended because the state of the root is gone, as the next three do.
        """
        from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
        from mam.app.monitor.follow_resident import watch_root

        self._context.require_registry()
        limits = MonitorTimeouts(timeout, idle_timeout)
        with self._context.noticing_lost_state():
            reason = watch_root(self._context, self._caller, tell, limits, self._access.tasks)
        self._context.require_state()
        return reason

    @watching
    def run_subscribed(
        self,
        tell: Callable[[Document], None],
        *,
        broker: str | None = None,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
    ) -> str:
        """Monitor as `attend` does, and take in signed events for jobs of this root from a broker.

        `tell` also gets `{event}` for each event that is recorded, whoever took it in, `{refused}` and
        `{broker: {address, state, error}}`. Returns why it ended.
        """
        from mam.app.monitor.broker_subscription import subscribe

        reason = subscribe(
            self._context,
            self._caller,
            broker,
            tell,
            timeout=timeout,
            idle_timeout=idle_timeout,
            tasks=self._access.tasks,
        )
        self._context.require_state()
        return reason

    @in_own_root
    def once_with_card(self, card: str, *, emit_diff: bool = False, board: str | None = None) -> Document:
        """Make one pass as `once` does, and comment new drifts on a card; the report has `card`."""
        from mam.app.boards.monitor_with_card import one_pass

        return one_pass(self._context, self._caller, card, board_name=board, emit_diff=emit_diff)

    @in_own_root
    def run_with_card(
        self,
        card: str,
        tell: Callable[[Document], None],
        *,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
        board: str | None = None,
    ) -> str:
        """Monitor as `attend` does, with a card (`new` creates one), until a comment there says `stop`.

        `tell` first gets `{card}`. Returns why it ended.
        """
        from mam.app.boards.monitor_with_card import monitor

        reason = monitor(
            self._context,
            self._caller,
            card,
            tell,
            board_name=board,
            timeout=timeout,
            idle_timeout=idle_timeout,
            tasks=self._access.tasks,
        )
        self._context.require_state()
        return reason

    @in_own_root
    def run_as_worker(self, tell: Callable[[Document], None]) -> str:
        """Monitor as the worker of Hermes' dispatcher, until a stop, the time limit or a block."""
        from mam.app.boards.monitor_with_card import work

        reason = work(self._context, self._caller, tell, self._access.tasks)
        self._context.require_state()
        return reason

    @in_own_root
    @reading
    def dispatch_to_hermes(self) -> Document:
        """Create the goal card of this root on Hermes' board, and run Hermes' dispatcher.

        Returns `{board, card, created, spawned, worker, missing_skill, note}`. A root has at most one open
        goal card.
        """
        from mam.app.boards.dispatch_monitor_to_hermes import dispatch

        return dispatch(self._context)

    @in_own_root
    @reading
    def install(self) -> Document:
        """Install a service that starts a resident of this root at login; `{unit, changed, notes}`."""
        from mam.app.monitor.login_service import install

        return install(self._context)

    @checked
    def uninstall(self) -> Document:
        """Undo `install`."""
        from mam.app.monitor.login_service import uninstall

        return uninstall(self._context)

    @reading
    def doctor(self) -> list[Document]:
        """Return the checks of this machine and root: `{check, ok: true|false|null, message, mend}`."""
        from mam.app.monitor.doctor import doctor

        return doctor(self._context)

    @in_own_root
    @reading
    def backup(self) -> Document:
        """Copy the state of the root now, with the tokens of its jobs, beside the automatic copies.

        Returns `{path, made_at, age, size, reason, compressed, has_secrets}`.
        """
        from mam.app.monitor.backup import backup

        return backup(self._context)

    @in_own_root
    @reading
    def backup_to(self, file: str, *, with_secrets: bool = False, force: bool = False) -> Document:
        """Copy the state into a file, without the tokens of jobs unless `with_secrets`; as `backup`.

        `force` replaces a file that exists.
        """
        from mam.app.monitor.backup import backup_to

        return backup_to(self._context, file, with_secrets=with_secrets, force=force)

    @reading
    def backups(self) -> list[Document]:
        """Return the copies in the user state, the newest first: as `backup`, without `has_secrets`."""
        from mam.app.monitor.backup import copies

        return copies(self._context)
