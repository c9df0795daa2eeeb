"""mam demo: a guided tour with practice agents, in a folder and a tmux server of its own."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.surfaces.cli.demo_tour import Place, Tour
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
A guided tour: three practice agents in a temporary folder and a tmux server of their own. Every
command is shown and really run. Nothing of yours is touched, and at the end nothing is left.
Ctrl-C leaves at any time."""
EXAMPLES = """
  mam demo
  mam demo --fast
  mam demo --keep       go on playing afterwards"""
_PACE = 0.22


def add_options(parser: Parser) -> None:
    """How fast, and what stays."""
    parser.add_argument("--keep", action="store_true", help="leave the agents running and say how to go on")
    parser.add_argument("--fast", action="store_true", help="do not stop to let things be read")


def run(call: Invocation) -> int:
    """Give the tour and clean up after it, whatever happens."""
    from mam.app.sessions.demo_server import server_name
    from mam.surfaces.cli.demo_tour import Failed, Place, Tour
    from mam.surfaces.cli.style import is_terminal

    is_watched = is_terminal(sys.stdin) and is_terminal(sys.stdout) and not call.as_json
    pace = _PACE if is_watched and not call.options.fast else 0.0
    tour = Tour(call.paint(), pace=pace, record=call.as_json)
    keeps, code = False, 0
    with _signals(), Place(server_name(os.getpid())) as place:
        try:
            tour.say(f"Three practice agents, in {place.workspace} and tmux server {place.server}.")
            tour.run()
            if is_watched:
                _offer(tour, place)
            keeps = call.options.keep
        except Failed as failed:
            code = failed.code
        finally:
            if not keeps:
                _clean(place)
    return _farewell(call, tour, place, keeps, code) or code


@contextmanager
def _signals() -> Iterator[None]:
    """Take every signal to end as Ctrl-C, so that the same way out is taken."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in ends]
    try:
        yield
    finally:
        for number, handler in zip(ends, before, strict=True):
            signal.signal(number, handler)


def _offer(tour: Tour, place: Place) -> None:
    """Let the person meet the agents."""
    from mam.app.api.fleet import open_fleet

    tour.say("Enter shows the three agents side by side, where you can answer them; q leaves.")
    if sys.stdin.readline().strip().lower() not in ("q", "quit"):
        with open_fleet() as fleet:
            fleet.demo.show(place.server)


def _clean(place: Place) -> None:
    """End the server and delete the folder. A second Ctrl-C does not stop this half way."""
    from mam.app.api.fleet import open_fleet

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open_fleet(place.workspace) as fleet:
        fleet.demo.end(place.server)
    place.remove()


def _farewell(call: Invocation, tour: Tour, place: Place, keeps: bool, code: int) -> int:
    document = {"steps": tour.steps, "server": place.server, "workspace": place.workspace, "kept": keeps}
    if code:
        return call.say(document, "", "The folder is deleted. mam doctor says what is missing here")
    if not keeps:
        return call.say(
            document, "", "The tmux server is gone and the folder is deleted. Now: mam create --agent claude"
        )
    return call.say(
        document,
        "",
        "The agents keep running. Go on with:",
        f"  cd {place.workspace}",
        "  mam ls; mam attach dev",
        "When you are done:",
        f"  mam stop --all; cd; rm -r {place.folder}",
    )
