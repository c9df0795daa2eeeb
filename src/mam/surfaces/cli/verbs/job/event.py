"""mam job event: report an event of a job, or take in one that was signed elsewhere."""

from __future__ import annotations

import sys

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.job.target import add_job, job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.surfaces.cli.fast_parse import Options
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

EVENTS = ("started", "permission_required", "progress", "completed", "error")


def add_options(parser: Parser) -> None:
    """Which job, and what happened."""
    from mam.surfaces.cli.parser import count, span

    add_job(parser)
    add = parser.add_argument
    add("--event", choices=EVENTS, help="what happened")
    add("--detail", metavar="TEXT", default="", help="in one line, at most 500 characters")
    add("--data", metavar="JSON", help="more, as a JSON object")
    add("--attempt", metavar="N", type=count, help="the attempt that it belongs to (the one under way)")
    add("--timeout", metavar="TIME", type=span, help="how long a broker may take (5s); it is recorded first")
    add("--signed", metavar="FILE", help="take in an event that was signed elsewhere; - reads it from stdin")


def quickly(words: list[str]) -> Options | None:
    """Return the options of a plain line, read without argparse; None for any other line."""
    from mam.surfaces.cli import fast_parse

    unset: Document = {
        **dict.fromkeys(("id", "job", "registry_dir", "event", "data", "attempt", "timeout", "signed")),
        "detail": "",
        "word": "event",
        "rest": [],
    }
    return fast_parse.read({}, unset, words, _PLAIN)


def _plain(text: str) -> str:
    return text


def _event_name(text: str) -> str | None:
    return text if text in EVENTS else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) else None


_PLAIN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--job": ("job", _plain),
    "--detail": ("detail", _plain),
    "--workspace": ("workspace", _plain),
    "--registry": ("registry", _plain),
    "--event": ("event", _event_name),
    "--attempt": ("attempt", _number),
}


def run(call: Invocation) -> int:
    """Report it."""
    given = call.options
    if given.signed is not None:
        return _take_in(call)
    if given.event is None:
        raise Usage("say what happened", hint=f"--event {'|'.join(EVENTS)}")
    done = call.fleet.jobs.event(
        job_id(call),
        given.event,
        detail=given.detail,
        data=_data(given.data),
        attempt=given.attempt,
        folder=given.registry_dir,
        publish=given.timeout,
    )
    done_so = "recorded and published" if done["published"] else "recorded"
    return call.say(done, f"{done['job_id']}: {given.event} {done_so}, the job is {done['status']}")


def _take_in(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    if call.options.signed == "-":
        payload = sys.stdin.buffer.read(1024 * 1024)
    else:
        try:
            with open(call.options.signed, "rb") as file:
                payload = file.read(1024 * 1024)
        except OSError as error:
            raise Usage(f"{call.options.signed} cannot be read: {error.strerror}") from None
    done = call.fleet.jobs.take_in(payload, job=job_id(call))
    reason = f": {clean(done['reason'], 500)}" if done["reason"] else ""
    call.say(done, f"{done['verdict']}{reason}")
    return 1 if done["verdict"] == "refused" else 0


def _data(text: str | None) -> Document:
    import json

    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Usage("--data is not JSON") from None
    if not isinstance(found, dict):
        raise Usage("--data is not a JSON object", hint="""--data '{"tests": 12}'""")
    return found
