"""Start-up time: modules that a listing must not import."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import mam
from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import process

# What a listing does not show, it does not load.
OF_COSTS = {"mam.app.observation.prices", "mam.core.prices", "mam.core.token_count", "tomllib"}
HEAVY = {"rich", "pydantic", "yaml", "paho", "textual", "mcp", "shtab"}
DEAR = {
    "argparse",
    "dataclasses",
    "inspect",
    "typing",
    "pathlib",
    "shutil",
    "logging",
    "subprocess",
    "asyncio",
}
DEAR |= {"importlib.metadata", "tempfile", "threading", "unicodedata", "locale", "gettext", "traceback"}
# Each takes about a millisecond, a fifth of what the interpreter takes. JSON output needs json and re.
DEAR_TO_PEOPLE = {"datetime", "importlib", "json", "re", "sqlite3"}


def modules_after(workspace, *arguments: str) -> set[str]:
    code = (
        "import sys; before = set(sys.modules); from mam.surfaces.cli.main import main\n"
        f"code = main({list(arguments)!r})\n"
        "print('\\0', *(set(sys.modules) - before), file=sys.stderr); sys.exit(code)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=workspace, capture_output=True, text=True, check=True
    )
    return set(process.stderr.partition("\0")[2].split())


@contextmanager
def beside_a_resident(workspace: Path) -> Iterator[None]:
    """Be the resident of the root, as one runs in daily use; where none runs, mam looks for the reason."""
    lock = ProcessLock(str(workspace / ".mam" / "resident.lock"))
    assert lock.take({**process.me().as_json(), "version": mam.__version__})
    yield
    lock.release()


@pytest.mark.parametrize(
    "arguments", [("ls",), ("ls", "--json"), ("ls", "--names"), ("--json", "ls", "--all")]
)
def test_a_listing_imports_nothing_heavy(run, workspace, arguments):
    run("create", "--agent", "practice", "--session", "one")
    run("create", "--agent", "human", "--session", "two")
    with beside_a_resident(workspace):
        loaded = modules_after(workspace, *arguments)
    assert "mam.app.observation.ls" in loaded or "--names" in arguments
    assert not {name for name in loaded if name.split(".")[0] in HEAVY}
    assert not loaded & OF_COSTS
    assert not loaded & (DEAR if "--json" in arguments else DEAR | DEAR_TO_PEOPLE)


def test_a_listing_with_other_options_imports_argparse_and_nothing_else(run, workspace):
    run("create", "--agent", "human", "--session", "one")
    with beside_a_resident(workspace):
        loaded = modules_after(workspace, "ls", "--status", "running")
    assert loaded & (HEAVY | DEAR) <= {"argparse", "gettext", "locale"}


def test_a_verb_loads_no_other_verb(run, workspace):
    from mam.surfaces.cli import verb_table

    loaded = modules_after(workspace, "doctor")
    other_verbs = {f"mam.surfaces.cli.verbs.{module}" for module, _, _ in verb_table.VERBS.values()} - {
        "mam.surfaces.cli.verbs.doctor"
    }
    assert not loaded & other_verbs
