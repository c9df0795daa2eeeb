"""How cards look to a person: in one line, in a table, and whole."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.style import Paint

    Document = dict[str, Any]

_STYLES = {"ready": "blue", "running": "cyan", "blocked": "yellow bold", "done": "green", "triage": "red"}


def say_card(call: Invocation, done: Document) -> int:
    """Answer with one card."""
    return call.say(done, *([] if call.as_json else [line(done["card"], call.paint())]))


def line(card: Document, paint: Paint) -> str:
    """Return a card in one line."""
    from mam.surfaces.cli.render_sessions import clean

    said = f"{paint(clean(card['id']), 'bold')}  {paint(clean(card['status']), _STYLES.get(card['status']))}"
    held = (
        f"  held by {clean(card['claimed_by'])} until {card['claim_expires']}" if card["claimed_by"] else ""
    )
    return f"{said}  {clean(card['title'])}{held}"


def table(done: Document, paint: Paint) -> list[str]:
    """Return the cards of a board as a table."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not done["cards"]:
        return [f"no cards on {clean(done['board']['path'], 500)}"]
    columns = (
        Column("CARD"),
        Column("STATUS"),
        Column("CLAIMED BY", least=8, rank=1, may_go=True),
        Column("COMMENTS"),
        Column("TITLE", least=12, rank=2, from_end=True),
    )
    rows = [
        [
            (clean(card["id"]), "bold"),
            (clean(card["status"]), _STYLES.get(card["status"])),
            (clean(card["claimed_by"]), None),
            (str(card["comments"]), None),
            (clean(card["title"]), None),
        ]
        for card in done["cards"]
    ]
    return render(columns, rows, paint)


def whole(done: Document, paint: Paint) -> list[str]:
    """Return a card with all its fields and comments."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    card = done["card"]
    fields = ("created_at", "created_by", "assignee", "heartbeat_at", "workspace", "summary")
    lines = [line(card, paint)]
    lines += [f"  {paint(f'{name:<12}', 'dim')}  {clean(card[name], 500)}" for name in fields if card[name]]
    if card["body"]:
        lines += ["", *for_screen(card["body"]).splitlines()]
    for one in done["comments"]:
        lines += ["", paint(f"{clean(one['author'])}  {one['at']}", "dim")]
        lines += for_screen(one["body"]).splitlines()
    return lines
