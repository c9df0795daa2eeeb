"""One change of one row, SQLite and YAML file together, beside rewriting the whole file with PyYAML."""

from __future__ import annotations

from contextlib import closing
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from bench.crowd import id_of, settle
from bench.measure import Budget, Row, alternate
from bench.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.adapters.store.registry import Registry
    from mam.adapters.store.rows_and_log import Transaction


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Measure at three sizes, each in a root of its own."""
    for count in (10,) if quick else (10, 100, 1000):
        tell(f"changing one of {count:,} rows")
        with Stage() as stage, closing(settle(stage, count, alive=False)) as registry:
            yield _measure(registry, count, 3 if quick else 200 if count < 1000 else 20)


def _measure(registry: Registry, count: int, rounds: int) -> Row:
    """Change the middle row; the other side is spared the lock, the flush to disk and the rename."""
    file = Path(registry.paths.yaml)
    other = file.with_name("beside.yaml")
    other.write_bytes(file.read_bytes())
    notes = count_from(1)

    def work(draft: Transaction) -> None:
        row = draft.get(id_of(count // 2))
        assert row is not None
        row["last_visible_note"] = f"note {next(notes)}"
        draft.put(row)

    found = alternate(
        rounds, {"ours": lambda: registry.change(work), "theirs": lambda: rewrite(other, count // 2)}
    )
    if f"note {next(notes) - 1}\n" not in file.read_text(encoding="utf-8"):
        raise RuntimeError("the file does not show the last change")
    return Row(
        f"registry change, {count:,} rows",
        found["ours"],
        "PyYAML (C) load, modify, dump",
        found["theirs"],
        Budget("faster", 30) if count == 1000 else None,
    )


def rewrite(file: Path, place: int) -> None:
    """Do what a program without a database does."""
    with file.open(encoding="utf-8") as text:
        document = yaml.load(text, Loader=yaml.CSafeLoader)  # noqa: TID251
    document["tmux_sessions"][place]["last_visible_note"] = "another note"
    with file.open("w", encoding="utf-8") as text:
        yaml.dump(document, text, Dumper=yaml.CSafeDumper, sort_keys=False)
