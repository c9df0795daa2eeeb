"""One screen of every one of 200 sessions, beside asking tmux for each of them, and with styles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.crowd import SCREEN, start_panes
from bench.measure import Budget, Row, alternate, run, until
from bench.stage import Stage
from mam.core.terminal_cells import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LINES = 45


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Capture full screens, in one call and in one call per pane."""
    count = 10 if quick else 200
    tell(f"reading {count} screens")
    with Stage() as stage:
        ids = [pane.id for pane in start_panes(stage, count, SCREEN).values()]
        until(lambda: all(_is_full(text) for text in stage.tmux.capture(ids).values()), "full screens")

        def one_by_one() -> None:
            for pane_id in ids:
                run(stage.tmux_argv("capture-pane", "-p", "-t", pane_id), stage.environ)

        def styled() -> None:
            for capture in stage.tmux.screens(ids, styled=True).values():
                plain_text(capture.captured if capture else "")

        acts = {
            "one by one": one_by_one,
            "at once": lambda: stage.tmux.screens(ids) and None,
            "styled": styled,
        }
        found = alternate(2 if quick else 15, acts)
    yield Row(
        f"one screen of each of {count} sessions",
        found["at once"],
        "one tmux call per pane",
        found["one by one"],
        None if quick else Budget("ms", 50),
    )
    # mam looks so before it types, at one session at a time.
    yield Row(
        f"the same with styles, read as text ({count})", found["styled"], "without styles", found["at once"]
    )


def _is_full(text: str | None) -> bool:
    return text is not None and len(text.splitlines()) >= _LINES
