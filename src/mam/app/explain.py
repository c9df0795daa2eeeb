"""Why a session is said to be idle or busy: every piece of evidence, and the rule that decided."""

from __future__ import annotations

from mam.app import activity
from mam.app.hearing import listen
from mam.app.sight import ALIVE, see_one
from mam.core.activity import Evidence
from mam.core.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.world import World


def explain(world: World, target: str) -> dict[str, Any]:
    """Return evidence, verdict, rule and what disagrees. Reads only."""
    view = world.registry.view()
    row = view.find(target)
    sight = see_one(world, row)
    words = listen(world, view.rows)
    known = activity.gather(world, [row], {row["name"]: sight}, words, thorough=True)[0]
    now = world.now()
    if sight.state == ALIVE and sight.pane is not None:
        pane = world.tmux(row["tmux_server"]).pane(sight.pane.id)
        title = pane.title if pane else ""
        known.evidence.append(
            Evidence("title", known.kind.read_title(title), now, detail=one_line(title, 80))
        )
    verdict = known.verdict(now)
    return {
        "session": row["name"],
        "activity": verdict.state,
        "activity_source": verdict.source,
        "activity_age_s": round(max(0.0, now - verdict.at), 1),
        "waiting_for": verdict.waiting_for,
        "rule": verdict.rule,
        "evidence": [_shown(one, now) for one in known.evidence],
        "disagreeing": [one.source for one in verdict.disagreeing],
        "pane": {"state": sight.state, "reason": sight.reason, "id": sight.pane.id if sight.pane else None},
    }


def _shown(one: Evidence, now: float) -> dict[str, Any]:
    return {
        "source": one.source,
        "state": one.state,
        "waiting_for": one.waiting_for,
        "age_s": round(max(0.0, now - one.at), 1),
        "detail": one_line(one.detail, 200),
    }
