"""The documents run: their Python is executed, and what they name exists."""

import ast
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mam
from mam.app import api
from mam.app.api.verb_group import VerbGroup
from mam.core.settings import USER_ONLY, Settings
from mam.surfaces.cli.verb_table import VERBS

ROOT = Path(__file__).parents[1]


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("code", blocks("docs/api.md", "python"), ids=lambda code: code.splitlines()[0])
def test_the_examples_of_the_api_run(home, tmux_server, workspace, monkeypatch, code) -> None:
    monkeypatch.chdir(workspace)
    exec(compile(code, "docs/api.md", "exec"), {})


def test_the_example_of_the_package_runs(home, tmux_server, workspace, monkeypatch) -> None:
    monkeypatch.chdir(workspace)
    _, example = (mam.__doc__ or "").split("\n\n", 1)
    exec(compile(example, "mam", "exec"), {})


def without_ids_and_times(text: str) -> str:
    """Return the output of the tour without what differs from run to run."""
    for varies, word in (
        (r"m_[0-9a-f]{8}", "m_ID"),
        (r"\b[0-9a-f]{8} t1", "ID t1"),
        (r"dialog \([0-9a-f]{8}\)", "dialog (FINGERPRINT)"),
        (r"\b\d+s\b", "0s"),
        (r"by its (hook|transcript)", "by its PROOF"),
        (r"^(submitted|queued): m_", "RECEIPT: m_"),
    ):
        text = re.sub(varies, word, text, flags=re.MULTILINE)
    return text


def test_the_tour_of_the_readme(home, tmux_server, tmp_path) -> None:
    """Each command of the first five minutes prints what the README shows."""
    tour = "".join(blocks("README.md", "console"))
    commands = [line.removeprefix("$ ") for line in tour.splitlines() if line.startswith("$ ")]
    script = "".join(f"echo {shlex.quote('$ ' + command)}\n{command} || exit\n" for command in commands)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash", "-c", script],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
    )
    assert without_ids_and_times(answer.stdout) == without_ids_and_times(tour)


def groups() -> dict[str, type]:
    """Return the class of every attribute of a Fleet that holds verbs."""
    for module in pkgutil.iter_modules(api.__path__, f"{api.__name__}."):
        import_module(module.name)
    classes = {group.__name__: group for group in VerbGroup.__subclasses__()}
    returned = {
        name: inspect.get_annotations(member.fget)["return"]
        for name, member in inspect.getmembers(mam.Fleet)
        if isinstance(member, property)
    }
    return {name: classes[word] for name, word in returned.items() if word in classes}


GROUPS = groups()
PUBLIC = {
    "Fleet": mam.Fleet,
    "Session": mam.Session,
    "Outcome": mam.Outcome,
    **{f"fleet.{name}": group for name, group in GROUPS.items()},
}
# Verbs whose options stand in a table of their own, by its column.
IN_TABLE = {"submit": 0, "preview": 0, "up": 1}


def section(title: str) -> str:
    """Return the text of docs/api.md below a heading."""
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def spans(title: str) -> list[str]:
    """Return what a section shows as code in its lists."""
    items = re.findall(r"^- .*\n(?:  .*\n)*", section(title), re.MULTILINE)
    return [" ".join(code.split()) for item in items for code in re.findall(r"`([^`]+)`", item)]


def documented(title: str) -> dict[str, list[str]]:
    """Return the methods of a section, each with its arguments as they are written."""
    calls = [re.fullmatch(r"(\w+)\((.*)\)", code) for code in spans(title)]
    return {call[1]: [word for word in call[2].split(", ") if word] for call in calls if call}


def options(column: int) -> set[str]:
    """Return the options that the table gives to a column of verbs."""
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|([^|]*)\|", section("Options"), re.MULTILINE)
    return {f"{name}=" for name, *given in rows if given[column].strip() == "yes"}


def written(one: inspect.Parameter) -> str:
    """Return how an argument is written in the document."""
    if one.kind is one.VAR_POSITIONAL:
        return f"*{one.name}"
    return f"{one.name}=" if one.kind is one.KEYWORD_ONLY or one.default is not one.empty else one.name


def option_sets() -> dict[str, list[str]]:
    """Return the fields of every TypedDict of the source, those of its bases first."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src/mam").rglob("*.py"))
    classes = {
        one.name: one
        for text in texts
        if "total=" in text  # the only keyword of a TypedDict; parsing takes much longer than searching
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.ClassDef) and one.keywords
    }

    def fields(name: str) -> list[str]:
        bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name) and base.id in classes]
        own = [
            line.target.id
            for line in classes[name].body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]
        return [field for base in bases for field in fields(base)] + own

    return {name: fields(name) for name in classes}


OPTION_SETS = option_sets()


def methods(owner: type) -> dict[str, list[inspect.Parameter]]:
    """Return the public methods, each with its arguments; a set of options is written out."""
    found = {}
    for name, one in inspect.getmembers(owner, inspect.isfunction):
        if not name.startswith("_"):
            arguments = list(inspect.signature(one).parameters.values())[1:]
            rest = [last for last in arguments if last.kind is last.VAR_KEYWORD]
            sets = [OPTION_SETS[str(last.annotation).removeprefix("Unpack[").rstrip("]")] for last in rest]
            found[name] = [one for one in arguments if one not in rest] + [
                inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY)
                for options in sets
                for option in options
            ]
    return found


def test_every_group_of_verbs_is_an_attribute_of_a_fleet() -> None:
    assert set(GROUPS.values()) == set(VerbGroup.__subclasses__())


@pytest.mark.parametrize("title", PUBLIC)
def test_every_public_name_is_documented(title) -> None:
    """In the section of its owner: a method as a call, anything else by its name."""
    owner = PUBLIC[title]
    known = methods(owner)
    others = [name for name in dir(owner) if not name.startswith("_") and name not in known]
    assert [name for name in known if name not in documented(title)] == []
    assert [name for name in others if name not in spans(title)] == []
    assert [name for name in documented(title) if name not in known] == []


@pytest.mark.parametrize("title", PUBLIC)
def test_every_argument_is_documented(title) -> None:
    for name, shown in documented(title).items():
        wanted = [written(one) for one in methods(PUBLIC[title])[name]]
        listed = options(IN_TABLE[name]) if name in IN_TABLE else set()
        assert ("…" in shown) == bool(listed), name
        assert listed <= set(wanted), name
        left, named = [one for one in wanted if one not in listed], [one for one in shown if one != "…"]
        # What has no name comes in its order; of the others each is there.
        assert [one for one in left if "=" not in one] == [one for one in named if "=" not in one], name
        assert sorted(left) == sorted(named), name


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_the_lines_of_a_page_are_short(page) -> None:
    """Only tables and code may be longer."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    sentences = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    long = [line for line in sentences.splitlines() if len(line) > 110 and not line.lstrip().startswith("|")]
    assert long == []


def test_every_command_is_in_the_table_of_commands() -> None:
    """The first column names verbs, or in a row such as `mam job submit` `list` the subcommands of one."""
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    table = page.partition("## All commands")[2].partition("\n- ")[0]
    verbs: list[str] = []
    subcommands: dict[str, list[str]] = {}
    for row in table.splitlines():
        cell = row.removeprefix("| ").partition(" | ")[0]
        if "mam " not in cell:
            continue
        first, *others = re.findall(r"`([^`]+)`", cell)
        words = first.partition("mam ")[2].rstrip(")").split()
        if others and len(words) == 2:
            subcommands[words[0]] = [words[1], *others]
            others = []
        verbs += [words[0], *others]
    assert sorted(verbs) == sorted(VERBS)
    for verb, listed in subcommands.items():
        assert sorted(listed) == sorted(import_module(f"mam.surfaces.cli.verbs.{verb}").SUBCOMMANDS), verb
    assert set(subcommands) == {"job"}


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `\[?(\w+)\]?`", text, re.MULTILINE))
    assert shown == set(Settings.__slots__)
    own = set(re.findall(r"^\| `\[?(\w+)\]?` .*\*\*own\*\*", text, re.MULTILINE))
    assert own == set(USER_ONLY)


def test_the_public_names_are_the_ones_that_are_there() -> None:
    for name in mam.__all__:
        assert getattr(mam, name) is not None
    with pytest.raises(AttributeError):
        mam.nothing  # noqa: B018
