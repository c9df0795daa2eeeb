"""mam init: make this directory a root, or make a root usable that mam refuses to change."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

DESCRIPTION = """\
Make this directory a root: it holds the registry for itself and all directories below.
Without `mam init`, the first command that records something makes its directory a root.

mam changes no root that your mam did not make, a copy, one that another machine changes, and
one whose state is gone. The options below are the ways out. They are for people only.
Nothing is lost: --trust and --copy keep the former state, and say where. Messages that were
held and jobs that were open are parked until you release them.

Where the state of a root is gone, `mam restore` brings it back from a copy; --new is for the rest."""
EXAMPLES = """
  mam init
  mam init --workspace ~/projects/shop
  mam init --trust                     take in what came with a repository or another home
  mam init --trust --keep              the same, and go on with its messages and jobs
  mam init --copy                      this directory is a copy: make it a root of its own
  mam init --take-over                 another machine or container has left this root
  mam init --new                       its .mam is gone, and no copy is left: begin anew"""
_WAYS = ("trust", "copy", "take_over", "new")


def add_options(parser: Parser) -> None:
    """Add the ways out of a root that mam refuses to change."""
    parser.add_argument("--trust", action="store_true", help="take in a root that your mam did not make")
    parser.add_argument(
        "--keep", action="store_true", help="with --trust: release its messages and jobs at once"
    )
    parser.add_argument(
        "--copy",
        action="store_true",
        help="make a copy a root of its own; conversations stay with the original",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="change the root from here; the other place was silent 10 min",
    )
    parser.add_argument("--new", action="store_true", help="begin anew where the recorded state is gone")


def run(call: Invocation) -> int:
    """Make the root if there is none, or take the way out; print what was done."""
    from mam.core.safe_text import one_line

    options = call.options
    ways = [way for way in _WAYS if getattr(options, way)]
    if len(ways) > 1:
        named = " and ".join(f"--{way.replace('_', '-')}" for way in ways)
        raise Usage(
            f"{named} exclude each other", hint="give the one that the error of the other command names"
        )
    if options.keep and ways != ["trust"]:
        raise Usage("--keep goes with --trust", hint="mam init --trust --keep")
    if ways:
        return _take_way(call, ways[0])
    existing_file = call.fleet.registry_file if call.fleet.exists else None
    file = call.fleet.init()
    state = "is a root already" if file == existing_file else "is now a root"
    return call.say({"registry": file}, f"this directory {state}; its registry is {one_line(file)}")


def _take_way(call: Invocation, way: str) -> int:
    fleet = call.fleet
    if way == "trust":
        document = fleet.init_trust(keep=call.options.keep)
    else:
        document = {"copy": fleet.init_copy, "take_over": fleet.init_take_over, "new": fleet.init_new}[way]()
    if not document["changed"]:
        return call.say(document, "this root is known: nothing to do")
    lines = {"take_over": _taken_over, "new": _begun_anew}.get(way, _rebuilt)
    return call.say(document, *lines(document))


def _taken_over(document: Document) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean

    return [f"this root is changed from here now, and not from {clean(document['former']['host'])} any more"]


def _begun_anew(document: Document) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean

    lines = [f"this directory is a root again; its registry is {clean(document['registry'], 4096)}"]
    for pane in document["panes"]:
        name = clean(pane["tmux_session"])
        lines.append(f"pane {clean(pane['pane'])} still runs an agent: mam adopt {name} --agent KIND")
    return lines


def _rebuilt(document: Document) -> list[str]:
    """Return what was taken, parked, dropped and left out."""
    from mam.surfaces.cli.render_rebuild import brought, left_behind, listed
    from mam.surfaces.cli.render_sessions import clean

    original = document["original"]
    lines = [
        f"this copy is a root of its own now; the conversations stay with {clean(original, 4096)}"
        if original
        else "this root is yours now",
        f"taken in: {brought(document['taken'])}",
        f"the former state is kept in {clean(document['kept'], 4096)}",
    ]
    parked, released = document["parked"], document.get("released")
    if released is None:
        for noun, way in (("messages", "mam inbox --release"), ("jobs", "mam job release")):
            if parked[noun]:
                lines.append(f"parked {noun}: {listed(parked[noun])}; {way} ID…, or all")
    else:
        for noun, key in (("jobs", "job_id"), ("messages", "message_id")):
            done = [outcome[key] for outcome in released[noun] if outcome["released"]]
            lines += [f"released {noun}: {listed(done)}"] if done else []
            lines += [
                f"still parked: {clean(outcome[key])}: {clean(outcome['reason'], 300)}"
                for outcome in released[noun]
                if not outcome["released"]
            ]
    return [*lines, *left_behind(document)]
