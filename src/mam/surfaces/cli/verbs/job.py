"""mam job: delegated work, with events and an end."""

from __future__ import annotations

import sys

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.surfaces.cli.call import Call
    from mam.surfaces.cli.fast_parse import Options
    from mam.surfaces.cli.parser import Parser

    Document = dict[str, Any]

DESCRIPTION = """\
Delegate work to an agent and follow it: what is reported, how it stands, and how it ended.

Every event is recorded in .mam/state.db before anything else happens. Inside an agent its own
job is meant where none is named. Exit codes of wait: 0 completed, 1 error or cancelled, 2 time
over."""
EXAMPLES = """
  mam job submit --agent codex --prompt "make the tests pass" --validate check.sh --expect report.md
  mam job submit --type loop --reviewer codex --prompt-file task.md --max-rounds 2
  mam job event --event progress --detail "3 of 5 done"
  mam job status 1f00ab42
  mam job list --open
  mam job wait 1f00ab42 5d2c0e91 --timeout 30m
  mam job wait 1f00ab42 --broker mqtts://me@broker.example --token-file 1f00ab42.token
  mam job logs 1f00ab42
  mam job verify 1f00ab42 --validate check.sh
  mam job cancel 1f00ab42 --reason "no longer needed" --stop"""
TAKES_REST = True
_EVENTS = ("started", "permission_required", "progress", "completed", "error")


def add_options(parser: Parser) -> None:
    """Which word, and its options."""
    from mam.surfaces.cli.parser import add_words

    add_words(
        parser,
        {
            "submit": ("give work to an agent and follow it to its end", _of_submit),
            "event": ("report an event of a job", _of_event),
            "status": ("show one job", _of_job),
            "list": ("list the jobs", _of_list),
            "wait": ("wait until jobs have ended, and print each event", _of_wait),
            "logs": ("print what happened to a job", _of_logs),
            "verify": ("run a script on a job, and exit as it does", _of_verify),
            "cancel": ("end a job at once", _of_cancel),
        },
        EXAMPLES,
    )


def quickly(before: list[str], after: list[str]) -> Options | None:
    """Return the options of a plain `event`: agents run it all day; None for any other line."""
    from mam.surfaces.cli import fast_parse

    if after[:1] != ["event"]:
        return None
    unset: Document = {
        **dict.fromkeys(("id", "job", "registry_dir", "event", "data", "attempt", "timeout", "signed")),
        "detail": "",
        "word": "event",
        "rest": [],
    }
    return fast_parse.read({}, unset, [*before, *after[1:]], _PLAIN)


def _plain(text: str) -> str:
    return text


def _event_name(text: str) -> str | None:
    return text if text in _EVENTS else None


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


def _of_folder(parser: Parser) -> None:
    parser.add_argument("--registry-dir", metavar="DIR", help="the folder of records (.mam/jobs)")


def _of_job(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="id of the job; inside an agent its own")
    parser.add_argument("--job", metavar="ID", help="the same, as an option")
    _of_folder(parser)


def _of_event(parser: Parser) -> None:
    from mam.surfaces.cli.parser import count, span

    _of_job(parser)
    add = parser.add_argument
    add("--event", choices=_EVENTS, help="what happened")
    add("--detail", metavar="TEXT", default="", help="in one line, at most 500 characters")
    add("--data", metavar="JSON", help="more, as a JSON object")
    add("--attempt", metavar="N", type=count, help="the attempt that it belongs to (the one under way)")
    add("--timeout", metavar="TIME", type=span, help="how long a broker may take (5s); it is recorded first")
    add("--signed", metavar="FILE", help="take in an event that was signed elsewhere; - reads it from stdin")


def _of_list(parser: Parser) -> None:
    parser.add_argument("--open", action="store_true", help="only those that have not ended")
    parser.add_argument("--ids", action="store_true", help="print ids only, one a line")
    _of_folder(parser)


def _of_wait(parser: Parser) -> None:
    from mam.surfaces.cli.parser import span

    parser.add_argument("names", nargs="*", metavar="ID", default=[], help="ids of jobs; else all open ones")
    parser.add_argument("--job", action="append", metavar="ID", default=[], help="the same, as an option")
    parser.add_argument("--timeout", metavar="TIME", type=span, help="wait so long at most: 90, 30m")
    parser.add_argument("--broker", metavar="URL", help="jobs of another machine, over mqtt:// or mqtts://")
    parser.add_argument(
        "--token-file", metavar="FILE", help="with --broker: the job's token (DIR/ID.token of --registry-dir)"
    )
    _of_folder(parser)


def _of_logs(parser: Parser) -> None:
    _of_job(parser)
    parser.add_argument("--list", action="store_true", help="list every audit folder instead")


def _of_submit(parser: Parser) -> None:
    from mam.surfaces.cli.verbs.job_submit import of_submit

    of_submit(parser)
    _of_folder(parser)


def _of_verify(parser: Parser) -> None:
    _of_job(parser)
    parser.add_argument("--validate", metavar="FILE", required=True, help="the script; it gets JOB_ID")


def _of_cancel(parser: Parser) -> None:
    _of_job(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why, in one line")
    parser.add_argument("--stop", action="store_true", help="stop its session, too")


def run(call: Call) -> int:
    """Do what the word says."""
    if call.options.rest and call.options.word != "submit":
        raise Usage("words after -- are for the agent of a new job")
    if call.options.registry_dir:
        _choose_folder(call)
    return _WORDS[call.options.word](call)


def _choose_folder(call: Call) -> None:
    """Take the folder of records as it is meant here and now; that of a root's own jobs names the root."""
    import os

    from mam.app.jobs.find import registry_of

    call.options.registry_dir = os.path.abspath(call.options.registry_dir)
    own = registry_of(call.options.registry_dir)
    if own is not None:
        call.options.registry, call.options.registry_dir = call.options.registry or own, None


def _event(call: Call) -> int:
    given = call.options
    if given.signed is not None:
        return _take_in(call)
    if given.event is None:
        raise Usage("say what happened", hint=f"--event {'|'.join(_EVENTS)}")
    done = call.fleet.job_event(
        _id(call),
        given.event,
        detail=given.detail,
        data=_data(given.data),
        attempt=given.attempt,
        folder=given.registry_dir,
        publish=given.timeout,
    )
    done_so = "recorded and published" if done["published"] else "recorded"
    return call.say(done, f"{done['job_id']}: {given.event} {done_so}, the job is {done['status']}")


def _take_in(call: Call) -> int:
    from mam.surfaces.cli.render_sessions import clean

    if call.options.signed == "-":
        payload = sys.stdin.buffer.read(1024 * 1024)
    else:
        try:
            with open(call.options.signed, "rb") as file:
                payload = file.read(1024 * 1024)
        except OSError as error:
            raise Usage(f"{call.options.signed} cannot be read: {error.strerror}") from None
    done = call.fleet.job_take_in(payload, job=_id(call))
    reason = f": {clean(done['reason'], 500)}" if done["reason"] else ""
    call.say(done, f"{done['verdict']}{reason}")
    return 1 if done["verdict"] == "refused" else 0


def _status(call: Call) -> int:
    from mam.surfaces.cli import render_jobs

    found = call.fleet.job_status(_id(call), folder=call.options.registry_dir)
    return call.say({"job": found}, *([] if call.as_json else render_jobs.whole(found, call.paint())))


def _list(call: Call) -> int:
    from mam.surfaces.cli import render_jobs

    found = call.fleet.jobs(folder=call.options.registry_dir, only_open=call.options.open)
    if call.options.ids:
        ids = [one["job_id"] for one in found]
        return call.say({"ids": ids}, *ids)
    return call.say({"jobs": found}, *([] if call.as_json else render_jobs.table(found, call.paint())))


def _wait(call: Call) -> int:
    from mam.surfaces.cli import render_jobs

    given = call.options
    named = [*given.names, *given.job]
    call.tell("waiting for events", after="the jobs go on; mam job list shows them")
    if given.broker is not None:
        return render_jobs.ended(call, _wait_remote(call, named))
    if given.token_file is not None:
        raise Usage("a token is for jobs of another machine", hint="name their --broker too")
    done = call.fleet.job_wait(
        named, lambda entry: render_jobs.tell(call, entry), timeout=given.timeout, folder=given.registry_dir
    )
    if not done and not call.as_json:
        return call.say({}, "no job is open")
    return render_jobs.ended(call, done)


def _wait_remote(call: Call, named: list[str]) -> list[Document]:
    from mam.surfaces.cli import render_jobs

    given = call.options
    if given.token_file is not None and len(named) != 1:
        raise Usage("a token file is of one job", hint="name one, or --registry-dir with ID.token of each")
    folder = given.registry_dir or call.fleet.world.place.jobs
    tokens = {one: given.token_file or f"{folder}/{one}.token" for one in named}
    return call.fleet.job_wait_remote(
        tokens, lambda event: render_jobs.tell(call, event), broker=given.broker, timeout=given.timeout
    )


def _logs(call: Call) -> int:
    from mam.surfaces.cli import render_jobs
    from mam.surfaces.cli.render_sessions import clean

    if call.options.list:
        audits = call.fleet.job_audits()
        lines = [
            f"{clean(one['job_id'])}  {clean(one['status'])}  {clean(one['directory'], 500)}"
            for one in audits
        ]
        return call.say({"logs": audits}, *(lines or ["no job has left a log"]))
    found = call.fleet.job_logs(_id(call), folder=call.options.registry_dir)
    lines = [] if call.as_json else [render_jobs.line(one, call.paint()) for one in found["events"]]
    return call.say(found, *lines, clean(found["directory"], 500))


def _submit(call: Call) -> int:
    from mam.surfaces.cli.verbs.job_submit import submit

    return submit(call)


def _verify(call: Call) -> int:
    import os

    from mam.core.safe_text import for_screen

    script = os.path.abspath(call.options.validate)
    done = call.fleet.job_verify(_id(call), script, folder=call.options.registry_dir)
    said = "PASS" if done["passed"] else f"FAIL (exit {done['exit_code']})"
    call.say(done, *for_screen(done["output"]).splitlines(), f"validation: {said}")
    return int(done["exit_code"])


def _cancel(call: Call) -> int:
    from mam.surfaces.cli import render_jobs

    given = call.options
    done = call.fleet.job_cancel(_id(call), reason=given.reason, stop=given.stop, folder=given.registry_dir)
    already = [] if done["changed"] else ["it had ended already"]
    return call.say(done, render_jobs.summary(done["job"], call.paint()), *already)


_WORDS: dict[str, Callable[[Call], int]] = {
    "submit": _submit,
    "verify": _verify,
    "cancel": _cancel,
    "event": _event,
    "status": _status,
    "list": _list,
    "wait": _wait,
    "logs": _logs,
}


def _id(call: Call) -> str | None:
    given: str | None = call.options.id
    option: str | None = call.options.job
    if given is not None and option is not None and given != option:
        raise Usage("two jobs are named", hint="give ID or --job ID")
    return option if given is None else given


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
