"""The faults of a soak: each breaks one thing, and mends it after a while where that is due.

A fault returns a word about what it hit, or None where there was nothing to hit.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.soak.samples import resident_pid
from mam.adapters.store.root_paths import of_root
from mam.adapters.system import process

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from typing import Any

    from bench.soak.soaked_root import SoakedRoot

    Fault = Callable[[SoakedRoot, random.Random], str | None]

_LOCK_SECONDS = 30.0


def _a_moment(soaked: SoakedRoot, chance: random.Random) -> None:
    """Leave something broken for a while."""
    time.sleep(chance.uniform(0.1, 0.6) * soaked.every)


# ------------------------------------------------------------ processes that are killed


def kill_resident(soaked: SoakedRoot, _chance: random.Random) -> str | None:
    """Kill the resident."""
    pid = resident_pid(soaked.stage)
    return _kill(pid) if pid is not None else None


def kill_verb(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Kill a client in the middle of whatever it does; another one takes its place."""
    time.sleep(chance.uniform(0.0, 0.3))
    return soaked.clients.kill(chance.choice(soaked.clients.names))


def wrong_clock(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Have a client go on with a clock that is wrong by an hour or a day, and then with the right one."""
    name, seconds = chance.choice(soaked.clients.names), chance.choice((-86400, -3600, 3600, 86400))
    soaked.clients.kill(name, clock=seconds)
    _a_moment(soaked, chance)
    soaked.clients.kill(name)
    return f"{name} by {seconds} s"


def kill_agent(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Kill the agent of a session."""
    pane = _a_pane(soaked, chance)
    return _kill(pane.pid) if pane is not None else None


def kill_pane(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Close a pane with tmux, as a person does."""
    pane = _a_pane(soaked, chance)
    if pane is None:
        return None
    soaked.stage.tmux.kill_pane(pane.id, mark=None)
    return str(pane.session_name)


def kill_tmux(soaked: SoakedRoot, _chance: random.Random) -> str | None:
    """Kill the tmux server, and with it every pane."""
    pid = soaked.stage.tmux.server_pid()
    return _kill(pid) if pid is not None else None


def kill_broker(soaked: SoakedRoot, chance: random.Random) -> str:
    """Kill the broker; it comes back without what it knew."""
    soaked.stage.mosquitto.kill()
    _a_moment(soaked, chance)
    soaked.stage.mosquitto.start()
    return "back again"


# ------------------------------------------------------------ processes that hang


def freeze_tmux(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Stop the tmux server for a moment."""
    return _freeze(soaked, soaked.stage.tmux.server_pid(), chance)


def freeze_resident(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Stop the resident for a moment, whatever it holds."""
    return _freeze(soaked, resident_pid(soaked.stage), chance)


def freeze_broker(soaked: SoakedRoot, chance: random.Random) -> str:
    """Stop the broker for a moment."""
    soaked.stage.mosquitto.signal(signal.SIGSTOP)
    _a_moment(soaked, chance)
    soaked.stage.mosquitto.signal(signal.SIGCONT)
    return "for a moment"


def _freeze(soaked: SoakedRoot, pid: int | None, chance: random.Random) -> str | None:
    identity = process.identify(pid) if pid is not None else None
    if identity is None or not process.signal(identity, signal.SIGSTOP):
        return None
    try:
        _a_moment(soaked, chance)
    finally:
        process.signal(identity, signal.SIGCONT)
    return str(pid)


# ------------------------------------------------------------ files


def delete_socket(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Delete the socket of tmux; its server makes it again when it is told to.

    Whoever starts a session meanwhile starts a second server, which a person ends: one path has one server.
    """
    pid = soaked.stage.tmux.server_pid()
    if pid is None:
        return None
    for path in soaked.stage.folder.glob(f"tmux-*/{soaked.stage.server}"):
        path.unlink()
    _a_moment(soaked, chance)
    second = soaked.stage.tmux.server_pid()
    if second is not None:
        _kill(second)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
    return str(pid)


def fill_disk(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Fill the file system of the root, for a moment."""
    if not soaked.has_small_disk:
        return None
    ballast = soaked.stage.root / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 65536)
        _a_moment(soaked, chance)
    finally:
        ballast.unlink()
    return "full for a moment"


def edit_file(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Add a note to a row of the registry file, as a person does."""
    with _file_held(soaked) as path:
        text = path.read_text(encoding="utf-8")
        rows = [line for line in text.splitlines() if line.startswith(("  - id: ", "- id: "))]
        if not rows:
            return None
        # A key of its own each time: no row may have one twice.
        row, key = chance.choice(rows), f"note_{len(soaked.notes)}"
        indent = row[: row.index("id:")].replace("-", " ")
        replace(path, text.replace(row, f"{row}\n{indent}{key}: by hand", 1))
        soaked.notes[key] = row.partition("id: ")[2].strip().strip("'\"")
    return key


def break_file(soaked: SoakedRoot, chance: random.Random) -> str:
    """Make the registry file unreadable, and mend it after a moment."""
    return _spoil(soaked, chance, lambda text: text.replace("\n", "\n\t: {[\n", 3))


def cut_file(soaked: SoakedRoot, chance: random.Random) -> str:
    """Cut the registry file off, as a full disk does to an editor, and mend it after a moment."""
    return _spoil(soaked, chance, lambda text: text[: chance.randrange(1, max(2, len(text)))])


def _spoil(soaked: SoakedRoot, chance: random.Random, change: Callable[[str], str]) -> str:
    with _file_held(soaked) as path:
        before = path.read_text(encoding="utf-8")
        spoilt = change(before)
        replace(path, spoilt)
    _a_moment(soaked, chance)
    with _file_held(soaked) as path:
        if path.read_text(encoding="utf-8") == spoilt:
            replace(path, before)
            return "mended by a person"
    return "written anew"


@contextmanager
def _file_held(soaked: SoakedRoot) -> Iterator[Path]:
    """Hold the database meanwhile: what is tried here is the edit, and not its race with mam."""
    with _database_held(soaked):
        yield Path(of_root(str(soaked.stage.root)).yaml)


@contextmanager
def _database_held(soaked: SoakedRoot) -> Iterator[sqlite3.Connection]:
    path = of_root(str(soaked.stage.root)).db
    connection = sqlite3.connect(path, timeout=_LOCK_SECONDS, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
    finally:
        connection.close()


def replace(path: Path, text: str) -> None:
    """Replace a file as an editor does."""
    beside = path.with_name("soak-editor")
    beside.write_text(text, encoding="utf-8")
    beside.rename(path)


def spool_nonsense(soaked: SoakedRoot, chance: random.Random) -> str:
    """Put into the spool what is no payload of a hook."""
    spool = Path(of_root(str(soaked.stage.root)).spool)
    number = chance.getrandbits(32)
    name, act = chance.choice(
        (
            ("bytes", lambda path: path.write_bytes(chance.randbytes(2000))),
            ("deep", lambda path: path.write_text("[" * 50_000, encoding="utf-8")),
            ("empty", lambda path: path.touch()),
            ("pipe", os.mkfifo),
            ("link", lambda path: path.symlink_to("/etc/passwd")),
            ("folder", lambda path: path.mkdir()),
            ("foreign", lambda path: path.write_text('{"hook_event_name": "Stop"}', encoding="utf-8")),
        )
    )
    act(spool / f"s_{number:08x}.{number}.{name}.json")
    return name


# ------------------------------------------------------------ people, and machines elsewhere


def draft(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Type into the box of an agent, and delete it again after a moment."""
    pane = _a_pane(soaked, chance)
    return soaked.person.draft(pane, lambda: _a_moment(soaked, chance)) if pane is not None else None


def dialog(soaked: SoakedRoot, chance: random.Random) -> str | None:
    """Have an agent ask for a permission that nobody gives."""
    pane = _a_pane(soaked, chance, asking=True)
    if pane is None:
        # Only faults end these sessions, and no client resumes them.
        soaked.fleet.sessions.resume(chance.choice(soaked.asking_rows())["id"])
        pane = _a_pane(soaked, chance, asking=True)
    if pane is None:
        return None
    with _nobody_types(soaked) as is_quiet:
        return soaked.person.ask(pane) if is_quiet else None


@contextmanager
def _nobody_types(soaked: SoakedRoot) -> Iterator[bool]:
    """Hold the database, in which mam records a message before its first key; tell whether it types none.

    What is tried is the dialog that stands there. Keys that the agent has not read are on no screen: a
    message that mam types behind the command of a person would answer the dialog, and nobody could notice.
    """
    with _database_held(soaked) as connection:
        query = "SELECT count(*) FROM messages WHERE state='typing'"
        yield connection.execute(query).fetchone()[0] == 0


def duplicates(soaked: SoakedRoot, chance: random.Random) -> str:
    """Publish events again that were published before, and some of long ago."""
    return soaked.reporter.repeat(chance)


def forgeries(soaked: SoakedRoot, chance: random.Random) -> str:
    """Publish events that nobody with the token has signed."""
    return soaked.reporter.forge(chance)


# ------------------------------------------------------------ what there is

# How often each comes, beside the others.
FAULTS: dict[Fault, float] = {
    kill_resident: 1.0,
    kill_verb: 3.0,
    wrong_clock: 1.0,
    kill_agent: 2.0,
    kill_pane: 1.0,
    kill_tmux: 0.25,
    kill_broker: 1.0,
    freeze_tmux: 1.0,
    freeze_resident: 1.0,
    freeze_broker: 0.5,
    delete_socket: 0.5,
    fill_disk: 1.0,
    edit_file: 1.0,
    break_file: 1.0,
    cut_file: 1.0,
    spool_nonsense: 1.0,
    draft: 2.0,
    dialog: 1.0,
    duplicates: 1.0,
    forgeries: 1.0,
}


def _a_pane(soaked: SoakedRoot, chance: random.Random, *, asking: bool = False) -> Any:
    """Return a live pane of a session: one of those that ask, or one of the others."""
    ids = {row["id"] for row in soaked.asking_rows()}
    panes = [
        pane
        for pane in soaked.stage.tmux.panes().panes
        if pane.mark and not pane.dead and (pane.mark in ids) == asking
    ]
    return chance.choice(panes) if panes else None


def _kill(pid: int) -> str | None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return str(pid)
    return None
