"""Which version of its program a session runs, and whether mam was tested with it.

mam may misread the screen of a version that it was not tested with. So before mam types into such a program,
a hook, the state file or the transcript must report that the agent is idle.
"""

from __future__ import annotations

from mam.adapters.system import concurrent_program, program_lookup
from mam.app.context import claims
from mam.core.activity import IDLE, UNKNOWN, WAITING, is_asking
from mam.core.errors import UntestedVersion
from mam.core.session_row import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.activity import SessionEvidence
    from mam.core.session_row import Pane, Row

_ANSWER_SECONDS = 10.0
# The sources that the agent itself writes, and those of them that tell of a dialog.
_OWN_SOURCES = ("hook", "state-file", "transcript")
_DIALOG_SOURCES = ("hook", "state-file")


class VersionReading:
    """The version of a program, which mam reads while it starts the program."""

    def __init__(self, kind: Kind, program: str, environ: Mapping[str, str]) -> None:
        """Read the version from the package of the program, or else run `--version` in the background."""
        self.version: str | None = None
        self._process: concurrent_program.Running | None = None
        if kind.known_versions:
            self.version = program_lookup.package_version(program, kind.packages)
            if self.version is None:
                self._process = concurrent_program.Running([program, "--version"], environ)

    @property
    def is_due(self) -> bool:
        """Tell whether the output of `--version` has not been collected yet."""
        return self._process is not None

    def cancel(self) -> None:
        """End the program that was asked: its start failed."""
        if self._process is not None:
            self._process.cancel()
            self._process = None

    def finish(self) -> str | None:
        """Return the version; wait for the output of `--version` where it was run."""
        if self._process is not None:
            self.version = program_lookup.parse_version(self._process.finish(_ANSWER_SECONDS).output)
            self._process = None
        return self.version


def record(context: Context, row: Row, reading: VersionReading | None) -> Row:
    """Record in the row the version that `--version` printed while the session started."""
    if reading is None or not reading.is_due:
        return row
    version = reading.finish()
    if version is None:
        return row

    def work(transaction: Transaction) -> Row:
        current = transaction.get(row["id"]) or row
        if current["pane"].get("pid") != row["pane"].get("pid"):
            return current
        pane: Pane = {**current["pane"], "version": version}
        return transaction.put(merged(current, pane=pane))

    return claims.change(context, work)


def runs_tested_version(context: Context, row: Row) -> bool | None:
    """Tell whether mam was tested with the version that a session runs; None for kinds without versions."""
    return is_tested(context, context.kind(row["agent"]), (row.get("pane") or {}).get("version"))


def is_tested(context: Context, kind: Kind, version: str | None) -> bool | None:
    """Tell whether mam was tested with a version, or the operator lists it in the settings."""
    if not kind.known_versions:
        return None
    return version in kind.known_versions or f"{kind.name} {version}" in context.settings().known_versions


def says_idle(session: SessionEvidence, now: float) -> bool:
    """Tell whether the agent itself reports that it is idle, and not only its screen shows it."""
    reports_idle = any(
        evidence.source in _OWN_SOURCES and evidence.state == IDLE for evidence in session.evidence
    )
    return reports_idle and session.verdict(now).state == IDLE


def is_box_proven(context: Context, row: Row, session: SessionEvidence, screen_state: ScreenState) -> bool:
    """Tell whether an empty input box may be typed into, as far as the version of the program is concerned.

    Of an untested version the screen alone proves nothing, and a suggestion in its box may be a draft.
    """
    if runs_tested_version(context, row) is not False:
        return True
    return says_idle(session, context.now()) and not screen_state.has_suggestion


def says_waiting(session: SessionEvidence) -> bool:
    """Tell whether the agent reports an open dialog, whatever its screen seems to show.

    A program may print something that looks like an empty input box. A hook's report holds until the next
    one; the title may change earlier.
    """
    reports = [
        evidence
        for evidence in session.evidence
        if evidence.source in _DIALOG_SOURCES and evidence.state != UNKNOWN
    ]
    last = max(reports, key=lambda evidence: evidence.at, default=None)
    return is_asking(session.evidence) or (last is not None and last.state == WAITING)


def untested_error(row: Row, consequence: str) -> UntestedVersion:
    """Return the error for a version that mam was not tested with, where only the screen shows its state."""
    version = (row.get("pane") or {}).get("version") or "of unknown version"
    return UntestedVersion(
        f"mam was not tested with {row['agent']} {version}, and only its screen shows that it takes input; "
        f"{consequence}",
        hint=f"type it yourself (mam attach {row['name']}), or confirm the version in "
        f'~/.config/mam/config.toml: known_versions = ["{row["agent"]} {version}"]',
        session=row,
    )
