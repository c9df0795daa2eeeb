"""Why mam reports a session as idle, working or waiting: all evidence, and the rule that decided."""

from __future__ import annotations

from mam.app.context.liveness import check_all_liveness
from mam.app.observation import activity
from mam.app.observation.newest_hook_reports import newest_reports
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.activity import Evidence


def explain(context: Context, target: str) -> dict[str, Any]:
    """Return the evidence, the verdict, the rule and the sources that disagree. Reads only."""
    context.require_own_root()
    view = context.view_to_show()
    row = view.find(target)
    liveness_by_name = check_all_liveness(context, [row], full=True, view=view)
    liveness = liveness_by_name[row["name"]]
    reports = newest_reports(context, [row])
    session = activity.gather(context, [row], liveness_by_name, reports, thorough=True)[0]
    now = context.now()
    verdict = session.verdict(now)
    return {
        "session": row["name"],
        "activity": str(verdict.state),
        "activity_source": verdict.source,
        "activity_age_s": round(max(0.0, now - verdict.at), 1),
        "waiting_for": verdict.waiting_for,
        "rule": verdict.rule,
        "evidence": [_as_json(evidence, now) for evidence in session.evidence],
        "disagreeing": [evidence.source for evidence in verdict.disagreeing],
        "pane": {
            "state": str(liveness.state),
            "reason": liveness.reason,
            "id": liveness.pane.id if liveness.pane else None,
        },
    }


def _as_json(evidence: Evidence, now: float) -> dict[str, Any]:
    return {
        "source": evidence.source,
        "state": str(evidence.state),
        "waiting_for": evidence.waiting_for,
        "age_s": round(max(0.0, now - evidence.at), 1),
        "detail": one_line(evidence.detail, 200),
    }
