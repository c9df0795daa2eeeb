"""mam job: delegated work, with events and an end. One file per word."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verb_table import load_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.fast_parse import Options
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

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
WORDS = {
    "submit": "give work to an agent and follow it to its end",
    "event": "report an event of a job",
    "status": "show one job",
    "list": "list the jobs",
    "wait": "wait until jobs have ended, and print each event",
    "logs": "print what happened to a job",
    "verify": "run a script on a job, and exit as it does",
    "cancel": "end a job at once",
}


def add_options(parser: Parser) -> None:
    """Which word, and its options."""
    from mam.surfaces.cli.parser import add_words

    words = {word: (summary, load_word("job", word).add_options) for word, summary in WORDS.items()}
    add_words(parser, words, EXAMPLES)


def quickly(before: list[str], after: list[str]) -> Options | None:
    """Return the options of a plain `event`: agents run it all day; None for any other line."""
    if after[:1] != ["event"]:
        return None
    from mam.surfaces.cli.verbs.job import event

    return event.quickly([*before, *after[1:]])


def run(call: Invocation) -> int:
    """Do what the word says."""
    if call.options.rest and call.options.word != "submit":
        raise Usage("words after -- are for the agent of a new job")
    if call.options.registry_dir:
        _choose_folder(call)
    return int(load_word("job", call.options.word).run(call))


def _choose_folder(call: Invocation) -> None:
    """Take the folder of records as it is meant here and now; that of a root's own jobs names the root."""
    import os

    from mam.app.jobs.find import registry_of

    call.options.registry_dir = os.path.abspath(call.options.registry_dir)
    own = registry_of(call.options.registry_dir)
    if own is not None:
        call.options.registry, call.options.registry_dir = call.options.registry or own, None
