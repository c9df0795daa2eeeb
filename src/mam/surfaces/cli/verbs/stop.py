"""mam stop: end sessions, and prove that no process of them is left."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
End sessions and prove that no process of them is left. mam asks the agent to exit first, if its
input box is empty. It closes the pane of an agent that works or asks at once
(termination_mode pane-closed); `mam wait NAME --for idle` before lets a turn end. The
conversation remains and can be resumed, unless --purge-conversation deletes it."""
EXAMPLES = """
  mam stop demo-app-creator-claude
  mam stop api web --reason "end of the day"
  mam stop --all
  mam stop api --purge-conversation --yes"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions, the reason, and how to stop them."""
    from mam.surfaces.cli.parser import add_names, add_run_recorded

    add_names(parser)
    add = parser.add_argument
    add("--all", action="store_true", help="every running session of this root, four at a time")
    add("--reason", metavar="TEXT", help="reason, for the log")
    add("--force", action="store_true", help="kill at once instead of asking the agent to exit")
    add("--purge-conversation", action="store_true", help="also delete the agent's files of the conversation")
    add_run_recorded(parser)
    add("--yes", action="store_true", help="do not ask for confirmation")
    add(
        "--force-no-yaml", action="store_true", help="stop a tmux session of this name that is not registered"
    )
    add("--tmux-server", metavar="SERVER", help="the tmux server for --force-no-yaml")


def run(call: Invocation) -> int:
    """Stop each session, and print the results."""
    from mam.surfaces.cli import each_session

    options = call.options
    names = _names(call)
    if options.purge_conversation and not options.yes and names:
        _confirm(call, names)

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        from mam.core.errors import SessionNotFound

        try:
            outcome = fleet.sessions.stop(
                name,
                reason=options.reason,
                force=options.force,
                purge_conversation=options.purge_conversation,
                run_recorded=options.run_recorded,
            )
        except SessionNotFound as error:
            if not options.force_no_yaml:
                error.hint = _hint(fleet, name, options.tmux_server) or error.hint
                raise
            document = fleet.sessions.stop_unregistered(
                name, tmux_server=options.tmux_server, reason=options.reason
            )
            return document, f"stopped: {name} (it was not registered)"
        return each_session.answer(outcome, "stopped" if not options.purge_conversation else "purged")

    return each_session.run(
        call, names, work, several=options.all or len(names) > 1, nothing="no session is running"
    )


def _hint(fleet: Fleet, name: str, tmux_server: str | None) -> str | None:
    """Return how to stop a tmux session of this name that has no row; None if there is no such session."""
    from shlex import quote

    from mam.core.errors import InvalidSettings

    try:
        found = fleet.sessions.find_unregistered(name, tmux_server=tmux_server)
    except InvalidSettings:
        # The error of the caller is another one: there is no such session.
        return None
    if not found:
        return None
    if found[0]["agent_of"] is not None:
        return _way_to_agent(fleet, found[0]["agent_of"])
    server = "" if found[0]["is_default"] else f" --tmux-server {quote(found[0]['tmux_server'])}"
    command = f"mam stop {quote(name)} --force-no-yaml{server}"
    return f"a tmux session of that name exists without a row: {command} ends it"


def _way_to_agent(fleet: Fleet, root: str) -> str:
    """Return the way to a live agent that mam started, and that this root has no record of."""
    from shlex import quote

    if root == fleet.root:
        return "its agent runs, and the record of it is lost: mam doctor says how to take it back"
    return f"it is a session of another root: cd {quote(root)}"


def _names(call: Invocation) -> list[str]:
    from mam.core.errors import Usage
    from mam.core.session_row import Status
    from mam.surfaces.cli import targets

    names = targets.sessions(call)
    if bool(names) == call.options.all:
        raise Usage("name sessions, or give --all", hint="mam ls shows the running sessions")
    if call.options.all:
        names = call.fleet.sessions.names(status=[Status.RUNNING])
    return names


def _confirm(call: Invocation, names: list[str]) -> None:
    """Ask for confirmation before the first session is stopped."""
    from mam.core.errors import NeedsConfirmation, Refused

    sessions = ", ".join(call.fleet.sessions.get(name).name for name in names)
    if not call.may_ask():
        raise NeedsConfirmation(
            f"deleting the conversation of {sessions} cannot be undone; mam has not stopped anything",
            hint="repeat with --yes",
        )
    if not call.ask(f"Delete the conversation of {sessions} for good?"):
        raise Refused("not confirmed; mam has not stopped anything")
