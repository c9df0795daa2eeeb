"""What is wrong on this machine and in this root, and how to mend each. Reads only."""

from __future__ import annotations

import os
import stat

from mam.adapters.store import database
from mam.adapters.store.tables import evidence, outbox
from mam.adapters.system import mounts, program_lookup
from mam.app.brokers import config as brokers
from mam.app.context import claims
from mam.app.context.liveness import DEAD, GONE, see
from mam.app.observation.versions import Reading, is_tested
from mam.core.errors import MamError
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from mam.adapters.tmux.parse import Listing
    from mam.app.context.context import World
    from mam.core.session_row import Row

    Finding = dict[str, Any]

_MANY_PAYLOADS = 1000
_OLD_LAUNCH_SECONDS = 300.0
_BROKER_SECONDS = 5.0


def doctor(world: World) -> list[Finding]:
    """Return every check as `{check, ok, message, mend}`; ok is None where nobody can say."""
    findings: list[Finding] = []
    seen: set[str] = set()
    for check in (
        _tmux,
        _settings,
        _state,
        _database,
        _file,
        _intents,
        _leftovers,
        _servers,
        _sessions,
        _programs,
        _broker,
        _roots,
    ):
        for one in _run(check, world):
            # A file that cannot be read stops several checks, and is one problem.
            if one["ok"] is not False or one["message"] not in seen:
                findings.append(one)
            seen.add(one["message"])
    return findings


def _run(check: Callable[[World], Iterator[Finding]], world: World) -> list[Finding]:
    try:
        return list(check(world))
    except MamError as error:
        return [finding(check.__name__.strip("_"), False, error.message, error.hint)]


def finding(check: str, ok: bool | None, message: str, mend: str | None = None) -> Finding:
    """Return one line of the report."""
    return {"check": check, "ok": ok, "message": message, "mend": None if ok else mend}


def _tmux(world: World) -> Iterator[Finding]:
    yield finding("tmux", True, world.tmux(world.server_name(None)).require_version())


def _settings(world: World) -> Iterator[Finding]:
    settings = world.settings()
    yield finding("settings", True, f"tmux server {settings.tmux_server}, permissions {settings.permissions}")


def _programs(world: World) -> Iterator[Finding]:
    used = sorted({row["agent"] for row in world.registry.view().rows})
    for name in used:
        command = world.kind(name).program([name])
        found = program_lookup.which(command, world.environ.get("PATH", os.defpath))
        yield finding(
            f"program {name}", bool(found), found or f"{command} is not on PATH", f"install {command}"
        )
        if found and world.kind(name).known_versions:
            yield _version(world, name, found)


def _broker(world: World) -> Iterator[Finding]:
    """Connect to the broker that is configured, and see what waits for one; most roots have neither."""
    none: list[str] = []
    if waiting := world.registry.peek(outbox.waiting_jobs, none):
        said = f"of {len(waiting)} jobs something is still to be published: {', '.join(sorted(waiting)[:5])}"
        yield finding("outbox", None, said, "mam monitor publishes it, when their broker is there")
    broker = brokers.find(world)
    if broker is None:
        return
    from mam.adapters.mqtt.connection import Connection

    link = Connection(broker, brokers.password(world, broker), role="doctor")
    try:
        link.open(_BROKER_SECONDS)
    except MamError as error:
        yield finding("broker", False, error.message, error.hint or "start it, or look at its address")
    else:
        yield finding("broker", True, f"{broker.address} answers, MQTT {broker.protocol}")
    finally:
        link.close()


def _version(world: World, name: str, program: str) -> Finding:
    kind = world.kind(name)
    version = Reading(kind, program, world.environ).finish()
    if version is None:
        return finding(f"version {name}", None, f"{program} does not say which one", f"{name} --version")
    if is_tested(world, kind, version):
        return finding(f"version {name}", True, version)
    tested = ", ".join(kind.known_versions)
    return finding(
        f"version {name}",
        None,
        f"{version}: mam was tested with {tested}, so nothing is typed on the word of its screen alone",
        f'install {tested}, or vouch for it in config.toml: known_versions = ["{name} {version}"]',
    )


def _state(world: World) -> Iterator[Finding]:
    folder = world.place.state
    if not os.path.isdir(folder):
        writable = os.access(world.place.root, os.W_OK)
        said = "has no state yet" if writable else "has no state and cannot be written"
        yield finding("root", writable, f"{world.place.root} {said}", "use a directory that you may write")
        return
    yield finding("writable", os.access(folder, os.W_OK), folder, f"check the owner and mode of {folder}")
    facts = os.stat(folder)
    yield finding("owner", facts.st_uid == os.geteuid(), f"{folder}", "use a root of your own")
    closed = not facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    yield finding("mode", closed, f"{folder} is {stat.S_IMODE(facts.st_mode):o}", f"chmod 700 {folder}")
    for path in (world.place.db, world.place.yaml):
        if os.path.exists(path):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            yield finding("mode", not mode & 0o077, f"{path} is {mode:o}", f"chmod 600 {path}")
    network = mounts.network_filesystem(world.place.root)
    where = f"on a network file system ({network})" if network else "on a local file system"
    yield finding("file system", not network, f"the root is {where}", "locks may fail there; move the root")


def _database(world: World) -> Iterator[Finding]:
    connection = world.registry.reader()
    if connection is None:
        return
    with database.errors(world.place.db):
        verdict = connection.execute("PRAGMA quick_check").fetchone()[0]
    yield finding(
        "database", verdict == "ok", f"{world.place.db}: {verdict}", "move it away; the YAML is taken in"
    )


def _file(world: World) -> Iterator[Finding]:
    rows = world.registry.view().rows
    edited = world.registry.is_edited()
    said = "has an edit that the next change takes in" if edited else f"shows {len(rows)} sessions"
    yield finding("registry", True, f"{world.place.yaml} {said}")


def _intents(world: World) -> Iterator[Finding]:
    for intent in world.registry.view().intents:
        owned = claims.is_owned(intent)
        who = f"process {intent.owner.get('pid')}"
        state = f"is under way in {who}" if owned else f"was cut off ({who} is gone)"
        mend = "any changing verb finishes or cleans it, for example mam init"
        yield finding("half-done change", owned, f"{intent.verb} of {intent.name} {state}", mend)


def _leftovers(world: World) -> Iterator[Finding]:
    waiting = len(evidence.pending(world.place.spool))
    if waiting > _MANY_PAYLOADS:
        yield finding(
            "spool", False, f"{waiting} payloads wait in {world.place.spool}", "mam ls takes them in"
        )
    folder, name = os.path.split(world.place.yaml)
    for stray in (f".{name}.tmp", f".{name}.bak.tmp"):
        path = os.path.join(folder, stray)
        if os.path.exists(path):
            yield finding("temporary file", False, path, "the next change removes it")
    if os.path.isdir(world.place.launches):
        for entry in os.scandir(world.place.launches):
            if world.now() - entry.stat(follow_symlinks=False).st_mtime > _OLD_LAUNCH_SECONDS:
                yield finding("launch file", False, entry.path, f"rm {entry.path}")


def _servers(world: World) -> Iterator[Finding]:
    for server in _server_names(world):
        listing = world.tmux(server).panes()
        if not listing.confirmed:
            yield finding(
                f"server {server}", False, listing.error or "does not answer", f"tmux -L {server} ls"
            )
        elif listing.server_pid is None:
            yield finding(f"server {server}", True, "is not running")
        else:
            yield from _options(world, server)


def _options(world: World, server: str) -> Iterator[Finding]:
    options = world.tmux(server).server_options()
    safe = {"allow-passthrough": ("off",), "allow-rename": ("off",), "set-clipboard": ("external", "off")}
    loose = [key for key, values in safe.items() if options.get(key, values[0]) not in values]
    if loose:
        commands = " ; ".join(f"tmux {_which(server)} set -g {key} {safe[key][0]}" for key in loose)
        yield finding(f"server {server}", False, f"{', '.join(loose)} open to what programs print", commands)
    else:
        yield finding(f"server {server}", True, "clipboard, passthrough and renaming are closed")


def _sessions(world: World) -> Iterator[Finding]:
    rows = world.registry.view().rows
    listings = {server: world.tmux(server).panes() for server in _server_names(world)}
    for row in rows:
        yield from _session(row, listings[row["tmux_server"]], world.place.root)
    ids = {row.get("id") for row in rows} | {one.session_id for one in world.registry.view().intents}
    for server, listing in listings.items():
        for pane in listing.panes:
            if pane.root == world.place.root and pane.mark and pane.mark not in ids:
                yield finding(
                    "pane without a row",
                    False,
                    f"{pane.id} of '{pane.session_name}' on server {server}",
                    f"tmux {_which(server)} kill-pane -t {pane.id}",
                )


def _session(row: Row, listing: Listing, root: str) -> Iterator[Finding]:
    sight = see(row, listing, root)
    name = row["name"]
    if is_running(row) and sight.state in (DEAD, GONE):
        yield finding(f"session {name}", False, f"is held for running: {sight.reason}", f"mam resume {name}")
    elif not is_running(row) and sight.pane is not None and sight.pane.mark == row.get("id"):
        yield finding(f"session {name}", True, "has ended; its pane is kept for review")
    if not os.path.isdir(row["workspace"]):
        yield finding(
            f"session {name}", False, f"its workspace {row['workspace']} is gone", f"mam forget {name}"
        )


def _roots(world: World) -> Iterator[Finding]:
    for root, registry in world.host.roots():
        if not os.path.exists(registry):
            yield finding(
                "known root", None, f"{root} has no registry any more", "nothing to do; it is skipped"
            )


def _which(server: str) -> str:
    return f"-S {server}" if server.startswith("/") else f"-L {server}"


def _server_names(world: World) -> list[str]:
    return sorted({row["tmux_server"] for row in world.registry.view().rows} | {world.server_name(None)})
