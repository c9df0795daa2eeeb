"""The tmux client: each method is one call of tmux, and says what it saw.

Everything that can be asked for many panes is asked at once. Everything that touches a pane is guarded
inside the server, so that nothing happens between the look and the act.
"""

from __future__ import annotations

import os
import sys
from time import monotonic, sleep

from mam.adapters.system import child_process
from mam.adapters.tmux import argv, parse
from mam.adapters.tmux.failures import NoServer, ServerEnded, from_stderr, no_answer, refusal
from mam.core.errors import (
    DeliveryUnconfirmed,
    IllegalTransition,
    InvalidPath,
    MamError,
    PaneGone,
    TerminalsDown,
    TmuxMissing,
    Unavailable,
)
from mam.core.safe_text import for_paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mam.adapters.tmux.parse import Listing, Pane, PaneScreen

    # Where a cursor stands.
    Spot = tuple[int, int]

OLDEST = (3, 2)
# Seconds for an answer of tmux, where a caller has no other wish.
TIMEOUT = 10.0
_SIGCHLD = 20 if sys.platform == "darwin" else 17
_PATIENCE = 0.015
# How long a server that ends may take for it.
_ENDING_SECONDS = 5.0
_new_enough: dict[str, str] = {}


class Tmux:
    """One tmux server, by `-L` name or socket path, whether it runs or not."""

    __slots__ = ("_environ", "_path", "_prefix", "server", "timeout")

    def __init__(
        self, server: str, *, timeout: float = TIMEOUT, environ: Mapping[str, str] | None = None
    ) -> None:
        """Name the server; nothing is started. Raises InvalidName for a name that tmux could misread."""
        self.server = server
        self.timeout = timeout
        self._prefix = argv.server_arguments(server)
        self._environ = clean_environment(os.environ if environ is None else environ)
        self._path: str | None = None

    @property
    def environ(self) -> dict[str, str]:
        """The environment that tmux is run with."""
        return self._environ

    def words(self, *flags: str) -> list[str]:
        """Return the beginning of every command line for this server. Raises TmuxMissing."""
        return [self._program(), "-u", *flags, *self._prefix]

    def panes(self, full: bool = False) -> Listing:
        """Return every pane of the server, in one call. Never raises: what cannot be seen is unconfirmed."""
        nonce = new_nonce()
        try:
            answer = self._call(argv.list_panes(nonce, full))
        except NoServer:
            return parse.Listing(True, [])
        except MamError as error:
            return parse.Listing(False, [], error.message)
        return parse.listing(answer, nonce, full)

    def ask_briefly(self) -> Callable[[], Listing]:
        """Start a brief listing and return how to collect it: tmux works while the caller does too."""
        nonce = new_nonce()
        command = argv.list_briefly(nonce)
        try:
            started = child_process.start([*self.words(), *command], self._environ, feed=True)
        except (MamError, OSError) as cause:
            failed = parse.Listing(False, [], str(cause))
            return lambda: failed
        collected: list[Listing] = []

        def collect() -> Listing:
            if not collected:
                collected.append(self._collect(started, command, nonce))
            return collected[0]

        return collect

    def _collect(self, started: child_process.Child, command: list[str], nonce: str) -> Listing:
        try:
            answer = self._judge(started.finish(self.timeout), command)
        except child_process.OutOfTime:
            return parse.Listing(False, [], no_answer(self.server, command[0], self.timeout).message)
        except NoServer:
            return parse.Listing(True, [])
        except MamError as error:
            return parse.Listing(False, [], error.message)
        return parse.brief_listing(answer, nonce)

    def pane(self, pane_id: str) -> Pane | None:
        """Return one pane in full, or None if it is not there. Raises TerminalsDown where that is unknown."""
        nonce = new_nonce()
        try:
            answer = self._call(argv.show_pane(pane_id, nonce))
        except PaneGone:
            return None
        # display-message does not fail for a pane that is not there; it shows another one, or blanks.
        found = self._some(answer, nonce, full=True)
        return found if found is not None and found.id == pane_id else None

    def look(self, pane_id: str) -> PaneScreen:
        """Return one pane and its screen, of the same moment. Raises PaneGone."""
        nonce = new_nonce()
        answer = self._call(argv.look(pane_id, nonce))
        row, screen = parse.look_parts(answer, nonce)
        return parse.PaneScreen(self._one(row, nonce, full=True), screen)

    def capture(self, pane_ids: Iterable[str], *, scrollback: int = 0) -> dict[str, str | None]:
        """Return the screens of many panes in one call; None for a pane that is not there.

        The text is as the program drew it, without escape sequences but not cleaned for any destination.
        """
        wanted = list(dict.fromkeys(pane_ids))
        if not wanted:
            return {}
        nonce = new_nonce()
        try:
            script = argv.capture_script(wanted, nonce, scrollback)
            answer = self._call(["source-file", "-"], script, partial=True)
        except NoServer:
            return dict.fromkeys(wanted)
        screens = parse.captures(answer, nonce)
        return {pane_id: screens.get(pane_id) for pane_id in wanted}

    def start(
        self,
        name: str,
        launch: list[str],
        *,
        cwd: str,
        session_id: str,
        root: str,
        width: int = 200,
        height: int = 50,
    ) -> Pane:
        """Start a tmux session of one marked pane in cwd, running launch (see launch.launcher_command).

        Starts the server if there is none, and then claims it: clipboard, passthrough and renaming are
        closed. Raises NameTaken, InvalidPath, TmuxMissing, TerminalsDown.
        """
        self.require_version()
        nonce = new_nonce()
        command = argv.start(
            name, launch, session_id=session_id, root=root, width=width, height=height, nonce=nonce
        )
        # The last one: a session may be called so.
        answer, _, alone = self._call_anew(command, cwd).rpartition(f"{nonce}alone".encode())
        pane = self._one(answer, nonce)
        if alone.strip() == b"1,1":
            return pane
        return self._find_started(name, launch[-1], pane, session_id, root)

    def _call_anew(self, command: list[str], cwd: str) -> bytes:
        """Call a server that may be ending: one that lost its last pane a moment ago takes nothing any more.

        What such a server had begun ended with it, so the command is repeated, and starts another server.
        """
        from mam.adapters.system.deadline import Deadline

        deadline = Deadline(_ENDING_SECONDS, clock=monotonic)
        while True:
            try:
                return self._call(command, cwd=cwd)
            except ServerEnded:
                if not deadline.pause(0.01):
                    raise

    def _find_started(self, where: str, word: str, pane: Pane, session_id: str, root: str) -> Pane:
        """Move the mark to the pane that runs our launcher: a hook of the user's opened others beside it."""
        for line in self._call(argv.which_runs(where, word)).decode("ascii", "replace").splitlines():
            pane_id, _, is_ours = line.partition(" ")
            if is_ours == "1" and pane_id != pane.id:
                nonce = new_nonce()
                return self._one(self._call(argv.move_mark(pane.id, pane_id, session_id, root, nonce)), nonce)
        return pane

    def respawn(self, pane_id: str, launch: list[str], *, session_id: str, root: str) -> Pane:
        """Start launch in the dead pane that carries session_id.

        Raises PaneGone if the pane is not there or not that session's, IllegalTransition if it is alive.
        """
        self.require_version()
        nonce = new_nonce()
        try:
            answer = self._call(argv.respawn(pane_id, launch, session_id, root, nonce))
        except TerminalsDown as error:
            if "still active" in error.message:
                raise IllegalTransition(f"pane {pane_id} is still in use") from error
            raise
        verdict, _, row = answer.partition(b"\n")
        if verdict != nonce.encode() + b"yes":
            raise PaneGone(f"pane {pane_id} is not the pane of {session_id}")
        return self._one(row, nonce, full=True)

    def paste(
        self, pane_id: str, text: str, *, mark: str, enter: bool, pause: float = 0, at: Spot | None = None
    ) -> None:
        """Paste text into the pane that carries mark, and press Enter after it if asked.

        Nothing is typed unless the pane is there, carries mark, lives and is not in a mode, and its cursor
        is still `at` where it was seen: then PaneGone, PaneInMode or PaneChanged. NoAnswer means that it
        may have been typed; DeliveryUnconfirmed that the text was and Enter after the pause was not.
        """
        data = for_paste(text).encode("utf-8", "replace")
        at_once = enter and pause <= 0
        if data:
            nonce = new_nonce()
            command = argv.paste(pane_id, mark, buffer=f"mam-{nonce}", enter=at_once, nonce=nonce, at=at)
            self._guarded(pane_id, mark, command, nonce, data=data, at=at)
        elif at_once:
            self.keys(pane_id, ["Enter"], mark=mark, at=at)
        if enter and not at_once:
            sleep(pause)
            try:
                self.keys(pane_id, ["Enter"], mark=mark)
            except Unavailable as error:
                raise DeliveryUnconfirmed(f"pasted, and Enter was not pressed: {error.message}") from error

    def keys(self, pane_id: str, keys: list[str], *, mark: str, at: Spot | None = None) -> None:
        """Press keys of the closed list in the pane that carries mark; guarded like paste."""
        if keys:
            nonce = new_nonce()
            self._guarded(pane_id, mark, argv.press(pane_id, keys, mark, nonce, at), nonce, at=at)

    def kill_pane(self, pane_id: str, *, mark: str | None) -> bool:
        """Kill the pane if it carries mark (None: whatever it carries); False if there is no such pane."""
        nonce = new_nonce()
        try:
            answer = self._call(argv.kill_pane(pane_id, mark, nonce))
        except PaneGone:
            return False
        return answer.startswith(nonce.encode() + b"yes")

    def mark(self, pane_id: str, session_id: str, root: str) -> None:
        """Write a session id and root on a pane that is being adopted."""
        self._call(argv.mark(pane_id, session_id, root))

    def claim(self, pane_id: str, session_id: str, root: str) -> bool:
        """Write a session id and root on a pane that carries none; False if somebody was faster."""
        nonce = new_nonce()
        return self._call(argv.claim(pane_id, session_id, root, nonce)).startswith(nonce.encode() + b"yes")

    def unmark(self, pane_id: str, session_id: str) -> None:
        """Take a session's mark off a pane that is not its any more. Raises PaneGone."""
        self._call(argv.unmark(pane_id, session_id, new_nonce()))

    def rename_session(self, session_id: str, name: str) -> None:
        """Rename a tmux session by its `$` id. Raises NameTaken, PaneGone."""
        self._call(argv.rename_session(session_id, name))

    def attach_argv(self, session_id: str) -> list[str]:
        """Return what to exec, in a clean_environment, to attach this terminal to a session."""
        return [*self.words(), *argv.attach(session_id)]

    def switch_client(self, session_id: str, environ: Mapping[str, str]) -> None:
        """Show a session in the tmux client that the caller sits in, as TMUX and TMUX_PANE of environ say."""
        own = {name: environ[name] for name in ("TMUX", "TMUX_PANE") if name in environ}
        self._call(argv.switch_client(session_id), env={**self._environ, **own})

    def server_options(self) -> dict[str, str]:
        """Return the options that guard clipboard, passthrough and renaming, @mam_server and the version."""
        return parse.options(self._call(argv.server_options()).decode("utf-8", "replace"))

    def nudge(self, server_pid: int) -> None:
        """Make the server collect its dead children now. Harmless to anybody else who may have the pid."""
        try:  # noqa: SIM105  (contextlib is dear on the start-up path)
            os.kill(server_pid, _SIGCHLD)
        except (ProcessLookupError, PermissionError):
            pass

    def dead_status(self, pane_id: str, server_pid: int, deadline: float) -> Pane:
        """Return the pane once tmux knows how its process ended, or as it is at the deadline (monotonic).

        Called after the process was seen gone. Debian's tmux 3.3a loses the SIGCHLD of every other exit
        to libutempter and would never know; it is told again. Raises PaneGone.
        """
        from mam.adapters.system.deadline import Deadline

        until, next_nudge = Deadline(deadline - monotonic(), clock=monotonic), monotonic()
        while True:
            pane = self.pane(pane_id)
            if pane is None:
                raise PaneGone(f"pane {pane_id} is not there any more")
            known = pane.dead_status is not None or pane.dead_signal is not None
            if (pane.dead and known) or until.has_passed():
                return pane
            if (now := monotonic()) >= next_nudge:
                self.nudge(server_pid)
                next_nudge = now + _PATIENCE
            until.pause(0.003)

    def socket_path(self) -> str:
        """Return where the server listens."""
        from mam.adapters.tmux import server_process as server

        return server.socket_path(self._prefix, self._environ)

    def server_pid(self) -> int | None:
        """Return the pid of the server, also of one that does not answer; None if none listens."""
        from mam.adapters.tmux import server_process as server

        return server.listener(self._prefix, self._environ)

    def kill_server(self, timeout: float = 15.0) -> None:
        """End the server and all its panes, and prove that its process is gone. For tests and the demo."""
        from mam.adapters.system.deadline import Deadline
        from mam.adapters.tmux import server_process as server

        deadline = Deadline(timeout + 5, clock=monotonic)
        pid = self.server_pid()
        if pid is not None:
            server.end(pid, lambda: self._call(["kill-server"]), timeout)
        # A child that it forked at its end may hold the socket for a moment longer.
        while self.server_pid() is not None and deadline.pause(0.005):
            pass

    def _guarded(
        self, pane_id: str, mark: str, command: list[str], nonce: str, *, data: bytes = b"", at: Spot | None
    ) -> None:
        answer = self._call(command, data)
        if answer.startswith(nonce.encode() + b"yes"):
            return
        raise refusal(self.pane(pane_id), pane_id, mark, is_placed=at is not None)

    def _one(self, answer: bytes, nonce: str, full: bool = False) -> Pane:
        found = self._some(answer, nonce, full)
        if found is None:
            raise PaneGone("tmux showed no pane")
        return found

    def _some(self, answer: bytes, nonce: str, full: bool = False) -> Pane | None:
        try:
            return next(parse.rows(answer, nonce, full), None)
        except parse.Garbled as cause:
            raise TerminalsDown(f"tmux server {self.server}: {cause}") from cause

    def _call(
        self,
        command: list[str],
        data: bytes = b"",
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        partial: bool = False,
    ) -> bytes:
        """Run one tmux client. With partial, what single commands could not find is not an error."""
        words = [*self.words(), *command]
        try:
            answer = child_process.run(words, env or self._environ, timeout=self.timeout, data=data, cwd=cwd)
        except child_process.OutOfTime:
            raise no_answer(self.server, command[0], self.timeout) from None
        except OSError as cause:
            if cwd is not None and not os.path.isdir(cwd):
                raise InvalidPath(f"not a directory: {cwd}") from cause
            raise TerminalsDown(f"tmux cannot be started: {cause.strerror}") from cause
        return self._judge(answer, command, partial=partial)

    def _judge(self, answer: child_process.Answer, command: list[str], *, partial: bool = False) -> bytes:
        if answer.status == 0 or (answer.status is None and not answer.err):
            return answer.out
        error = from_stderr(answer.err.decode("utf-8", "replace"), command[0], self.server)
        if partial and type(error) is PaneGone:
            return answer.out
        raise error

    def _program(self) -> str:
        if self._path is None:
            for directory in self._environ.get("PATH", os.defpath).split(os.pathsep):
                candidate = f"{directory or '.'}/tmux"
                if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
                    self._path = candidate
                    break
            else:
                raise TmuxMissing("tmux is not on PATH", hint="install tmux 3.2 or newer")
        return self._path

    def require_version(self) -> str:
        """Return what `tmux -V` says. Raises TmuxMissing where there is none, or one that is too old."""
        path = self._program()
        if path in _new_enough:
            return _new_enough[path]
        try:
            said = child_process.run([path, "-V"], self._environ, timeout=self.timeout).out.decode(
                "utf-8", "replace"
            )
        except (child_process.OutOfTime, OSError) as cause:
            raise TmuxMissing(f"{path} -V does not work") from cause
        found = parse.version(said)
        if found is not None and found < OLDEST:
            raise TmuxMissing(f"{path} is {said.strip()}", hint="install tmux 3.2 or newer")
        _new_enough[path] = said.strip()
        return _new_enough[path]


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for tmux without what names a session of ours or of tmux.

    TMUX_TMPDIR stays: it says where the sockets are, and without it another server would be meant.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("MAM_", "TMUX")) or name == "TMUX_TMPDIR"
    }


def new_nonce() -> str:
    """Return a word that nothing on any screen can know."""
    return os.urandom(8).hex()
