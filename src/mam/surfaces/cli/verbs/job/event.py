"""mam job event: report an event of a job, or record one that was signed elsewhere."""

from __future__ import annotations

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

_DATA = """--data '{"tests": 12}'"""
EVENTS = ("started", "permission_required", "progress", "completed", "error")


def add_options(parser: Parser) -> None:
    """Add the options: the job and the event."""
    from mam.surfaces.cli.parser import count, span

    add_job(parser)
    add = parser.add_argument
    add("--event", choices=EVENTS, help="name of the event")
    add("--detail", metavar="TEXT", default="", help="one line of at most 500 characters")
    add("--data", metavar="JSON", help="more data, as a JSON object")
    add("--attempt", metavar="N", type=count, help="the attempt of the event (default: the current one)")
    add(
        "--timeout",
        metavar="TIME",
        type=span,
        help="how long to wait for a broker (5s); mam records the event first",
    )
    add("--signed", metavar="FILE", help="record an event that was signed elsewhere; - reads it from stdin")


def parse_fast(arguments: list[str]) -> Options | None:
    """Return the options of a simple line, parsed without argparse; None for any other line."""
    from mam.surfaces.cli import fast_parse

    unset: Document = {
        **dict.fromkeys(("id", "job", "records_folder", "event", "data", "attempt", "timeout", "signed")),
        "detail": "",
        "subcommand": "event",
        "rest": [],
    }
    return fast_parse.read({}, unset, arguments, _PLAIN)


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
    """Report the event."""
    options = call.options
    if options.signed is not None:
        return _record_signed(call)
    if options.event is None:
        raise Usage("name the event", hint=f"--event {'|'.join(EVENTS)}")
    document = call.fleet.jobs.event(
        job_id(call),
        options.event,
        detail=options.detail,
        data=_data(options.data),
        attempt=options.attempt,
        publish=options.timeout,
    )
    state = "recorded and published" if document["published"] else "recorded"
    line = f"{document['job_id']}: {options.event} {state}, the job is {document['status']}"
    return call.say(document, line)


def _record_signed(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.text_input import read_bytes

    payload = read_bytes(call.options.signed, 1024 * 1024)
    document = call.fleet.jobs.take_in(payload, job=job_id(call))
    reason = f": {clean(document['reason'], 500)}" if document["reason"] else ""
    call.say(document, f"{document['verdict']}{reason}")
    return 1 if document["verdict"] == "refused" else 0


def _data(text: str | None) -> Document:
    import json

    if text is None:
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Usage("--data is not JSON", hint=_DATA) from None
    if not isinstance(data, dict):
        raise Usage("--data is not a JSON object", hint=_DATA)
    return data
