"""Completion scripts: they exist for every shell, and work in a real bash."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mam.surfaces.cli import verb_table
from mam.surfaces.cli.verbs import completion

BASH = shutil.which("bash")


@pytest.fixture
def complete(run, workspace, tmp_path):
    """Complete a line in a bash with the script, and return the completions."""
    script = tmp_path / "mam.bash"
    script.write_text(run("completion", "bash").out, encoding="utf-8")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def complete(line: str) -> list[str]:
        code = f"""
            source {script}
            read -ra COMP_WORDS <<< "$1"
            [[ $1 == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            $(complete -p mam | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        process = subprocess.run(
            [BASH, "--norc", "-uc", code, "bash", line],
            check=False,
            capture_output=True,
            text=True,
            cwd=workspace,
            env=env,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout.split()

    return complete


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_there_is_a_script_for_every_shell(run, shell):
    answer = run("completion", shell)
    assert answer.code == 0
    assert "ls --names" in answer.out
    assert all(verb in answer.out for verb in verb_table.VERBS)
    assert run("completion", shell, "--json").json["script"] == answer.out.removesuffix("\n")


@pytest.mark.parametrize("shell", [shell for shell in ("bash", "zsh", "fish", "tcsh") if shutil.which(shell)])
def test_the_script_has_no_syntax_errors(run, tmp_path, shell):
    script = tmp_path / "script"
    script.write_text(run("completion", shell).out, encoding="utf-8")
    process = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


class TestBash:
    def test_verbs(self, complete):
        assert set(complete("mam ")) == {*verb_table.VERBS, *verb_table.ALIASES}
        assert set(complete("mam st")) == {"stop", "status"}
        assert complete("mam --json ar") == ["archive"]

    def test_options(self, complete):
        assert set(complete("mam stop --f")) == {"--force", "--force-no-yaml"}
        assert "--workspace" in complete("mam ls --")
        assert complete("mam ls --json --wai") == ["--waiting"]

    def test_choices(self, complete):
        assert set(complete("mam create --permissions ")) == {"default", "ask", "auto", "skip"}
        assert set(complete("mam completion ")) == set(completion.SHELLS)
        assert complete("mam ls --status arch") == ["archived"]

    def test_words_that_are_known_but_not_the_only_ones(self, complete, workspace):
        assert {"claude", "codex", "human", "practice"} <= set(complete("mam create --agent "))
        assert complete("mam job submit --reviewer herm") == ["hermes"]
        assert complete("mam wait api --for wo") == ["working"]
        assert "dev-qa" in complete("mam team up ")

    def test_jobs(self, complete, run):
        answer = run("job", "submit", "--agent", "human", "--prompt", "paint it", "--detach", "--json")
        job = answer.json["job"]["job_id"]
        assert complete("mam job wait ") == [job]
        assert complete(f"mam job status {job[:3]}") == [job]
        assert complete(f"mam job event --job {job[:3]}") == [job]

    def test_sessions(self, complete, run, tmp_path):
        for name in ("api", "app", "web"):
            run("create", "--agent", "human", "--session", name)
        assert complete("mam stop ") == ["api", "app", "web"]
        assert complete("mam stop web a") == ["api", "app"]
        assert complete("mam read --session ap") == ["api", "app"]
        assert complete("mam attach w") == ["web"]
        assert complete("mam create --session a") == []

    def test_sessions_of_another_workspace(self, complete, run, tmp_path):
        folder = tmp_path / "there"
        folder.mkdir()
        run("create", "--agent", "human", "--session", "far", "--workspace", str(folder))
        assert complete("mam stop f") == []
        assert complete(f"mam --workspace {folder} stop f") == ["far"]
        assert complete(f"mam stop --workspace {folder} f") == ["far"]

    def test_a_name_in_the_file_is_never_run(self, complete, run, workspace):
        rows = [
            {"name": name, "agent": "claude", "status": "stopped", "workspace": "/"}
            for name in ("good", "g$(touch marker)`touch marker`")
        ]
        (workspace / ".hermes").mkdir()
        file = workspace / ".hermes" / "agent-sessions.yaml"
        file.write_text(json.dumps({"schema_version": 1, "tmux_sessions": rows}), encoding="utf-8")
        assert "touch marker" in run("ls", "--names").out
        assert complete("mam stop g") == ["good"]
        assert not (workspace / "marker").exists()

    def test_directories(self, complete, workspace):
        (workspace / "folder").mkdir()
        assert complete("mam ls --workspace fol") == ["folder"]
