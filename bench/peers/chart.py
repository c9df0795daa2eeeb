"""docs/benchmarks.svg: a panel per work, a bar per program, drawn from the results of a run."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

PANELS = {
    "list 10": "list 10 sessions",
    "list 100": "list 100 sessions",
    "create": "create: until the agent runs",
    "send": "send: until the agent has the text",
    "stop": "stop: until the process is gone",
    "texts": "hard texts that arrive byte for byte",
}
# Sizes in pixels: the panel, the column of names, the longest bar, a bar with its gap, the outer edge.
PANEL, NAMES, LONGEST, BAR, STEP, EDGE = 400, 74, 216, 16, 24, 20
HEAD = 34
_STYLE = """\
text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #3b4252 }
.title { font-weight: 600; fill: #1e2127 }
.small { font-size: 12px; fill: #636c76 }
.ground { fill: #ffffff } .bar { fill: #a3b1c6 } .mam { fill: #1a7f5a } .axis { stroke: #d0d7de }
.own { font-weight: 600; fill: #1a7f5a }
@media (prefers-color-scheme: dark) {
 text { fill: #c5ccd6 } .title { fill: #f0f3f6 } .small { fill: #9198a1 }
 .ground { fill: #161b22 } .bar { fill: #55647c } .mam { fill: #3fb984 } .axis { stroke: #3d444d }
 .own { fill: #3fb984 }
}"""


def draw(results: dict[str, Any]) -> str:
    """Return the chart as SVG."""
    programs = results["programs"]
    height_of_panel = HEAD + STEP * len(programs) + 22
    width, height = 2 * PANEL + 2 * EDGE, 56 + 3 * height_of_panel
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="Bars: the median time of each work, for each '
        'program">',
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}" rx="10"/>',
        f'<text class="small" x="{EDGE}" y="34">Medians in one run. Shorter is better; of texts, longer is '
        "better. Each panel has a scale of its own.</text>",
    ]
    for number, (work, title) in enumerate(PANELS.items()):
        x, y = EDGE + PANEL * (number % 2), 56 + height_of_panel * (number // 2)
        out += _panel(programs, work, title, x, y)
    return "\n".join([*out, "</svg>", ""])


def _panel(programs: Sequence[dict[str, Any]], work: str, title: str, x: int, y: int) -> list[str]:
    values = [value_of(one, work) for one in programs]
    longest = max([value for value in values if value is not None], default=0) or 1
    left, top = x + NAMES, y + HEAD - 8
    out = [f'<text class="title" x="{x}" y="{y + 14}">{html.escape(title)}</text>']
    for number, (one, value) in enumerate(zip(programs, values, strict=True)):
        own = number == 0
        base = top + STEP * number + 12
        name = f'class="own" x="{left - 10}"' if own else f'x="{left - 10}"'
        out.append(f'<text {name} y="{base}" text-anchor="end">{html.escape(one["name"])}</text>')
        length = 0.0 if value is None else max(1.5, LONGEST * value / longest)
        if value is not None:
            out.append(
                f'<rect class="{"mam" if own else "bar"}" x="{left}" y="{base - 12}" '
                f'width="{length:.1f}" height="{BAR}" rx="2"/>'
            )
        label = f'class="own" x="{left + length + 8:.1f}"' if own else f'x="{left + length + 8:.1f}"'
        out.append(f'<text {label} y="{base}">{label_of(value, one, work)}</text>')
    bottom = top + STEP * len(programs) - 4
    return [*out, f'<path class="axis" d="M{left - 0.5} {top - 4}V{bottom}" fill="none"/>']


def value_of(program: dict[str, Any], work: str) -> float | None:
    """Return the number that a bar stands for; None without one."""
    if work == "texts":
        facts = program["facts"].get("texts")
        return None if facts is None else facts["exact"]
    measured = program["works"].get(work)
    return None if measured is None else measured["median"]


def label_of(value: float | None, program: dict[str, Any], work: str) -> str:
    """Return the words at the end of a bar."""
    if value is None:
        return "n/a"
    if work == "texts":
        return f"{value:.0f} of {program['facts']['texts']['of']}"
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms"
