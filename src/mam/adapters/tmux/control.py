"""One tmux client that stays: asks without starting a process, and hears what happens.

It speaks control mode over pipes. As a hub it sits on a private session that nobody sees as an agent's
and that goes with it; to watch one session it attaches there, without touching its size. It waits with
poll only, always under a deadline, and survives both a server that dies and one that says too much.
"""

from __future__ import annotations

import os
import select
from time import monotonic

from mam.adapters.tmux import argv, parse, run_client
from mam.adapters.tmux.client import Tmux, new_nonce
from mam.adapters.tmux.control_lines import ControlLines, Notice
from mam.adapters.tmux.failures import ControlUnsafe, from_stderr, no_answer
from mam.adapters.tmux.tether import Tether
from mam.core.errors import MamError, PaneGone, TerminalsDown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mam.adapters.tmux.parse import Listing

_CHUNK = 1 << 16
_HINT = "tmux 3.7 or newer is safe; without it mam asks by single calls"


class Reply:
    """What one command answered. The body is empty until it is complete."""

    __slots__ = ("_parts", "done", "ok", "wanted")

    def __init__(self) -> None:
        """Start without an answer."""
        self._parts: list[bytes] = []
        self.done = False
        self.ok = True
        self.wanted = True

    @property
    def body(self) -> bytes:
        """Return everything that the command printed."""
        return b"".join(self._parts)

    def add(self, ok: bool, body: bytes) -> None:
        """Take one block of the answer; a command may have several, one for each that it ran."""
        self.ok = self.ok and ok
        if self.wanted:
            self._parts.append(body)


class ControlClient:
    """A resident client of one server. Not for use by several threads at once."""

    def __init__(
        self,
        server: str,
        session: str | None = None,
        *,
        timeout: float = 10.0,
        environ: Mapping[str, str] | None = None,
        unsafe: bool = False,
    ) -> None:
        """Connect as a hub, or to watch a session by its `$` id. Never starts a server.

        Raises ControlUnsafe for a server that this could crash, with every agent on it, unless the caller
        takes that upon itself; and NoServer, PaneGone, TerminalsDown, TmuxMissing.
        """
        self.server = server
        self.timeout = timeout
        self.alive = True
        self._lines = ControlLines()
        self._replies: list[tuple[bytes, Reply]] = []
        self._notices: dict[Notice, None] = {}
        self._nonce = new_nonce()
        self._sent = 0
        tmux = Tmux(server, timeout=timeout, environ=environ)
        if not unsafe and not parse.has_safe_control(running := tmux.server_version()):
            raise ControlUnsafe(f"tmux {running} can crash when a control client connects", hint=_HINT)
        self._tether: Tether | None = None
        self._farewell = b"\n"  # an empty line is how a control client leaves
        if session is None:
            name = f"mam-hub-{os.getpid()}-{self._nonce[:4]}"
            self._tether = Tether(os.path.dirname(tmux.socket_path()), name)
            command = argv.hub(name, self._tether.command())
            self._farewell = argv.quoted(argv.leave_hub(name)).encode() + b"\n"
        else:
            command = argv.watch(session)
        hello = Reply()
        self._replies.append((self._key(), hello))
        greeting = ["display-message", "-p", self._replies[0][0].decode()]
        try:
            words = [*tmux.words("-N", "-C"), *command, ";", *greeting]
            self._pid, self._feed, self._out, self._err = run_client.start(words, tmux.environ)
        except MamError:
            self._release()
            raise
        except OSError as cause:
            self._release()
            raise TerminalsDown(f"tmux cannot be started: {cause.strerror}") from cause
        os.set_blocking(self._feed, False)
        self._poller = select.poll()
        self._poller.register(self._out, select.POLLIN)
        try:
            self._await([hello], command[0])
        except BaseException:
            self.close()
            raise
        if not hello.ok:
            error = from_stderr(hello.body.decode("utf-8", "replace"), command[0], server)
            self.close()
            raise error

    def fileno(self) -> int:
        """Return the descriptor that is readable when something arrives; a request may also leave events."""
        return self._out

    def ask(self, commands: Iterable[list[str]], timeout: float | None = None) -> list[Reply]:
        """Run commands in order and return a reply for each, failed ones among them.

        Words are ids, numbers and formats of ours, as in argv. Raises NoAnswer when the time is over (the
        commands may still be carried out; late answers are dropped) and TerminalsDown if the server ended.
        """
        replies = []
        text = bytearray()
        for command in commands:
            replies.append(Reply())
            text += self._written(command, replies[-1])
        if not replies:
            return []
        self._write(bytes(text), timeout)
        self._await(replies, "request", timeout)
        return replies

    def request(self, commands: Iterable[list[str]], timeout: float | None = None) -> list[bytes]:
        """Run commands in order and return what each printed; raises the error of the first that failed."""
        wanted = list(commands)
        replies = self.ask(wanted, timeout)
        for command, reply in zip(wanted, replies, strict=True):
            if not reply.ok:
                raise from_stderr(reply.body.decode("utf-8", "replace"), command[0], self.server)
        return [reply.body for reply in replies]

    def panes(self, full: bool = False) -> Listing:
        """Return every pane of the server; like Tmux.panes, never raises."""
        nonce = new_nonce()
        try:
            (answer,) = self.request([argv.list_panes(nonce, full)])
        except MamError as error:
            return parse.Listing(False, [], error.message)
        return parse.listing(answer, nonce, full)

    def capture(self, pane_ids: Iterable[str], *, scrollback: int = 0) -> dict[str, str | None]:
        """Return the screens of many panes; None for one that is not there."""
        wanted = list(dict.fromkeys(pane_ids))
        replies = self.ask([argv.capture(pane_id, scrollback) for pane_id in wanted])
        return {
            pane_id: reply.body.decode("utf-8", "replace") if reply.ok else None
            for pane_id, reply in zip(wanted, replies, strict=True)
        }

    def events(self, timeout: float) -> list[Notice]:
        """Return what happened, each thing once, waiting at most timeout seconds for the first.

        `output` says only that its pane printed something. A paused pane is continued. The last event
        ever is `exit`: the server or this client has ended.
        """
        deadline = monotonic() + timeout
        while not self._notices and self.alive:
            left = max(0.0, deadline - monotonic())
            if not self._receive(left) and left <= 0:
                break
        found, self._notices = list(self._notices), {}
        return found

    def close(self) -> None:
        """End this client; a hub's session goes with it. A second time does nothing."""
        if self._pid == 0:
            return
        pid, self._pid = self._pid, 0
        was_alive, self.alive = self.alive, False
        try:
            if was_alive:
                os.write(self._feed, self._farewell)
            self._drain()
        except OSError:
            pass  # it is gone, or its server does not read
        finally:
            self._release()
            os.close(self._feed)
            run_client.end(pid)
            os.close(self._out)
            os.close(self._err)

    def _release(self) -> None:
        if self._tether is not None:
            self._tether.release()

    def _drain(self) -> None:
        """Let the client say goodbye: of a hub the server has let go when this returns."""
        deadline = monotonic() + min(1.0, self.timeout)
        while (left := deadline - monotonic()) > 0:
            if self._poller.poll(left * 1000) and not os.read(self._out, _CHUNK):
                return

    def _key(self) -> bytes:
        self._sent += 1
        return f"{self._nonce}-{self._sent}".encode()

    def _written(self, command: list[str], reply: Reply) -> bytes:
        """Return a command as lines to send: itself, and the word that marks the end of its answers."""
        line = argv.quoted(command)
        if "\n" in line or "\0" in line:
            raise ValueError("a control command is one line")
        key = self._key()
        self._replies.append((key, reply))
        return line.encode("utf-8", "surrogateescape") + b"\ndisplay-message -p " + key + b"\n"

    def _write(self, data: bytes, timeout: float | None = None) -> None:
        deadline = monotonic() + (self.timeout if timeout is None else timeout)
        rest = memoryview(data)
        while rest:
            if not self.alive:
                raise self._ended()
            try:
                rest = rest[os.write(self._feed, rest) :]
            except BlockingIOError:
                # The server may be waiting for us to read before it reads on.
                self._receive(0.01)
                if monotonic() > deadline:
                    raise no_answer(self.server, "request", self.timeout) from None
            except BrokenPipeError:
                self._receive(0.0)
                self._end()

    def _await(self, replies: list[Reply], what: str, timeout: float | None = None) -> None:
        patience = self.timeout if timeout is None else timeout
        deadline = monotonic() + patience
        # The first command of all stands alone: after an error in it nothing follows.
        while not replies[-1].done and (replies[0].ok or self._sent > 1):
            if not self.alive:
                raise self._ended()
            left = deadline - monotonic()
            if left <= 0:
                for reply in replies:
                    reply.wanted = False
                raise no_answer(self.server, what, patience)
            self._receive(left)

    def _receive(self, timeout: float) -> bool:
        """Read once, if something comes in time; False if nothing did."""
        if not self.alive or not self._poller.poll(timeout * 1000):
            return False
        data = os.read(self._out, _CHUNK)
        if not data:
            self._end()
            return True
        for found in self._lines.feed(data):
            if isinstance(found, Notice):
                self._notice(found)
            elif self._replies:
                self._answer(found.ok, found.body)
        return True

    def _answer(self, ok: bool, body: bytes) -> None:
        key, reply = self._replies[0]
        if ok and body == key + b"\n":
            reply.done = True
            del self._replies[0]
        else:
            reply.add(ok, body)

    def _notice(self, notice: Notice) -> None:
        if notice.name == "exit":
            # A screen in an answer can hold this line too; only the end of the stream is an end.
            return
        self._notices[notice] = None
        if notice.name == "pause" and argv.is_id(notice.target, "%"):
            reply = Reply()
            reply.wanted = False
            try:
                self._write(self._written(argv.resume_output(notice.target), reply), 1.0)
            except (TerminalsDown, PaneGone):
                self._notices[notice] = None

    def _end(self) -> None:
        if self.alive:
            self.alive = False
            self._release()
            self._notices[Notice("exit")] = None

    def _ended(self) -> MamError:
        said = b""
        os.set_blocking(self._err, False)
        try:  # noqa: SIM105  (contextlib is dear on the start-up path)
            said = os.read(self._err, _CHUNK)
        except OSError:
            pass
        text = said.decode("utf-8", "replace") or "server exited"
        return from_stderr(text, "control mode", self.server)
