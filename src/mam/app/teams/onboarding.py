"""What a new member is told: its colour, name and first words; by others where its spawner died."""

from __future__ import annotations

from mam.adapters.agents.kind import Screen
from mam.adapters.store.tables import messages, tasks, teams
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux import window as windows
from mam.app.messages.send import send
from mam.app.teams import team_page
from mam.app.teams.rebalance import arrange
from mam.core import caller as callers
from mam.core import team as rules
from mam.core.errors import Broken, NotAllowed, PaneGone
from mam.core.message import MessageState
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.teams import Member
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.teams.team_window import TeamWindow
    from mam.core.session_row import Row

_PROOF_SECONDS = 5.0
_STEP = 0.02


def identify(context: Context, row: Row, word: dict[str, Any], patience: float) -> dict[str, Any]:
    """Send one command of its own, prove that it had its effect, and send it once more if it had not."""
    for message_id in (word["id"], messages.new_id()):
        done = send(
            context,
            callers.user(),
            row["id"],
            word["text"],
            is_command=True,
            timeout=patience,
            message_id=message_id,
        )
        done["proven"] = None if done["state"] == MessageState.HELD else _proof(context, row, word["text"])
        if done["proven"] is not False:
            return done
    context.warn(f"'{row['name']}' did not take {word['text']}")
    return done


def _proof(context: Context, row: Row, command: str) -> bool | None:
    kind, tmux = context.kind(row["agent"]), context.tmux(row["tmux_server"])
    deadline = Deadline(_PROOF_SECONDS)
    while True:
        try:
            seen = tmux.look(row["pane"]["id"])
        except PaneGone:
            return None
        screen = Screen(seen.screen, seen.cursor_x, seen.cursor_y)
        found = kind.has_identity(command, current_conversation(row) or "", row.get("stores") or {}, screen)
        if found is not False or not deadline.pause(_STEP):
            return found


def tell(context: Context, row: Row, member: Member, patience: float) -> dict[str, Any] | None:
    """Send a member its first words, from whoever spawned it; None for one that was told at its start."""
    said = next((one for one in member.words if not one["command"]), None)
    if said is None:
        if context.kind(row["agent"]).takes_prompt:
            context.warn(f"mam cannot see whether {row['agent']} waits for words, so it was told nothing")
        return None
    return _say(context, row, said, patience)


def _say(context: Context, row: Row, word: dict[str, Any], patience: float = 0.0) -> dict[str, Any]:
    """Send one of the words that a member is greeted with; its first words are its spawner's."""
    # What mam itself says to an agent has no sender of its own.
    parent = None if word["command"] else row.get("parent")
    senders = [callers.session(parent)] if parent and parent != "user" else []
    for sender in (*senders, callers.user()):
        try:
            return send(
                context,
                sender,
                row["id"],
                word["text"],
                is_command=word["command"],
                timeout=patience,
                message_id=word["id"],
            )
        except NotAllowed:
            # Who may start an agent may say what for, whatever the settings say of messages between the two.
            if sender.is_user:
                raise
    raise Broken("nobody spoke")


def name_master(context: Context, site: TeamWindow) -> None:
    """Give the master its colour and name, where it is an agent that has them; it may take them later."""
    row = context.registry.view().by_id(site.master_id) if site.is_uncrowned else None
    site.is_uncrowned = False
    if row is None or not is_running(row):
        return
    known = context.registry.peek(lambda draft: teams.member(draft, row["id"]), None)
    commands = context.kind(row["agent"]).identity(
        rules.agent_name(rules.MASTER), rules.colour_of(rules.MASTER)
    )
    for command in commands:
        if command.startswith("/rename") and known is not None and known.name_source == rules.MANUAL:
            continue
        send(context, callers.user(), row["id"], command, is_command=True)


def settle_in(context: Context, row: Row, member: Member) -> Member:
    """Record the pane and the window of a member, and write its role on the border."""
    tmux = context.tmux(row["tmux_server"])
    pane = windows.pane_of(tmux, row["pane"]["id"])
    window_id = pane.window_id if pane else None

    def work(draft: Transaction) -> Member:
        team = teams.find(draft, member.team_id)
        if team is not None and team.window_id is None and pane is not None:
            teams.change(draft, team.id, window_id=window_id, server_pid=pane.server_pid)
        for one in tasks.claimed(draft, row["id"]):
            tasks.claim(draft, one.seq, row["id"], row["pane"]["id"])
        return teams.update(draft, member, pane=row["pane"]["id"], window_id=window_id)

    done = context.registry.note(work)
    if window_id is not None:
        label = member.role
        windows.dress(tmux, row["pane"]["id"], window_id, label=label, colour=rules.COLOURS[member.colour])
    return done


def introduced(draft: Transaction, row: Row | None) -> None:
    """Record that a member was told everything: from here on it is what its messages make of it."""
    member = teams.member(draft, row["id"]) if row else None
    if member is not None and row is not None and member.state == rules.SPAWNING:
        found = current_conversation(draft.get(row["id"]) or row)
        teams.update(draft, member, state=rules.ACTIVE, owner=None, conversation=found)


def welcome_back(context: Context, row: Row) -> None:
    """Put a member that goes on in another pane into its place again."""
    member = context.registry.peek(lambda draft: teams.member(draft, row["id"]), None)
    if member is not None:
        arrange(context, settle_in(context, row, member).team_id)
        team_page.write(context, [member.team_id])


def finish_spawns(context: Context) -> None:
    """Greet the members whose spawner died; those whose start was cleaned away are dropped."""
    nothing: list[Member] = []
    for member in context.registry.peek(teams.starting, nothing):
        if _take_over(context, member):
            _finish_one(context, member)
            team_page.write(context, [member.team_id])


def _finish_one(context: Context, member: Member) -> None:
    view = context.registry.view()
    row = view.by_id(member.session_id)
    if row is None or not is_running(row):
        if not any(one.session_id == member.session_id for one in view.intents):
            context.registry.note(lambda draft: _drop(draft, member))
        return
    context.progress(f"telling {row['name']} what a spawn that was cut off has not")
    arrange(context, settle_in(context, row, member).team_id)
    for word in member.words:
        _say(context, row, word)
    context.registry.note(lambda draft: introduced(draft, row))


def _take_over(context: Context, member: Member) -> bool:
    """Become the one who greets a member; False while its spawner lives, or if somebody was faster."""

    def work(draft: Transaction) -> bool:
        current = teams.member(draft, member.session_id)
        if current is None or current.state != rules.SPAWNING or _lives(current):
            return False
        teams.update(draft, current, owner=process.me().as_json())
        return True

    return not _lives(member) and context.registry.note(work)


def _lives(member: Member) -> bool:
    identity = process.Identity.from_json(member.owner)
    return identity is not None and process.is_alive(identity)


def _drop(draft: Transaction, member: Member) -> None:
    tasks.release(draft, member.session_id)
    teams.leave(draft, member)
    team = teams.find(draft, member.team_id)
    if team is not None:
        teams.remove(draft, team.id)
