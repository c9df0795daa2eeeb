"""The verbs of `fleet.monitor`."""

from __future__ import annotations

from mam.app.api.access import Group, changing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Document = dict[str, Any]


class Monitor(Group):
    """Keeping the registry in line with what exists."""

    __slots__ = ()

    def once(self, *, dry_run: bool = False, emit_diff: bool = False) -> Document:
        """Make one pass of the monitor: bring the registry in line with what is there, and report it.

        With `dry_run` nothing is written. `emit_diff` adds what a resident recorded since the last such pass.
        """
        from mam.app.sessions.reconcile import one_pass

        return one_pass(self._context, self._caller, dry_run=dry_run, emit_diff=emit_diff)

    @changing
    def run(
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

        return Resident(self._context, self._caller, tell, self._access.tasks).run(
            MonitorTimeouts(timeout, idle_timeout), while_any=while_any
        )

    @changing
    def attend(
        self, tell: Callable[[Document], None], *, timeout: float = 0.0, idle_timeout: float = 0.0
    ) -> str:
        """Watch as `run` does; where somebody watches already, tell what that one finds until it ends."""
        from mam.app.monitor.follow_resident import attend
        from mam.app.monitor.monitor_timeouts import MonitorTimeouts

        return attend(
            self._context, self._caller, tell, MonitorTimeouts(timeout, idle_timeout), self._access.tasks
        )

    @changing
    def run_subscribed(
        self,
        tell: Callable[[Document], None],
        *,
        broker: str | None = None,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
    ) -> str:
        """Monitor as `run` does, and take in what is signed for jobs of this root from a broker.

        `tell` also gets `{event}`, `{refused}` and `{broker: {address, state, error}}`. Returns why it ended.
        """
        from mam.app.monitor.broker_subscription import subscribe

        return subscribe(
            self._context,
            self._caller,
            broker,
            tell,
            timeout=timeout,
            idle_timeout=idle_timeout,
            tasks=self._access.tasks,
        )

    def once_with_card(self, card: str, *, emit_diff: bool = False, board: str | None = None) -> Document:
        """Make one pass as `once` does and tell the card what is new; the report has `card`."""
        from mam.app.boards.monitor_with_card import one_pass

        return one_pass(self._context, self._caller, card, which=board, emit_diff=emit_diff)

    def run_with_card(
        self,
        card: str,
        tell: Callable[[Document], None],
        *,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
        board: str | None = None,
    ) -> str:
        """Monitor as `run` does, on a card (`new` makes one), until somebody comments `stop` there.

        `tell` first gets `{card}`. Returns why it ended.
        """
        from mam.app.boards.monitor_with_card import monitor

        return monitor(
            self._context,
            self._caller,
            card,
            tell,
            which=board,
            timeout=timeout,
            idle_timeout=idle_timeout,
            tasks=self._access.tasks,
        )

    def run_as_worker(self, tell: Callable[[Document], None]) -> str:
        """Monitor as the worker that Hermes' dispatcher started, until stop, cap or block."""
        from mam.app.boards.monitor_with_card import work

        return work(self._context, self._caller, tell, self._access.tasks)

    def dispatch_to_hermes(self) -> Document:
        """Make the goal card of this root on Hermes' board and have it dispatched.

        `{board, card, created, spawned, worker, note}`; as long as the card is open there is only one.
        """
        from mam.app.boards.run_monitor_in_hermes import dispatch

        return dispatch(self._context)

    def install(self) -> Document:
        """Have the machine start a resident of this root at login; `{unit, changed, notes}`."""
        from mam.app.monitor.login_service import install

        return install(self._context)

    def uninstall(self) -> Document:
        """Undo `install`."""
        from mam.app.monitor.login_service import uninstall

        return uninstall(self._context)

    def doctor(self) -> list[Document]:
        """Return the checks of this machine and root: `{check, ok: true|false|null, message, mend}`."""
        from mam.app.monitor.doctor import doctor

        return doctor(self._context)
