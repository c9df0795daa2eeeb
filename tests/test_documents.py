"""The pages about the documents of the original system are true."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from mam.app.agent_tools.skills import shipped
from mam.surfaces.cli import parser, verb_table

ROOT = Path(__file__).parents[1]
MIGRATION = (ROOT / "docs/from-the-scripts.md").read_text(encoding="utf-8")
TABLE = (ROOT / "docs/documents.md").read_text(encoding="utf-8")
# How many points each document has.
POINTS = {"S000": 43, "S001": 47, "S002": 46, "S003": 36, "S004": 12}


def commands(text: str) -> list[str]:
    """Return the commands of mam on a page: those in sentences and cells, and the lines of its blocks."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    sentences = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", sentences)]
    return sorted({line for line in [*spans, *lines] if re.match(r"mam [a-z]", line)})


@pytest.mark.parametrize("command", commands(MIGRATION))
def test_a_command_of_the_migration_page_can_be_parsed(command) -> None:
    _, verb, *arguments = shlex.split(command)
    module = verb_table.load(verb)
    if "--" in arguments and getattr(module, "TAKES_REST", False):
        arguments = arguments[: arguments.index("--")]
    if arguments:
        parser.parse(parser.build(verb, module), arguments)


def test_the_migration_page_has_commands_for_each_document() -> None:
    tables = re.findall(r"^\| what you (?:typed|called) .*?\n\n", MIGRATION, re.DOTALL | re.MULTILINE)
    assert len(tables) == 5
    assert len(commands(MIGRATION)) > 60


def test_the_migration_page_names_the_scripts_that_are_shipped() -> None:
    scripts = {
        path.rpartition("/")[2] for files in shipped().values() for path in files if path.endswith(".sh")
    }
    named = set(re.findall(r"\b\w+\.sh\b", MIGRATION))
    assert named == scripts | {"check.sh", "create_session.sh", "status.sh", "lib.sh"}


def test_the_migration_page_gives_each_other_script_its_command() -> None:
    table = re.search(r"^\| script \| command \|\n.*?\n\n", MIGRATION, re.DOTALL | re.MULTILINE)
    assert table
    listed = re.findall(r"^\| `(\w+\.(?:sh|py))`", table[0], re.MULTILINE)
    called = set(re.findall(r"\b\w+\.py\b", MIGRATION))
    assert sorted(listed) == sorted({*called, "create_session.sh", "status.sh", "lib.sh"})


def test_the_copied_folder_of_the_migration_page_keeps_the_other_scripts(
    home, quick_path, monkeypatch
) -> None:
    """The block of the page runs: mam's files replace theirs, and every other file stays."""
    skills = quick_path / ".agents/skills"
    theirs = {
        "stop": ["SKILL.md", "scripts/stop_session.sh", "scripts/lib.sh"],
        "monitor": ["SKILL.md", "scripts/reconcile.sh"],
        "delegate-job": ["SKILL.md", "delegate_job.sh", "scripts/publish_event.py"],
    }
    paths = [f"tmux-agent-orchestrate-{skill}/{name}" for skill, names in theirs.items() for name in names]
    for path in paths:
        (skills / path).parent.mkdir(parents=True, exist_ok=True)
        (skills / path).write_text("theirs\n", encoding="utf-8")
    block = next(text for text in re.findall(r"```sh\n(.*?)```", MIGRATION, re.DOTALL) if "cp -Rp" in text)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    subprocess.run(["sh", "-e", "-c", block], cwd=quick_path, check=True, timeout=600, capture_output=True)
    kept = [path for path in paths if (skills / path).read_text(encoding="utf-8") == "theirs\n"]
    assert [path.rpartition("/")[2] for path in kept] == ["lib.sh", "delegate_job.sh", "publish_event.py"]
    assert {path: (quick_path / ".agents/old-skills" / path).exists() for path in paths} == dict.fromkeys(
        paths, True
    )
    ours = [f"{name}/{path}" for name, files in shipped().items() for path in files]
    assert all("installed by mam" in (skills / path).read_text(encoding="utf-8") for path in ours)


def rows() -> list[tuple[str, list[str]]]:
    """Return each row of the table with the tests in its last cell."""
    found = re.findall(r"^\| (S\d+-\d+) \|.*\| ([^|]*) \|$", TABLE, re.MULTILINE)
    return [(row, re.findall(r"`([^`]+)`", cell)) for row, cell in found]


@cache
def existing() -> list[str]:
    """Return the id of every test, as pytest names it, without its parameters."""
    found = []

    def search(body: list[ast.stmt], place: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                search(node.body, f"{place}::{node.name}")
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.append(f"{place}::{node.name}")

    for path in (ROOT / "tests").rglob("test_*.py"):
        search(ast.parse(path.read_text(encoding="utf-8")).body, path.relative_to(ROOT).as_posix())
    return found


def test_every_point_of_the_documents_is_in_the_table_once() -> None:
    wanted = [f"{name}-{number}" for name, count in POINTS.items() for number in range(1, count + 1)]
    assert [row for row, _ in rows()] == wanted


def test_every_row_names_tests_and_they_exist() -> None:
    tests = set(existing())
    wrong = {row: [name for name in named if name not in tests] for row, named in rows()}
    assert {row: names for row, names in wrong.items() if names} == {}
    assert [row for row, named in rows() if not named] == []
    assert [row for row, named in rows() if max(Counter(named).values(), default=1) > 1] == []


def test_every_test_that_is_named_after_a_row_is_in_that_row() -> None:
    named = dict(rows())
    missing = []
    for test in existing():
        match = re.match(r"test_s(\d{3})_(\d+)(?:_|$)", test.rpartition("::")[2])
        if match and test not in named.get(f"S{match[1]}-{match[2]}", []):
            missing.append(test)
    assert missing == []
