"""A plugin for pytest: who runs what, one line for each part as it ends, and the slowest at the end.

A part is a folder of tests; in the torture it is a function with its first parameter. The scenarios of
a real agent program in one file are a part of their own and run on one worker, one after the other, because
they share a session of the program; they begin first, because they take longest. `./dev test` loads the
plugin with `-p tests.parts`. The dots of pytest are left out. pytest-xdist's own groups are not used: with
pytest 9.2 they have no effect (xdist 3.8).
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_SLOWEST = 15
_LONGEST_REASON = 2000
_PROGRAMS = "tests/conformance/"
_TORTURE = "tests/torture/"
# So many of them run at once: they take all of a core, and more would only slow each other down.
_LANES = (os.cpu_count() or 1) + 1
_KINDS = (path.stem for path in (Path(__file__).parent / "conformance" / "programs").glob("*.toml"))
_KIND = re.compile(rf"\[({'|'.join(_KINDS)})\b")
# The parts that take longest, longest first: what begins last would else be waited for alone.
_LONG_PARTS = (
    "test_life gemini",
    "test_life opencode",
    "test_gemini",
    "test_opencode",
    "test_life hermes",
    "test_words gemini",
    "test_kanban",
    "test_codex",
    "test_claude",
    "test_hermes",
    "test_life codex",
    "test_life claude",
    "test_words codex",
    "test_words claude",
)


@dataclass
class Part:
    """The tests of one folder: how many there are, and what became of them."""

    expected: int = 0
    began: float | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    # What its tests have counted, such as the points at which a verb was killed.
    counts: Counter[str] = field(default_factory=Counter)


class Parts:
    """Counts what is reported, part by part."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.began = time.monotonic()
        self.parts: dict[str, Part] = {}
        self.seconds: Counter[str] = Counter()

    # ------------------------------------------------------------ what there is

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """The workers collect, all the same; this process hears of it from each of them."""
        self._expect(ids)

    def _expect(self, nodeids: list[str]) -> None:
        if not self.parts:
            for nodeid in nodeids:
                self.parts.setdefault(part_of(nodeid), Part()).expected += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> object:
        """Hand out the scenarios of a program together, and everything else test by test."""
        from xdist.scheduler import LoadScopeScheduling

        class Scheduling(LoadScopeScheduling):
            def _split_scope(self, nodeid: str) -> str:
                return part_of(nodeid) if _is_of_program(nodeid) else nodeid

            def _assign_work_unit(self, node: object) -> None:
                self.workqueue.move_to_end(self._choose(), last=False)
                super()._assign_work_unit(node)

            def _choose(self) -> str:
                """Return the next unit; the programs leave room for tests that mostly wait."""
                assigned = [scope for units in self.assigned_work.values() for scope in units]
                first = next(iter(self.workqueue))
                if sum(scope.startswith(_PROGRAMS) for scope in assigned) < _LANES:
                    return first
                return next((unit for unit in self.workqueue if not unit.startswith(_PROGRAMS)), first)

            def mark_test_complete(self, node: object, item_index: int, duration: float = 0) -> None:
                """Forget a unit that has ended: xdist goes through all it remembers after each test."""
                nodeid = self.registered_collections[node][item_index]
                units, scope = self.assigned_work[node], self._split_scope(nodeid)
                units[scope][nodeid] = True
                if all(units[scope].values()):
                    del units[scope]
                self._reschedule(node)

        return Scheduling(config, log)

    # ------------------------------------------------------------ what becomes of it

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        nodeid, name = report.nodeid, part_of(report.nodeid)
        part = self.parts.setdefault(name, Part())
        if part.began is None:
            part.began = time.monotonic()
        self.seconds[nodeid] += report.duration
        outcome = _outcome(report)
        if outcome is not None:
            part.outcomes[outcome] += 1
        if report.when == "call":
            part.counts.update(
                {str(name): value for name, value in report.user_properties if isinstance(value, int)}
            )
        if report.failed:
            self._write(f"{time.monotonic() - self.began:5.0f} s  FAILED {nodeid}", red=True)
            if nodeid.startswith(_TORTURE):
                # The whole report comes hours later.
                self._write(f"         {_reason(report)}")
        if report.when == "teardown":
            part.ended += 1
            if part.ended == part.expected:
                self._tell(name, part)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dots and letters: the lines say the same."""
        if report.failed:
            return ("failed", "", "FAILED") if report.when == "call" else ("error", "", "ERROR")
        if report.skipped:
            return ("xfailed", "", "XFAIL") if hasattr(report, "wasxfail") else ("skipped", "", "SKIPPED")
        return ("passed", "", "PASSED") if report.when == "call" else ("", "", "")

    def _tell(self, name: str, part: Part) -> None:
        bad = part.outcomes["failed"] + part.outcomes["error"]
        numbers = [*sorted(part.outcomes.items()), *sorted(part.counts.items())]
        counts = ", ".join(f"{number} {what}" for what, number in numbers)
        at = time.monotonic() - self.began
        took = time.monotonic() - (part.began or self.began)
        self._write(
            f"{at:5.0f} s  {name:<36} {'FAILED' if bad else 'ok':<6} {took:5.0f} s  {counts}", red=bool(bad)
        )

    def pytest_terminal_summary(self) -> None:
        self._write(f"\nthe slowest {_SLOWEST}, with what they set up:")
        for nodeid, seconds in self.seconds.most_common(_SLOWEST):
            self._write(f"{seconds:7.1f} s  {nodeid}")

    def _write(self, line: str, **markup: bool) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line, **markup)
            reporter.flush()


def _is_of_program(nodeid: str) -> bool:
    """Tell whether a test shares a session of a real program with others of its part."""
    return nodeid.startswith(_PROGRAMS) or (nodeid.startswith(_TORTURE) and bool(_KIND.search(nodeid)))


def part_of(nodeid: str) -> str:
    """Return the part of a test: its folder, or for the real programs the file and the program.

    Tests of the torture take minutes, so each function of them is a part, with the first of its parameters.
    """
    path, _, rest = nodeid.partition("::")
    if path.startswith(_TORTURE) and not _is_of_program(nodeid):
        name = rest.partition("-")[0].removeprefix("test_").replace("[", " ").rstrip("]")
        return f"{path.rpartition('/')[2].removesuffix('.py')} {name}"
    if not _is_of_program(nodeid):
        return path.rpartition("/")[0] or path
    kind = _KIND.search(rest)
    return path.removesuffix(".py") + (f" {kind[1]}" if kind else "")


def _reason(report: pytest.TestReport) -> str:
    """Return the beginning of what a failed test says."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr)[:_LONGEST_REASON]


def _outcome(report: pytest.TestReport) -> str | None:
    """Return the word that a report adds to the count of its part, or None."""
    if report.when == "call" or report.skipped:
        return "xfailed" if hasattr(report, "wasxfail") else report.outcome
    return "error" if report.failed else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long ones first; every worker comes to the same order."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, int]:
    if item.nodeid.startswith(_PROGRAMS):
        part = part_of(item.nodeid).removeprefix(_PROGRAMS)
        return 0, _LONG_PARTS.index(part) if part in _LONG_PARTS else len(_LONG_PARTS)
    return (1 if item.get_closest_marker("slow") else 2), 0


def pytest_configure(config: pytest.Config) -> None:
    """Tell from the one process that hears of all tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Parts(config), "mam-parts")
