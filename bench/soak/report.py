"""The table at the end: what was measured, what it may be, and whether it is so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.soak.samples import MB, SPARE, growth

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bench.soak.history import Call
    from bench.soak.samples import Sample

# What the files of a root may take during a run, whatever happens in it.
MOST_LOG, MOST_WAL = 2 * MB, 128 * MB
# The shortest run whose growth is judged.
SHORTEST_SECONDS = 45.0
# So many calls of a verb cannot all be refused because of faults.
ENOUGH_CALLS = 20


@dataclass(frozen=True)
class Line:
    """One line of the table; `ok` is None where nothing is judged."""

    what: str
    measured: str
    bound: str = "-"
    ok: bool | None = None


def render(lines: Sequence[Line]) -> str:
    """Return the table."""
    cells = [
        (line.what, line.measured, line.bound, {True: "ok", False: "FAILED", None: ""}[line.ok])
        for line in lines
    ]
    table = [("what", "measured", "bound", ""), *cells]
    widths = [max(len(row[at]) for row in table) for at in range(4)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def is_good(lines: Sequence[Line]) -> bool:
    """Tell whether nothing has failed."""
    return all(line.ok is not False for line in lines)


def exactly(what: str, count: int, wanted: int) -> Line:
    """Return a line about a number that has to be this one."""
    return Line(what, f"{count:,}", f"{wanted:,}", count == wanted)


def fault_lines(tried: Iterable[str], hits: Counter[str], missed: Counter[str]) -> list[Line]:
    """Return lines about the faults: each that was tried has to hit something at least once."""
    lines = [Line(f"fault {name}", str(hits[name]), "> 0", hits[name] > 0) for name in sorted(tried)]
    return lines + [Line(f"no fault {name}", str(count)) for name, count in sorted(missed.items())]


def operation_lines(calls: Iterable[Call]) -> list[Line]:
    """Return lines about the calls of the clients: of many of one verb some have to be done."""
    by_verb: dict[str, Counter[str]] = {}
    for call in calls:
        by_verb.setdefault(call.verb, Counter())[call.outcome] += 1
    return [
        Line(
            f"operation {verb}",
            ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()),
            "> 0 done",
            counts["done"] > 0 if counts.total() >= ENOUGH_CALLS else None,
        )
        for verb, counts in sorted(by_verb.items())
    ]


def growth_lines(name: str, samples: Sequence[Sample], spares: Mapping[str, float] = SPARE) -> list[Line]:
    """Return lines about the growth of a process after its warm-up, the first quarter of the run.

    A run of less than a minute is all warm-up, and is not judged.
    """
    lines = []
    is_long = bool(samples) and samples[-1].at - samples[0].at >= SHORTEST_SECONDS
    for one in growth(samples, spares):
        unit = (
            (lambda value: f"{value / MB:.1f} MB") if one.what == "memory" else (lambda value: f"{value:g}")
        )
        shown = f"{unit(one.before)} -> {unit(one.after)}"
        lines.append(
            Line(
                f"{name}: {one.what} after the warm-up",
                shown,
                f"+5 % or +{unit(one.spare)}",
                one.is_flat if is_long else None,
            )
        )
    return lines


def size_lines(largest: Mapping[str, float], most_database: float) -> list[Line]:
    """Return lines about the largest sizes of the files."""
    bounds = {"database": most_database, "write-ahead log": MOST_WAL, "log of residents": MOST_LOG}
    return [
        Line(f"largest {name}", f"{size / MB:.1f} MB", f"{bounds[name] / MB:.0f} MB", size <= bounds[name])
        for name, size in largest.items()
    ]
