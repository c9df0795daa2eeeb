"""A mosquitto of the test's own: the sample configuration of docs/, on free ports of the loopback device."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from tests.waiting import wait_until

SAMPLE = Path(__file__).parents[1] / "docs" / "mosquitto"
PASSWORDS = {"mam": "correct horse", "watcher": "battery staple", "0badcafe": "of one job"}
_RUNS = " running\n"


def free_port() -> int:
    """Return a port of the loopback device that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def program() -> str:
    """Return mosquitto, which Debian puts where a user's PATH does not look."""
    found = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin")
    assert found, "mosquitto is missing: ./dev setup installs it"
    return found


class Mosquitto:
    """A broker that can be killed and started again on the same ports."""

    def __init__(self, folder: Path, *, certificates: Path | None = None) -> None:
        """Write its files; nothing runs yet. Without certificates it has no port for TLS."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.tls_port = free_port(), free_port()
        self.certificates = certificates
        self._running: subprocess.Popen[bytes] | None = None
        self._has_run = False
        self._write()

    def _write(self) -> None:
        passwords = self.folder / "passwords"
        passwords.touch(mode=0o600)
        for user, password in PASSWORDS.items():
            subprocess.run(["mosquitto_passwd", "-b", str(passwords), user, password], check=True)
            self.password_file(user).touch(mode=0o600)
            self.password_file(user).write_text(f"{password}\n", encoding="utf-8")
        shutil.copy(SAMPLE / "acl", self.folder / "acl")
        (self.folder / "acl").chmod(0o600)
        text = (SAMPLE / "mosquitto.conf").read_text(encoding="utf-8")
        for old, new in {
            "/etc/mosquitto/certificates": str(self.certificates),
            "/etc/mosquitto": str(self.folder),
            "listener 1883": f"listener {self.port}",
            "listener 8883\n": f"listener {self.tls_port} 127.0.0.1\n",
        }.items():
            assert old in text
            text = text.replace(old, new)
        if self.certificates is None:
            head, _, rest = text.partition("# For other machines.")
            text = head + rest.partition("\n\n")[2]
        # As root it would become somebody who cannot read these files.
        self.conf = self.folder / "mosquitto.conf"
        self.conf.write_text(f"{text}user {getpass.getuser()}\n", encoding="utf-8")

    def password_file(self, user: str) -> Path:
        return self.folder / f"{user}.password"

    def url(self, user: str | None = "mam", *, tls: bool = False) -> str:
        at = f"{user}@" if user else ""
        port = self.tls_port if tls else self.port
        return f"mqtts://{at}localhost:{port}" if tls else f"mqtt://{at}127.0.0.1:{port}"

    def start(self) -> Mosquitto:
        """Start it and wait until it listens; the first time on other ports if somebody took these."""
        for _ in range(5):
            if self._launch():
                self._has_run = True
                return self
            assert not self._has_run, self.log()
            self.port, self.tls_port = free_port(), free_port()
            self._write()
        raise AssertionError(self.log())

    def _launch(self) -> bool:
        """Return whether it runs: it says so once its ports are open. A port of somebody else answers too."""
        with (self.folder / "log").open("ab") as log:
            said = self.log().count(_RUNS)
            self._running = subprocess.Popen(
                [program(), "-c", str(self.conf)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(lambda: self._running.poll() is not None or self.log().count(_RUNS) > said, self.log)
        return self._running.poll() is None

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it without a word, as a crash does."""
        self.signal(signal.SIGKILL)
        assert self._running is not None
        self._running.wait()

    def signal(self, number: int) -> None:
        assert self._running is not None
        self._running.send_signal(number)

    def stop(self) -> None:
        if self._running is not None and self._running.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.signal(signal.SIGCONT)
            self.kill()


def make_certificates(folder: Path) -> Path:
    """Make a CA and a broker's certificate as the documents say."""
    subprocess.run(
        [str(SAMPLE / "make-certificates"), str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return folder
