"""Wait until an agent is ready for its first prompt, by positive evidence only.

An agent with hooks is ready when its SessionStart hook reports or its input box is on the screen. A program
whose screen mam cannot read is ready when it was executed and keeps running. mam reports a dialog, and
answers the trust dialog only if the caller asked for that.
"""

from __future__ import annotations

import time

from mam.adapters.agents.kind import Screen
from mam.adapters.system import load_adjusted_clock, process
from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux import launch_file as launches
from mam.adapters.tmux.error_translation import PaneChanged
from mam.app.context.liveness import identity_of
from mam.app.observation.newest_hook_reports import pending_events
from mam.app.observation.versions import runs_tested_version
from mam.core import safe_text
from mam.core.activity import IDLE, WAITING
from mam.core.errors import DialogOpen, NotReady, PaneGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# A program whose screen mam cannot read must run this long.
_STAYS_UP = 0.25
_STEP = 0.01
_LOOK_EVERY = 0.05
# How long mam tries to answer a dialog, and when it presses keys again that had no effect.
_ANSWER_SECONDS = 10.0
_PRESS_AGAIN = 2.0
_LAST_LINES, _LAST_OUTPUT_SECONDS = 3, 1.0
_DIALOG_HINTS = {
    "trust": "answer it yourself (mam attach), or repeat with --trust",
    "login": "log in yourself (mam attach)",
    "limit": "wait until the limit ends",
}


class ReadinessWait:
    """One wait for readiness."""

    def __init__(
        self, context: Context, row: Row, launch_file: str, *, trust: bool, seconds: float | None
    ) -> None:
        """Start the clock: real time if the caller gave `seconds`, else the load-adjusted clock."""
        self.context = context
        self.row = row
        self.kind: Kind = context.kind(row["agent"])
        self.tmux = context.tmux(row["tmux_server"])
        self.launch_file = launch_file
        self.may_trust = trust
        # Since when the screen shows the input box.
        self.box_since: float | None = None
        # The text of the dialog, and since when it is unchanged.
        self.dialog_detail_since: tuple[str, float] | None = None
        self.dialog_since: float | None = None
        # The text of the dialog that got keys last, and when.
        self.last_press: tuple[str, float] | None = None
        self.seconds = seconds or max(context.settings().ready_timeout, self.kind.boot_seconds)
        self.clock = time.monotonic if seconds else load_adjusted_clock.now
        self.began = self.clock()
        self.deadline = Deadline(self.seconds, clock=self.clock)
        self.last_look = -_LOOK_EVERY
        self.cursor = (0, 0)

    def run(self) -> None:
        """Return when the agent is ready, else raise NotReady or DialogOpen. The session keeps running."""
        while True:
            self._check_alive()
            if self._is_ready():
                return
            if not self.deadline.pause(_STEP):
                raise NotReady(
                    f"'{self.row['name']}' showed no input box within {self.seconds:g} s",
                    hint=f"mam read {self.row['name']} shows its screen; the session keeps running",
                    session=self.row,
                )

    def _check_alive(self) -> None:
        failure = launches.launch_failure(self.launch_file)
        if failure:
            raise NotReady(f"'{self.row['name']}' could not start: {failure}", session=self.row)
        identity = identity_of(self.row)
        if identity is None or not process.is_alive(identity):
            failure = launches.launch_failure(self.launch_file)
            raise NotReady(
                failure or f"'{self.row['name']}' ended at once{self._last_output()}", session=self.row
            )

    def _is_ready(self) -> bool:
        if self.kind.has_hooks and self.kind.ready_by_hook and self._reports_idle():
            return True
        if not self.kind.reads_screen:
            return self._stays_up()
        if self.clock() - self.last_look < _LOOK_EVERY:
            return False
        self.last_look = self.clock()
        return self._judge(self._look())

    def _reports_idle(self) -> bool:
        return any(event.state == IDLE for event in pending_events(self.context, self.row))

    def _stays_up(self) -> bool:
        argv = process.command_line(self.row["pane"]["pid"]) or []
        is_launcher = any(argument.endswith("launcher.py") for argument in argv[:5])
        return not is_launcher and self.clock() - self.began >= _STAYS_UP

    def _look(self) -> ScreenState:
        pane_look = self.tmux.look(self.row["pane"]["id"])
        self.cursor = pane_look.cursor_x, pane_look.cursor_y
        return self.kind.read_screen(Screen(pane_look.captured, *self.cursor))

    def _judge(self, look: ScreenState) -> bool:
        if look.dialog:
            self._handle_dialog(look, look.dialog)
            return False
        self.dialog_detail_since = None
        if look.state == WAITING or look.box is None:
            self.box_since = None
            return False
        now = self.clock()
        self.box_since = self.box_since or now
        return now - self.box_since >= self.kind.ready_settle_seconds

    def _handle_dialog(self, look: ScreenState, dialog: str) -> None:
        may_answer = dialog == "trust" and self.may_trust and self._is_readable()
        keys = self.kind.answer_keys(look, "trust") if may_answer else None
        now = self.clock()
        self.dialog_since = self.dialog_since or now
        if keys is None or now - self.dialog_since > _ANSWER_SECONDS:
            name = self.row["name"]
            raise DialogOpen(
                f"'{name}' shows its {dialog} dialog and waits for a person",
                hint=self._dialog_hint(dialog),
                session=self.row,
            )
        if self._takes_keys(look.detail, now):
            try:
                self.tmux.keys(self.row["pane"]["id"], keys, mark=self.row["id"], at=self.cursor)
            except PaneChanged:
                # The screen has changed since the look, so the keys may no longer fit.
                return
            self.last_press = look.detail, now

    def _dialog_hint(self, dialog: str) -> str:
        if dialog == "trust" and self.may_trust and not self._is_readable():
            return (
                f"mam was not tested with this version of {self.kind.name}: answer it yourself (mam attach)"
            )
        return _DIALOG_HINTS.get(dialog, f"answer it yourself: mam attach {self.row['name']}")

    def _is_readable(self) -> bool:
        """Tell whether mam can read the screen of this version. Only the screen shows a trust dialog."""
        return runs_tested_version(self.context, self.row) is not False

    def _takes_keys(self, detail: str, now: float) -> bool:
        """Tell whether to press keys: the dialog has stopped changing, and the last keys had time to work."""
        if self.dialog_detail_since is None or self.dialog_detail_since[0] != detail:
            self.dialog_detail_since = detail, now
        may_press = (
            self.last_press is None or self.last_press[0] != detail or now - self.last_press[1] > _PRESS_AGAIN
        )
        return may_press and now - self.dialog_detail_since[1] >= self.kind.dialog_settle_seconds

    def _last_output(self) -> str:
        """Return the exit status and the last lines of an ended program, once tmux has read them all."""
        pane_id = self.row["pane"]["id"]
        try:
            deadline = time.monotonic() + load_adjusted_clock.stretched(_LAST_OUTPUT_SECONDS)
            pane = self.tmux.dead_status(pane_id, self.row["pane"]["server_pid"], deadline)
        except PaneGone:
            return ""
        screen = self.tmux.capture([pane_id], scrollback=50).get(pane_id)
        lines = (safe_text.note(screen or "") or "").splitlines()
        output = [line.strip() for line in lines if line.strip() and not line.startswith("Pane is dead")]
        status = f" (exit {pane.dead_status})" if pane.dead_status is not None else ""
        return status + (f": {' / '.join(output[-_LAST_LINES:])}" if output else "")
