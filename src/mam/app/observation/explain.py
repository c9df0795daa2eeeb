"""Why a session is said to be idle or busy: every piece of evidence, and the rule that decided."""

from __future__ import annotations

from mam.app.context.liveness import see_all
from mam.app.observation import activity
from mam.app.observation.hook_reports import newest_reports
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.activity import Evidence


def explain(context: Context, target: str) -> dict[str, Any]:
    """Return evidence, verdict, rule and what disagrees. Reads only."""
    view = context.registry.view()
    row = view.find(target)
    sights = see_all(context, [row], full=True)
    sight = sights[row["name"]]
    known = activity.gather(context, [row], sights, newest_reports(context, [row]), thorough=True)[0]
    now = context.now()
    verdict = known.verdict(now)
    return {
        "session": row["name"],
        "activity": str(verdict.state),
        "activity_source": verdict.source,
        "activity_age_s": round(max(0.0, now - verdict.at), 1),
        "waiting_for": verdict.waiting_for,
        "rule": verdict.rule,
        "evidence": [_shown(one, now) for one in known.evidence],
        "disagreeing": [one.source for one in verdict.disagreeing],
        "pane": {
            "state": str(sight.state),
            "reason": sight.reason,
            "id": sight.pane.id if sight.pane else None,
        },
    }


def _shown(one: Evidence, now: float) -> dict[str, Any]:
    return {
        "source": one.source,
        "state": str(one.state),
        "waiting_for": one.waiting_for,
        "age_s": round(max(0.0, now - one.at), 1),
        "detail": one_line(one.detail, 200),
    }
