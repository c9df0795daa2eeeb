"""Sessions as text for people: as one line, as a table, and with all details."""

from __future__ import annotations

from mam.core.activity import BOOTING, EXITED, IDLE, UNKNOWN, WAITING, WORKING
from mam.core.safe_text import for_screen, one_line, short_count
from mam.core.session_row import Status
from mam.core.times import short_age
from mam.surfaces.cli.table import EMPTY, Column, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.surfaces.cli.style import Paint
    from mam.surfaces.cli.table import Cell

COLUMNS = (
    Column("NAME"),
    Column("AGENT", least=6, rank=3, worth=4),
    Column("ROLE", least=6, rank=2, may_go=True, worth=2),
    Column("STATUS", worth=7),
    Column("ACTIVITY", least=8, rank=4, from_end=True),
    Column("TMUX", may_go=True, worth=3),
    Column("RESUME", least=9, rank=1, may_go=True, from_end=True, worth=1),
    Column("JOB", may_go=True, worth=5),
    Column("DRIFT", may_go=True, worth=6),
)
_STATUS_STYLES: dict[str, str] = {
    Status.RUNNING: "green",
    Status.STOPPED: "dim",
    Status.TERMINATED: "red",
    Status.ARCHIVED: "dim",
}
_ACTIVITY_STYLES: dict[str, str] = {
    WAITING: "yellow bold",
    WORKING: "cyan",
    IDLE: "green",
    BOOTING: "blue",
    EXITED: "dim",
    UNKNOWN: "dim",
}
_TMUX_CELLS = {True: ("yes", "green"), False: ("no", "dim"), None: ("?", "yellow")}


def clean(value: object, limit: int = 200) -> str:
    """Return a field as a text that is safe for a terminal, `-` for an empty field."""
    # Printable text is safe. This fast path handles nearly all fields.
    if type(value) is str and value and len(value) <= limit and value.isprintable():
        return value
    if value in (None, "", [], {}):
        return EMPTY
    text = str(value)
    return text if len(text) <= limit and text.isprintable() else one_line(text, limit)


def line(row: Mapping[str, Any]) -> str:
    """Return a session in short form: `NAME (claude, developer)`."""
    facts = ", ".join(clean(row.get(key)) for key in ("agent", "role") if row.get(key))
    return f"{clean(row.get('name'))} ({facts})"


def table(sessions: Sequence[Mapping[str, Any]], paint: Paint) -> list[str]:
    """Return a table of sessions, in their order."""
    return render(COLUMNS, [_cells(session) for session in sessions], paint)


def activity(session: Mapping[str, Any]) -> str:
    """Return the activity, its age, and what the session waits for: `waiting 3m permission`."""
    state, age = session.get("activity") or UNKNOWN, session.get("activity_age_s")
    parts = [state if state in _ACTIVITY_STYLES else clean(state)]
    if age is not None and state != UNKNOWN:
        parts.append(short_age(age))
    if session.get("waiting_for"):
        parts.append(clean(session["waiting_for"], 60))
    if session.get("attention"):
        parts.append("!")
    return " ".join(parts)


def resume(session: Mapping[str, Any]) -> str:
    """Return the conversation that a resume would continue, its tier, and whether it is on disk."""
    choice = session.get("resume") or {}
    if not choice.get("id"):
        return EMPTY
    tier = f"t{choice['tier']}" if choice.get("tier") else EMPTY
    return f"{clean(choice['id'])[:8]} {tier} {'disk' if choice.get('on_disk') else EMPTY}"


def details(session: Mapping[str, Any], paint: Paint) -> list[str]:
    """Return all fields of a session, one a line."""
    pairs = [
        ("status", paint(clean(session.get("status")), _STATUS_STYLES.get(str(session.get("status"))))),
        (
            "activity",
            paint(activity(session), _ACTIVITY_STYLES.get(str(session.get("activity")))) + _source(session),
        ),
        *((key, clean(session.get(key), 2000)) for key in ("agent", "role", "workspace", "id")),
        ("git", git(session.get("git") or {})),
        ("command", " ".join(clean(word) for word in session.get("start_command") or []) or EMPTY),
        ("permissions", clean(session.get("permissions"))),
        ("version", _version(session)),
        ("tmux", _tmux(session)),
        ("model", figures(session.get("usage") or {}) or clean(session.get("model"))),
        ("cost", _cost(session.get("usage") or {})),
        ("last words", clean(session.get("last_words"))),
        ("resume", resume(session) + ("" if session.get("resumable") else "  (cannot be resumed)")),
        ("attention", paint(clean(session.get("attention")), "red") if session.get("attention") else EMPTY),
        *((key, clean(session.get(key))) for key in ("job", "drift", "parent")),
        *(
            (key, clean(session.get(key)))
            for key in _HISTORY
            if session.get(key) is not None and (key, session[key]) != ("resume_count", 0)
        ),
        ("last action", _action(session)),
    ]
    lines = [paint(clean(session.get("name")), "bold")]
    lines += [f"  {paint(f'{key:<16}', 'dim')} {text}" for key, text in pairs if text != EMPTY]
    note = session.get("last_visible_note")
    if note and session.get("status") != Status.RUNNING:
        lines += [
            "",
            paint("last screen:", "dim"),
            *(f"  {row}" for row in for_screen(str(note)).splitlines()),
        ]
    return lines


_HISTORY = (
    "created_at",
    "resumed_at",
    "resume_count",
    "stopped_at",
    "stop_reason",
    "terminated_at",
    "termination_mode",
    "exit_status",
)


def _cells(session: Mapping[str, Any]) -> list[Cell]:
    # A known word needs no cleaning. A long listing has thousands of cells.
    recorded = session.get("status") or ""
    style = _STATUS_STYLES.get(recorded)
    status = recorded if style else clean(recorded)
    state = session.get("activity") or UNKNOWN
    drift = session.get("drift")
    drift = clean(drift) if drift and drift != EMPTY else EMPTY
    role, job = session.get("role"), session.get("job")
    return [
        (clean(session.get("name")), "bold" if status == Status.RUNNING else None),
        (clean(session.get("agent")), None),
        (clean(role) if role else EMPTY, None),
        (status, style),
        (activity(session), _ACTIVITY_STYLES.get(state)),
        _TMUX_CELLS.get(session.get("tmux_alive"), _TMUX_CELLS[None]),
        (resume(session), "dim"),
        (clean(job) if job else EMPTY, None),
        (drift, "red" if drift == "A" else "yellow" if drift != EMPTY else "dim"),
    ]


def _source(session: Mapping[str, Any]) -> str:
    return f"  (by {clean(session['activity_source'])})" if session.get("activity_source") else ""


def _tmux(session: Mapping[str, Any]) -> str:
    pane = session.get("pane") or {}
    cell = _TMUX_CELLS.get(session.get("tmux_alive"), _TMUX_CELLS[None])[0]
    state = {"yes": "alive", "no": "gone"}.get(cell, "unknown")
    server, pane_id, pid = clean(session.get("tmux_server")), clean(pane.get("id")), clean(pane.get("pid"))
    return f"server {server}, pane {pane_id}, pid {pid}: {state}"


def _version(session: Mapping[str, Any]) -> str:
    version, tested = clean(session.get("agent_version")), session.get("version_tested")
    if tested is not False:
        return version
    if version != EMPTY:
        return f"{version}  (mam was not tested with it)"
    return "unknown  (mam may not be tested with it)" if session.get("status") == "running" else EMPTY


def figures(usage: Mapping[str, Any]) -> str:
    """Return the usage of a conversation: `opus, 21.4k tokens in, 1.2k out, context 11 %`."""
    parts = [clean(usage["model"])] if usage.get("model") else []
    if usage.get("tokens_in") is not None:
        parts.append(
            f"{short_count(usage['tokens_in'])} tokens in, {short_count(usage.get('tokens_out') or 0)} out"
        )
    if usage.get("context_percent") is not None:
        parts.append(f"context {usage['context_percent']:g} %")
    return ", ".join(parts)


def _cost(usage: Mapping[str, Any]) -> str:
    cost = usage.get("cost_usd")
    if cost is not None:
        return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"
    return EMPTY if usage.get("tokens_in") is None else "unknown"


def git(summary: Mapping[str, Any]) -> str:
    """Return the branch and the number of changed files: `main, 3 changed files`."""
    if not summary.get("branch"):
        return EMPTY
    count = summary.get("changed_files")
    if count is None:
        changes = "changed files unknown"
    elif not count:
        changes = "no changed files"
    else:
        more = "more than " if summary.get("changed_more") else ""
        changes = f"{more}{count} changed file{'' if count == 1 else 's'}"
    return f"{'detached at ' if summary.get('detached') else ''}{clean(summary['branch'])}, {changes}"


def _action(session: Mapping[str, Any]) -> str:
    action = session.get("last_action") or {}
    if not action:
        return EMPTY
    from mam.core.times import stamp

    at = action.get("at_epoch")
    time = f" at {stamp(at)}" if isinstance(at, int) and at > 0 else ""
    return f"{clean(action.get('verb'))} by {clean(action.get('by'))}{time}"
