"""`drill --run`: resume a fork of each conversation, prove that the history is there, and remove the fork.

A fork is a session of its own for a moment. It gets no message, and no dialog of it is answered. Besides the
intent of the fork there is an intent of the drill, which lasts until the fork is removed. So if this
process dies, the next verb removes the fork.
"""

from __future__ import annotations

import time
from collections import deque

from mam.adapters.store.rows_and_log import new_session_id
from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.deadline import Deadline
from mam.app.context import claims
from mam.app.observation import conversations
from mam.app.observation.hook_intake import take_in
from mam.app.sessions import fork
from mam.app.sessions.create import wait_until_ready
from mam.app.sessions.drill import (
    UNPROVEN,
    WARNING,
    WOULD_NOT,
    check_sessions,
    chosen_rows,
    document_of,
    last_messages,
    refuse_in_copy,
)
from mam.app.sessions.forget import forget
from mam.app.sessions.stop import stop
from mam.core.errors import (
    AgentMissing,
    MamError,
    NotReady,
    Refused,
    SessionNotFound,
    Unavailable,
    Unconfirmed,
)
from mam.core.resume_choice import OWN
from mam.core.session_row import is_running
from mam.core.shown_history import shows_any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.intents import Intent
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.sessions.create import StartPlan
    from mam.app.sessions.drill import Document, SessionDrill
    from mam.core.caller import Caller
    from mam.core.session_row import Row

VERB = "drill"
# So many forks run at once.
_AT_ONCE = 2
# How long a program that takes input may still need to draw its history.
_HISTORY_SECONDS, _STEP = 10.0, 0.1
_SCROLLBACK = 5000
_PROVEN, _FAILED, _NOT_TRIED = "proven", "failed", "n/a"


def drill_run(
    context: Context,
    caller: Caller,
    targets: Sequence[str] = (),
    *,
    agent: str | None = None,
    timeout: float | None = None,
) -> Document:
    """Check the sessions as `drill` does, and run a fork of each that would come back.

    What cannot be removed at once is left to recovery, which the caller runs afterwards.
    """
    refuse_in_copy(context)
    # Nothing is started with settings that are not valid.
    context.settings()
    view = context.view_to_show()
    drills = check_sessions(context, caller, view, chosen_rows(view, targets, agent))
    running: deque[_Fork] = deque()
    try:
        for number, result in enumerate(drills, 1):
            if not _is_possible(result):
                continue
            context.progress(f"forking {result.row['name']} ({number} of {len(drills)})")
            running.append(_Fork(context, caller, result, timeout))
            running[-1].begin()
            if len(running) == _AT_ONCE:
                running.popleft().finish()
        while running:
            running.popleft().finish()
    finally:
        # After Ctrl-C some are left.
        while running:
            running.popleft().remove()
    return document_of(context, view, drills)


def _is_possible(result: SessionDrill) -> bool:
    """Tell whether a fork can show that the session comes back; if not, record why."""
    choice, kind = result.checks.choice, result.checks.kind
    if result.outcome == WOULD_NOT:
        return False
    if not kind.can_fork:
        reason = f"mam cannot fork a conversation of {result.row['agent']}"
    elif not choice.on_disk:
        reason = "there is no conversation on disk to fork"
    elif choice.tier != OWN:
        # The purge of the fork is sure to spare what is recorded for another session.
        reason = "the conversation is not recorded as the session's own"
    else:
        return True
    result.run = {"outcome": _NOT_TRIED, "proof": None, "message": f"{reason}, so nothing was started"}
    return False


class _Fork:
    """The fork of one session, from its claim to its end."""

    def __init__(self, context: Context, caller: Caller, result: SessionDrill, timeout: float | None) -> None:
        self.context = context
        self.caller = caller
        self.result = result
        self.timeout = timeout
        # The intent of the drill is no session's own.
        self.drill_id = new_session_id()
        self.fork_name = self.drill_id.replace("s_", "drill-")
        self.at: float | None = None
        self.plan: StartPlan | None = None
        self.row: Row | None = None

    def begin(self) -> None:
        """Start the fork, and record why if that fails."""
        try:
            self.plan = claims.commit_claim(self.context, self._claim)
            self.at = self.plan["at"]
            self.row = self._start(self.plan)
        except MamError as error:
            self._tell_error(error, is_failure=isinstance(error, (Refused, AgentMissing)))

    def _claim(self, transaction: Transaction) -> StartPlan:
        source = self.result.row
        plan = fork.claim(
            self.context,
            self.caller,
            transaction,
            source["id"],
            self.fork_name,
            role=None,
            taken=set(),
            run_recorded=False,
        )
        identity = transaction.identities().get(source["agent"])
        notes = {"fork": plan["id"], "agent": source["agent"], "identity": identity}
        # No session can have this name, so the intent keeps nobody else from a claim.
        name = f"{source['name']} (fork {self.fork_name})"
        transaction.intents.put(claims.new_intent(self.drill_id, name, VERB, transaction.now, notes))
        return plan

    def _start(self, plan: StartPlan) -> Row:
        try:
            return fork.start(self.context, self.caller, plan)
        except BaseException as error:
            claims.release_after_error(self.context, plan["id"], plan["at"], error)
            claims.release_after_error(self.context, self.drill_id, plan["at"], error)
            self.at = None
            raise

    def finish(self) -> None:
        """Wait until the fork shows the history, record the result, and remove the fork."""
        try:
            if self.row is not None:
                self._prove(self.row)
        finally:
            self.remove()

    def _prove(self, row: Row) -> None:
        assert self.plan is not None
        try:
            self.row = row = wait_until_ready(
                self.context, self.caller, row, self.plan["launch_file"], trust=False, seconds=self.timeout
            )
            proof = self._wait_for_history(row)
        except MamError as error:
            has_ended = isinstance(error, NotReady) and not is_running(error.session or row)
            self._tell_error(error, is_failure=has_ended)
            return
        if proof is None:
            message = "a fork of it takes input, and nothing shows the earlier messages"
            self._tell(UNPROVEN, "no_proof", message, f"mam fork {self.result.row['name']} shows it to you")
        else:
            message = f"a fork of it came up with the earlier messages ({proof})"
            self.result.add("run")
            self.result.run = {"outcome": _PROVEN, "proof": proof, "message": message}

    def _wait_for_history(self, row: Row) -> str | None:
        """Return what shows the earlier messages: `transcript` or `screen`; None if nothing does in time."""
        self.context.progress(f"looking for the history in {row['name']}")
        texts = self._source_texts()
        clock = time.monotonic if self.timeout else load_adjusted_clock.now
        deadline = Deadline(min(self.timeout or _HISTORY_SECONDS, _HISTORY_SECONDS), clock=clock)
        while True:
            if self._is_in_transcript(row, texts):
                return "transcript"
            pane_id = row["pane"]["id"]
            screens = self.context.tmux(row["tmux_server"]).capture([pane_id], scrollback=_SCROLLBACK)
            if shows_any(screens[pane_id] or "", texts):
                return "screen"
            if not deadline.pause(_STEP):
                return None

    def _source_texts(self) -> list[str]:
        """Return the last messages of the conversation that was forked."""
        assert self.plan is not None
        return last_messages(self.context, self.result.checks.row, self.plan["fork_of"] or "") or []

    def _is_in_transcript(self, row: Row, texts: list[str]) -> bool:
        """Tell whether the fork's own record holds the last message. Some programs write it later."""
        assert self.plan is not None
        conversation = conversations.open_conversation(self.context, row)
        if not conversation or not texts or conversation == self.plan["fork_of"]:
            return False
        return texts[-1] in (last_messages(self.context, row, conversation) or [])

    def _tell_error(self, error: MamError, *, is_failure: bool) -> None:
        message = f"its fork could not show the conversation: {error.message}"
        hint = "a resume would end so as well; no dialog of the fork was answered, and it is removed"
        self._tell(WOULD_NOT if is_failure else UNPROVEN, error.code, message, hint)

    def _tell(self, outcome: str, code: str, message: str, hint: str) -> None:
        self.result.add("run", outcome, code=code, message=message, hint=hint)
        outcome = _FAILED if outcome == WOULD_NOT else outcome
        self.result.run = {"outcome": outcome, "proof": None, "message": message}

    def remove(self) -> None:
        """Remove the fork. If that fails, the result says so; Ctrl-C leaves the rest to the next verb."""
        if self.at is None:
            return
        try:
            intent = self.context.registry.peek(lambda it: it.intents.of(self.drill_id), None)
            if intent is not None:
                remove_fork(self.context, self.caller, intent)
        except BaseException as error:
            claims.release_after_error(self.context, self.drill_id, self.at, error)
            if not isinstance(error, MamError):
                raise
            is_final = isinstance(error, (Refused, Unconfirmed))
            self.result.add(
                "removal",
                WARNING,
                code=error.code,
                message=f"its fork {self.fork_name} was not removed: {error.message}",
                hint=f"mam stop {self.fork_name} --purge-conversation, then mam forget {self.fork_name}"
                if is_final
                else "the next command that changes something removes it",
            )


def remove_fork(context: Context, caller: Caller, intent: Intent) -> None:
    """Stop, purge and forget the fork of a drill, and end the intent of the drill. Recovery calls this too.

    The start of the fork is over by then: recovery finishes it first.
    """
    fork_id: str = intent.data["fork"]
    if context.registry.peek(lambda it: it.intents.of(fork_id) is not None, False):
        raise Unavailable(f"the start of the fork in the {VERB} of {intent.name} is not finished yet")
    if context.registry.view().by_id(fork_id) is not None:
        context.progress(f"removing {intent.name}")
        try:
            stop(context, caller, fork_id, reason=VERB, purge=True)
            # What its hooks have reported would wait for a session that does not exist.
            take_in(context)
            forget(context, caller, fork_id)
        except SessionNotFound:
            context.progress(f"somebody else has removed {intent.name}")
    assert context.root_id is not None
    context.user_state.forget_launch(context.root_id, fork_id)
    context.registry.note(lambda transaction: _end(transaction, intent.session_id, intent.data))


def _end(transaction: Transaction, drill_id: str, notes: Any) -> None:
    """End the intent of a drill, and give the identity cache back what the fork replaced in it."""
    if notes["identity"] and transaction.identities().get(notes["agent"]) is None:
        transaction.set_identity(notes["agent"], notes["identity"])
    transaction.intents.end(drill_id)
