"""Every verb is in the table, and its help has an example."""

import re
import shlex
from pathlib import Path

import pytest

from mam.core.verb_rights import RIGHTS, Right
from mam.surfaces.cli import fast_parse, main, parser, verb_table
from mam.surfaces.cli.verbs import ls as ls_verb

FOLDER = Path(main.__file__).parent / "verbs"
EVERY = [*verb_table.VERBS, *verb_table.ALIASES]


@pytest.mark.parametrize("verb", EVERY)
def test_every_help_has_an_example_that_can_be_parsed(run, verb):
    answer = run(verb, "--help")
    assert answer.code == 0
    assert not answer.err
    assert max(map(len, answer.out.splitlines())) <= 100
    for option in ("--json", "--workspace DIR", "--registry FILE"):
        assert option in answer.out
    examples = answer.out.partition("examples:\n")[2].splitlines()
    own = [line for line in examples if re.search(rf"\bmam {verb_table.ALIASES.get(verb, verb)}\b", line)]
    assert own
    for line in own:
        check_example(line)


@pytest.mark.parametrize("columns", ["9" * 5000, "²", "0", "-5", "x"])
def test_a_width_that_is_no_number_does_not_matter(run, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    answer = run("ls", "--help")
    assert (answer.code, answer.err) == (0, "")


SUBCOMMANDS = [
    (verb, subcommand)
    for verb in verb_table.VERBS
    for action in parser.build(verb, verb_table.load(verb))._actions
    if isinstance(action.choices, dict)
    for subcommand in action.choices
]


@pytest.mark.parametrize(("verb", "subcommand"), SUBCOMMANDS)
def test_every_subcommand_has_an_example(run, verb, subcommand):
    examples = run(verb, subcommand, "--help").out.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  mam {verb} {subcommand}") for line in examples)


def check_example(line: str) -> None:
    """Parse the arguments of an example; text behind three spaces is a comment."""
    typed = re.split(r"(?<=\S)\s{3,}", line)[0]
    for sign in ("<(", ")", "&&", ">"):
        typed = typed.replace(sign, " | ")
    arguments = shlex.split(typed)
    arguments = [part for word in arguments for part in (word.split() if word.startswith("mam ") else [word])]
    arguments = [*arguments[arguments.index("mam") + 1 :], "|", "--"]
    arguments = arguments[: min(arguments.index("|"), arguments.index("--"))]
    parser.parse(parser.build(arguments[0], verb_table.load(arguments[0])), arguments[1:])


def test_the_overview_names_every_verb(run):
    answer = run("--help")
    assert answer.code == 0
    for verb, (_, summary, group) in verb_table.VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(summary)}", answer.out, re.MULTILINE)
        assert f"\n{group}:\n" in answer.out
    assert all(alias in answer.out for alias in verb_table.ALIASES)


def test_the_verbs_of_this_part_are_there():
    expected = (
        "init create resume restart stop ls status attach read explain wait archive forget adopt rename fork"
    )
    assert set(verb_table.VERBS) >= {*expected.split(), "doctor", "demo", "log", "completion"}
    assert verb_table.ALIASES["delete"] == "stop"


def path_of(*names: str) -> Path:
    """Return the file of a verb or a subcommand; a verb with subcommands may be a folder."""
    place = FOLDER.joinpath(*names)
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@pytest.mark.parametrize("verb", verb_table.VERBS)
def test_a_verb_is_a_file_of_its_own(verb):
    assert path_of(verb).read_text(encoding="utf-8").startswith(f'"""mam {verb}: ')
    assert verb_table.VERBS[verb][0] == verb


@pytest.mark.parametrize("verb", ["board", "job"])
def test_a_subcommand_is_a_file_of_its_own(verb):
    for subcommand in verb_table.load(verb).SUBCOMMANDS:
        assert (
            path_of(verb, subcommand).read_text(encoding="utf-8").startswith(f'"""mam {verb} {subcommand}: ')
        )


def test_a_file_with_the_parts_of_a_verb_is_in_the_table():
    paths = [path for path in FOLDER.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    with_run = {
        path.stem for path in paths if "\ndef add_options(" in path_of(path.stem).read_text(encoding="utf-8")
    }
    assert with_run == set(verb_table.VERBS)


def test_all_verbs_fit_below_one_parser():
    root = parser.build_all()
    options = root.parse_args(["stop", "a", "--force"])
    assert options.names == ["a"]


def test_names_may_stand_anywhere():
    stop = parser.build("stop", verb_table.load("stop"))
    for line in ("a b --force", "a --force b", "--force a b", "a --force -- b", "--force -- a b"):
        assert parser.parse(stop, line.split()).names == ["a", "b"], line
    assert parser.parse(stop, ["--", "-x"]).names == ["-x"]


@pytest.mark.parametrize(
    "arguments", [[], ["--json"], ["--names"], ["--all", "--waiting", "--json"], ["--watch"]]
)
def test_the_fast_parser_returns_what_the_parser_returns(arguments):
    slow = vars(parser.parse(parser.build("ls", ls_verb), arguments))
    fast = fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, arguments)
    assert {key: tuple(value) if isinstance(value, list) else value for key, value in slow.items()} == vars(
        fast
    )


def test_other_lines_are_left_to_the_parser():
    assert fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, ["--agent", "claude"]) is None
    assert fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, ["--workspace=x"]) is None
    assert fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, ["-h"]) is None


def test_every_verb_and_every_subcommand_has_a_right() -> None:
    with_subcommands = {verb for verb, _ in SUBCOMMANDS}
    expected = {verb for verb in verb_table.VERBS if verb not in with_subcommands} | {
        f"{verb} {subcommand}" for verb, subcommand in SUBCOMMANDS
    }
    assert set(RIGHTS) == expected
    assert verb_table.right_of("delete") is verb_table.right_of("stop") is Right.OPERATE
    assert verb_table.right_of("job", "event") is Right.SIGNED
    assert verb_table.right_of("ls") is Right.WATCH
