"""Resume a session: the same row, the same directory, command and stores, and its history really there."""

from __future__ import annotations

from mam.adapters.store.tables import evidence
from mam.adapters.system import process
from mam.app.context import claims
from mam.app.context.liveness import see_one
from mam.app.observation import conversations
from mam.app.sessions import launch, untrusted_rows
from mam.app.sessions.create import bind_lease, wait_until_ready
from mam.app.sessions.death import record_death
from mam.app.sessions.outcome import RowOutcome
from mam.core import transitions
from mam.core.errors import IllegalTransition, Refused, TerminalsDown
from mam.core.liveness import Liveness
from mam.core.resume_choice import Choice
from mam.core.session_event import Resumed
from mam.core.session_row import Status, is_running, own_id
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Started, Where
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class Home(Protocol):
        """Where a session goes on that has a place of its own, such as the window of its team."""

        def find(self, context: Context, row: Row) -> Where | None:
            """Return the place, or None: then the session gets a tmux session of its own."""


NO_HISTORY = "there was no history to take up: the conversation had not begun"
ANEW = "started anew: mam does not know how to take up a conversation of {}"


def resume(
    context: Context,
    caller: Caller,
    target: str,
    *,
    wait: bool = True,
    trust: bool = False,
    timeout: float | None = None,
    home: Home | None = None,
) -> RowOutcome:
    """Take up a session's conversation; one that is alive is left as it is."""
    alive = _settle_running(context, caller, target)
    if alive is not None:
        return RowOutcome(alive, False, "already running")
    found: dict[str, Any] = {}

    def prepare(draft: Transaction, row: Row) -> dict[str, Any] | None:
        if is_running(row):
            found["row"] = row
            return None
        transitions.next_status(row["status"], "resume")
        launch.check_workspace(row["workspace"])
        untrusted_rows.refuse(context, row, trust=trust)
        choice = _choose(context, draft, row)
        found["plan"] = {
            "choice": [choice.id, choice.tier, choice.on_disk],
            "launch_file": launch.new_launch_file(context, row["id"]),
        }
        return dict(found["plan"])

    with claims.in_flight(context, "resume", target, prepare) as row:
        if row is None:
            return RowOutcome(found["row"], False, "already running")
        choice = Choice(*found["plan"]["choice"])
        done = _start(context, caller, row, choice, found["plan"]["launch_file"], home)
    if wait:
        done = wait_until_ready(
            context, caller, done, found["plan"]["launch_file"], trust=trust, seconds=timeout
        )
    return RowOutcome(done, True, _note(context, done, choice))


def _note(context: Context, row: Row, choice: Choice) -> str | None:
    if not context.kind(row["agent"]).can_resume:
        return ANEW.format(row["agent"])
    return None if choice.on_disk or _origin(context, row, choice) else NO_HISTORY


def _origin(context: Context, row: Row, choice: Choice) -> str | None:
    """Return the conversation that a fork was made of, while the fork itself is not on disk yet."""
    entry = next((one for one in row.get("conversations") or [] if one["id"] == choice.id), None)
    origin = entry.get("fork_of") if entry and not choice.on_disk else None
    return origin if origin and conversations.on_disk(context, row, origin) else None


def _settle_running(context: Context, caller: Caller, target: str) -> Row | None:
    """Return the row if it really runs; a row that only says so is corrected first."""
    row = context.registry.view().find(target)
    if not is_running(row):
        return None
    sight = see_one(context, row)
    if sight.state == Liveness.UNKNOWN:
        raise TerminalsDown(
            f"'{row['name']}' was not resumed: {sight.reason}", hint="repeat when tmux answers again"
        )
    if sight.state in (Liveness.ALIVE, Liveness.LOOSE):
        return row
    record_death(context, caller, row, sight)
    return None


def _choose(context: Context, draft: Transaction, row: Row) -> Choice:
    kind = context.kind(row["agent"])
    if not kind.can_resume:
        return Choice(None, None, None)
    choice = conversations.resume_choice(context, row, draft.rows(), draft.identities())
    if choice.id is None or (not choice.on_disk and own_id(row)):
        if choice.id:
            # While a program takes a conversation up, its file may for a moment have no history.
            conversations.refuse_if_held(context, row, choice.id)
        gone = (
            f"its conversation {choice.id} is not on disk" if choice.id else "no conversation of it is known"
        )
        raise IllegalTransition(
            f"'{row['name']}' cannot be resumed: {gone}",
            hint=f"mam create --session {row['name']} starts it with a new conversation",
        )
    return choice


def _start(
    context: Context, caller: Caller, row: Row, choice: Choice, launch_file: str, home: Home | None
) -> Row:
    conversations.take_lease(context, row, choice.id, process.me())
    context.progress(f"resuming {row['name']}")
    where = home.find(context, row) if home is not None else None
    started = launch.run(
        context,
        row,
        launch_file,
        where=where,
        conversation=choice.id,
        mcp=launch.has_tools(row),
        resume=bool(choice.on_disk),
        fork_of=_origin(context, row, choice),
    )
    return launch.bound(context, row, started, lambda: bind(context, caller, row, choice, started))


def bind(context: Context, caller: Caller, row: Row, choice: Choice, started: Started) -> Row:
    """Commit the row of a pane in which the session goes on, and end the intent; recovery does the same."""
    started.pane["mcp_attachments"] = launch.attachments(launch.has_tools(row))

    def work(draft: Transaction) -> Row:
        current = draft.get(row["id"]) or row
        action = caller.action("resume", context.now())
        fields: dict[str, Any] = {}
        if (
            choice.id
            and choice.tier
            and all(one["id"] != choice.id for one in current.get("conversations") or [])
        ):
            entry = {"id": choice.id, "source": "artifact", "since": stamp(action["at_epoch"])}
            fields["conversations"] = [*(current.get("conversations") or []), entry]
        done = draft.put(
            transitions.resumed(
                current,
                action,
                pane=started.pane,
                tmux_session_id=started.tmux_session_id,
                tier=choice.tier,
                own=choice.id if choice.on_disk else None,
                **fields,
            )
        )
        evidence.clear(draft.connection, row["id"])
        draft.intents.end(row["id"])
        draft.log(action["by"], "resume", done, conversation=choice.id, tier=choice.tier)
        # The first thing after the commit: what follows for a team takes longer, and may be cut off.
        draft.after_commit(lambda: bind_lease(context, done, choice.id))
        context.publish(draft, Resumed(done))
        return done

    return claims.change(context, work)


def resumable(context: Context, *, agent: str | None = None, stopped: bool = False) -> list[str]:
    """Return the sessions that died, and with `stopped` those that were stopped, if they can be resumed."""
    names = []
    for row in context.registry.view().rows:
        if agent and row["agent"] != agent:
            continue
        died = row["status"] == Status.TERMINATED and row.get("termination_mode") == "auto-detected"
        if is_running(row):
            sight = see_one(context, row)
            died = sight.state not in (Liveness.ALIVE, Liveness.LOOSE, Liveness.UNKNOWN)
        if row.get("resumable") and (died or (stopped and row["status"] == Status.STOPPED)):
            names.append(row["name"])
    if agent and not names:
        raise Refused(f"no session of {agent} can be resumed here", hint="mam ls shows what there is")
    return names
