"""The onboarding of a new member: its colour and name, its first prompt, and its place in the window.

If the spawner dies half way, the resident or the next verb finishes the onboarding.
"""

from __future__ import annotations

from mam.adapters.agents.kind import Screen
from mam.adapters.store.tables import messages, tasks, teams
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux import window as windows
from mam.app.context import setting_aside
from mam.app.messages.send import send
from mam.app.teams import team_page
from mam.app.teams.rebalance import arrange
from mam.core import caller as callers
from mam.core import team_plan as rules
from mam.core.errors import Broken, NotAllowed, PaneGone
from mam.core.message_rules import MessageState
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.teams import Member
    from mam.app.context.context import Context
    from mam.app.teams.team_window import TeamWindow
    from mam.core.session_row import Row

_PROOF_SECONDS = 5.0
_STEP = 0.02


def send_identity(context: Context, row: Row, message: dict[str, Any], patience: float) -> dict[str, Any]:
    """Send a command that sets colour or name, check its effect, and send it again if it had none."""
    for message_id in (message["id"], messages.new_id()):
        receipt = send(
            context,
            callers.user(),
            row["id"],
            message["text"],
            is_command=True,
            timeout=patience,
            message_id=message_id,
        )
        receipt["proven"] = (
            None if receipt["state"] == MessageState.HELD else _proof(context, row, message["text"])
        )
        if receipt["proven"] is not False:
            return receipt
    context.warn(f"'{row['name']}' did not carry out {message['text']}")
    return receipt


def _proof(context: Context, row: Row, command: str) -> bool | None:
    kind, tmux = context.kind(row["agent"]), context.tmux(row["tmux_server"])
    deadline = Deadline(_PROOF_SECONDS)
    while True:
        try:
            pane_look = tmux.look(row["pane"]["id"])
        except PaneGone:
            return None
        screen = Screen(pane_look.captured, pane_look.cursor_x, pane_look.cursor_y)
        is_proven = kind.identity_took_effect(
            command, current_conversation(row) or "", row.get("stores") or {}, screen
        )
        if is_proven is not False or not deadline.pause(_STEP):
            return is_proven


def send_first_prompt(context: Context, row: Row, member: Member, patience: float) -> dict[str, Any] | None:
    """Send a member its first prompt as its spawner; None if the program got it as an argument."""
    prompt = next((message for message in member.words if not message["command"]), None)
    if prompt is None:
        if context.kind(row["agent"]).takes_prompt:
            context.warn(f"mam cannot see whether {row['agent']} waits for a prompt, so mam sent none")
        return None
    return _send_message(context, row, prompt, patience)


def _send_message(
    context: Context, row: Row, message: dict[str, Any], patience: float = 0.0
) -> dict[str, Any]:
    """Send one onboarding message. The sender of the first prompt is the spawner."""
    # Commands for colour and name come from mam itself, so they have no sending session.
    parent = None if message["command"] else row.get("parent")
    senders = [callers.session(parent)] if parent and parent != "user" else []
    for sender in (*senders, callers.user()):
        try:
            return send(
                context,
                sender,
                row["id"],
                message["text"],
                is_command=message["command"],
                timeout=patience,
                message_id=message["id"],
            )
        except NotAllowed:
            # The spawner may give the first prompt even if the setting 'messages' forbids other messages.
            if sender.is_user:
                raise
    raise Broken("no sender could send the message")


def name_master(context: Context, team_window: TeamWindow) -> None:
    """Send the master its colour and name, if its kind has them. The messages may be held for a while."""
    row = context.registry.view().by_id(team_window.master_id) if team_window.needs_master_name else None
    team_window.needs_master_name = False
    if row is None or not is_running(row):
        return
    membership = context.registry.peek(lambda transaction: teams.member(transaction, row["id"]), None)
    commands = context.kind(row["agent"]).identity_commands(
        rules.agent_name(rules.MASTER), rules.colour_of(rules.MASTER)
    )
    for command in commands:
        if (
            command.startswith("/rename")
            and membership is not None
            and membership.name_source == rules.MANUAL
        ):
            continue
        send(context, callers.user(), row["id"], command, is_command=True)


def place_member(context: Context, row: Row, member: Member) -> Member:
    """Record the pane and the window of a member, and write its role on the pane's border."""
    tmux = context.tmux(row["tmux_server"])
    pane = windows.pane_of(tmux, row["pane"]["id"])
    window_id = pane.window_id if pane else None

    def work(transaction: Transaction) -> Member:
        team = teams.find(transaction, member.team_id)
        if team is not None and team.window_id is None and pane is not None:
            teams.change(transaction, team.id, window_id=window_id, server_pid=pane.server_pid)
        for task in tasks.claimed(transaction, row["id"]):
            tasks.claim(transaction, task.seq, row["id"], row["pane"]["id"])
        return teams.update(transaction, member, pane=row["pane"]["id"], window_id=window_id)

    placed_member = context.registry.note(work)
    if window_id is not None:
        label = member.role
        windows.label_pane(
            tmux, row["pane"]["id"], window_id, label=label, colour=rules.COLOURS[member.colour]
        )
    return placed_member


def mark_active(transaction: Transaction, row: Row | None) -> None:
    """Record that the onboarding of a member is complete."""
    member = teams.member(transaction, row["id"]) if row else None
    if member is not None and row is not None and member.state == rules.SPAWNING:
        conversation = current_conversation(transaction.get(row["id"]) or row)
        teams.update(transaction, member, state=rules.ACTIVE, owner=None, conversation=conversation)


def place_resumed_member(context: Context, row: Row) -> None:
    """Put a resumed member, whose pane is new, into its place in the window."""
    member = context.registry.peek(lambda transaction: teams.member(transaction, row["id"]), None)
    if member is not None:
        arrange(context, place_member(context, row, member).team_id)
        team_page.write(context, [member.team_id])


def finish_spawns(context: Context) -> None:
    """Finish the onboarding of members whose spawner died, and remove members whose start was undone."""
    no_members: list[Member] = []
    for member in context.registry.peek(teams.starting, no_members):
        try:
            if member.flaw is not None:
                raise setting_aside.Flawed(member.flaw)
            if _take_over(context, member):
                _finish_spawn(context, member)
                team_page.write(context, [member.team_id])
                setting_aside.take_up(context, setting_aside.MEMBER, member.session_id)
        except Exception as error:
            if not setting_aside.is_of_item(error):
                raise
            problem = f"mam cannot finish the spawn of {member.name}"
            setting_aside.note(context, setting_aside.MEMBER, member.session_id, error, problem)


def _finish_spawn(context: Context, member: Member) -> None:
    view = context.registry.view()
    row = view.by_id(member.session_id)
    if row is None or not is_running(row):
        if not any(intent.session_id == member.session_id for intent in view.intents):
            context.registry.note(lambda transaction: _remove_member(transaction, member))
        return
    context.progress(f"finishing an interrupted spawn of {row['name']}")
    arrange(context, place_member(context, row, member).team_id)
    for message in member.words:
        _send_message(context, row, message)
    context.registry.note(lambda transaction: mark_active(transaction, row))


def _take_over(context: Context, member: Member) -> bool:
    """Take over an onboarding; False while its spawner lives, or if another process was faster."""

    def work(transaction: Transaction) -> bool:
        current = teams.member(transaction, member.session_id)
        if current is None or current.state != rules.SPAWNING or _has_living_owner(current):
            return False
        teams.update(transaction, current, owner=process.me().as_json())
        return True

    return not _has_living_owner(member) and context.registry.note(work)


def _has_living_owner(member: Member) -> bool:
    identity = process.Identity.from_json(member.owner)
    return identity is not None and process.is_alive(identity)


def _remove_member(transaction: Transaction, member: Member) -> None:
    tasks.release(transaction, member.session_id)
    teams.remove_member(transaction, member)
    team = teams.find(transaction, member.team_id)
    if team is not None:
        teams.remove(transaction, team.id)
