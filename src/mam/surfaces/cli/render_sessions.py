"""How sessions look to a person: in one line, in a table, and whole."""

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
    Column("NAME", least=16, rank=6),
    Column("AGENT", least=6, rank=4),
    Column("ROLE", least=6, rank=3, may_go=True),
    Column("STATUS"),
    Column("ACTIVITY", least=22, rank=7, from_end=True),
    Column("TMUX", may_go=True),
    Column("RESUME", least=9, rank=1, may_go=True, from_end=True),
    Column("JOB", least=8, rank=2, may_go=True),
    Column("DRIFT", may_go=True),
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
_THERE = {True: ("yes", "green"), False: ("no", "dim"), None: ("?", "yellow")}


def clean(value: object, limit: int = 200) -> str:
    """Return a field as one clean text, `-` for one that says nothing."""
    # What is printable is clean; the long way is for the rest.
    if type(value) is str and value and len(value) <= limit and value.isprintable():
        return value
    if value in (None, "", [], {}):
        return EMPTY
    text = str(value)
    return text if len(text) <= limit and text.isprintable() else one_line(text, limit)


def line(row: Mapping[str, Any]) -> str:
    """Return a session in a few words: `NAME (claude, developer)`."""
    what = ", ".join(clean(row.get(key)) for key in ("agent", "role") if row.get(key))
    return f"{clean(row.get('name'))} ({what})"


def table(sessions: Sequence[Mapping[str, Any]], paint: Paint) -> list[str]:
    """Return the lines of a listing, in the order given."""
    return render(COLUMNS, [_cells(one) for one in sessions], paint)


def activity(one: Mapping[str, Any]) -> str:
    """Return state, age and what it waits for: `waiting 3m permission`."""
    words = [clean(one.get("activity") or UNKNOWN)]
    if one.get("activity_age_s") is not None and words != [UNKNOWN]:
        words.append(short_age(one["activity_age_s"]))
    if one.get("waiting_for"):
        words.append(clean(one["waiting_for"], 60))
    if one.get("attention"):
        words.append("!")
    return " ".join(words)


def resume(one: Mapping[str, Any]) -> str:
    """Return what a resume would take: id, tier, and whether it is on disk: `1f00ab42 t1 disk`."""
    found = one.get("resume") or {}
    if not found.get("id"):
        return EMPTY
    tier = f"t{found['tier']}" if found.get("tier") else EMPTY
    return f"{clean(found['id'])[:8]} {tier} {'disk' if found.get('on_disk') else EMPTY}"


def whole(one: Mapping[str, Any], paint: Paint) -> list[str]:
    """Return everything about one session, one field a line."""
    pairs = [
        ("status", paint(clean(one.get("status")), _STATUS_STYLES.get(str(one.get("status"))))),
        ("activity", paint(activity(one), _ACTIVITY_STYLES.get(str(one.get("activity")))) + _source(one)),
        *((key, clean(one.get(key), 2000)) for key in ("agent", "role", "workspace", "id")),
        ("command", " ".join(clean(word) for word in one.get("start_command") or []) or EMPTY),
        ("permissions", clean(one.get("permissions"))),
        ("version", _version(one)),
        ("tmux", _tmux(one)),
        ("model", figures(one.get("usage") or {}) or clean(one.get("model"))),
        ("resume", resume(one) + ("" if one.get("resumable") else "  (cannot be resumed)")),
        ("attention", paint(clean(one.get("attention")), "red") if one.get("attention") else EMPTY),
        *((key, clean(one.get(key))) for key in ("job", "drift", "parent")),
        *(
            (key, clean(one.get(key)))
            for key in _WHEN
            if one.get(key) is not None and (key, one[key]) != ("resume_count", 0)
        ),
        ("last action", _action(one)),
    ]
    lines = [paint(clean(one.get("name")), "bold")]
    lines += [f"  {paint(f'{key:<16}', 'dim')} {text}" for key, text in pairs if text != EMPTY]
    note = one.get("last_visible_note")
    if note and one.get("status") != Status.RUNNING:
        lines += [
            "",
            paint("last screen:", "dim"),
            *(f"  {row}" for row in for_screen(str(note)).splitlines()),
        ]
    return lines


_WHEN = (
    "created_at",
    "resumed_at",
    "resume_count",
    "stopped_at",
    "stop_reason",
    "terminated_at",
    "termination_mode",
    "exit_status",
)


def _cells(one: Mapping[str, Any]) -> list[Cell]:
    status, state = clean(one.get("status")), str(one.get("activity") or UNKNOWN)
    drift = clean(one.get("drift"))
    return [
        (clean(one.get("name")), "bold" if status == Status.RUNNING else None),
        (clean(one.get("agent")), None),
        (clean(one.get("role")), None),
        (status, _STATUS_STYLES.get(status)),
        (activity(one), _ACTIVITY_STYLES.get(state)),
        _THERE.get(one.get("tmux_alive"), _THERE[None]),
        (resume(one), "dim"),
        (clean(one.get("job")), None),
        (drift, "red" if drift == "A" else "yellow" if drift != EMPTY else "dim"),
    ]


def _source(one: Mapping[str, Any]) -> str:
    return f"  (by {clean(one['activity_source'])})" if one.get("activity_source") else ""


def _tmux(one: Mapping[str, Any]) -> str:
    pane = one.get("pane") or {}
    there = _THERE.get(one.get("tmux_alive"), _THERE[None])[0]
    alive = {"yes": "there", "no": "gone"}.get(there, "not known")
    server, pane_id, pid = clean(one.get("tmux_server")), clean(pane.get("id")), clean(pane.get("pid"))
    return f"server {server}, pane {pane_id}, pid {pid}: {alive}"


def _version(one: Mapping[str, Any]) -> str:
    version, tested = clean(one.get("agent_version")), one.get("version_tested")
    return version if tested is not False else f"{version}  (mam was not tested with it)"


def figures(used: Mapping[str, Any]) -> str:
    """Return what a conversation's record says: `opus, 21.4k tokens in, 1.2k out, context 11 %`."""
    words = [clean(used["model"])] if used.get("model") else []
    if used.get("tokens_in") is not None:
        words.append(
            f"{short_count(used['tokens_in'])} tokens in, {short_count(used.get('tokens_out') or 0)} out"
        )
    if used.get("context_percent") is not None:
        words.append(f"context {used['context_percent']:g} %")
    return ", ".join(words)


def _action(one: Mapping[str, Any]) -> str:
    action = one.get("last_action") or {}
    if not action:
        return EMPTY
    from mam.core.times import stamp

    at = action.get("at_epoch")
    when = f" at {stamp(at)}" if isinstance(at, int) and at > 0 else ""
    return f"{clean(action.get('verb'))} by {clean(action.get('by'))}{when}"
