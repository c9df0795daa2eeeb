"""Finds problems of this machine and this root, each with a way to mend it. Reads only."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import partial
from shlex import quote

from mam.adapters.store import database
from mam.adapters.store.files import hook_spool
from mam.adapters.store.tables import jobs, outbox, set_aside
from mam.adapters.system import process, program_lookup
from mam.app.brokers import config as brokers
from mam.app.context import claims, resident_state, setting_aside
from mam.app.context.former_places import former_place_of
from mam.app.context.liveness import confirm, judge_liveness
from mam.app.context.resident_start_and_lock import lock_holder, resident_log
from mam.app.jobs.write_job_files import audit_root
from mam.app.monitor import backup
from mam.app.monitor.retention import file_bytes, folder_bytes
from mam.app.observation import lost_roots
from mam.app.observation.conversations import way_to_continue
from mam.app.observation.versions import VersionReading, is_tested
from mam.app.sessions import left_running, worktree
from mam.core.errors import Damaged, InvalidSettings, MamError
from mam.core.liveness_values import Liveness
from mam.core.root_mark import is_same_root
from mam.core.root_state import RootState
from mam.core.session_row import Status, is_running
from mam.core.sizes import short_size
from mam.core.times import short_age, stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from mam.adapters.tmux.parse import Listing, Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Row

    Finding = dict[str, Any]

_MANY_PAYLOADS = 1000
_OLD_LAUNCH_SECONDS = 300.0
_BROKER_SECONDS = 5.0
_MOST_NAMES = 5
# A change is copied within a minute; of a large database, within some minutes.
_LATE_SECONDS = 3600.0
# With less, a copy or a large change may fail.
_LEAST_SPACE = 16 << 20


def doctor(context: Context) -> list[Finding]:
    """Return every check as `{check, ok, message, mend}`; ok is None if the check cannot decide."""
    report = _Report(context)
    report.run(_owner)
    if any(entry["ok"] is False for entry in report.findings):
        # Another user could have written the rest.
        report.run(_roots)
        return report.findings
    checks: tuple[Callable[[Context], Iterator[Finding]], ...] = _CHECKS
    try:
        refusal = context.root.refusal()
        verdict = context.root.verdict()
        if verdict.state not in (RootState.NEW, RootState.KNOWN):
            # What helps the sessions is refused before the root is mended.
            checks = _CHECKS_OF_COPY if verdict.is_ours else (_space, _roots)
    except Damaged as error:
        report.add_damage(error)
    else:
        if refusal is not None:
            report.findings.append(finding("root", False, refusal.message, refusal.hint))
    has_settings = _settings in checks and report.take_settings()
    for check in checks:
        # With settings that are not valid no resident can be started.
        if has_settings or check not in (_settings, _resident):
            report.run(check)
    return report.ended()


class _Report:
    """The findings so far. A damaged file is one of them, however many checks it keeps from being made."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.findings: list[Finding] = []
        self._messages: set[str] = set()
        self._damaged: set[str] = set()
        self._not_made: list[str] = []

    def run(self, check: Callable[[Context], Iterator[Finding]]) -> None:
        """Make a check; an error is a finding, and what the check found before that stays."""
        name = check.__name__.strip("_").replace("_", " ")
        try:
            for entry in check(self.context):
                self._add(entry)
        except Damaged as error:
            if self._file_of(error) in self._damaged:
                self._not_made.append(name)
            else:
                self.add_damage(error, name)
        except MamError as error:
            self._add(finding(name, False, error.message, error.hint))

    def take_settings(self) -> bool:
        """Return whether the settings are valid. If not, the other checks go on with the default ones."""
        try:
            self.context.settings()
        except InvalidSettings as error:
            mend = error.hint or "correct or remove that line; docs/settings.md says what each setting takes"
            self._add(finding("settings", False, error.message, mend))
            self.context = self.context.with_default_settings()
            return False
        except MamError:
            # Whichever check needs them says what is wrong.
            return True
        return True

    def add_damage(self, error: Damaged, check: str = "root") -> None:
        """Add the row of a damaged database, of the root or of the user state."""
        file = self._file_of(error)
        self._damaged.add(file)
        self._add(finding(file or check, False, error.message, error.hint))

    def ended(self) -> list[Finding]:
        """Return all findings, with a row that names the checks that could not be made."""
        if self._not_made:
            checks = ", ".join(self._not_made)
            self.findings.append(finding("not checked", None, f"{checks}: that needs what is damaged"))
        return self.findings

    def _file_of(self, error: Damaged) -> str:
        """Return which of mam's databases an error is about; empty if it is another file."""
        files = {"database": self.context.paths.db, "user state": self.context.user_state.path}
        return next((name for name, path in files.items() if error.message.startswith(path)), "")

    def _add(self, entry: Finding) -> None:
        if entry["check"] == "database" and entry["ok"] is False:
            self._damaged.add("database")
        # One unreadable file fails several checks with the same message: report it once. What one session
        # lacks, another one may lack as well.
        is_of_session = entry["check"].startswith("session ")
        if entry["ok"] is not False or is_of_session or entry["message"] not in self._messages:
            self.findings.append(entry)
        self._messages.add(entry["message"])


def finding(check: str, ok: bool | None, message: str, mend: str | None = None) -> Finding:
    """Return one line of the report."""
    return {"check": check, "ok": ok, "message": message, "mend": None if ok else mend}


def _tmux(context: Context) -> Iterator[Finding]:
    yield finding("tmux", True, context.tmux(context.server_name(None)).require_version())


def _settings(context: Context) -> Iterator[Finding]:
    message = f"tmux server {context.server_name(None)}, permissions {context.settings().permissions}"
    yield finding("settings", True, message)


def _programs(context: Context) -> Iterator[Finding]:
    used = sorted({row["agent"] for row in context.registry.view().rows})
    for name in used:
        if context.kind(name).runs_command_of_job:
            # Each job has a program of its own.
            continue
        command = context.kind(name).program([name])
        path = program_lookup.which(command, context.environ.get("PATH", os.defpath))
        yield finding(
            f"program {name}", bool(path), path or f"{command} is not on PATH", f"install {command}"
        )
        if path and context.kind(name).known_versions:
            yield _version(context, name, path)


def _broker(context: Context) -> Iterator[Finding]:
    """Check the outbox, and connect to the configured broker if there is one."""
    none: list[str] = []
    if waiting := context.registry.peek(outbox.waiting_jobs, none):
        count = _counted(len(waiting), "job", "jobs")
        message = f"events of {count} are not published yet: {', '.join(sorted(waiting)[:5])}"
        yield finding("outbox", None, message, "mam monitor publishes them when the broker is reachable")
    broker = brokers.find(context)
    if broker is None:
        return
    from mam.adapters.mqtt.connection import Connection

    connection = Connection(broker, brokers.password(context, broker), role="doctor")
    try:
        connection.open(_BROKER_SECONDS)
    except MamError as error:
        yield finding("broker", False, error.message, error.hint or "start the broker, or check its address")
    else:
        yield finding("broker", True, f"{broker.address} answers, MQTT {broker.protocol}")
    finally:
        connection.close()


def _version(context: Context, name: str, program: str) -> Finding:
    kind = context.kind(name)
    version = VersionReading(kind, program, context.environ).finish()
    if version is None:
        return finding(f"version {name}", None, f"{program} does not print its version", f"{name} --version")
    if is_tested(context, kind, version):
        return finding(f"version {name}", True, version)
    tested = ", ".join(kind.known_versions)
    return finding(
        f"version {name}",
        None,
        f"{version}: mam was tested with {tested}, so it does not type into {version} by its screen alone",
        f'install {tested}, or accept {version} in config.toml: known_versions = ["{name} {version}"]',
    )


def _owner(context: Context) -> Iterator[Finding]:
    context.resources.safety.check()
    if context.paths.exists():
        yield finding("owner", True, f"only you and root can write what mam reads in {context.paths.root}")


def _state(context: Context) -> Iterator[Finding]:
    folder = context.paths.state
    if not os.path.isdir(folder):
        writable = os.access(context.paths.root, os.W_OK)
        description = "has no state yet" if writable else "has no state and cannot be written"
        yield finding(
            "root", writable, f"{context.paths.root} {description}", "use a directory that you may write"
        )
        return
    mount = database.way_to_mount(folder)
    message = folder if mount is None else f"{folder} is on a file system that is mounted read-only"
    is_writable = mount is None and os.access(folder, os.W_OK)
    yield finding("writable", is_writable, message, mount or f"check the owner and mode of {folder}")
    facts = os.stat(folder)
    closed = not facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    yield finding("mode", closed, f"{folder} is {stat.S_IMODE(facts.st_mode):o}", f"chmod 700 {folder}")
    for path in (context.paths.db, context.paths.yaml):
        if os.path.exists(path):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            yield finding("mode", not mode & 0o077, f"{path} is {mode:o}", f"chmod 600 {path}")
    network = context.resources.safety.network()
    place = f"on a network file system ({network})" if network else "on a local file system"
    yield finding("file system", not network, f"the root is {place}", "locks may fail there; move the root")


def _database(context: Context) -> Iterator[Finding]:
    connection = context.registry.reader()
    if connection is None:
        return
    with database.errors(context.paths.db):
        verdict = connection.execute("PRAGMA quick_check").fetchone()[0]
    yield finding(
        "database",
        verdict == "ok",
        f"{context.paths.db}: {str(verdict).splitlines()[-1]}",
        "mam restore brings back what it still holds, and the rest from the newest copy",
    )


def _space(context: Context) -> Iterator[Finding]:
    """Say how much space is free where mam writes."""
    seen = set()
    for folder in (context.paths.state, context.user_state.folder):
        path = folder
        while not os.path.isdir(path):
            path = os.path.dirname(path)
        with database.errors(path):
            device, facts = os.stat(path).st_dev, os.statvfs(path)
        if device not in seen:
            seen.add(device)
            free = facts.f_bavail * facts.f_frsize
            message = f"{short_size(free)} are free on the file system of {path}"
            yield finding("space", free >= _LEAST_SPACE, message, "free some space there")


def _copies(context: Context) -> Iterator[Finding]:
    """Look at the copies of the state: is there a recent one, and how much do they take?"""
    if not os.path.exists(context.paths.db):
        return
    copies = backup.listed(context)
    last_copy = copies[0].made_at if copies else 0.0
    if not copies:
        message = "there is no copy of the state yet; a resident makes one after a change"
    else:
        age, size = short_age(context.now() - last_copy), sum(copy.size for copy in copies)
        count = _counted(len(copies), "copy", "copies")
        message = f"{count} of the state, the newest made {age} ago, {short_size(size)} in all"
    is_late = _changed_at(context) - max(last_copy, _resident_since(context)) > _LATE_SECONDS
    mend = "mam backup makes a copy, or says what is in the way"
    yield finding("copies", not is_late, f"{message}{', and what changed later has none' * is_late}", mend)


def _changed_at(context: Context) -> float:
    """Return the time of the last change of the database."""
    times = [0.0]
    for name in (context.paths.db, f"{context.paths.db}-wal"):
        with suppress(FileNotFoundError):
            times.append(os.stat(name).st_mtime)
    return max(times)


def _resident_since(context: Context) -> float:
    """Return when the resident started; without one, a time that has not come."""
    since = (lock_holder(context) or {}).get("since")
    return since if isinstance(since, float | int) else float("inf")


def _sizes(context: Context) -> Iterator[Finding]:
    """Say how much room the state takes, and which settings bound that."""
    if not context.paths.exists():
        return

    query = (
        "SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM messages),"
        " (SELECT count(*) FROM jobs), (SELECT count(*) FROM job_events)"
    )
    counts: tuple[int, ...] = context.registry.peek(
        lambda transaction: transaction.connection.execute(query).fetchone(), (0, 0, 0, 0)
    )
    log, texts, all_jobs, events = counts
    database_bytes = sum(file_bytes(context.paths.db + ending) for ending in ("", "-wal"))
    job_bytes = folder_bytes(context.paths.jobs) + folder_bytes(audit_root(context))
    yield finding(
        "size",
        True,
        f"the database has {short_size(database_bytes)}: {_counted(log, 'log entry', 'log entries')}"
        f" (setting keep_log), {_counted(texts, 'message', 'messages')} (keep_messages),"
        f" {_counted(all_jobs, 'job', 'jobs')} with {_counted(events, 'event', 'events')} (keep_jobs)",
    )
    yield finding(
        "size",
        True,
        f"the files of jobs have {short_size(job_bytes)} (keep_jobs),"
        f" the payloads of hooks {short_size(folder_bytes(context.paths.spool))}",
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _file(context: Context) -> Iterator[Finding]:
    view = context.registry.view()
    if view.status_edits is not None:
        refusal = view.status_edits.refusal(partial(confirm, context))
        if refusal is not None:
            yield finding("registry", False, refusal.message, refusal.hint)
            return
    count = _counted(len(view.rows), "session", "sessions")
    state = ""
    if context.registry.is_edited():
        is_recorded = context.registry.peek(lambda transaction: transaction.meta("file"), None) is not None
        state = (
            "; the next change takes in its edit" if is_recorded else "; the first change records the file"
        )
    yield finding("registry", True, f"{context.paths.yaml} shows {count}{state}")


def _intents(context: Context) -> Iterator[Finding]:
    for intent in context.registry.view().intents:
        owned = claims.is_owned(intent)
        owner = f"process {intent.owner.get('pid')}"
        state = f"is under way in {owner}" if owned else f"was cut off ({owner} is gone)"
        mend = "any changing verb finishes or cleans it, for example mam init"
        yield finding("half-done change", owned, f"{intent.verb} of {intent.name} {state}", mend)


def _set_aside(context: Context) -> Iterator[Finding]:
    """Name what mam could not work on. It stops nothing else, so it is no problem of the root."""
    none: list[set_aside.SetAside] = []
    items = context.registry.peek(set_aside.listed, none)
    for item in items:
        yield finding("set aside", None, _described(context, item), _after(item.kind))
    # Nobody need have tried to work on a job whose record is not what mam writes.
    tried = {item.key for item in items if item.kind == setting_aside.JOB}
    flawed: list[tuple[str, str]] = []
    for job_id, flaw in context.registry.peek(jobs.flawed, flawed):
        if job_id not in tried:
            yield finding("set aside", None, f"job {job_id}: {flaw}", _after(setting_aside.JOB))


def _described(context: Context, item: set_aside.SetAside) -> str:
    what = f"{item.kind} {item.key}"
    if item.kind == setting_aside.INTENT:
        row = context.registry.view().by_id(item.key)
        state = "is not in the registry" if row is None else f"is recorded as {row['status']}"
        name = item.data.get("name") or item.key
        what = f"the interrupted {item.data.get('verb')} of {name}, which {state}"
    return f"{what}: {item.reason} (mam {item.version}, {stamp(item.at)})"


def _after(kind: str) -> str:
    if kind == setting_aside.INTENT:
        return "a newer mam tries it again; meanwhile look at the session: mam status, mam stop, mam resume"
    if kind == setting_aside.JOB:
        return "mam job status shows it, and mam job cancel ends it; a newer mam tries it again"
    if kind == setting_aside.MESSAGE:
        return "mam inbox shows what became of it; the messages after it are delivered"
    return "the others go on; please report it with this line"


def _resident(context: Context) -> Iterator[Finding]:
    """Tell whether a resident runs where one is needed, and where its log is."""
    state = resident_state.resident_state(context)
    log = resident_log(context).path
    reason = state["reason"]
    if state["state"] == resident_state.RUNNING:
        if reason is None:
            yield finding("resident", True, f"mam {state['version']} since {state['since']}; log: {log}")
        else:
            yield finding("resident", None, reason, f"if it lasts, report it with the log: {log}")
    elif state["state"] == resident_state.HUNG:
        problem, _, way_out = (reason or "").partition("; ")
        yield finding("resident", False, f"it hangs: {problem}", f"{way_out}; the log is {log}")
    elif state["state"] == resident_state.DOWN:
        again = f"; the next start is not before {state['next_start_at']}" if state["next_start_at"] else ""
        mend = f"any changing command starts one; mam monitor shows what is wrong; the log is {log}"
        is_starting = reason is None
        message = "one is being started" if is_starting else f"none runs: {reason}{again}"
        yield finding("resident", None if is_starting else False, message, mend)
    elif state["state"] == resident_state.OFF:
        yield finding("resident", True, "the setting resident is off")


def _leftovers(context: Context) -> Iterator[Finding]:
    waiting = len(hook_spool.pending(context.paths.spool))
    if waiting > _MANY_PAYLOADS:
        yield finding(
            "spool", False, f"{waiting} payloads wait in {context.paths.spool}", "mam ls takes them in"
        )
    folder, name = os.path.split(context.paths.yaml)
    for leftover in (f".{name}.tmp", f".{name}.bak.tmp"):
        path = os.path.join(folder, leftover)
        if os.path.exists(path):
            yield finding("temporary file", False, path, "the next change removes it")
    if os.path.isdir(context.paths.launches):
        for entry in os.scandir(context.paths.launches):
            if context.now() - entry.stat(follow_symlinks=False).st_mtime > _OLD_LAUNCH_SECONDS:
                yield finding("launch file", False, entry.path, f"rm {entry.path}")


def _servers(context: Context) -> Iterator[Finding]:
    for server in _server_names(context):
        try:
            context.tmux(server).check_socket()
        except MamError as error:
            yield finding(f"server {server}", False, error.message, error.hint)
            continue
        listing = context.tmux(server).panes()
        if not listing.confirmed:
            what, mend = _silent_server(context, server)
            message = (listing.error or f"tmux server {server} does not answer") + what
            yield finding(f"server {server}", False, message, mend)
        elif listing.server_pid is None:
            yield finding(f"server {server}", True, "is not running")
        else:
            yield from _options(context, server)


def _silent_server(context: Context, server: str) -> tuple[str, str]:
    """Return what is known of a tmux server that does not answer, and the way on. tmux itself would hang."""
    pid = _server_process(context, server)
    if pid is None:
        return (
            "",
            "ps -xo pid,stat,args | grep tmux shows its process; T: it is stopped, kill -CONT PID wakes it",
        )
    if process.is_stopped(pid):
        return f"; its process {pid} is stopped", f"kill -CONT {pid}"
    return f"; its process is {pid}", f"ps -o pid,stat,time,args -p {pid} shows whether it is busy"


def _server_process(context: Context, server: str) -> int | None:
    """Return the process of a tmux server by what the rows record, if it surely still is that process."""
    for row in context.registry.view().rows:
        pane = row["pane"]
        pid, boot = pane.get("server_pid"), pane.get("boot_id")
        if row["tmux_server"] != server or not pid or not boot:
            continue
        if process.recorded_boot(boot) != process.boot_id() or not process.is_own(pid):
            continue
        program, start = process.command_line(pid) or [], process.start_of(pid)
        is_tmux = program and os.path.basename(program[0]).startswith("tmux")
        # A server is older than its panes; another process with its pid is younger.
        if is_tmux and start is not None and start <= pane.get("pid_start", 0):
            return pid
    return None


def _options(context: Context, server: str) -> Iterator[Finding]:
    options = context.tmux(server).server_options()
    safe = {"allow-passthrough": ("off",), "allow-rename": ("off",), "set-clipboard": ("external", "off")}
    loose = [key for key, values in safe.items() if options.get(key, values[0]) not in values]
    if loose:
        commands = " ; ".join(f"tmux {_server_option(server)} set -g {key} {safe[key][0]}" for key in loose)
        message = f"the output of a program can use {', '.join(loose)}"
        yield finding(f"server {server}", False, message, commands)
    else:
        message = "is closed to the output of programs: no clipboard, no passthrough, no renaming"
        yield finding(f"server {server}", True, message)


def _sessions(context: Context) -> Iterator[Finding]:
    rows = context.registry.view().rows
    listings = {server: context.tmux(server).panes() for server in _server_names(context)}
    for row in rows:
        yield from _session(context, row, listings[row["tmux_server"]])
    yield from _ended_by_themselves(rows)
    ids = {row.get("id") for row in rows} | {intent.session_id for intent in context.registry.view().intents}
    for server, listing in listings.items():
        for pane in listing.panes:
            if is_same_root(pane.root, context.root_mark) and pane.mark and pane.mark not in ids:
                where = f"{pane.id} of '{pane.session_name}' on server {server}"
                if pane.dead:
                    mend = f"tmux {_server_option(server)} kill-pane -t {pane.id}"
                    yield finding("pane without a row", False, f"{where}; its program has ended", mend)
                else:
                    yield finding(
                        "pane without a row",
                        False,
                        f"{where} runs an agent that no record names",
                        _way_to_take_back(context, server, pane, listing),
                    )


def _ended_by_themselves(rows: Iterable[Row]) -> Iterator[Finding]:
    """Name the sessions that a pass found ended, and that `resume --all` brings back."""
    names = [
        row["name"]
        for row in rows
        if row["status"] == Status.TERMINATED
        and row.get("termination_mode") == "auto-detected"
        and row.get("resumable")
    ]
    if names:
        listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        count = _counted(len(names), "session has", "sessions have")
        message = f"{count} died or ended without mam: {listed}"
        yield finding("ended", None, message, "mam resume --all starts what can be resumed")


def _way_to_take_back(context: Context, server: str, pane: Pane, listing: Listing) -> str:
    """Return how a live agent gets its row back. mam started it, so nobody is told to kill it."""
    options = [] if server == context.server_name(None) else [f"--tmux-server {quote(server)}"]
    if sum(other.session_name == pane.session_name and not other.dead for other in listing.panes) > 1:
        options.append(f"--pane {pane.id}")
    adopt = f"mam adopt {quote(pane.session_name)} --agent KIND registers it"
    adopt += f" (with {' '.join(options)})" if options else ""
    copies = backup.listed(context)
    if not copies:
        return adopt
    return f"mam restore FILE goes back to a copy, such as {quote(copies[0].path)}; or {adopt}"


def _session(context: Context, row: Row, listing: Listing) -> Iterator[Finding]:
    observed = judge_liveness(row, listing, context.root_mark)
    name = row["name"]
    if is_running(row) and observed.state in (Liveness.DEAD, Liveness.GONE):
        message = f"is recorded as running, but {observed.reason}"
        yield finding(f"session {name}", False, message, way_to_continue(context, row))
    elif is_running(row) and observed.state == Liveness.LOOSE:
        message = f"is in no pane that tmux shows, and {observed.reason}"
        yield finding(f"session {name}", False, message, f"mam restart {name}")
    elif not is_running(row) and observed.pane is not None and observed.pane.mark == row.get("id"):
        yield finding(f"session {name}", True, "has ended; its pane is kept for review")
    yield from _workspace(context, row)


def _workspace(context: Context, row: Row) -> Iterator[Finding]:
    """Say how a session gets its workspace back. Without it the session cannot be resumed."""
    is_there = os.path.isdir(row["workspace"])
    place = former_place_of(context, row["workspace"])
    if place is not None:
        mend = f"this root was moved from {place.root}; {place.way_on}"
    elif not is_there:
        mend = _way_to_make_workspace(row)
    else:
        return
    problem = "is another directory now" if is_there else "is gone"
    yield finding(f"session {row['name']}", False, f"its workspace {row['workspace']} {problem}", mend)


def _way_to_make_workspace(row: Row) -> str:
    make = f"mkdir -p {quote(row['workspace'])} makes the directory again"
    if is_running(row):
        return f"{make}: without it mam cannot resume the session after its end"
    return f"{make}, so that mam can resume the session; mam forget {row['name']} removes its row"


def _worktrees(context: Context) -> Iterator[Finding]:
    """Name the worktrees in mam's folders that no session has: a forget leaves them, and a crash can."""
    for tree in worktree.without_session(context):
        message = f"{tree['path']} on the branch '{tree['branch']}' belongs to no session"
        yield finding("worktree", None, message, worktree.way_to_remove(tree))


def _left_running(context: Context) -> Iterator[Finding]:
    """Name the processes that sessions have detached before they ended."""
    if processes := left_running.find_all(context):
        message = f"of sessions that have ended: {left_running.described(processes)}"
        yield finding("left running", None, message, left_running.way_to_end(processes))


def _roots(context: Context) -> Iterator[Finding]:
    if problem := context.user_state.former_problem():
        message = f"the user state of mam 0.1 was not taken over: {problem}"
        yield finding("user state", None, message, "mam init --trust takes in a root that counts as foreign")
    lost = []
    for root, registry in context.user_state.roots():
        if root == context.paths.root or os.path.exists(registry):
            continue
        # Without a copy nothing can be done. The resident removes copies that have grown old.
        if copies := lost_roots.copies_of(context, registry):
            made_at = stamp(copies[0].made_at)
            lost.append({"root": root, "copy_made_at": made_at, "mend": lost_roots.way_to_restore(root)})
    if lost:
        roots = "state of 1 other root is" if len(lost) == 1 else f"states of {len(lost)} other roots are"
        message = f"the {roots} gone, and copies are kept for the time of keep_jobs"
        mend = "mam doctor --json names each, with the command that brings it back"
        yield {**finding("known roots", None, message, mend), "roots": lost}


def _server_option(server: str) -> str:
    return f"-S {server}" if server.startswith("/") else f"-L {server}"


def _server_names(context: Context) -> list[str]:
    return sorted({row["tmux_server"] for row in context.registry.view().rows} | {context.server_name(None)})


_CHECKS = (
    _tmux,
    _settings,
    _state,
    _space,
    _database,
    _copies,
    _sizes,
    _file,
    _intents,
    _set_aside,
    _resident,
    _leftovers,
    _servers,
    _sessions,
    _worktrees,
    _left_running,
    _programs,
    _broker,
    _roots,
)
_CHECKS_OF_COPY = (_tmux, _settings, _state, _space, _database, _roots)
