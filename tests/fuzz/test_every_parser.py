"""Every module that parses what others wrote has a fuzz test, or a reason to have none.

A module parses if it calls one of the readers below, or imports a library that only reads. A new one that is
in neither table fails here: write its fuzz test first.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mam

SOURCE = Path(mam.__file__).parent
FUZZ = Path(__file__).parent
# Functions that turn bytes or text into values, by their last two names, and modules that do nothing else.
READERS = {
    "json.loads",
    "json.load",
    "tomllib.loads",
    "struct.unpack",
    "struct.unpack_from",
    "sqlite3.connect",
    "datetime.fromisoformat",
    "time.strptime",
    "bytes.fromhex",
    "yaml_text.parse",
    "prices.parse",
    "_HEAD.unpack_from",
}
MODULES = {"tomllib", "csv", "configparser", "pickle", "plistlib", "xml", "email", "read_only_sqlite"}
# How a kind reads what a program shows; the base class and the kinds that read no screen are among them.
METHODS = {"read_screen", "read_title", "read_hook", "read_transcript"}

# Fuzz test -> the modules that it tries.
TRIED: dict[str, list[str]] = {
    "test_screens.py": [
        "adapters.agents.claude.kind",
        "adapters.agents.codex.kind",
        "adapters.agents.gemini.kind",
        "adapters.agents.hermes.kind",
        "adapters.agents.opencode.kind",
        "adapters.agents.kind",
        "adapters.agents.claude.screen",
        "adapters.agents.codex.screen",
        "adapters.agents.gemini.screen",
        "adapters.agents.hermes.screen",
        "adapters.agents.opencode.screen",
    ],
    "test_pane_bytes.py": ["adapters.agents.practice", "adapters.agents.agy"],
    "test_hooks.py": ["adapters.store.files.hook_spool"],
    "test_transcripts.py": [
        "adapters.agents.jsonl",
        "adapters.agents.codex.files",
        "adapters.agents.codex.limit_reset_time",
        "adapters.agents.gemini.record",
        "adapters.agents.read_only_sqlite",
        "adapters.agents.hermes.conversation_database",
        "adapters.agents.opencode.conversation_database",
        "adapters.agents.kind_with_conversation_files",
    ],
    "test_registry_file.py": [
        "adapters.store.yaml.yaml_text",
        "adapters.store.yaml.document",
        "core.registry_hand_edits",
        "adapters.store.yaml.intake",
        "adapters.store.yaml.projection",
    ],
    "test_broker_payloads.py": ["core.job_event", "core.republish_request"],
    "test_mcp_lines.py": ["surfaces.mcp.server_thread", "surfaces.mcp.server", "surfaces.mcp.bridge"],
    "test_command_line.py": ["surfaces.cli.verbs.job.event"],
    "test_files.py": [
        "app.context.settings",
        "app.observation.prices",
        "app.sessions.worktree",
        "core.command_end",
        "core.times",
        "adapters.store.files.job_files",
        "adapters.store.files.team_presets",
        "adapters.store.process_lock",
        "app.monitor.backup_removal",
        "adapters.system.program_lookup",
        "adapters.tmux.parse",
        "adapters.tmux.launcher",
    ],
    "test_databases.py": [
        "adapters.store.database",
        "adapters.store.registry",
        "adapters.store.rows_and_log",
        "adapters.store.checked_copy",
        "adapters.store.backup_file",
        "adapters.store.soundness",
        "adapters.store.user_state",
        "adapters.store.intents",
        "adapters.store.root_identity",
        "adapters.store.tables.drifts",
        "adapters.store.tables.teams",
        "adapters.store.tables.messages",
        "adapters.store.tables.read_log",
        "adapters.store.tables.jobs",
        "adapters.store.tables.evidence",
        "adapters.store.tables.removals",
        "adapters.store.tables.running_scripts",
        "adapters.store.tables.purged_conversations",
        "adapters.store.tables.set_aside",
        "adapters.kanban.sqlite_board",
        "adapters.kanban.hermes_board",
        "app.roots.restore_source",
    ],
}
# Module -> why it has no fuzz test in this folder.
EXCUSED: dict[str, str] = {
    "adapters.store.salvage": "tests/adapters/store/test_salvage.py damages each page of a database",
    "adapters.store.sqlite_pages": "tests/adapters/store/test_salvage.py damages each page of a database",
    "adapters.store.foreign_copy": "tests/app/trust/test_rows_of_wrong_types.py tries values of wrong types",
    "app.monitor.retention": "it reads the times in names that mam gave, and leaves other names alone",
    "surfaces.mcp.startup_answers": "it reads a file of the package",
    "adapters.system.json_text": "tests/adapters/system/test_json_text.py compares it with the package json",
    "app.monitor.login_service": "it writes a file of macOS, and reads none",
    "adapters.system.private_socket": "the kernel wrote it",
    "adapters.system.file_watch": "the kernel wrote it",
    "adapters.tmux.server_shutdown": "the kernel wrote it",
}


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if not name.startswith("practice."):
            found[name.removesuffix(".__init__")] = path
    return found


def parses(source: str) -> set[str]:
    """Return what makes a module one that parses."""
    found: set[str] = set()
    words = {name.rpartition(".")[2] for name in READERS} | MODULES | METHODS | {"yaml"}
    if not any(word in source for word in words):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & {*MODULES, "yaml"}
        elif isinstance(node, ast.ImportFrom):
            words = (node.module or "").split(".")
            found |= {words[0], words[-1], *(alias.name for alias in node.names)} & MODULES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found |= {ast.unparse(node.func)} & READERS
        elif isinstance(node, ast.FunctionDef) and _is_of_agent(node):
            found |= {node.name} & METHODS
    return found


def _is_of_agent(function: ast.FunctionDef) -> bool:
    """Tell a method of a kind, and a reader of one screen, from an MCP tool of the same name."""
    arguments = [argument.arg for argument in function.args.args]
    return arguments[:1] in (["self"], ["screen"], ["path"])


def test_every_module_that_parses_is_tried_or_excused() -> None:
    known = {module for tried in TRIED.values() for module in tried} | EXCUSED.keys()
    found = {name: parses(path.read_text(encoding="utf-8")) for name, path in modules().items()}
    missing = {name: reasons for name, reasons in found.items() if reasons and name not in known}
    assert missing == {}, "write a fuzz test, and name the module in TRIED"
    assert {name for name in known if not found.get(name)} == set(), "these parse nothing any more"


def test_no_module_is_in_both_tables_or_twice() -> None:
    tried = [module for names in TRIED.values() for module in names]
    assert len(tried) == len(set(tried))
    assert set(tried).isdisjoint(EXCUSED)


@pytest.mark.parametrize("name", TRIED)
def test_a_fuzz_test_exists_and_draws_its_input(name) -> None:
    assert "@given" in (FUZZ / name).read_text(encoding="utf-8")


def test_the_tests_that_excuse_a_module_exist() -> None:
    for reason in EXCUSED.values():
        for word in reason.split():
            assert not word.startswith("tests/") or (FUZZ.parents[1] / word).exists(), word


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.loads(x)",
        "def f():\n    import tomllib",
        "from mam.adapters.store.yaml import yaml_text\nyaml_text.parse(b'', 'f')",
        "import sqlite3\nsqlite3.connect(path)",
        "import yaml",
        "class Kind:\n    def read_screen(self, screen):\n        return None",
        "from mam.adapters.agents.read_only_sqlite import query",
    ],
)
def test_a_module_that_parses_is_recognised(source) -> None:
    assert parses(source)
    assert not parses("import json\njson.dumps({})")
