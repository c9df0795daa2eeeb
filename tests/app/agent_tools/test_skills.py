"""Skills: installed where agents look, never over what a person wrote, and every command in them runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mam.adapters.agents.catalogue import BUILT_IN
from mam.app.agent_tools.skills import PLACES, shipped
from mam.core.errors import NotAllowed

SKILLS = shipped()
NAMES = ["create", "delegate-job", "monitor", "resume", "status", "stop", "team"]
# The sessions that a skill takes for granted.
THERE = {"resume": ["api"], "stop": ["api", "web", "docs"], "status": ["api"], "monitor": ["api"]}


def states(listing):
    return {skill["state"] for skill in listing["skills"]}


def did(listing):
    return {skill["did"] for skill in listing["skills"]}


def test_the_seven_are_there_with_their_front_matter() -> None:
    assert list(SKILLS) == [f"tmux-agent-orchestrate-{name}" for name in NAMES]
    for name, text in SKILLS.items():
        _, head, body = text.split("---\n", 2)
        facts = yaml.safe_load(head)
        assert facts["name"] == name
        assert {"description", "version", "author", "license", "platforms", "environments"} <= set(facts)
        assert set(facts["metadata"]["hermes"]) == {"tags", "related_skills", "prereq_skills"}
        other_skills = (
            facts["metadata"]["hermes"]["related_skills"] + facts["metadata"]["hermes"]["prereq_skills"]
        )
        assert set(other_skills) <= set(SKILLS)
        assert len(facts["description"]) <= 1024
        assert "```bash" in body


@pytest.mark.parametrize("agent", PLACES)
def test_they_are_installed_listed_and_removed(fleet, workspace, agent) -> None:
    assert states(fleet.skills.list(agent=agent)) == {"absent"}
    assert did(fleet.skills.install(agent=agent)) == {"installed"}
    assert did(fleet.skills.install(agent=agent)) == {"unchanged"}
    assert states(fleet.skills.list(agent=agent)) == {"current"}
    listing = sorted(path.parent.name for path in (workspace / PLACES[agent]).glob("*/SKILL.md"))
    assert listing == sorted(SKILLS)
    assert did(fleet.skills.uninstall(agent=agent)) == {"removed"}
    assert list((workspace / PLACES[agent]).iterdir()) == []


def test_what_a_person_changed_is_neither_overwritten_nor_removed(fleet, workspace) -> None:
    fleet.skills.install(folder="skills")
    first, second = list(SKILLS)[:2]
    changed = workspace / "skills" / first / "SKILL.md"
    text = changed.read_text(encoding="utf-8").replace("# ", "# My ", 1)
    changed.write_text(text, encoding="utf-8")
    own = workspace / "skills" / second / "SKILL.md"
    own.write_text("my own\n", encoding="utf-8")
    for verb in (fleet.skills.install, fleet.skills.uninstall):
        by_name = {path["name"]: path["did"] for path in verb(folder="skills")["skills"]}
        assert (by_name[first], by_name[second]) == ("kept", "kept")
    assert changed.read_text(encoding="utf-8") == text
    assert own.read_text(encoding="utf-8") == "my own\n"


def test_one_of_an_earlier_version_is_renewed(fleet, workspace, monkeypatch) -> None:
    import mam

    monkeypatch.setattr(mam, "__version__", "0.0.1")
    fleet.skills.install(folder="skills")
    monkeypatch.undo()
    with mam.open(str(workspace)) as later:
        assert states(later.skills.list(folder="skills")) == {"older"}
        assert did(later.skills.install(folder="skills")) == {"renewed"}
        assert states(later.skills.list(folder="skills")) == {"current"}


def test_a_link_is_not_followed(fleet, workspace, tmp_path) -> None:
    (workspace / "skills").mkdir()
    (workspace / "skills" / next(iter(SKILLS))).symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(NotAllowed):
        fleet.skills.install(folder="skills")
    assert not (tmp_path / "SKILL.md").exists()


def test_what_is_refused_is_refused_before_anything_is_written(fleet, workspace, tmp_path) -> None:
    (workspace / "skills").mkdir()
    last = list(SKILLS)[-1]
    (workspace / "skills" / last).symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(NotAllowed):
        fleet.skills.install(folder="skills")
    assert [path.name for path in (workspace / "skills").iterdir()] == [last]


def commands(name: str) -> list[str]:
    """Return every line of every block, with agents of which no model is needed."""
    blocks = re.findall(r"```bash\n(.*?)```", SKILLS[f"tmux-agent-orchestrate-{name}"], re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [re.sub(rf"--agent (?:{'|'.join(BUILT_IN)})\b", "--agent practice", line) for line in lines]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_runs(fleet, home, workspace, tmp_path, name) -> None:
    fleet.init()
    for session_name in THERE.get(name, ()):
        session = fleet.sessions.create("practice", name=session_name, args=["--speed", "0"])
        session.send("hello", timeout=20)
        session.wait("idle", timeout=60)
    if name == "resume":
        fleet.sessions.stop("api")
    program = tmp_path / "bin" / "mam"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m mam "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = "\n".join(f'{line} || {{ echo "failed: $?"; exit 9; }}' for line in commands(name))
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail\n{script}"],
        cwd=workspace,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, f"{result.stdout[-1500:]}\n{result.stderr[-1500:]}"
    assert len(commands(name)) >= 3


def test_the_commands_name_verbs_that_exist() -> None:
    """Commands inside sentences are not run, so at least their verbs must exist."""
    from mam.surfaces.cli import verb_table

    for text in SKILLS.values():
        for word in re.findall(r"`mam ([a-z]+)", text):
            assert verb_table.module_of(word), word


def test_they_are_part_of_the_package() -> None:
    import mam

    folder = Path(mam.__file__).parent / "skills"
    assert sorted(path.parent.name for path in folder.glob("*/SKILL.md")) == sorted(SKILLS)
