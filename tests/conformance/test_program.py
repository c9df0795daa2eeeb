"""A file in `programs/` is all that the scenarios need of a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conformance import plays
from tests.conformance.model_server import ModelServer
from tests.conformance.own_tools import ModelWithOwnTools
from tests.conformance.program import PROGRAMS, load, load_all
from tests.conformance.replies import Call, Question, Say, Shell

PARROT = """
ready = '^parrot>'
error = "squawk"

[install]
with = "npm"
package = "parrot"
command = "parrot"
version = "1.0"

[launch.always.environment]
URL = "{url}"
CONFIG = { quiet = true }

[launch.always.files.".parrot/settings.json"]
folders = {}

[launch.authenticated.environment.CONFIG]
key = "seed"

[launch.trusted.files.".parrot/settings.json".folders]
"{folder}" = "trusted"

[launch.bare]
arguments = ["--alone", "{folder}"]

[tools.shell]
name = "fly"
command = "where"
asking = "far; {command}"
"""


@pytest.fixture
def parrot(tmp_path):
    (tmp_path / "parrot.toml").write_text(PARROT, encoding="utf-8")
    return load(tmp_path / "parrot.toml")


def settings(home: Path) -> dict:
    return json.loads((home / ".parrot" / "settings.json").read_text(encoding="utf-8"))


def test_a_launch_by_mam(parrot, tmp_path) -> None:
    launch = parrot.launch_by_mam("http://model", tmp_path, Path("/here"))
    launch.write(tmp_path, anew=True)
    assert (launch.arguments, settings(tmp_path)) == ([], {"folders": {}})
    assert launch.variables() == {"URL": "http://model", "CONFIG": '{"quiet": true, "key": "seed"}'}
    parrot.trust(tmp_path, Path("/here"))
    assert settings(tmp_path) == {"folders": {"/here": "trusted"}}
    parrot.distrust(tmp_path, Path("/here"))
    assert settings(tmp_path) == {"folders": {}}


def test_a_launch_without_mam(parrot, tmp_path) -> None:
    options = {"trusted": True, "authenticated": False, "moderated": True}
    launch = parrot.launch_bare("http://model", tmp_path, Path("/here"), **options)
    launch.write(tmp_path, anew=False)
    assert (launch.arguments, launch.variables()["CONFIG"]) == (["--alone", "/here"], '{"quiet": true}')
    (tmp_path / ".parrot" / "settings.json").write_text("{}", encoding="utf-8")
    launch.write(tmp_path, anew=False)
    assert settings(tmp_path) == {}, "what the program wrote is kept"


def test_tools_of_its_own(parrot, monkeypatch) -> None:
    answered = []
    monkeypatch.setattr(ModelServer, "answer", lambda self, *replies: answered.extend(replies))
    replies = (Shell("home"), Shell("home", asks=False), Question(), Say("hello"))
    with ModelWithOwnTools(parrot) as model:
        model.answer(*replies)
    assert answered == [Call("fly", {"where": "far; home"}), Call("fly", {"where": "home"}), *replies[2:]]


def test_a_key_that_no_program_has(tmp_path) -> None:
    for wrong in (f"feathers = 2\n{PARROT}", f"{PARROT}feathers = 2\n"):
        (tmp_path / "parrot.toml").write_text(wrong, encoding="utf-8")
        with pytest.raises(TypeError, match="feathers"):
            load_all(tmp_path)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_every_scene_has_its_play(kind) -> None:
    named = [scene.play for scene in PROGRAMS[kind].scenes if scene.play]
    assert [name for name in named if not hasattr(plays, f"play_{name}")] == []
