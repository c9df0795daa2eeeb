"""What holds for the repository as a whole: its files, its lock, its commands and its import contracts.

Each gate is also shown failing: a violation is planted in a copy and the gate must name it.
"""

from __future__ import annotations

import ast
import importlib.resources
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "mam"
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = {contract["id"]: contract["name"] for contract in PROJECT["tool"]["importlinter"]["contracts"]}

# Put together here so that this file does not hold what it looks for.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("snapshot", "debian", "org"),
        ("registry", "npmjs", "org"),
    )
]
MACHINE_PATHS = [
    "/" + "/".join(parts)
    for parts in (("opt", "pypi"), ("opt", "wheels"), ("work", "main"), ("work", "shared"), ("root", "."))
]
DRAWERS = {"utils", "helpers", "common", "misc"}


def run(
    *argv: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def list_files() -> list[Path]:
    """Return what is committed or would be by `git add`."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = run(
        "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"
    )
    assert listed.returncode == 0, listed.stderr
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def find_machine_traces(text: str) -> list[str]:
    return [trace for trace in REGISTRY_HOSTS + MACHINE_PATHS if trace in text]


class TestFiles:
    def test_no_text_names_a_registry_or_a_machine(self):
        found = {}
        for path in list_files():
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            if traces := find_machine_traces(text):
                found[str(path.relative_to(ROOT))] = traces
        assert not found

    @pytest.mark.parametrize("trace", REGISTRY_HOSTS + MACHINE_PATHS)
    def test_the_search_finds_what_it_looks_for(self, trace):
        assert find_machine_traces(f"see https:/{trace}/simple") == [trace]

    def test_no_folder_is_a_drawer(self):
        parts = {part for path in list_files() for part in (*path.relative_to(ROOT).parts[:-1], path.stem)}
        assert not parts & DRAWERS

    def test_a_package_says_what_it_is_or_says_nothing(self):
        silent = [
            str(path.relative_to(ROOT))
            for path in SOURCE.rglob("__init__.py")
            if (text := path.read_text(encoding="utf-8")).strip() and not ast.get_docstring(ast.parse(text))
        ]
        assert not silent

    @pytest.mark.parametrize("name", ["dev", ".ci/run"])
    def test_scripts_may_be_run(self, name):
        assert os.access(ROOT / name, os.X_OK)
        staged = run("git", "-c", "safe.directory=*", "ls-files", "--stage", name).stdout
        assert not staged or staged.startswith("100755")

    def test_s003_11_no_command_sleeps_for_a_fixed_time(self):
        """Of a second or more: mam waits for what it needs to see."""
        calls = [
            (path.name, node.lineno)
            for path in SOURCE.rglob("*.py")
            if "sleep(" in (text := path.read_text(encoding="utf-8"))
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] == "sleep"
            and any(isinstance(seconds, ast.Constant) and seconds.value >= 1 for seconds in node.args)
        ]
        assert calls == []

    def test_the_changelog_has_a_place_for_the_next_change(self):
        assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


class TestPackage:
    def test_is_typed(self):
        assert importlib.resources.files("mam").joinpath("py.typed").is_file()

    def test_wheel_holds_the_licence_the_marker_and_every_module(self, tmp_path):
        built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
        assert built.returncode == 0, built.stderr
        (wheel,) = tmp_path.glob("*.whl")
        names = set(zipfile.ZipFile(wheel).namelist())
        assert "mam/py.typed" in names
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
        assert not {name for name in names if name.startswith(("tests/", "bench/"))}
        wanted = {path.relative_to(ROOT / "src") for path in list_files() if path.is_relative_to(SOURCE)}
        assert wanted <= {Path(name) for name in names}
        assert (
            len([name for name in names if re.fullmatch(r"mam/skills/[^/]+/scripts/[a-z_]+\.sh", name)]) == 3
        )


LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", LOCK, re.MULTILINE))


class TestLock:
    def test_names_no_address_and_no_path(self):
        assert "/" not in LOCK.replace("./dev lock", "")
        assert not re.search(r"^\s*-(?!-hash=)", LOCK, re.MULTILINE)

    def test_every_package_has_hashes(self):
        entries = [
            entry for entry in re.split(r"^(?=[A-Za-z0-9])", LOCK, flags=re.MULTILINE) if "==" in entry
        ]
        assert len(entries) == len(PINS)
        assert all("--hash=sha256:" in entry for entry in entries)

    def test_serves_every_dependency_of_the_project(self):
        """`./dev lock` was run after the last change of a dependency."""
        wanted = [
            Requirement(text)
            for text in (
                *PROJECT["project"]["dependencies"],
                *PROJECT["dependency-groups"]["dev"],
                *PROJECT["build-system"]["requires"],
            )
        ]
        pins = {canonicalize_name(name): version for name, version in PINS.items()}
        unserved = [
            str(one)
            for one in wanted
            if not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"), prereleases=True)
        ]
        assert not unserved


class TestDev:
    SCRIPT = (ROOT / "dev").read_text(encoding="utf-8")
    VERBS = re.findall(r"^verb_(\w+)\(\)", SCRIPT, re.MULTILINE)

    def test_help_names_every_verb(self):
        text = run(ROOT / "dev", "help").stdout
        named = re.findall(r"^  (\w+)(?= )", text, re.MULTILINE)
        assert sorted(named) == sorted([*self.VERBS, "help"])

    def test_contributing_names_every_verb(self):
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        assert not [verb for verb in self.VERBS if f"`./dev {verb}`" not in text]

    def test_an_unknown_verb_is_refused(self):
        done = run(ROOT / "dev", "dance")
        assert done.returncode == 2
        assert "no such verb: dance" in done.stderr

    def test_without_root_it_prints_the_one_command(self, tmp_path):
        """A user without sudo on a Debian machine with nothing installed."""
        for tool in ("bash", "cat", "dirname", "env", "head", "ln", "mkdir", "mktemp", "rm", "sh", "tr"):
            (tmp_path / tool).symlink_to(shutil.which(tool))
        for tool, body in (("id", "echo 1000"), ("sudo", "exit 1"), ("apt-get", "exit 99")):
            (tmp_path / tool).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (tmp_path / tool).chmod(0o755)
        done = run(ROOT / "dev", "setup", env={"PATH": str(tmp_path), "HOME": str(tmp_path)})
        assert done.returncode == 2
        (command,) = [line for line in done.stderr.splitlines() if line.startswith("  sudo ")]
        assert command.startswith("  sudo sh -c 'apt-get update && apt-get install -y")
        assert {"tmux", "gcc", "libc6-dev"} <= set(command.rstrip("'").split())


# Per contract: files to plant, each with its text. A contract without an entry fails a test below.
PLANTED = {
    "layers": [
        {"core/planted.py": "import mam.app"},
        {"adapters/store/planted.py": "from mam.app import planted"},
        {"app/jobs/planted.py": "import mam.surfaces.cli"},
        {"drawer/__init__.py": ""},
    ],
    "core-is-pure": [
        {"core/planted.py": "import os"},
        {"core/planted.py": "from time import monotonic"},
        {"core/planted.py": "def read():\n    import yaml\n"},
    ],
    "app-layers": [
        {"app/context/planted.py": "import mam.app.jobs"},
        {"app/sessions/planted.py": "import mam.app.teams"},
        {"app/sessions/planted.py": "import mam.app.roots"},
        {"app/teams/planted.py": "import mam.app.brokers"},
        {"app/monitor/planted.py": "import mam.app.api"},
        {"app/planted/__init__.py": ""},
    ],
    "adapters-apart": [
        {"adapters/git/planted.py": "import mam.adapters.tmux"},
        {"adapters/system/planted.py": "import mam.adapters.store"},
        {"adapters/planted/__init__.py": ""},
    ],
    "surfaces-apart": [{"surfaces/planted/__init__.py": "import mam.surfaces.cli"}],
    "surfaces-call-app": [{"surfaces/cli/planted.py": "import mam.adapters.store"}],
    "surfaces-call-api": [
        {"surfaces/cli/verbs/job/planted.py": "import mam.app.jobs"},
        {"surfaces/mcp/planted.py": "import mam.app.agent_tools"},
    ],
    "one-door": [
        {"adapters/store/planted.py": "import subprocess"},
        {"adapters/git/planted.py": "import subprocess"},
        {"adapters/tmux/planted.py": "import subprocess"},
        {"app/jobs/planted.py": "from subprocess import run"},
        {"surfaces/cli/planted.py": "import pty"},
    ],
    "practice-imports-nothing": [{"practice/planted.py": "import mam.core"}],
    "practice-is-run": [{"app/jobs/planted.py": "import mam.practice"}],
    "no-cycles": [
        {"app/jobs/one.py": "import mam.app.jobs.two", "app/jobs/two.py": "import mam.app.jobs.one"}
    ],
}


# Lints the trees that are its arguments, and prints the exit status and the output of each. Starting
# import-linter takes ten times as long as linting a tree.
LINT = """
import contextlib, io, json, os, sys
from importlinter.cli import lint_imports

answers, found = [], sys.path[1:]
for tree in sys.argv[1:]:
    os.chdir(tree)
    sys.path[:] = [tree + "/src", *found]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        status = lint_imports(no_logo=True, no_cache=True)
    answers.append((status, shown.getvalue()))
print(json.dumps(answers))
"""


class TestContracts:
    @staticmethod
    def plant(tree: Path, files: dict[str, str]) -> None:
        """Make a tree with the packages of the source and nothing but `files` in them."""
        shutil.copy(ROOT / "pyproject.toml", tree)
        for path in SOURCE.rglob("__init__.py"):
            empty = tree / path.relative_to(ROOT)
            empty.parent.mkdir(parents=True, exist_ok=True)
            empty.touch()
        for name, text in files.items():
            planted = tree / "src" / "mam" / name
            planted.parent.mkdir(exist_ok=True)
            planted.write_text(text + "\n", encoding="utf-8")

    @pytest.fixture(scope="class")
    @classmethod
    def linted(cls, tmp_path_factory):
        """The exit status and the output of import-linter, by what is planted; the clean tree is the last."""
        planted = [tuple(files.items()) for cases in PLANTED.values() for files in cases]
        trees = {files: tmp_path_factory.mktemp("tree") for files in [*planted, ()]}
        for files, tree in trees.items():
            cls.plant(tree, dict(files))
        linted = run(sys.executable, "-c", LINT, *trees.values(), env={**os.environ, "COLUMNS": "200"})
        assert linted.returncode == 0, linted.stderr
        return dict(zip(trees, json.loads(linted.stdout), strict=True))

    def test_a_clean_tree_keeps_them(self, linted):
        status, text = linted[()]
        assert status == 0, text

    @pytest.mark.parametrize(
        ("contract", "files"),
        [(contract, files) for contract, cases in PLANTED.items() for files in cases],
        ids=lambda value: value if isinstance(value, str) else "+".join(value),
    )
    def test_a_planted_violation_breaks(self, linted, contract, files):
        status, text = linted[tuple(files.items())]
        assert status == 1, text
        assert f"{CONTRACTS[contract]} BROKEN" in text

    def test_every_contract_is_seen_to_fail(self):
        assert set(PLANTED) == set(CONTRACTS)

    def test_core_imports_the_standard_library_only(self):
        foreign = {
            (str(path.relative_to(ROOT)), name)
            for path in (SOURCE / "core").rglob("*.py")
            for name in list_imports(path.read_text(encoding="utf-8"))
            if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("mam.core")
        }
        assert not foreign


def list_imports(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


class TestLinter:
    @pytest.mark.parametrize(
        ("code", "text"),
        [
            ("TID251", "import os\n\nos.system('true')\n"),
            ("TID251", "import os\n\nos.fork()\n"),
            ("S602", "import subprocess\n\nsubprocess.run('true', shell=True, check=True)\n"),
            ("TID251", "import yaml\n\nyaml.load('a')\n"),
            ("TID251", "import tempfile\n\ntempfile.mktemp()\n"),
            ("DTZ005", "import datetime\n\ndatetime.datetime.now()\n"),
            ("T201", "print('text')\n"),
            ("C901", "def tall(n: int) -> None:\n" + "    if n:\n        n += 1\n" * 11),
        ],
    )
    def test_refuses(self, tmp_path, code, text):
        planted = tmp_path / "src" / "mam" / "app" / "planted.py"
        planted.parent.mkdir(parents=True)
        planted.write_text(text, encoding="utf-8")
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
        checked = run(BIN / "ruff", "check", "--no-cache", "--output-format", "concise", cwd=tmp_path)
        assert checked.returncode == 1
        assert f" {code} " in checked.stdout
