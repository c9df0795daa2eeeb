"""Parses the command line without argparse, whose import alone would double the time of the start."""

from __future__ import annotations

from . import VERSION

HELP = f"""\
usage: python -m mam.practice [OPTIONS] [PROMPT]

An interactive practice agent: it looks and behaves like a coding agent, without a model.

  --session-id UUID        begin a conversation with this id
  --resume UUID            go on with a conversation
  --fork-session           with --resume: go on under a new id (--session-id chooses it)
  --settings FILE_OR_JSON  {{"hooks": {{"Stop": "shell command"}}}}
  --permissions MODE       default | ask | auto | skip (default = ask: tools ask first)
  --model NAME             the name shown in the header (practice-1)
  --name LABEL             a label in the edge of the input box
  --suggestion TEXT        what the empty input box shows, dim
  --trust-dialog           ask first whether the folder is trusted
  --slow-start SECONDS     take this long before the input box appears
  --ignore-sigterm         ignore SIGTERM and SIGHUP, and hang on /exit
  --speed WORDS            words per second (40); 0 answers at once
  --version, --help

example:
  python -m mam.practice --name demo --permissions ask "run the tests"

Version {VERSION}. Inside, /help lists the commands."""

_VALUES = (
    "session-id",
    "resume",
    "settings",
    "permissions",
    "model",
    "name",
    "suggestion",
    "slow-start",
    "speed",
)
_FLAGS = ("fork-session", "trust-dialog", "ignore-sigterm", "version", "help")
_MODES = ("default", "ask", "auto", "skip")


class Usage(Exception):
    """The command line cannot be understood."""


class Options:
    """The options of the command line."""

    def __init__(self) -> None:
        self.session_id = ""
        self.resume = ""
        self.settings = ""
        self.permissions = "ask"
        self.model = "practice-1"
        self.name = ""
        self.suggestion = ""
        self.slow_start = 0.0
        self.speed = 40.0
        self.fork_session = False
        self.trust_dialog = False
        self.ignore_sigterm = False
        self.version = False
        self.help = False
        self.prompt = ""

    def set(self, name: str, value: str) -> None:
        """Set one option to its value."""
        if name in ("slow-start", "speed"):
            setattr(self, name.replace("-", "_"), seconds(name, value))
        elif name == "permissions":
            if value not in _MODES:
                raise Usage(f"--permissions must be one of {', '.join(_MODES)}, not {value!r}")
            self.permissions = "ask" if value == "default" else value
        elif not value:
            raise Usage(f"--{name} needs a value")
        else:
            setattr(self, name.replace("-", "_"), value)


def parse(arguments: list[str]) -> Options:
    """Return the options of a command line; raises Usage."""
    options = Options()
    prompts: list[str] = []
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            prompts += remaining
            break
        if word == "-h":
            word = "--help"
        if not word.startswith("-") or word == "-":
            prompts.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        if name in _FLAGS and not equals:
            setattr(options, name.replace("-", "_"), True)
        elif name in _VALUES and (equals or remaining):
            options.set(name, value if equals else remaining.pop(0))
        elif name in _VALUES:
            raise Usage(f"--{name} needs a value")
        else:
            raise Usage(f"unknown option: {word}")
    if len(prompts) > 1:
        raise Usage("only one prompt is possible: put it in quotes")
    # Python decodes bytes of argv that are not UTF-8 to lone surrogates, which no file can hold.
    options.prompt = "".join(prompts).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    _check_ids(options)
    return options


def seconds(name: str, value: str) -> float:
    """Return a number that is not negative and not infinite; raises Usage."""
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise Usage(f"--{name} needs a number, 0 or more, not {value!r}")
    return number


def _check_ids(options: Options) -> None:
    if options.fork_session and not options.resume:
        raise Usage("--fork-session needs --resume")
    if options.session_id and options.resume and not options.fork_session:
        raise Usage("--session-id goes with --resume only if --fork-session is given")
