"""Skills: installed where agents look, never over what a person wrote, and every command in them runs."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mam.adapters.agents.catalogue import BUILT_IN
from mam.app.agent_tools.skills import PAGE, PLACES, shipped
from mam.core.errors import InvalidPath, NotAllowed, ReadOnly, Usage

FILES = shipped()
SKILLS = {name: files[PAGE] for name, files in FILES.items()}
SCRIPTS = {path: text for files in FILES.values() for path, text in files.items() if path != PAGE}
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
    place = workspace / PLACES[agent]
    paths = sorted(path.relative_to(place) for path in place.rglob("*") if path.is_file())
    assert paths == sorted(Path(name, path) for name, files in FILES.items() for path in files)
    listed = [file["path"] for skill in fleet.skills.list(agent=agent)["skills"] for file in skill["files"]]
    assert sorted(map(Path, listed)) == [place / path for path in paths]
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


def test_scripts_that_are_missing_or_do_not_run_are_renewed(fleet, workspace) -> None:
    fleet.skills.install(folder="skills")
    stop, reconcile = (
        next((workspace / "skills").rglob(name)) for name in ("stop_session.sh", "reconcile.sh")
    )
    stop.unlink()
    reconcile.chmod(0o644)
    assert did(fleet.skills.install(folder="skills")) == {"renewed", "unchanged"}
    assert os.access(stop, os.X_OK)
    assert os.access(reconcile, os.X_OK)


def test_a_script_of_the_original_system_is_kept(fleet, workspace) -> None:
    script = workspace / "skills/tmux-agent-orchestrate-stop/scripts/stop_session.sh"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\necho the original\n", encoding="utf-8")
    for verb in (fleet.skills.install, fleet.skills.uninstall):
        by_name = {skill["name"]: skill["did"] for skill in verb(folder="skills")["skills"]}
        assert by_name["tmux-agent-orchestrate-stop"] == "kept"
    assert "the original" in script.read_text(encoding="utf-8")
    assert [path.name for path in (workspace / "skills").rglob("*") if path.is_file()] == ["stop_session.sh"]


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


@pytest.fixture
def skills(home, workspace):
    """The skills of a fleet in the workspace; nothing is started."""
    import mam

    with mam.open(str(workspace)) as opened:
        yield opened.skills


@pytest.mark.parametrize("verb", ["install", "list", "uninstall"])
@pytest.mark.parametrize("link", [".claude", ".claude/skills"])
def test_a_linked_folder_of_the_workspace_is_not_followed(skills, workspace, tmp_path, verb, link) -> None:
    outside = tmp_path / "outside"
    (outside / "skills").mkdir(parents=True)
    (workspace / link).parent.mkdir(exist_ok=True)
    (workspace / link).symlink_to(outside, target_is_directory=True)
    with pytest.raises(NotAllowed, match="symbolic link") as refused:
        getattr(skills, verb)(agent="claude")
    assert "--dir .claude/skills" in refused.value.hint
    assert [*outside.iterdir(), *(outside / "skills").iterdir()] == [outside / "skills"]


def test_a_linked_folder_is_followed_where_it_is_named_or_lies_in_the_users_home(
    skills, home, workspace, tmp_path
) -> None:
    import mam

    for place in (workspace, home):
        (tmp_path / place.name / "mine").mkdir(parents=True, exist_ok=True)
        (place / ".claude").symlink_to(tmp_path / place.name / "mine", target_is_directory=True)
    assert did(skills.install(folder=".claude/skills")) == {"installed"}
    with mam.open(str(home)) as at_home:
        assert did(at_home.skills.install(agent="claude")) == {"installed"}


@pytest.mark.parametrize("verb", ["install", "list", "uninstall"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_page_that_is_no_regular_file_is_refused(skills, workspace, verb, make) -> None:
    page = workspace / "skills" / next(iter(SKILLS)) / PAGE
    page.parent.mkdir(parents=True)
    make(page)
    with pytest.raises(NotAllowed, match="is not a regular file") as refused:
        getattr(skills, verb)(folder="skills")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("folder", "error"),
    [
        ("", Usage),
        ("a\0b", Usage),
        ("file", InvalidPath),
        ("file/below", ReadOnly),
        ("dangling", InvalidPath),
    ],
)
def test_a_folder_that_cannot_be_one_is_refused_with_a_way_out(skills, workspace, folder, error) -> None:
    (workspace / "file").touch()
    (workspace / "dangling").symlink_to("nowhere")
    with pytest.raises(error) as refused:
        skills.install(folder=folder)
    assert "--dir" in refused.value.hint


def commands(name: str) -> list[str]:
    """Return every line of every block, with agents of which no model is needed."""
    blocks = re.findall(r"```bash\n(.*?)```", SKILLS[f"tmux-agent-orchestrate-{name}"], re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [re.sub(rf"--agent (?:{'|'.join(BUILT_IN)})\b", "--agent practice", line) for line in lines]


@pytest.fixture
def shell(fleet, workspace, tmp_path, monkeypatch):
    """Run lines of a shell in the workspace, with this mam on PATH."""
    program = tmp_path / "bin" / "mam"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m mam "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def run(lines: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", lines],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=280,
            check=False,
        )

    return run


@pytest.mark.parametrize("name", NAMES)
def test_every_command_runs(fleet, shell, name) -> None:
    fleet.init()
    for session_name in THERE.get(name, ()):
        session = fleet.sessions.create("practice", name=session_name, args=["--speed", "0"])
        session.send("hello", timeout=20)
        session.wait("idle", timeout=60)
    if name == "resume":
        fleet.sessions.stop("api")
    script = "\n".join(f'{line} || {{ echo "failed: $?"; exit 9; }}' for line in commands(name))
    result = shell(f"set -o pipefail\n{script}")
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


def test_a_script_is_one_line_that_executes_mam() -> None:
    assert sorted(SCRIPTS) == ["scripts/delegate_job.sh", "scripts/reconcile.sh", "scripts/stop_session.sh"]
    for text in SCRIPTS.values():
        shebang, line = text.splitlines()
        assert shebang == "#!/bin/sh"
        assert re.search(r'; exec mam (?:stop|monitor|job) "\$@"$', line)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_without_mam_says_what_is_missing(tmp_path, name) -> None:
    (tmp_path / "script.sh").write_text(SCRIPTS[name], encoding="utf-8")
    empty = tmp_path / "bin"
    empty.mkdir()
    result = subprocess.run(
        ["/bin/sh", "script.sh"],
        cwd=tmp_path,
        env={"PATH": str(empty)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (result.returncode, result.stdout) == (127, "")
    assert result.stderr == f"{Path(name).name}: mam is not on PATH; install mam, or add its folder to PATH\n"


STOP = "bash .agents/skills/tmux-agent-orchestrate-stop/scripts/stop_session.sh"
RECONCILE = "bash skills/tmux-agent-orchestrate-monitor/scripts/reconcile.sh"
DELEGATE = ".agents/skills/tmux-agent-orchestrate-delegate-job/scripts/delegate_job.sh"


def test_s000_17_the_stop_script_takes_the_options_of_the_document(fleet, shell, tmux_server, workspace):
    fleet.skills.install()
    for name in ("a", "b"):
        fleet.sessions.create("practice", name=name, args=["--speed", "0"])
    result = shell(f'{STOP} \\\n  --session "a"')
    assert (result.returncode, fleet.sessions.get("a").row["status"]) == (0, "stopped"), result.stderr
    result = shell(f'{STOP} \\\n  --session "a"')
    assert (result.returncode, "already stopped (" in result.stdout) == (0, True)
    result = shell(f'{STOP} \\\n  --session "b" --purge-conversation')
    assert (result.returncode, fleet.sessions.get("b").row["status"]) == (64, "running")
    result = shell(f'{STOP} --session "b" --reason api_error')
    row = fleet.sessions.get("b").row
    assert (result.returncode, row["status"], row["stop_reason"]) == (0, "stopped", "api_error")
    result = shell(f'{STOP} --session "b" --purge-conversation --yes')
    row = fleet.sessions.get("b").row
    assert (result.returncode, row["status"], row["resumable"]) == (0, "terminated", False)
    assert shell(f"{STOP} --session nobody").returncode == 1
    assert shell(f"tmux -L {tmux_server} new-session -d -s by-hand cat").returncode == 0
    result = shell(f"{STOP} --session by-hand --force-no-yaml --tmux-server {tmux_server}")
    assert result.returncode == 0, result.stderr
    assert shell(f"tmux -L {tmux_server} has-session -t =by-hand").returncode == 1


def test_s001_24_the_reconcile_script_takes_the_options_of_the_document(fleet, shell, workspace, mosquitto):
    fleet.skills.install(folder="skills")
    file = workspace / ".hermes/agent-sessions.yaml"
    file.parent.mkdir()
    pane = {"pid": 4201132, "cmd": "claude", "cwd": str(workspace)}
    row = {"name": "a", "status": "running", "pane": pane}
    file.write_text(yaml.safe_dump({"tmux_sessions": [row]}), encoding="utf-8")
    before = file.read_bytes()
    result = shell(f"{RECONCILE} --once --emit-diff --dry-run")
    assert [drift["class"] for drift in json.loads(result.stdout)["drifts"]] == ["A"], result
    assert file.read_bytes() == before
    result = shell(f"{RECONCILE} --once --emit-diff")
    assert [drift["class"] for drift in json.loads(result.stdout)["drifts"]] == ["A"]
    assert fleet.sessions.get("a").row["status"] == "terminated"
    assert json.loads(shell(f"{RECONCILE} --emit-diff").stdout)["drifts"] == []
    result = shell(f"set -o pipefail\n{RECONCILE} --emit-diff --once \\\n  | python3 -m json.tool")
    assert (result.returncode, json.loads(result.stdout)["drifts"]) == (0, [])
    for options in ("--subscribe --idle-timeout 300 --timeout 3600", "--subscribe --idle-timeout 0"):
        running = subprocess.Popen(
            [*RECONCILE.split(), *options.split()], cwd=workspace, stdout=subprocess.PIPE, text=True
        )
        assert running.stdout.readline().endswith(" is connected\n")
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        assert running.returncode == 0
    result = shell(f"{RECONCILE} --subscribe --idle-timeout 1 --timeout 60")
    assert result.returncode == 0, result.stderr


def test_s002_38_the_job_script_takes_the_options_of_the_document(fleet, shell, workspace, monkeypatch):
    fleet.skills.install()
    monkeypatch.setenv("DELEGATE_JOB_PYTHON", "/nowhere/python")
    (workspace / "check.sh").write_text('test -n "$JOB_ID" && test -d "$REGISTRY_DIR"\n', encoding="utf-8")
    limits = "--timeout 120 --idle-timeout 60 --registry-dir .mam/jobs"
    result = shell(f"{DELEGATE} submit --agent practice --prompt 'say \"hi\"' {limits} --dry-run")
    assert (result.returncode, 'say "hi"' in result.stdout) == (0, True), result.stderr
    assert fleet.jobs.list() == []
    result = shell(
        f"{DELEGATE} submit --agent practice --prompt 'say \"hi\"' --workdir {workspace} "
        f"--agent-session tmux:demo --validate check.sh {limits}"
    )
    assert result.returncode == 0, result.stderr
    audit = Path(result.stdout.splitlines()[-1])
    assert (audit.parent, audit.is_dir()) == (workspace / "delegate_job_logs", True)
    folder = "--registry-dir .mam/jobs"
    for words, answer in (
        (f"status --job {audit.name} {folder}", "completed"),
        (f"list {folder}", audit.name),
        (f"verify --job {audit.name} --validate check.sh {folder}", "PASS"),
        (f"wait --job {audit.name} --timeout 60 {folder}", "completed"),
        (f"wait --timeout 60 {folder}", "no job is open"),
        (f"logs {audit.name}", "registered"),
        ("logs --list", str(audit)),
        ("--help", "usage:"),
        ("help", "usage:"),
        ("", "usage:"),
    ):
        result = shell(f"{DELEGATE} {words}")
        assert (result.returncode, answer in result.stdout) == (0, True), (words, result)
    for words in ("submit", "status", f"verify --job {audit.name}", "logs", "dance", "list --mode print"):
        result = shell(f"{DELEGATE} {words}")
        assert (result.returncode, result.stdout) == (64, ""), (words, result)


def test_s000_43_the_skills_are_for_linux_and_macos() -> None:
    for text in SKILLS.values():
        assert yaml.safe_load(text.split("---\n", 2)[1])["platforms"] == ["linux", "macos"]
