"""Some cells through the command line: the exit code, the sentence, its hint, and the code for programs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.matrix.cell import ERRORS
from tests.matrix.faults import FAULTS
from tests.matrix.table import ROWS, expected
from tests.matrix.verbs import VERBS
from tests.matrix.world import World

from mam.adapters.system.load_adjusted_clock import stretched

pytestmark = [pytest.mark.slow, pytest.mark.starts]

CALLS = [
    ("pane killed", "interrupt", ["interrupt", "one"]),
    ("registry file, corrupt", "stop", ["stop", "one"]),
    ("registry file, cut", "rename", ["rename", "one", "two"]),
    ("registry file, corrupt", "ls", ["ls"]),
    ("pane replaced", "resume", ["resume", "one"]),
    ("pane killed", "send", ["send", "one", "the words"]),
]


@pytest.mark.promise("P45")
@pytest.mark.parametrize(("fault", "verb", "words"), CALLS, ids=[f"{call[0]}: {call[1]}" for call in CALLS])
def test_a_cell_through_the_command_line(fault, verb, words, quick_path, tmux_server) -> None:
    (row,) = [row for row in ROWS if row.name == fault]
    code, state = expected(row.cell(verb))
    world = World(quick_path, tmux_server)
    try:
        world.begin()
        VERBS[verb].arrange(world)
        with pytest.MonkeyPatch.context() as patch, FAULTS[fault].inject(world, patch):
            shown, as_json = (_run(world, [*words, *more]) for more in ([], ["--json"]))
        world.check_strangers(with_pane=True)
    finally:
        world.close()
    if code == "done":
        # A message that is held is not delivered yet.
        exit_code = 4 if state == "held" else 0
        assert (shown.returncode, as_json.returncode) == (exit_code, exit_code), shown.stderr
        return
    error = json.loads(as_json.stdout)["error"]
    assert (error["code"], as_json.returncode) == (code, ERRORS[code].exit_code)
    assert shown.returncode == as_json.returncode
    assert error["message"] in shown.stderr
    assert error["hint"] in shown.stderr
    assert "Traceback" not in shown.stderr + as_json.stderr


def _run(world: World, words: list[str]) -> subprocess.CompletedProcess[str]:
    command, seconds = [sys.executable, "-P", "-m", "mam", *words], stretched(60)
    return subprocess.run(
        command, cwd=world.root, capture_output=True, encoding="utf-8", timeout=seconds, check=False
    )
