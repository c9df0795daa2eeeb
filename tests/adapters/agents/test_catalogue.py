"""Finding kinds: ours, those of other packages, and any program."""

import sys

import pytest

from mam.adapters.agents import catalogue
from mam.adapters.agents.kind import Kind
from mam.core.errors import InvalidSettings

PLUGIN = """
from mam.adapters.agents.kind import Kind

class Parrot(Kind):
    name = "parrot"
    exit_word = "goodbye"

class Stone:
    pass
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package that offers two kinds through the entry point, one of them wrong."""
    (tmp_path / "parrot_kind.py").write_text(PLUGIN, encoding="utf-8")
    info = tmp_path / "parrot_kind-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: parrot-kind\nVersion: 1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(
        "[mam.agents]\nparrot = parrot_kind:Parrot\nstone = parrot_kind:Stone\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(catalogue, "_loaded", {})
    yield
    sys.modules.pop("parrot_kind", None)


def test_ours_are_offered_by_the_same_door() -> None:
    from importlib.metadata import entry_points

    offered = {point.name: point.value for point in entry_points(group=catalogue.ENTRY_POINTS)}
    assert {name: offered[name] for name in catalogue.BUILT_IN} == catalogue.BUILT_IN
    for name in catalogue.BUILT_IN:
        assert catalogue.kind(name).name == name


def test_another_packages_kind(plugin) -> None:
    found = catalogue.kind("parrot")
    assert (found.name, found.exit_word) == ("parrot", "goodbye")


def test_what_is_not_a_kind_is_refused(plugin) -> None:
    with pytest.raises(InvalidSettings, match="Stone"):
        catalogue.kind("stone")


def test_any_other_name_is_a_program_that_nothing_is_known_about() -> None:
    found = catalogue.kind("vim")
    assert type(found) is Kind
    assert (found.name, found.exit_word, found.can_resume, found.has_hooks) == ("vim", None, False, False)
