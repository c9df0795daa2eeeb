"""mam demo: a guided tour with practice agents, in a temporary folder and on a separate tmux server."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.surfaces.cli.demo_tour import Tour, TourEnvironment
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Take a guided tour with three practice agents, in a temporary folder and on a separate tmux server.
mam shows every command and runs it. It does not touch your sessions and files, and removes
everything at the end. Ctrl-C quits at any time."""
EXAMPLES = """
  mam demo
  mam demo --fast
  mam demo --keep       keep the agents to play with them"""
_PACE = 0.22


def add_options(parser: Parser) -> None:
    """Add the options for the pace and for keeping the agents."""
    parser.add_argument("--keep", action="store_true", help="keep the agents running, and print how to go on")
    parser.add_argument("--fast", action="store_true", help="do not pause for reading")


def run(call: Invocation) -> int:
    """Run the tour, and clean up after it in every case."""
    from mam.app.api.demo import server_name
    from mam.surfaces.cli.demo_tour import Failed, Tour, TourEnvironment
    from mam.surfaces.cli.style import is_terminal

    is_watched = is_terminal(sys.stdin) and is_terminal(sys.stdout) and not call.as_json
    pace = _PACE if is_watched and not call.options.fast else 0.0
    tour = Tour(call.paint(), pace=pace, record=call.as_json)
    keeps, code = False, 0
    with _signals(), TourEnvironment(server_name(os.getpid())) as environment:
        try:
            tour.say(
                f"Three practice agents, in {environment.workspace} and tmux server {environment.server}."
            )
            tour.run()
            if is_watched:
                _offer(tour, environment)
            keeps = call.options.keep
        except Failed as failed:
            code = failed.code
        finally:
            if not keeps:
                _clean(environment)
    return _print_end(call, tour, environment, keeps, code) or code


@contextmanager
def _signals() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that they clean up, too."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.signal(number, signal.default_int_handler) for number in ends]
    try:
        yield
    finally:
        for number, handler in zip(ends, handlers, strict=True):
            signal.signal(number, handler)


def _offer(tour: Tour, environment: TourEnvironment) -> None:
    """Offer to show the agents."""
    from mam.app.api.fleet_object import open_fleet

    tour.say("Enter shows the three agents side by side, and you can answer them; q quits.")
    if sys.stdin.readline().strip().lower() not in ("q", "quit"):
        with open_fleet() as fleet:
            fleet.demo.show(environment.server)


def _clean(environment: TourEnvironment) -> None:
    """End the server and delete the folder. A second Ctrl-C does not interrupt this."""
    from mam.app.api.fleet_object import open_fleet

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open_fleet(environment.workspace) as fleet:
        fleet.demo.end(environment.server)
    environment.remove()


def _print_end(call: Invocation, tour: Tour, environment: TourEnvironment, keeps: bool, code: int) -> int:
    document = {
        "steps": tour.steps,
        "server": environment.server,
        "workspace": environment.workspace,
        "kept": keeps,
    }
    if code:
        return call.say(
            document, "", "The folder is deleted. mam doctor shows what is missing on this machine"
        )
    if not keeps:
        return call.say(
            document,
            "",
            "The tmux server has ended and the folder is deleted. Now: mam create --agent claude",
        )
    return call.say(
        document,
        "",
        "The agents keep running. Go on with:",
        f"  cd {environment.workspace}",
        "  mam ls; mam attach dev",
        "When you are done:",
        f"  mam stop --all; cd; rm -r {environment.folder}",
    )
