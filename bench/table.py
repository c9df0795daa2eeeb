"""The rows as a table for people, and as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.measure import Row, Times

_TITLES = ("what", "ms, median / p95", "beside", "ms, median / p95", "medians", "fastest", "budget", "")
_RIGHT = (1, 3, 4, 5)


def render(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table."""
    cells = [
        (
            row.what,
            _pair(row.times),
            row.beside,
            _pair(row.baseline),
            relation(row, row.times.median, row.baseline.median),
            relation(row, row.times.best, row.baseline.best),
            str(row.budget or "-"),
            {True: "ok", False: "OVER", None: ""}[row.ok],
        )
        for row in rows
    ]
    table = [_TITLES, *cells]
    widths = [max(len(line[at]) for line in table) for at in range(len(_TITLES))]
    return [
        "  ".join(
            _fit(text, width, at) for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]


def relation(row: Row, measured: float, baseline: float) -> str:
    """Return how two durations of a row stand to each other, in the terms of its budget."""
    if row.budget and row.budget.kind == "beyond":
        return f"{measured - baseline:+.0f} ms"
    if measured < baseline:
        return f"{baseline / measured:.1f} x faster"
    return f"{measured / baseline:.2f} x"


def as_json(row: Row) -> dict[str, Any]:
    """Return one row with plain numbers."""
    measured, baseline = row.times.median, row.baseline.median
    return {
        "what": row.what,
        "median_ms": round(measured, 3),
        "p95_ms": round(row.times.p95, 3),
        "best_ms": round(row.times.best, 3),
        "runs": len(row.times.all),
        "beside": row.beside,
        "beside_median_ms": round(baseline, 3),
        "beside_p95_ms": round(row.baseline.p95, 3),
        "beside_best_ms": round(row.baseline.best, 3),
        "ratio": round(measured / baseline, 4),
        "difference_ms": round(measured - baseline, 3),
        "budget": str(row.budget) if row.budget else None,
        "ok": row.ok,
    }


def _pair(times: Times) -> str:
    return f"{times.median:.1f} / {times.p95:.1f}"


def _fit(text: str, width: int, at: int) -> str:
    return text.rjust(width) if at in _RIGHT else text.ljust(width)
