"""Waiting until an agent is ready for its first prompt, by positive evidence only.

A kind with hooks is ready when its own SessionStart arrived or its empty box is seen; a program
that nothing is known about, when it was executed and stayed up. A dialog is reported and
answered only if the caller asked for exactly that.
"""

from __future__ import annotations

import time

from mam.adapters.agents.kind import Screen
from mam.adapters.system import load_adjusted_clock, process
from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux import launch_file as launches
from mam.adapters.tmux.failures import PaneChanged
from mam.app.context.liveness import identity_of
from mam.app.observation.hook_reports import pending_events
from mam.app.observation.versions import is_known
from mam.core import safe_text
from mam.core.activity import IDLE, WAITING
from mam.core.errors import DialogOpen, NotReady, PaneGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.app.context.context import Context
    from mam.core.session_row import Row

_STAYS_UP = 0.25
_STEP = 0.01
_LOOK_EVERY = 0.05
# How long a dialog may take to be answered, and after which time keys that had no effect are pressed again.
_ANSWER_SECONDS = 10.0
_PRESS_AGAIN = 2.0
_LAST_LINES, _LAST_WORDS_SECONDS = 3, 1.0
_WAY_OUT = {
    "trust": "answer it there (mam attach), or repeat with --trust",
    "login": "log in there (mam attach)",
    "limit": "wait until the limit is lifted",
}


class Watch:
    """One wait for readiness."""

    def __init__(
        self, context: Context, row: Row, launch_file: str, *, trust: bool, seconds: float | None
    ) -> None:
        """Begin the clock: by the wall for a time that the caller gave, else the load-adjusted one."""
        self.context = context
        self.row = row
        self.kind: Kind = context.kind(row["agent"])
        self.tmux = context.tmux(row["tmux_server"])
        self.launch_file = launch_file
        self.may_trust = trust
        self.boxed: float | None = None
        self.met: tuple[str, float] | None = None
        self.met_first: float | None = None
        self.pressed: tuple[str, float] | None = None
        self.seconds = seconds or max(context.settings().ready_timeout, self.kind.boot_seconds)
        self.clock = time.monotonic if seconds else load_adjusted_clock.now
        self.began = self.clock()
        self.deadline = Deadline(self.seconds, clock=self.clock)
        self.last_look = -_LOOK_EVERY
        self.cursor = (0, 0)

    def run(self) -> None:
        """Return when the agent is ready; raise NotReady or DialogOpen, and the session stays."""
        while True:
            self._check_life()
            if self._is_ready():
                return
            if not self.deadline.pause(_STEP):
                raise NotReady(
                    f"'{self.row['name']}' showed no prompt within {self.seconds:g} s",
                    hint=f"mam read {self.row['name']} shows its screen; it keeps running",
                    session=self.row,
                )

    def _check_life(self) -> None:
        failure = launches.launch_failure(self.launch_file)
        if failure:
            raise NotReady(f"'{self.row['name']}' could not start: {failure}", session=self.row)
        identity = identity_of(self.row)
        if identity is None or not process.is_alive(identity):
            failure = launches.launch_failure(self.launch_file)
            raise NotReady(
                failure or f"'{self.row['name']}' ended at once{self._last_words()}", session=self.row
            )

    def _is_ready(self) -> bool:
        if self.kind.has_hooks and self.kind.ready_by_hook and self._has_started():
            return True
        if not self.kind.reads_screen:
            return self._stayed_up()
        if self.clock() - self.last_look < _LOOK_EVERY:
            return False
        self.last_look = self.clock()
        return self._judge(self._look())

    def _has_started(self) -> bool:
        return any(event.state == IDLE for event in pending_events(self.context, self.row))

    def _stayed_up(self) -> bool:
        words = process.command_line(self.row["pane"]["pid"]) or []
        is_launcher = any(word.endswith("launcher.py") for word in words[:5])
        return not is_launcher and self.clock() - self.began >= _STAYS_UP

    def _look(self) -> ScreenState:
        seen = self.tmux.look(self.row["pane"]["id"])
        self.cursor = seen.cursor_x, seen.cursor_y
        return self.kind.look(Screen(seen.screen, *self.cursor))

    def _judge(self, look: ScreenState) -> bool:
        if look.dialog:
            self._meet(look, look.dialog)
            return False
        self.met = None
        if look.state == WAITING or look.box is None:
            self.boxed = None
            return False
        now = self.clock()
        self.boxed = self.boxed or now
        return now - self.boxed >= self.kind.ready_settles

    def _meet(self, look: ScreenState, dialog: str) -> None:
        may_answer = dialog == "trust" and self.may_trust and self._is_readable()
        keys = self.kind.answer_keys(look, "trust") if may_answer else None
        now = self.clock()
        self.met_first = self.met_first or now
        if keys is None or now - self.met_first > _ANSWER_SECONDS:
            name = self.row["name"]
            raise DialogOpen(
                f"'{name}' shows its {dialog} dialog and waits for a person",
                hint=self._way_out(dialog),
                session=self.row,
            )
        if self._has_settled(look.detail, now):
            try:
                self.tmux.keys(self.row["pane"]["id"], keys, mark=self.row["id"], at=self.cursor)
            except PaneChanged:
                # Something else may be drawn there by now.
                return
            self.pressed = look.detail, now

    def _way_out(self, dialog: str) -> str:
        if dialog == "trust" and self.may_trust and not self._is_readable():
            return f"mam was not tested with this version of {self.kind.name}: answer it there (mam attach)"
        return _WAY_OUT.get(dialog, f"answer it there: mam attach {self.row['name']}")

    def _is_readable(self) -> bool:
        """Tell whether the screen of this version can be trusted: nothing but the screen shows a dialog."""
        return is_known(self.context, self.row) is not False

    def _has_settled(self, detail: str, now: float) -> bool:
        """Tell whether the dialog takes keys: it stood still, and those of before had their time."""
        if self.met is None or self.met[0] != detail:
            self.met = detail, now
        waited = self.pressed is None or self.pressed[0] != detail or now - self.pressed[1] > _PRESS_AGAIN
        return waited and now - self.met[1] >= self.kind.dialog_settles

    def _last_words(self) -> str:
        """Return its exit status and the last lines that it printed, once tmux has read all of them."""
        pane_id = self.row["pane"]["id"]
        try:
            deadline = time.monotonic() + load_adjusted_clock.stretched(_LAST_WORDS_SECONDS)
            pane = self.tmux.dead_status(pane_id, self.row["pane"]["server_pid"], deadline)
        except PaneGone:
            return ""
        screen = self.tmux.capture([pane_id], scrollback=50).get(pane_id)
        lines = (safe_text.note(screen or "") or "").splitlines()
        said = [line.strip() for line in lines if line.strip() and not line.startswith("Pane is dead")]
        ended = f" (exit {pane.dead_status})" if pane.dead_status is not None else ""
        return ended + (f": {' / '.join(said[-_LAST_LINES:])}" if said else "")
