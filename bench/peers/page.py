"""docs/benchmarks.md as text, from the results of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bench.peers.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

WORKS = {
    "list 10": "list, 10 sessions",
    "list 100": "list, 100 sessions",
    "create": "create, until the agent's program runs",
    "create returned": "create, until the command returns",
    "send": "send, until the agent has the text",
    "send returned": "send, until the command returns",
    "stop": "stop, until the agent's process is gone",
    "stop returned": "stop, until the command returns",
}
_LOSES = "**"
_INTRO = """\
# Benchmarks: mam beside its peers

`./dev bench --peers` writes this page. It installs each program into an environment of its own, has all of
them do the same work with the same fake agent, in rounds in which they take turns, and removes everything.
The numbers are from one run on one machine, so compare them with each other and not with other pages.

![A chart: the median time of each work, for each program](benchmarks.svg)
"""
_METHOD = """\
## What was done

- The agent is a fake: a script that every program starts as `claude`. It shows the input box of Claude Code,
  runs the hooks of its settings, and writes down each text that it receives, with the time. It has no
  model, and its turns last a second. Numbers with a real agent are larger, by the same amount for all.
- Each work is a command as a user types it, from its start as a process.
- **create** ends when the fake runs, **send** when the fake has the text, **stop** when its process is gone.
  *Until the command returns* also includes what a program waits for: mam's `create` waits until the agent
  takes input, its `send` until the agent proves that it has the text, its `stop` until nothing of the agent
  is left.
- Not all do the same for their time. libtmux and tmux-cli know panes and no agents; hcom keeps messages and
  waits until an agent can take them; CAO, overcode and mam also read what an agent is doing.
- Every program has a home and a tmux server of its own. During the measurement no program reaches a network.
"""


def render(results: dict[str, Any]) -> str:
    """Return the page."""
    programs = results["programs"]
    parts = [
        _INTRO,
        _times(programs, results),
        _arrivals(programs),
        _children(programs),
        _kills(programs),
        _METHOD,
        _commands(),
        _notes(programs),
        _versions(results),
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts if part)


def _times(programs: Sequence[dict[str, Any]], results: dict[str, Any]) -> str:
    rows = []
    for work, title in WORKS.items():
        cells = [time_cell(one, programs[0], work) for one in programs]
        rows.append([title, *cells, place_of_mam(programs, work)])
    fewer = max(1, results["rounds"] - 2)
    words, bold = machine_words(results["machine"]), f"{_LOSES}Bold{_LOSES}"
    return f"""\
## Times

Medians of {results["rounds"]} rounds ({fewer} with 100 sessions) in milliseconds, and how many times as long
as mam that is. {bold}: faster than mam.

{table(["work", *(one["name"] for one in programs), "mam is"], rows, right=len(programs))}

The machine: {words}."""


def machine_words(machine: dict[str, Any]) -> str:
    """Return the machine in words."""
    return (
        f"{machine['cores']} cores, {machine['memory GB']} GB of memory, {machine['system']}, "
        f"Python {machine['python']}, tmux {machine['tmux']}"
    )


def time_cell(program: dict[str, Any], mam: dict[str, Any], work: str) -> str:
    """Return a median with its ratio to mam; without one, that there is none."""
    measured = program["works"].get(work)
    if not measured:
        return "n/a"
    own = (mam["works"].get(work) or {}).get("median")
    number = milliseconds(measured["median"])
    if program is mam or not own:
        return number
    text = f"{number} ({ratio(measured['median'] / own)})"
    return f"{_LOSES}{text}{_LOSES}" if measured["median"] < own else text


def milliseconds(value: float) -> str:
    """Return a time in three digits, or more where it takes seconds."""
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def ratio(value: float) -> str:
    """Return a ratio with about two digits."""
    return f"{value:.0f} x" if value >= 10 else f"{value:.1f} x" if value >= 1 else f"{value:.2f} x"


def place_of_mam(programs: Sequence[dict[str, Any]], work: str) -> str:
    """Return the place of mam among those that did a work."""
    medians = [one["works"][work]["median"] for one in programs if work in one["works"]]
    if work not in programs[0]["works"]:
        return "n/a"
    own = programs[0]["works"][work]["median"]
    place = 1 + sum(one < own for one in medians)
    return "fastest" if place == 1 else f"{ordinal(place)} of {len(medians)}"


def ordinal(number: int) -> str:
    """Return 2nd for 2."""
    return f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') }".replace(" ", "")


def _arrivals(programs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for one in programs:
        facts = one["facts"].get("texts")
        if facts is None:
            rows.append([one["name"], "n/a", why(one, "texts")])
            continue
        rows.append([one["name"], f"{facts['exact']} of {facts['of']}", others(facts["other"])])
    return f"""\
## Do hard texts arrive?

Texts of several lines, with quotes, `$`, a leading `/` or `!`, a `;` at the end, emoji, 10 KB, and others
(`bench/peers/texts.py`), each sent once. They count if the agent received every byte as it was sent. mam puts
a space before a leading `!`, and it puts a text that begins like a command into a file that the prompt names;
the receipt says so. Claude Code would run such a text as a command. The fake does not, so they do not count.

{table(["program", "byte for byte", "the others"], rows)}"""


def others(texts: dict[str, str]) -> str:
    """Return what was seen of the texts that did not arrive as they were sent, each sight once."""
    names_of: dict[str, list[str]] = {}
    for name, seen in texts.items():
        names_of.setdefault(cell(seen), []).append(name)
    return "; ".join(f"{', '.join(names)}: {seen}" for seen, names in names_of.items()) or "-"


def why(program: dict[str, Any], work: str) -> str:
    """Return why a program has no result."""
    return cell(program["failures"].get(work) or program["failures"].get("install") or "not measured")


def _children(programs: Sequence[dict[str, Any]]) -> str:
    rows = []
    for one in programs:
        facts = one["facts"].get("children")
        if facts is None:
            rows.append([one["name"], "n/a", "n/a", why(one, "children")])
            continue
        states = ["still runs" if facts[name] else "gone" for name in ("same group", "own session")]
        rows.append([one["name"], *states, f"{facts['seconds']:.1f} s"])
    return f"""\
## Does a stop end the agent's children?

The fake started two programs and did not end them: one in its own process group, one in a session of its own,
as a command in the background is.

{table(["program", "child in the group", "child in a session of its own", "stop, with them"], rows)}"""


def _kills(programs: Sequence[dict[str, Any]]) -> str:
    kinds = {kind.name: kind for kind in PROGRAMS}
    managers, sends = [], []
    for one in programs:
        kind, facts = kinds[one["name"]], one["facts"].get("kill manager")
        if kind.manager == "none":
            managers.append([one["name"], "none: no process of it stays", "-", "-", "-", "-"])
        elif facts is None:
            managers.append([one["name"], kind.manager, *["n/a"] * 3, why(one, "kill manager")])
        else:
            remedy = (
                kind.remedy if facts.get("recovered") == "yes" else f"{kind.remedy}: {facts['recovered']}"
            )
            listed = facts["listed"]
            managers.append(
                [
                    one["name"],
                    kind.manager,
                    f"{facts['sessions'] - facts['ended']} of {facts['sessions']}",
                    cell(remedy),
                    f"{listed} of {facts['sessions']}" if isinstance(listed, int) else cell(listed),
                    cell(facts["send"]),
                ]
            )
        facts = one["facts"].get("kill send")
        sends.append(
            [one["name"], facts["first"], facts["second"], cell(one["failures"].get("kill send", "-"))]
            if facts
            else [one["name"], "n/a", "n/a", why(one, "kill send")]
        )
    titles = [
        "program",
        "killed",
        "agents that live",
        "what the user does",
        "sessions listed",
        "a text arrives",
    ]
    return f"""\
## What survives when the manager is killed?

SIGKILL to the process that manages the sessions, while they rest. Then the user does what the documentation
says, lists the sessions, and sends a text to one.

{table(titles, managers)}

SIGKILL to a send that is half way. Then another text is sent to the same session.

{table(["program", "the text that was under way", "the next text", "seen"], sends)}"""


def _commands() -> str:
    rows = [
        [kind.name, *(f"`{kind.commands[work]}`" for work in ("create", "list", "send", "stop"))]
        for kind in PROGRAMS
    ]
    return "## The commands\n\n" + table(["program", "create", "list", "send", "stop"], rows)


def _notes(programs: Sequence[dict[str, Any]]) -> str:
    lines = [f"- {kind.name}: {note}" for kind in PROGRAMS for note in kind.notes]
    for one in programs:
        for size in ("10", "100"):
            listed = one["facts"].get(f"listed {size}")
            if listed and listed[0] < listed[1]:
                lines.append(f"- {one['name']} showed {listed[0]} of {listed[1]} sessions in its list.")
        lines += [
            f"- {one['name']}, {work}: {cell(seen)}"
            for work, seen in one["failures"].items()
            if work not in ("texts", "children", "kill send", "kill manager")
        ]
    return "## Notes\n\n" + "\n".join(fold(line) for line in lines)


def fold(line: str, width: int = 110) -> str:
    """Return an item of a list in lines that are short enough."""
    lines = [""]
    for word in line.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _versions(results: dict[str, Any]) -> str:
    rows = [[one["name"], one["version"]] for one in results["programs"]]
    return "## The versions\n\n" + table(["program", "distribution and version"], rows)


def cell(text: str) -> str:
    """Return a text that does not break a table; the id of a session says nothing to a reader."""
    return re.sub(r"\b(?:[0-9a-f]{8})\b", "ID", text).replace("|", "\\|").replace("\n", " ").strip()


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Return a table; the columns of numbers are on the right."""
    rules = ["---", *(["---:"] * right), *(["---"] * (len(titles) - 1 - right))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(titles), rules, *map(list, rows)])
