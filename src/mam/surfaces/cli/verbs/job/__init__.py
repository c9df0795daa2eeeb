"""mam job: delegated work with events and exactly one end. One file per subcommand."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verb_table import load_subcommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.fast_parse import Options
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Delegate work to an agent, follow its events, and see how it ended.

mam records every event in .mam/state.db before it does anything else. A command that an agent
runs without a job id uses the agent's own job. Exit codes of wait: 0 completed, 1 error or
cancelled, 2 timeout, 4 parked."""
EXAMPLES = """
  mam job submit --agent codex --prompt "make the tests pass" --validate check.sh --expect report.md
  mam job submit --type loop --reviewer codex --prompt-file task.md --max-rounds 2
  mam job submit --exec --prompt "say hello" -- claude -p
  mam job submit --exec --prompt-file task.md -- aider --yes --message-file {prompt_file}
  mam job event --event progress --detail "3 of 5 done"
  mam job status 1f00ab42
  mam job list --open
  mam job wait 1f00ab42 5d2c0e91 --timeout 30m
  mam job wait 1f00ab42 --broker mqtts://me@broker.example --token-file 1f00ab42.token
  mam job logs 1f00ab42
  mam job logs 1f00ab42 --output
  mam job verify 1f00ab42 --validate check.sh
  mam job cancel 1f00ab42 --reason "no longer needed" --stop
  mam job release 1f00ab42 5d2c0e91
  mam job forget 1f00ab42"""
TAKES_REST = True
SUBCOMMANDS = {
    "submit": "give work to an agent, and follow it to its end",
    "event": "report an event of a job",
    "status": "show one job",
    "list": "list the jobs",
    "wait": "wait until jobs have ended, and print each event",
    "logs": "print the log of a job",
    "verify": "run a script on a job, and exit with its exit code",
    "cancel": "end a job at once",
    "release": "open parked jobs again",
    "forget": "remove jobs that have ended, with their files",
}


def add_options(parser: Parser) -> None:
    """Add the subcommands."""
    from mam.surfaces.cli.parser import add_subcommands

    subcommands = {
        name: (summary, load_subcommand("job", name).add_options) for name, summary in SUBCOMMANDS.items()
    }
    add_subcommands(parser, subcommands, EXAMPLES)


def parse_fast(before: list[str], after: list[str]) -> Options | None:
    """Return the options of a simple `mam job event`, which agents run often; None for any other line."""
    if after[:1] != ["event"]:
        return None
    from mam.surfaces.cli.verbs.job import event

    return event.parse_fast([*before, *after[1:]])


def run(call: Invocation) -> int:
    """Run the subcommand."""
    if call.options.rest and call.options.subcommand != "submit":
        raise Usage("only mam job submit takes arguments after --", hint="leave out -- and what follows it")
    return int(load_subcommand("job", call.options.subcommand).run(call))
