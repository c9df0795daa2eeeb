"""docs/faults.md, made from the table: `python -m tests.matrix.page` writes the page anew."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tests.matrix.cell import ERRORS
from tests.matrix.states import STATES
from tests.matrix.table import ALL, ROWS, Row, expected, is_not_applicable
from tests.matrix.verbs import VERBS

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
_WIDTH = 110
_HEAD = """\
# Faults

What can go wrong around mam, what each command answers while it lasts, and the way out. The page is made from
the table in `tests/matrix/table.py`: the tests put each fault into a small world, try each command, and look
at what is there afterwards. After each fault they check that nothing that mam acknowledged is lost, that no
process and no pane of others was touched, and that the command works once the fault is over.

"Done" means that the command does what it is for. An error has an exit code, a code for programs, and a hint
that says what to do. Unless the list says otherwise, a command that ends with an error has changed nothing.
Where a fault cannot meet a command, it is left out here, and the table says why.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *(_section(fault) for fault in dict.fromkeys(row.fault for row in ROWS))])


def _section(fault: str) -> str:
    rows = [row for row in ROWS if row.fault == fault]
    parts = [f"## {fault}\n"]
    for row in _without_repetition(rows):
        parts += [
            _filled(" ".join(row.what.split())),
            "",
            *_lines(row),
            "",
            _filled(f"Way out: {row.way_out[0].lower()}{row.way_out[1:]}"),
            "",
        ]
    return "\n".join(parts)


def _without_repetition(rows: list[Row]) -> list[Row]:
    """Put the variants together that have the same cells and the same way out."""
    together: list[Row] = []
    for row in rows:
        same = [one for one in together if (one.cells, one.way_out) == (row.cells, row.way_out)]
        if same:
            first = together.index(same[0])
            what = together[first].what
            if row.what not in what:
                what = f"{what} Or: {row.what}"
            together[first] = Row(row.fault, what, row.cells, row.way_out)
        else:
            together.append(row)
    return together


def _lines(row: Row) -> list[str]:
    """Return one item for each answer, with the commands that give it."""
    commands: dict[str, list[str]] = {}
    for verb in ALL:
        cell = row.cell(verb)
        if not is_not_applicable(cell):
            commands.setdefault(_answer(cell), []).append(f"`{VERBS[verb].command.removeprefix('mam ')}`")
    return [_filled(f"- {', '.join(given)}: {answer}", "  ") for answer, given in commands.items()]


def _answer(cell: str) -> str:
    code, state = expected(cell)
    sentence = STATES[state][0]
    if code == "done":
        return f"done; {sentence}." if sentence else "done."
    about = f"; {sentence}" if state != "unchanged" else ""
    return f"exit {ERRORS[code].exit_code}, `{code}`{about}."


def _filled(text: str, indent: str = "") -> str:
    # A command stays on one line.
    whole = re.sub(r"`[^`]+`", lambda span: span[0].replace(" ", "\0"), text)
    filled = textwrap.fill(
        whole, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return filled.replace("\0", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
