"""Try a version of an agent program and print what holds: `./dev conformance KIND [VERSION]`.

The same scenarios as in every run of the tests, for any version that the registry of packages has.
With `--install` it only installs the programs that the tests run, all at once.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.desk import VERSION, VERSIONS
from tests.conformance.install import OTHERS, installed
from tests.conformance.program import PROGRAMS

HERE = Path(__file__).parent


class Table:
    """Collects how each scenario ended."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, float, str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.rpartition("::")[2].partition("[")[0].removeprefix("test_").replace("_", " ")
        outcome, seconds, why = self.rows.get(name, ("ok", 0.0, ""))
        if report.failed:
            outcome, why = "FAILED", _reason(report)
        elif report.skipped:
            outcome, why = "skipped", report.longrepr[2].removeprefix("Skipped: ")
        self.rows[name] = outcome, seconds + report.duration, why
        if report.when == "teardown":
            print(
                f"{name:<44} {self.rows[name][0]:<8} {self.rows[name][1]:6.1f} s  {self.rows[name][2]}",
                flush=True,
            )

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            print(report.longrepr, file=sys.stderr)


def _reason(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return " ".join(text.split())[:160]


def install() -> int:
    """Install every program that the tests run; say which cannot be had, and why."""
    wanted = (*PROGRAMS, *OTHERS)
    with ThreadPoolExecutor(len(wanted)) as pool:
        running = {name: pool.submit(installed, name) for name in wanted}
    failures = {name: one.exception() for name, one in running.items() if one.exception() is not None}
    for name, error in failures.items():
        print(f"{name}: {error}", file=sys.stderr)
    return int(bool(failures))


def main(words: list[str]) -> int:
    if words == ["--install"]:
        return install()
    if not words or words[0] not in VERSIONS or len(words) > 2:
        print(f"usage: ./dev conformance {'|'.join(VERSIONS)} [VERSION]", file=sys.stderr)
        return 2
    kind = words[0]
    version = words[1] if len(words) > 1 else VERSIONS[kind]
    os.environ[VERSION] = version
    own = HERE / f"test_{kind}.py"
    chosen = [str(path) for path in (HERE / "test_life.py", own) if path.exists()]
    print(f"{kind} {version}", flush=True)
    table = Table()
    quiet = ["-p", "no:terminalreporter", "-p", "no:cacheprovider"]
    # Of the scenarios for all kinds those of this one, of its own file all.
    status = pytest.main([*quiet, "-k", f"{kind} or test_{kind}", *chosen], plugins=[table])
    held = sum(outcome == "ok" for outcome, _, _ in table.rows.values())
    print(f"{held} of {len(table.rows)} hold")
    # Where everything was skipped nothing is known, and that is no success.
    return int(status) or int(held == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
