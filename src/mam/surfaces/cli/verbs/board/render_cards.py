"""Cards as text for people: as one line, as a table, and with all details."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.style import Paint

    Document = dict[str, Any]

_STYLES = {"ready": "blue", "running": "cyan", "blocked": "yellow bold", "done": "green", "triage": "red"}


def say_card(call: Invocation, document: Document) -> int:
    """Print one card as JSON or as a line."""
    return call.say(document, *([] if call.as_json else [line(document["card"], call.paint())]))


def line(card: Document, paint: Paint) -> str:
    """Return a card in one line."""
    from mam.surfaces.cli.render_sessions import clean

    state = f"{paint(clean(card['id']), 'bold')}  {paint(clean(card['status']), _STYLES.get(card['status']))}"
    claim = (
        f"  claimed by {clean(card['claimed_by'])} until {card['claim_expires']}"
        if card["claimed_by"]
        else ""
    )
    return f"{state}  {clean(card['title'])}{claim}"


def table(document: Document, paint: Paint) -> list[str]:
    """Return the cards of a board as a table."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import Column, render

    if not document["cards"]:
        return [f"no cards on {clean(document['board']['path'], 500)}"]
    columns = (
        Column("CARD"),
        Column("STATUS", worth=3),
        Column("CLAIMED BY", may_go=True, worth=2),
        Column("COMMENTS", worth=1),
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
        for card in document["cards"]
    ]
    return render(columns, rows, paint)


def details(document: Document, paint: Paint) -> list[str]:
    """Return all fields and comments of a card."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    card = document["card"]
    fields = ("created_at", "created_by", "assignee", "heartbeat_at", "workspace", "branch", "summary")
    lines = [line(card, paint)]
    values = {name: clean(card[name], 500) for name in fields if card[name]}
    if card["heartbeat_note"] and "heartbeat_at" in values:
        values["heartbeat_at"] += f"  {clean(card['heartbeat_note'], 500)}"
    if card["workspace_kind"] == "worktree":
        values["workspace"] = " ".join(("worktree", *([values["workspace"]] if card["workspace"] else [])))
    if card["skills"]:
        values["skills"] = ", ".join(clean(name) for name in card["skills"])
    lines += [f"  {paint(f'{name:<12}', 'dim')}  {value}" for name, value in values.items()]
    if card["body"]:
        lines += ["", *for_screen(card["body"]).splitlines()]
    for comment in document["comments"]:
        lines += ["", paint(f"{clean(comment['author'])}  {comment['at']}", "dim")]
        lines += for_screen(comment["body"]).splitlines()
    return lines
