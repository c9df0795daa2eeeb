"""Check for every session that its conversation would come back, as after a reboot. Reads only.

A drill runs the checks of a resume, and lists everything that is in the way. A session that runs is checked
as it would be recorded after the death of its process.
"""

from __future__ import annotations

import os
from functools import partial

from mam.adapters.agents.kind import Kind
from mam.app.context.liveness import confirm
from mam.app.observation import conversations
from mam.app.observation.versions import VersionReading, is_tested
from mam.app.sessions.resume_checks import CHECKS, ResumeChecks, as_after_its_end, fork_origin
from mam.core.errors import InvalidSettings, MamError, Refused
from mam.core.resume_choice import CACHE, WORKSPACE
from mam.core.root_state import RootState
from mam.core.session_row import Status, is_running, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from mam.adapters.store.registry import View
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Document = dict[str, Any]

# How a check ends, from good to bad. The worst is the outcome of its session.
OK, WARNING, UNPROVEN, WOULD_NOT = "ok", "warning", "unproven", "would_not"
_OUTCOMES = (OK, WARNING, UNPROVEN, WOULD_NOT)
_AS_OK = {OK: True, WARNING: None, UNPROVEN: None, WOULD_NOT: False}
# How many of the last messages are read.
_TURNS = 6
_TIERS = {WORKSPACE: "the newest one of its workspace", CACHE: "the last one of its agent kind"}


class SessionDrill:
    """What was found out about one session."""

    def __init__(self, row: Row, checks: ResumeChecks) -> None:
        """`checks` are those of the row as it would be after a reboot."""
        self.row = row
        self.checks = checks
        self.outcome = OK
        self.entries: list[Document] = []
        self.reasons: list[Document] = []
        # What `--run` found out.
        self.run: Document | None = None

    def add(
        self, check: str, outcome: str = OK, *, code: str = "", message: str = "", hint: str | None = None
    ) -> None:
        """Record how a check ended, with the reason if it is not ok."""
        self.entries.append({"check": check, "ok": _AS_OK[outcome]})
        if outcome != OK:
            self.reasons.append({"check": check, "code": code, "message": message, "hint": hint})
        self.outcome = max(self.outcome, outcome, key=_OUTCOMES.index)

    def add_error(self, check: str, outcome: str, error: MamError) -> None:
        """Record that a check ended with an error."""
        self.add(check, outcome, code=error.code, message=error.message, hint=error.hint)

    def is_ok(self, *names: str) -> bool:
        """Tell whether all of these checks were made, and are ok."""
        return all({"check": name, "ok": True} in self.entries for name in names)

    def as_json(self) -> Document:
        """Return the result as a document."""
        choice = self.checks.choice
        document = {
            "session": self.row["name"],
            "id": self.row.get("id"),
            "agent": self.row["agent"],
            "status": str(self.row["status"]),
            "outcome": self.outcome,
            "tier": choice.tier,
            "conversation": choice.id,
            "on_disk": choice.on_disk,
            "checks": self.entries,
            "reasons": self.reasons,
        }
        return document if self.run is None else {**document, "run": self.run}


def drill(
    context: Context, caller: Caller, targets: Sequence[str] = (), *, agent: str | None = None
) -> Document:
    """Check the sessions of these names or ids; without any, all that run or can be resumed.

    Archived sessions are checked only by name: somebody has put them away.
    """
    refuse_in_copy(context)
    problem = None
    try:
        context.settings()
    except InvalidSettings as error:
        # It keeps every session from coming back, and says nothing about the conversation of any.
        problem, context = error, context.with_default_settings()
    view = context.view_to_show()
    rows = chosen_rows(view, targets, agent)
    return document_of(context, view, check_sessions(context, caller, view, rows), problem)


def refuse_in_copy(context: Context) -> None:
    """Raise RootRefused in a root of somebody else, and in a copy: its conversations are of the original."""
    context.require_own_root()
    if context.root.verdict().state == RootState.COPY:
        context.root.check()


def chosen_rows(view: View, targets: Sequence[str], agent: str | None) -> list[Row]:
    """Return the rows to check. Raises Refused where there is none of the named kind."""
    if targets:
        rows = list({row["name"]: row for row in map(view.find, targets)}.values())
    else:
        rows = [row for row in view.rows if is_running(row) or _can_be_resumed(row)]
    if agent is None:
        return rows
    rows = [row for row in rows if row["agent"] == agent]
    if not rows:
        raise Refused(f"no session of {agent} runs or can be resumed", hint="mam ls shows the sessions")
    return rows


def _can_be_resumed(row: Row) -> bool:
    return bool(row.get("resumable")) and row["status"] != Status.ARCHIVED


def check_sessions(context: Context, caller: Caller, view: View, rows: Iterable[Row]) -> list[SessionDrill]:
    """Check some sessions of a registry."""
    versions: dict[str, str | None] = {}
    drills = []
    for row in rows:
        context.progress(f"checking {row['name']}")
        drills.append(_check_session(context, caller, view, row, versions))
    return drills


def document_of(
    context: Context, view: View, drills: Sequence[SessionDrill], problem: InvalidSettings | None = None
) -> Document:
    """Return the results, in the order of the registry, and their numbers; `problem` is of the settings."""
    outcomes = [one.outcome for one in drills]
    servers = sorted({one.row["tmux_server"] for one in drills} | {context.server_name(None)})
    return {
        "root": list(_root_checks(context, view, servers, problem)),
        "results": [one.as_json() for one in drills],
        "ok": outcomes.count(OK) + outcomes.count(WARNING),
        "unproven": outcomes.count(UNPROVEN),
        "failed": outcomes.count(WOULD_NOT),
    }


def _root_checks(
    context: Context, view: View, servers: Sequence[str], problem: InvalidSettings | None
) -> Iterator[Document]:
    """Yield what would stop the resume of every session."""
    yield _root_check("root", context.root.refusal())
    context.judge_status_edits(view, partial(confirm, context))
    yield _root_check("registry", view.problem)
    yield _root_check("settings", problem)
    for server in servers:
        try:
            context.tmux(server).require_version()
            context.tmux(server).check_socket()
        except MamError as error:
            yield _root_check(f"tmux server {server}", error)
        else:
            yield _root_check(f"tmux server {server}", None)


def _root_check(check: str, error: MamError | None) -> Document:
    message, hint = (error.message, error.hint) if error else (None, None)
    return {"check": check, "ok": error is None, "message": message, "hint": hint}


def _check_session(
    context: Context, caller: Caller, view: View, row: Row, versions: dict[str, str | None]
) -> SessionDrill:
    ended_row = as_after_its_end(context, view, row)
    checks = ResumeChecks(
        context,
        caller,
        ended_row,
        view.rows,
        view.identities,
        listed=view.listed,
        runs=is_running(row),
    )
    result = SessionDrill(row, checks)
    for check in CHECKS:
        if not result.is_ok(*check.needs):
            continue
        try:
            check.run(checks)
        except MamError as error:
            result.add_error(check.name, WOULD_NOT, error)
        else:
            result.add(check.name)
    if not result.is_ok("row"):
        return result
    _check_store(result)
    _check_choice(result)
    _check_history(result)
    if result.is_ok("command", "program"):
        _check_version(context, result, versions)
    return result


def _check_store(result: SessionDrill) -> None:
    """Find out whether the folders are there in which the program keeps its conversations."""
    checks, row = result.checks, result.checks.row
    usual = checks.kind.stores(checks.context.environ)
    gone = [
        f"{name}={value}"
        for name, value in (row.get("stores") or {}).items()
        if name in usual and os.path.isabs(value) and not os.path.isdir(value)
    ]
    if gone and own_id(row):
        result.add(
            "store",
            WOULD_NOT,
            code="store_gone",
            message=f"the store of its conversations is gone: {', '.join(gone)}",
            hint="put the folder back, from a backup if need be",
        )
    else:
        result.add("store")


def _check_choice(result: SessionDrill) -> None:
    """Tell whether the conversation that a resume would take is the session's own, and has begun."""
    kind, choice, name = result.checks.kind, result.checks.choice, result.row["name"]
    if not kind.can_resume:
        if not kind.runs_command_of_job:
            result.add(
                "choice",
                WOULD_NOT,
                code="no_resume",
                message=f"mam cannot resume a conversation of {result.row['agent']}",
                hint=("after its end, " if is_running(result.row) else "")
                + f"mam resume {name} starts the program again, with nothing of what was said",
            )
        return
    if not result.is_ok("conversation"):
        return
    if choice.tier in _TIERS:
        result.add(
            "choice",
            WARNING,
            code="other_conversation",
            message=f"no conversation of its own is recorded; a resume would take {choice.id}, "
            f"{_TIERS[choice.tier]} (tier {choice.tier})",
            hint=f"look whether it is the right one: mam status {name}",
        )
    elif not choice.on_disk and not fork_origin(result.checks.context, result.checks.row, choice):
        result.add(
            "choice",
            WARNING,
            code="no_history",
            message="its conversation has not begun"
            if choice.on_disk is False
            else f"mam cannot tell whether its conversation {choice.id} is on disk",
            hint=f"a resume starts it with the same id, {choice.id}, and no history",
        )
    else:
        result.add("choice")
    try:
        conversations.refuse_if_shared(result.checks.row, result.checks.rows)
    except MamError as error:
        result.add_error("sharing", WARNING, error)


def _check_history(result: SessionDrill) -> None:
    """Find out whether the record of the conversation can be read, and holds any message."""
    conversation, kind = _recorded_conversation(result), result.checks.kind
    if conversation is None or type(kind).read_transcript is Kind.read_transcript:
        return
    texts = last_messages(result.checks.context, result.checks.row, conversation)
    if texts:
        result.add("history")
        return
    stores = conversations.stores_of(result.checks.context, result.checks.row)
    is_empty = texts is not None and kind.transcript_size(conversation, stores) == 0
    way = conversations.way_to_begin_anew(result.row, runs=is_running(result.row))
    if texts is None or is_empty:
        result.add(
            "history",
            WOULD_NOT,
            code="empty" if is_empty else "unreadable",
            message=f"the record of its conversation {conversation} "
            + ("is empty" if is_empty else "cannot be read"),
            hint=f"put the file back from a backup; {way}",
        )
    else:
        result.add(
            "history",
            WARNING,
            code="no_message",
            message=f"mam finds no message in the part that it reads of its conversation {conversation}",
            hint=f"look at it: mam read {result.row['name']} --parsed",
        )


def _recorded_conversation(result: SessionDrill) -> str | None:
    """Return the conversation whose record a resume would read; None if there is none."""
    choice = result.checks.choice
    if not result.is_ok("conversation") or choice.id is None:
        return None
    return choice.id if choice.on_disk else fork_origin(result.checks.context, result.checks.row, choice)


def last_messages(context: Context, row: Row, conversation: str) -> list[str] | None:
    """Return the last messages of a conversation of a session; None if its record cannot be read."""
    stores = conversations.stores_of(context, row)
    transcript = context.kind(row["agent"]).read_transcript(conversation, row["workspace"], stores, _TURNS)
    return None if transcript is None else [turn.text for turn in transcript.turns]


def _check_version(context: Context, result: SessionDrill, versions: dict[str, str | None]) -> None:
    """Warn of a version of the program that mam was not tested with. The version is read once."""
    kind, program = result.checks.kind, result.checks.program
    if not kind.known_versions:
        return
    if program not in versions:
        versions[program] = VersionReading(kind, program, result.checks.environ).finish()
    version = versions[program]
    if is_tested(context, kind, version):
        result.add("version")
        return
    tested = ", ".join(kind.known_versions)
    result.add(
        "version",
        WARNING,
        code="untested_version",
        message=f"mam was not tested with {kind.name} {version or 'of this version'}, but with {tested}",
        hint="mam drill --run shows whether it resumes all the same"
        if kind.can_fork
        else "mam doctor says how to accept it",
    )
