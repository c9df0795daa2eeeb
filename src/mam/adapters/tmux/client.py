"""The tmux client: nearly every method is one call of tmux and returns what tmux answered.

One call answers for many panes. For each action on a pane, the server itself checks the conditions, so that
nothing can change between the check and the action.
"""

from __future__ import annotations

import os
import sys
from time import monotonic, sleep

from mam.adapters.system import child_process
from mam.adapters.tmux import argv, parse, server_socket
from mam.adapters.tmux.error_translation import (
    ForeignServer,
    NoServer,
    ServerEnded,
    from_stderr,
    no_answer,
    refusal,
)
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
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mam.adapters.tmux.parse import Capture, Listing, Pane, PaneScreen

    # The column and line of a cursor.
    Position = tuple[int, int]

OLDEST = (3, 2)
# Seconds for an answer of tmux, unless the caller sets another timeout.
TIMEOUT = 10.0
# After a call that ran out of time, the next ones wait only this long, until the server answers again or for
# some time: a verb makes several calls, and a stopped server answers none of them.
SHORT_TIMEOUT = 1.0
_SILENT_SECONDS = 30.0
_SIGCHLD = 20 if sys.platform == "darwin" else 17
_NUDGE_INTERVAL = 0.015
# How long a server may take to end.
_ENDING_SECONDS = 5.0
_new_enough: dict[str, str] = {}
# What a client needs to run and to find its server, and the PATH that a pane gets from it. A client sends its
# whole environment to the server.
_NEEDED = frozenset(
    (
        "DYLD_FALLBACK_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LOCALE_ARCHIVE",
        "LOCPATH",
        "PATH",
        "TERM",
        "TERMINFO",
        "TERMINFO_DIRS",
        "TMUX_TMPDIR",
    )
)


class Tmux:
    """One tmux server, given by its `-L` name or socket path; it need not run."""

    __slots__ = ("_environ", "_path", "_prefix", "_silent_until", "_whole_environ", "server", "timeout")

    def __init__(
        self, server: str, *, timeout: float = TIMEOUT, environ: Mapping[str, str] | None = None
    ) -> None:
        """Store the server and start nothing. Raises InvalidName for a name that tmux could misread."""
        self.server = server
        self.timeout = timeout
        self._prefix = argv.server_arguments(server)
        # A new server keeps the environment of the client that starts it, and gives it to a person's shells.
        self._whole_environ = clean_environment(os.environ if environ is None else environ)
        self._environ = needed_environment(self._whole_environ)
        self._path: str | None = None
        self._silent_until = 0.0

    @property
    def environ(self) -> dict[str, str]:
        """The environment of calls that start no session."""
        return self._environ

    def command_prefix(self, *flags: str) -> list[str]:
        """Return the beginning of every command line for this server. Raises TmuxMissing, ForeignServer."""
        self.check_socket()
        return [self._program(), "-u", *flags, *self._prefix]

    def check_socket(self) -> None:
        """Raise ForeignServer if the socket is not this user's, or others could replace it."""
        server_socket.check_socket(self.socket_path(), self.server)

    def panes(self, full: bool = False) -> Listing:
        """Return every pane of the server in one call. Never raises: a failed listing is not `confirmed`."""
        nonce = new_nonce()
        try:
            answer = self._call_with_retry(argv.list_panes(nonce, full))
        except NoServer:
            return parse.Listing(True, [])
        except MamError as error:
            return parse.Listing(False, [], error.message)
        return parse.listing(answer, nonce, full)

    def ask_briefly(self) -> Callable[[], Listing]:
        """Start a brief listing and return a function that collects it; tmux works in the meantime."""
        nonce = new_nonce()
        command = argv.list_briefly(nonce)
        try:
            started = child_process.start([*self.command_prefix(), *command], self._environ, feed=True)
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
            answered = self._finished(started.finish)
        except child_process.OutOfTime:
            return parse.Listing(False, [], no_answer(self.server, command[0], self.timeout).message)
        try:
            answer = self._judge(answered, command)
        except NoServer:
            return parse.Listing(True, [])
        except ServerEnded:
            return self.panes()
        except MamError as error:
            return parse.Listing(False, [], error.message)
        return parse.brief_listing(answer, nonce)

    def pane(self, pane_id: str) -> Pane | None:
        """Return one pane in full, or None if it does not exist. Raises TerminalsDown if that is unknown."""
        nonce = new_nonce()
        try:
            answer = self._call(argv.show_pane(pane_id, nonce))
        except PaneGone:
            return None
        # For a pane that does not exist, display-message does not fail: it shows another pane, or blanks.
        pane = self._first_pane(answer, nonce, full=True)
        return pane if pane is not None and pane.id == pane_id else None

    def look(self, pane_id: str) -> PaneScreen:
        """Return one pane and its screen at the same moment. Raises PaneGone."""
        nonce = new_nonce()
        answer = self._call_with_retry(argv.look(pane_id, nonce))
        row, captured = parse.look_parts(answer, nonce)
        return parse.PaneScreen(self._require_pane(row, nonce, full=True), captured)

    def may_have_got_keys(self, pane_id: str, since: float) -> bool:
        """Tell whether a person at a terminal may have typed into a pane since then.

        tmux dates the last key of a session's clients in whole seconds. Keys of programs are not dated. In a
        session that had no client nobody typed. The answer is True where nobody can tell.
        """
        nonce = new_nonce()
        answer = self._call_with_retry(argv.show_keys(nonce)).decode("ascii", "replace")
        rows = [line.split()[1:] for line in answer.splitlines() if line.startswith(nonce)]
        own = [row for row in rows if row[:1] == [pane_id]]
        times = [whole_number(row[1]) for row in own if len(row) > 2]
        return not own or any(time is None or time >= int(since) for time in times)

    def capture(self, pane_ids: Iterable[str], *, scrollback: int = 0) -> dict[str, str | None]:
        """Return the screens of many panes in one call; None for a pane that does not exist.

        The text has no escape sequences. Otherwise it is as the program drew it, and not yet safe to print.
        """
        found = self._captures(pane_ids, scrollback, styled=False)
        return {pane_id: capture.captured if capture else None for pane_id, capture in found.items()}

    def screens(self, pane_ids: Iterable[str], *, styled: bool = False) -> dict[str, Capture | None]:
        """Return the screens of many panes and their cursors in one call; None for a pane that is not there.

        With `styled` the texts have the sequences of their styles, which costs tmux up to four times as much.
        Such a text must never be printed as it is.
        """
        return self._captures(pane_ids, 0, styled=styled)

    def _captures(
        self, pane_ids: Iterable[str], scrollback: int, *, styled: bool
    ) -> dict[str, Capture | None]:
        ids = list(dict.fromkeys(pane_ids))
        if not ids:
            return {}
        nonce = new_nonce()
        try:
            script = argv.capture_script(ids, nonce, scrollback, styled=styled)
            answer = self._call(["source-file", "-"], script, partial=True)
        except NoServer:
            return dict.fromkeys(ids)
        screens = parse.captures(answer, nonce)
        return {pane_id: screens.get(pane_id) for pane_id in ids}

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
        """Start a tmux session of one marked pane in cwd that runs launch (see launch_file.launcher_command).

        If no server runs, start one and close its clipboard, passthrough and renaming. Raises NameTaken,
        InvalidPath, TmuxMissing, TerminalsDown.
        """
        self.require_version()
        nonce = new_nonce()
        command = argv.start(
            name, launch, session_id=session_id, root=root, width=width, height=height, nonce=nonce
        )
        # rpartition, because the name of a session, which stands before, may hold the same text.
        answer = self._call_with_retry(command, cwd, self._whole_environ)
        answer, _, alone = answer.rpartition(f"{nonce}alone".encode())
        pane = self._require_pane(answer, nonce)
        if alone.strip() == b"1,1":
            return pane
        return self._find_started(name, launch[-1], pane, session_id, root)

    def _call_with_retry(
        self, command: list[str], cwd: str | None = None, env: dict[str, str] | None = None
    ) -> bytes:
        """Run a command, and repeat it if the server ended meanwhile.

        A server that has just lost its last pane ends and takes no commands. Whatever it began has ended with
        it, so a command that reads, or that starts another server, may be repeated.
        """
        from mam.adapters.system.deadline import Deadline

        deadline = Deadline(_ENDING_SECONDS)
        while True:
            try:
                return self._call(command, cwd=cwd, env=env)
            except ServerEnded:
                if not deadline.pause(0.01):
                    raise

    def _find_started(self, name_or_window: str, word: str, pane: Pane, session_id: str, root: str) -> Pane:
        """Move the mark to the pane that runs the launcher; a tmux hook of the user opened other panes."""
        for line in (
            self._call(argv.list_started_with(name_or_window, word)).decode("ascii", "replace").splitlines()
        ):
            pane_id, _, is_ours = line.partition(" ")
            if is_ours == "1" and pane_id != pane.id:
                nonce = new_nonce()
                return self._require_pane(
                    self._call(argv.move_mark(pane.id, pane_id, session_id, root, nonce)), nonce
                )
        return pane

    def respawn(self, pane_id: str, launch: list[str], *, session_id: str, root: str) -> Pane:
        """Start launch in the dead pane that carries session_id.

        Raises PaneGone if the pane does not exist or has another mark, IllegalTransition if it is alive.
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
        return self._require_pane(row, nonce, full=True)

    def paste(
        self, pane_id: str, text: str, *, mark: str, enter: bool, pause: float = 0, at: Position | None = None
    ) -> None:
        """Paste text into the pane that carries mark, and press Enter after it if asked.

        Types only if the pane exists, carries mark, lives, is in no mode and has its cursor still `at` the
        given position; otherwise raises PaneGone, PaneInMode or PaneChanged. NoAnswer means that tmux may
        have typed the text. DeliveryUnconfirmed means that it typed the text, but not Enter after the pause.
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

    def keys(self, pane_id: str, keys: list[str], *, mark: str, at: Position | None = None) -> None:
        """Press keys of the closed list in the pane that carries mark; guarded like paste."""
        if keys:
            nonce = new_nonce()
            self._guarded(pane_id, mark, argv.press(pane_id, keys, mark, nonce, at), nonce, at=at)

    def kill_pane(self, pane_id: str, *, mark: str | None, pid: int | None = None) -> bool:
        """Kill the pane if it carries mark (None: any or no mark); False if there is no such pane.

        With `pid` tmux kills it only if no other process was started in it.
        """
        nonce = new_nonce()
        try:
            answer = self._call(argv.kill_pane(pane_id, mark, nonce, pid))
        except PaneGone:
            return False
        return answer.startswith(nonce.encode() + b"yes")

    def mark(self, pane_id: str, session_id: str, root: str) -> None:
        """Write a session id and root on a pane that mam adopts."""
        self._call(argv.mark(pane_id, session_id, root))

    def claim(self, pane_id: str, session_id: str, root: str) -> bool:
        """Write a session id and root on a pane without a mark; False if another process was faster."""
        nonce = new_nonce()
        return self._call(argv.claim(pane_id, session_id, root, nonce)).startswith(nonce.encode() + b"yes")

    def unmark(self, pane_id: str, session_id: str) -> None:
        """Remove a session's mark from a pane that no longer belongs to it. Raises PaneGone."""
        self._call(argv.unmark(pane_id, session_id, new_nonce()))

    def rename_session(self, session_id: str, name: str) -> None:
        """Rename a tmux session by its `$` id. Raises NameTaken, PaneGone."""
        self._call(argv.rename_session(session_id, name))

    def attach_argv(self, session_id: str) -> list[str]:
        """Return the command that attaches this terminal to a session; run it in a clean_environment."""
        return [*self.command_prefix(), *argv.attach(session_id)]

    def switch_client(self, session_id: str, environ: Mapping[str, str]) -> None:
        """Show a session in the caller's tmux client, which TMUX and TMUX_PANE of environ name."""
        client = {name: environ[name] for name in ("TMUX", "TMUX_PANE") if name in environ}
        self._call(argv.switch_client(session_id), env={**self._environ, **client})

    def server_options(self) -> dict[str, str]:
        """Return the options for clipboard, passthrough and renaming, @mam_server and the version."""
        return parse.options(self._call(argv.server_options()).decode("utf-8", "replace"))

    def nudge(self, server_pid: int) -> None:
        """Make the server collect its dead children now. SIGCHLD is harmless to a later owner of the pid."""
        try:  # noqa: SIM105  (contextlib is dear on the start-up path)
            os.kill(server_pid, _SIGCHLD)
        except (ProcessLookupError, PermissionError):
            pass

    def dead_status(self, pane_id: str, server_pid: int, deadline: float) -> Pane:
        """Return the pane once tmux knows how its process ended, or as it is at the deadline (monotonic).

        Call this after the process has ended. In Debian's tmux 3.3a, libutempter takes the SIGCHLD of every
        other exit, and tmux would never notice it; so this sends the signal again. Raises PaneGone.
        """
        from mam.adapters.system.deadline import Deadline

        until, next_nudge = Deadline(deadline - monotonic(), clock=monotonic), monotonic()
        while True:
            pane = self.pane(pane_id)
            if pane is None:
                raise PaneGone(f"pane {pane_id} does not exist any more")
            has_status = pane.dead_status is not None or pane.dead_signal is not None
            if (pane.dead and has_status) or until.has_passed():
                return pane
            if (now := monotonic()) >= next_nudge:
                self.nudge(server_pid)
                next_nudge = now + _NUDGE_INTERVAL
            until.pause(0.003)

    def socket_path(self) -> str:
        """Return the path of the server's socket."""
        return server_socket.socket_path(self._prefix, self._environ)

    def server_pid(self) -> int | None:
        """Return the pid of the server, even a silent one; None if no server of this user listens."""
        from mam.adapters.tmux import server_shutdown as server

        try:
            self.check_socket()
        except ForeignServer:
            return None
        return server.listener(self.socket_path())

    def kill_server(self, timeout: float = 15.0) -> None:
        """End the server and all its panes, and prove that its process is gone. For tests and the demo."""
        from mam.adapters.system.deadline import Deadline
        from mam.adapters.tmux import server_shutdown as server

        deadline = Deadline(timeout + 5, clock=monotonic)
        pid = self.server_pid()
        if pid is not None:
            server.end(pid, lambda: self._call(["kill-server"]), timeout)
        # A child that the server forked while it ended may hold the socket for a moment longer.
        while self.server_pid() is not None and deadline.pause(0.005):
            pass

    def _guarded(
        self,
        pane_id: str,
        mark: str,
        command: list[str],
        nonce: str,
        *,
        data: bytes = b"",
        at: Position | None,
    ) -> None:
        answer = self._call(command, data)
        if answer.startswith(nonce.encode() + b"yes"):
            return
        raise refusal(self.pane(pane_id), pane_id, mark, is_placed=at is not None)

    def _require_pane(self, answer: bytes, nonce: str, full: bool = False) -> Pane:
        pane = self._first_pane(answer, nonce, full)
        if pane is None:
            raise PaneGone("tmux showed no pane")
        return pane

    def _first_pane(self, answer: bytes, nonce: str, full: bool = False) -> Pane | None:
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
        """Run one tmux client. With partial, a missing target of single commands is not an error.

        Without env the server learns only what every client needs.
        """
        command_line = [*self.command_prefix(), *command]
        try:
            answer = self._finished(
                lambda timeout: child_process.run(
                    command_line, env or self._environ, timeout=timeout, data=data, cwd=cwd
                )
            )
        except child_process.OutOfTime:
            raise no_answer(self.server, command[0], self.timeout) from None
        except OSError as cause:
            if cwd is not None and not os.path.isdir(cwd):
                raise InvalidPath(f"not a directory: {cwd}") from cause
            raise TerminalsDown(f"tmux cannot be started: {cause.strerror}") from cause
        return self._judge(answer, command, partial=partial)

    def _finished(self, call: Callable[[float], child_process.Answer]) -> child_process.Answer:
        """Make a call with the time that the server has for it; remember whether it answered."""
        is_silent = monotonic() < self._silent_until
        try:
            answer = call(min(self.timeout, SHORT_TIMEOUT) if is_silent else self.timeout)
        except child_process.OutOfTime:
            if not is_silent:
                self._silent_until = monotonic() + _SILENT_SECONDS
            raise
        self._silent_until = 0.0
        return answer

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
        """Return the output of `tmux -V`. Raises TmuxMissing if tmux is missing or too old."""
        path = self._program()
        if path in _new_enough:
            return _new_enough[path]
        try:
            output = child_process.run([path, "-V"], self._environ, timeout=self.timeout).out.decode(
                "utf-8", "replace"
            )
        except (child_process.OutOfTime, OSError) as cause:
            raise TmuxMissing(f"{path} -V does not work") from cause
        version = parse.version(output)
        if version is not None and version < OLDEST:
            raise TmuxMissing(f"{path} is {output.strip()}", hint="install tmux 3.2 or newer")
        _new_enough[path] = output.strip()
        return _new_enough[path]


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for tmux without the variables that name a session of mam or of tmux.

    TMUX_TMPDIR stays: it names the folder of the sockets, and without it tmux would use another server.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("MAM_", "TMUX")) or name == "TMUX_TMPDIR"
    }


def needed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a tmux client needs to look, type, and change a pane."""
    return {name: value for name, value in environ.items() if name in _NEEDED or name.startswith("LC_")}


def new_nonce() -> str:
    """Return a random word that no program can guess and print."""
    return os.urandom(8).hex()
