"""Every verb is in the table, explains itself, and shows an example."""

import re
import shlex
from pathlib import Path

import pytest

from mam.core.rights import RIGHTS, Right
from mam.surfaces.cli import fast_parse, main, parser, verb_table
from mam.surfaces.cli.verbs import ls as ls_verb

FOLDER = Path(main.__file__).parent / "verbs"
EVERY = [*verb_table.VERBS, *verb_table.ALIASES]


@pytest.mark.parametrize("word", EVERY)
def test_every_help_has_an_example_that_can_be_parsed(run, word):
    said = run(word, "--help")
    assert said.code == 0
    assert not said.err
    assert max(map(len, said.out.splitlines())) <= 100
    for option in ("--json", "--workspace DIR", "--registry FILE"):
        assert option in said.out
    examples = said.out.partition("examples:\n")[2].splitlines()
    own = [line for line in examples if re.search(rf"\bmam {verb_table.ALIASES.get(word, word)}\b", line)]
    assert own
    for line in own:
        check_example(line)


WORDS = [
    (verb, word)
    for verb in verb_table.VERBS
    for action in parser.build(verb, verb_table.load(verb))._actions
    if isinstance(action.choices, dict)
    for word in action.choices
]


@pytest.mark.parametrize(("verb", "word"), WORDS)
def test_every_word_below_a_verb_has_an_example(run, verb, word):
    examples = run(verb, word, "--help").out.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  mam {verb} {word}") for line in examples)


def check_example(line: str) -> None:
    """The words of an example are words of its verb; what stands behind three spaces is a remark."""
    typed = re.split(r"(?<=\S)\s{3,}", line)[0]
    for sign in ("<(", ")", "&&", ">"):
        typed = typed.replace(sign, " | ")
    words = shlex.split(typed)
    words = [part for word in words for part in (word.split() if word.startswith("mam ") else [word])]
    words = [*words[words.index("mam") + 1 :], "|", "--"]
    words = words[: min(words.index("|"), words.index("--"))]
    parser.parse(parser.build(words[0], verb_table.load(words[0])), words[1:])


def test_the_overview_names_every_verb(run):
    said = run("--help")
    assert said.code == 0
    for word, (_, summary, group) in verb_table.VERBS.items():
        assert re.search(rf"^  {word} +{re.escape(summary)}", said.out, re.MULTILINE)
        assert f"\n{group}:\n" in said.out
    assert all(alias in said.out for alias in verb_table.ALIASES)


def test_the_verbs_of_this_part_are_there():
    wanted = (
        "init create resume restart stop ls status attach read explain wait archive forget adopt rename fork"
    )
    assert set(verb_table.VERBS) >= {*wanted.split(), "doctor", "demo", "log", "completion"}
    assert verb_table.ALIASES["delete"] == "stop"


def file_of(*words: str) -> Path:
    """Return the file of a verb, or of a word below it; a verb with words below it is a folder."""
    place = FOLDER.joinpath(*words)
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@pytest.mark.parametrize("word", verb_table.VERBS)
def test_a_verb_is_a_file_of_its_own(word):
    assert file_of(word).read_text(encoding="utf-8").startswith(f'"""mam {word}: ')
    assert verb_table.VERBS[word][0] == word


@pytest.mark.parametrize("verb", ["board", "job"])
def test_a_word_below_a_verb_is_a_file_of_its_own(verb):
    for word in verb_table.load(verb).WORDS:
        assert file_of(verb, word).read_text(encoding="utf-8").startswith(f'"""mam {verb} {word}: ')


def test_a_file_with_the_parts_of_a_verb_is_in_the_table():
    found = [path for path in FOLDER.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    with_run = {
        path.stem for path in found if "\ndef add_options(" in file_of(path.stem).read_text(encoding="utf-8")
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
    "words", [[], ["--json"], ["--names"], ["--all", "--waiting", "--json"], ["--watch"]]
)
def test_a_quick_line_means_what_the_parser_says(words):
    slow = vars(parser.parse(parser.build("ls", ls_verb), words))
    found = fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, words)
    assert {key: tuple(value) if isinstance(value, list) else value for key, value in slow.items()} == vars(
        found
    )


def test_another_line_goes_to_the_parser():
    assert fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, ["--agent", "claude"]) is None
    assert fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, ["--workspace=x"]) is None
    assert fast_parse.read(ls_verb.FLAGS, ls_verb.UNSET, ["-h"]) is None


def test_every_verb_and_every_word_has_a_right() -> None:
    has_words = {verb for verb, _ in WORDS}
    wanted = {verb for verb in verb_table.VERBS if verb not in has_words} | {
        f"{verb} {word}" for verb, word in WORDS
    }
    assert set(RIGHTS) == wanted
    assert verb_table.right_of("delete") is verb_table.right_of("stop") is Right.OPERATE
    assert verb_table.right_of("job", "event") is Right.REPORT
    assert verb_table.right_of("ls") is Right.WATCH
