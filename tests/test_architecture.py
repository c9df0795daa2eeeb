"""docs/ARCHITECTURE.md says what the code does: the table of states is generated, and the map is whole."""

from pathlib import Path

from mam.core.session_row import STATUSES
from mam.core.session_transitions import TABLE

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
EVENTS = ("create", "resume", "stop", "died", "purge", "archive", "forget")


def lifecycle() -> str:
    lines = [f"| event | {' | '.join(STATUSES)} |", "|---|" + "---|" * len(STATUSES)]
    lines += [
        f"| {event} | {' | '.join(TABLE.get((status, event), '-') for status in STATUSES)} |"
        for event in EVENTS
    ]
    return "\n".join(lines)


def test_the_table_of_states_is_the_one_in_the_code() -> None:
    begin, end = TEXT.index("<!-- lifecycle:begin"), TEXT.index("<!-- lifecycle:end")
    shown = TEXT[begin:end].split("-->\n", 1)[1].strip()
    assert shown == lifecycle()
    assert {event for _, event in TABLE} == set(EVENTS)


def test_every_folder_is_on_the_map() -> None:
    folders = {
        path.parent.relative_to(ROOT / "src/mam").as_posix()
        for path in (ROOT / "src/mam").rglob("*.py")
        if path.parent != ROOT / "src/mam"
    } - {"adapters", "surfaces"}
    missing = [folder for folder in folders if f"`{folder}/`" not in TEXT]
    assert not missing


def test_every_file_it_names_exists() -> None:
    import re

    for name in set(re.findall(r"`((?:app|core|adapters|surfaces|tests)/[a-z_/]+\.(?:py|sh))`", TEXT)):
        assert (ROOT / "src/mam" / name).exists() or (ROOT / name).exists(), name


def test_it_fits_into_two_hundred_short_lines() -> None:
    assert len(TEXT.splitlines()) <= 200
    assert [line for line in TEXT.splitlines() if len(line) > 110] == []
