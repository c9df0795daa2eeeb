"""Which version of its program a session runs, and whether mam was tested with it.

The screen of a version that nobody tested proves nothing: what is typed into it unattended needs
the word of its hook, its state file or its transcript.
"""

from __future__ import annotations

from mam.adapters.system import program_lookup
from mam.app.context import claims
from mam.core.activity import IDLE, UNKNOWN, WAITING, is_asking
from mam.core.errors import UntestedVersion
from mam.core.session_row import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.activity import SessionEvidence
    from mam.core.session_row import Pane, Row

_ANSWER_SECONDS = 10.0
_WORDS = ("hook", "state-file", "transcript")
_TELLS = ("hook", "state-file")


class Reading:
    """A version that is being read while the program itself starts."""

    def __init__(self, kind: Kind, program: str, environ: Mapping[str, str]) -> None:
        """Look beside the program; only where nothing is found there it is asked, in the background."""
        self.version: str | None = None
        self._asked: program_lookup.Running | None = None
        if kind.known_versions:
            self.version = program_lookup.package_version(program, kind.packages)
            if self.version is None:
                self._asked = program_lookup.Running([program, "--version"], environ)

    @property
    def is_due(self) -> bool:
        """Tell whether an answer is still to be collected."""
        return self._asked is not None

    def cancel(self) -> None:
        """End the program that was asked: its start failed."""
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None

    def finish(self) -> str | None:
        """Wait for the answer, if the program was asked."""
        if self._asked is not None:
            self.version = program_lookup.parse_version(self._asked.finish(_ANSWER_SECONDS).words)
            self._asked = None
        return self.version


def record(context: Context, row: Row, reading: Reading | None) -> Row:
    """Keep in the row what the program answered since it was started."""
    if reading is None or not reading.is_due:
        return row
    version = reading.finish()
    if version is None:
        return row

    def work(draft: Transaction) -> Row:
        current = draft.get(row["id"]) or row
        if current["pane"].get("pid") != row["pane"].get("pid"):
            return current
        pane: Pane = {**current["pane"], "version": version}
        return draft.put(merged(current, pane=pane))

    return claims.change(context, work)


def is_known(context: Context, row: Row) -> bool | None:
    """Tell whether mam was tested with the version that a session runs; None for kinds without versions."""
    return is_tested(context, context.kind(row["agent"]), (row.get("pane") or {}).get("version"))


def is_tested(context: Context, kind: Kind, version: str | None) -> bool | None:
    """Tell whether a version is one of the tests', or one that the operator vouches for."""
    if not kind.known_versions:
        return None
    return version in kind.known_versions or f"{kind.name} {version}" in context.settings().known_versions


def says_idle(known: SessionEvidence, now: float) -> bool:
    """Tell whether the agent's own word, and not only its screen, is that it waits for input."""
    spoke = any(one.source in _WORDS and one.state == IDLE for one in known.evidence)
    return spoke and known.verdict(now).state == IDLE


def says_waiting(known: SessionEvidence) -> bool:
    """Tell whether the agent's own word is that a dialog is open, whatever its screen seems to show.

    What a program prints can look like an empty box. A hook's word holds until it says otherwise; a title
    may be ahead of it.
    """
    words = [one for one in known.evidence if one.source in _TELLS and one.state != UNKNOWN]
    last = max(words, key=lambda one: one.at, default=None)
    return is_asking(known.evidence) or (last is not None and last.state == WAITING)


def untested(row: Row, what: str) -> UntestedVersion:
    """Return the error for a version that nobody tested, where its own word does not say that it waits."""
    version = (row.get("pane") or {}).get("version") or "of unknown version"
    return UntestedVersion(
        f"mam was not tested with {row['agent']} {version}, and only its screen says that it waits; {what}",
        hint=f"type it yourself (mam attach {row['name']}), or vouch for it in ~/.config/mam/config.toml: "
        f'known_versions = ["{row["agent"]} {version}"]',
        session=row,
    )
