"""The pages about the documents of the original system are true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mam.app.agent_tools.skills import shipped
from mam.surfaces.cli import parser, verb_table

ROOT = Path(__file__).parents[1]
MIGRATION = (ROOT / "docs/from-the-scripts.md").read_text(encoding="utf-8")


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
    assert {name for name in re.findall(r"\b\w+\.sh\b", MIGRATION) if name != "check.sh"} == scripts
