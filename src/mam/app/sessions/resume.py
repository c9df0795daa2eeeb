"""Resume a session: the same row, directory, command, stores and conversation."""

from __future__ import annotations

from mam.adapters.store.tables import evidence, messages
from mam.adapters.system import process
from mam.app.context import claims
from mam.app.context.liveness import check_liveness
from mam.app.messages.late_proof import settle_queue
from mam.app.observation import conversations
from mam.app.sessions import launch, row_trust
from mam.app.sessions.create import bind_lease, wait_until_ready
from mam.app.sessions.death import record_death
from mam.app.sessions.outcome import RowOutcome
from mam.app.sessions.resume_checks import ResumeChecks, fork_origin
from mam.core import session_transitions
from mam.core.errors import Refused, TerminalsDown
from mam.core.liveness_values import Liveness
from mam.core.resume_choice import Choice
from mam.core.session_event import Resumed
from mam.core.session_row import Status, has_mcp_server, is_running, launch_of
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.launch import Placement, StartedAgent
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class PlacementFinder(Protocol):
        """Finds the placement of a resumed session that has its own window, such as that of its team."""

        def find(self, context: Context, row: Row) -> Placement | None:
            """Return the placement. None means that the session gets a tmux session of its own."""


NO_HISTORY = "the conversation had not begun, so there was no history to resume"
NOT_RESUMED = "started with a new conversation: mam cannot resume a conversation of {}"


def resume(
    context: Context,
    caller: Caller,
    target: str,
    *,
    wait: bool = True,
    trust: bool = False,
    run_recorded: bool = False,
    timeout: float | None = None,
    placement_finder: PlacementFinder | None = None,
) -> RowOutcome:
    """Start a session again with its conversation. A session that is alive stays as it is."""
    if run_recorded:
        row_trust.check_caller(caller)
    running_row = _running_row(context, caller, target)
    if running_row is not None:
        return RowOutcome(running_row, False, "already running")
    notes: dict[str, Any] = {}

    def prepare(transaction: Transaction, row: Row) -> dict[str, Any] | None:
        if is_running(row):
            notes["row"] = row
            return None
        choice = ResumeChecks(
            context,
            caller,
            row,
            transaction.rows(),
            transaction.identities(),
            run_recorded=run_recorded,
        ).run()
        notes["plan"] = {
            "choice": [choice.id, choice.tier, choice.on_disk],
            "launch_file": launch.new_launch_file(context, row["id"]),
        }
        return dict(notes["plan"])

    with claims.claim_session(context, "resume", target, prepare) as row:
        if row is None:
            return RowOutcome(notes["row"], False, "already running")
        settle_queue(context, row["id"])
        choice = Choice(*notes["plan"]["choice"])
        new_row = _start(context, caller, row, choice, notes["plan"]["launch_file"], placement_finder)
    if wait:
        new_row = wait_until_ready(
            context, caller, new_row, notes["plan"]["launch_file"], trust=trust, seconds=timeout
        )
    said = [_note(context, new_row, choice), _lost_queue(context, row)]
    return RowOutcome(new_row, True, "; ".join(filter(None, said)) or None)


def _note(context: Context, row: Row, choice: Choice) -> str | None:
    if not context.kind(row["agent"]).can_resume:
        return NOT_RESUMED.format(row["agent"])
    return None if choice.on_disk or fork_origin(context, row, choice) else NO_HISTORY


def _lost_queue(context: Context, former: Row) -> str | None:
    """Say how many messages the former launch had in its queue when it ended."""
    count = context.registry.peek(
        lambda transaction: messages.count_ended_in_queue(transaction, former["id"], launch_of(former)), 0
    )
    if not count:
        return None
    lost = "1 message was" if count == 1 else f"{count} messages were"
    return f"{lost} in its queue when it ended: send again what is unconfirmed in mam inbox {former['name']}"


def _running_row(context: Context, caller: Caller, target: str) -> Row | None:
    """Return the row if the session really runs. If its process is gone, record the death and return None."""
    row = context.registry.view().find(target)
    if not is_running(row):
        return None
    liveness = check_liveness(context, row)
    if liveness.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"'{row['name']}' was not resumed: {liveness.reason}")
    if liveness.state in (Liveness.ALIVE, Liveness.LOOSE):
        return row
    record_death(context, caller, row, liveness)
    return None


def _start(
    context: Context,
    caller: Caller,
    row: Row,
    choice: Choice,
    launch_file: str,
    placement_finder: PlacementFinder | None,
) -> Row:
    conversations.take_lease(context, row, choice.id, process.me())
    context.progress(f"resuming {row['name']}")
    placement = placement_finder.find(context, row) if placement_finder is not None else None
    started_agent = launch.launch_agent(
        context,
        row,
        launch_file,
        placement=placement,
        conversation=choice.id,
        mcp=has_mcp_server(row),
        resume=bool(choice.on_disk),
        fork_of=fork_origin(context, row, choice),
    )
    return launch.commit_start(
        context, row, started_agent, lambda: bind(context, caller, row, choice, started_agent)
    )


def bind(context: Context, caller: Caller, row: Row, choice: Choice, started_agent: StartedAgent) -> Row:
    """Commit the row of a resumed session and end the intent. Recovery calls this too."""
    started_agent.pane["mcp_attachments"] = launch.attachments(has_mcp_server(row))

    def work(transaction: Transaction) -> Row:
        current = transaction.get(row["id"]) or row
        action = caller.action("resume", context.now())
        fields: dict[str, Any] = {}
        if (
            choice.id
            and choice.tier
            and all(item["id"] != choice.id for item in current.get("conversations") or [])
        ):
            entry = {"id": choice.id, "source": "artifact", "since": stamp(action["at_epoch"])}
            fields["conversations"] = [*(current.get("conversations") or []), entry]
        new_row = transaction.put(
            session_transitions.resumed(
                current,
                action,
                pane=started_agent.pane,
                tmux_session_id=started_agent.tmux_session_id,
                tier=choice.tier,
                own=choice.id if choice.on_disk else None,
                **fields,
            )
        )
        evidence.clear(transaction.connection, row["id"])
        transaction.intents.end(row["id"])
        transaction.log(action["by"], "resume", new_row, conversation=choice.id, tier=choice.tier)
        # The lease comes first: placing a member of a team takes longer, and may be interrupted.
        transaction.after_commit(lambda: bind_lease(context, new_row, choice.id))
        context.tell_listeners(transaction, Resumed(new_row))
        return new_row

    return claims.change(context, work)


def resumable(context: Context, *, agent: str | None = None, stopped: bool = False) -> list[str]:
    """Return the names of resumable sessions that died; with `stopped` also those that were stopped."""
    names = []
    for row in context.registry.view().rows:
        if agent and row["agent"] != agent:
            continue
        is_dead = row["status"] == Status.TERMINATED and row.get("termination_mode") == "auto-detected"
        if is_running(row):
            liveness = check_liveness(context, row)
            is_dead = liveness.state not in (Liveness.ALIVE, Liveness.LOOSE, Liveness.UNKNOWN)
        if row.get("resumable") and (is_dead or (stopped and row["status"] == Status.STOPPED)):
            names.append(row["name"])
    if agent and not names:
        raise Refused(f"no session of {agent} can be resumed", hint="mam ls shows the sessions")
    return names
