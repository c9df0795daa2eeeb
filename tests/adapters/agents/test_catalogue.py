"""Finding kinds by name: mam's own, those of other packages, and any program."""

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
    """A package that names two kinds in its entry points; one of them is no kind."""
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


def test_the_built_in_kinds_are_entry_points_too() -> None:
    from importlib.metadata import entry_points

    references = {point.name: point.value for point in entry_points(group=catalogue.ENTRY_POINTS)}
    assert {name: references[name] for name in catalogue.BUILT_IN} == catalogue.BUILT_IN
    for name in catalogue.BUILT_IN:
        assert catalogue.kind(name).name == name


def test_a_kind_of_another_package(plugin) -> None:
    kind = catalogue.kind("parrot")
    assert (kind.name, kind.exit_word) == ("parrot", "goodbye")


def test_a_class_that_is_no_kind_is_refused(plugin) -> None:
    with pytest.raises(InvalidSettings, match="Stone"):
        catalogue.kind("stone")


def test_any_other_name_is_a_program_with_the_defaults() -> None:
    kind = catalogue.kind("vim")
    assert type(kind) is Kind
    assert (kind.name, kind.exit_word, kind.can_resume, kind.has_hooks) == ("vim", None, False, False)
