"""The entry point: how it finds the verb, what it refuses, and its exit codes."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import mam
from mam.core import errors
from mam.surfaces.cli import output, verb_table
from mam.surfaces.cli.main import BROKEN_PIPE, INTERRUPTED, split, wants_json
from mam.surfaces.cli.verbs import ls as ls_verb


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mam", *arguments]


class TestVerb:
    @pytest.mark.parametrize(
        ("arguments", "verb"),
        [
            ("ls", ([], "ls", [])),
            ("--json ls --all", (["--json"], "ls", ["--all"])),
            ("--workspace ls stop a", (["--workspace", "ls"], "stop", ["a"])),
            ("--registry=x ls", (["--registry=x"], "ls", [])),
            ("--json", (["--json"], None, [])),
            ("--workspace", (["--workspace"], None, [])),
            ("", ([], None, [])),
        ],
    )
    def test_is_the_first_argument_that_is_not_an_option(self, arguments, verb):
        assert split(arguments.split()) == verb

    def test_words_after_two_dashes_are_not_ours(self):
        assert wants_json(["create", "--json"])
        assert not wants_json(["create", "--", "--json"])

    def test_unknown_is_refused_with_the_nearest(self, run):
        answer = run("statsu")
        assert answer.code == 64
        assert answer.err == "mam: there is no verb 'statsu'\n  did you mean status?\n"
        assert not answer.out

    def test_unknown_without_a_neighbour_points_to_the_help(self, run):
        assert "mam --help" in run("zzz").err

    def test_no_path_and_no_module_can_be_named(self, run):
        for word in ("../ls", "__init__", "main", "parser", "table", "os", "x" * 1_000_000):
            answer = run(word, "--json")
            assert answer.code == 64
            assert answer.error["code"] == "usage"
            assert len(answer.out) < 500

    def test_missing_shows_the_verbs_and_is_wrong_usage(self, run):
        answer = run()
        assert answer.code == 64
        assert "usage: mam VERB" in answer.err
        assert run("--json").error["message"] == "no verb was given"

    def test_an_option_alone_that_does_not_exist(self, run):
        assert run("--colour").code == 64

    def test_an_alias_is_the_verb(self, run):
        assert verb_table.module_of("delete") == "stop"
        assert run("delete", "nobody", "--json").error["code"] == "session_not_found"

    def test_help_as_a_word(self, run):
        assert run("help").out == run("--help").out
        assert run("help", "stop").out == run("stop", "--help").out


class TestSubcommand:
    @pytest.mark.parametrize("verb", ["job", "board", "team", "task", "skills"])
    def test_s002_17_missing_or_help_shows_the_usage(self, run, verb):
        usage = run(verb, "--help")
        for arguments in ((), ("help",), ("--workspace", ".", "help")):
            answer = run(verb, *arguments)
            assert (answer.code, answer.out, answer.err) == (0, usage.out, "")
        assert run("--workspace", ".", verb).out == usage.out
        assert f"usage: mam {verb}" in usage.out

    def test_s002_17_help_of_a_subcommand(self, run):
        assert run("job", "help", "submit").out == run("job", "submit", "--help").out
        assert run("help", "job", "submit").out == run("job", "submit", "--help").out
        assert run("job", "help", "dance").code == 64

    def test_s002_17_a_program_that_names_none_is_told_so(self, run):
        assert run("job", "--json").error["code"] == "usage"
        assert run("job", "--colour").code == 64
        assert run("stop", "help", "--json").error["code"] != "usage"


class TestVersion:
    def test_is_said(self, run):
        assert run("--version").out == f"mam {mam.__version__}\n"
        assert run("--json", "--version").json == {"version": mam.__version__}

    def test_takes_no_argparse(self):
        code = (
            "import sys; from mam.surfaces.cli.main import main; main(['--version']); print([*sys.modules])"
        )
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "'argparse'" not in process.stdout
        assert "'re'" not in process.stdout


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            "ls --jso",
            "ls extra",
            "ls --status asleep",
            "ls --status",
            "stop",
            "stop a --all",
            "stop a --reason",
            "stop a -x b",
            "resume",
            "resume a --all",
            "resume a --stopped",
            "create",
            "create --agent practice extra",
            "create --agent practice --prompt a --prompt-file b",
            "create --agent practice --permissions none",
            "create --agent practice --no-wait --prompt hello",
            "create --agent practice --timeout soon",
            "create --agent practice --env NOVALUE",
            "create --agent practice --prompt-file /nowhere/at/all",
            "read",
            "read a b",
            "read a --session b",
            "read a --lines 0",
            "read a --lines -3",
            "read a --lines many",
            "wait a",
            "wait a --for idle --timeout 99999999999999999999",
            "stop --all --workspace=",
            "ls --registry=",
            "rename a",
            "rename a b c",
            "forget",
            "forget a --older-than 3d",
            "forget --older-than yesterday",
            "adopt x",
            "fork",
            "explain",
            "log --since tomorrow",
            "completion",
            "completion csh9",
            "demo now",
            "init here",
            "doctor strange",
            "archive",
            "restart",
        ],
    )
    def test_is_64_in_both_forms_and_touches_nothing(self, run, workspace, arguments):
        answer = run(*arguments.split())
        assert answer.code == 64, answer
        assert answer.err.startswith("mam: ")
        assert "Traceback" not in answer.err
        assert not answer.out
        before = run("--json", *arguments.split())
        assert before.code == 64
        assert before.error["message"] == answer.err.splitlines()[0].removeprefix("mam: ")
        assert list(workspace.iterdir()) == []

    def test_a_mistyped_option_gets_the_nearest(self, run):
        assert run("stop", "a", "--forse").err.splitlines()[1] == "  did you mean --force?"

    def test_an_abbreviated_option_is_none(self, run):
        assert run("stop", "a", "--purge").code == 64


class TestOptionsEverywhere:
    def test_before_and_after_the_verb(self, run, workspace, tmp_path):
        folder = tmp_path / "there"
        folder.mkdir()
        for arguments in (
            ("--json", "--workspace", str(folder), "ls"),
            ("ls", "--workspace", str(folder), "--json"),
            (f"--workspace={folder}", "ls", "--json"),
        ):
            assert run(*arguments).json["root"] == str(folder)
        file = str(tmp_path / "other.yaml")
        run("--registry", file, "create", "--agent", "human", "--session", "one")
        assert run("ls", "--names", "--registry", file).out == "one\n"
        assert run("ls", "--names").out.strip() == ""

    def test_a_workspace_that_is_not_there(self, run):
        answer = run("ls", "--workspace", "/nowhere/at/all", "--json")
        assert (answer.code, answer.error["code"]) == (1, "invalid_path")


class TestEnds:
    def test_a_bug_is_one_line(self, run, monkeypatch):
        monkeypatch.setattr(ls_verb, "run", lambda call: 1 // 0)
        answer = run("ls")
        assert answer.code == 70
        assert (
            answer.err.splitlines()[0]
            == "mam: a bug in mam: ZeroDivisionError: integer division or modulo by zero"
        )
        assert "Traceback" not in answer.err
        assert run("ls", "--json").error["code"] == "broken"

    def test_a_bug_can_be_looked_at(self, run, monkeypatch):
        monkeypatch.setattr(ls_verb, "run", lambda call: 1 // 0)
        monkeypatch.setenv("MAM_DEBUG", "1")
        assert "Traceback" in run("ls").err

    def test_an_interrupt_is_quiet(self, run, monkeypatch):
        def interrupt(call):
            raise KeyboardInterrupt

        monkeypatch.setattr(ls_verb, "run", interrupt)
        answer = run("ls")
        assert (answer.code, answer.out, answer.err) == (INTERRUPTED, "", "")

    @pytest.mark.parametrize(
        "kind",
        [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)],
    )
    def test_every_error_has_its_exit_code_and_form(self, run, monkeypatch, kind):
        def fail(call):
            raise kind("it did\x1b[31m not\nwork \u202e", hint="try\x07 again", session={"name": "a"})

        monkeypatch.setattr(ls_verb, "run", fail)
        answer = run("ls")
        assert answer.code == kind.exit_code
        assert answer.err == "mam: it did[31m not work \n  try again\n"
        document = run("ls", "--json").json
        assert document["error"]["code"] == kind.code
        assert document["session"] == {"name": "a"}

    def test_a_reader_that_leaves_early_is_no_error(self, run, workspace):
        run("create", "--agent", "human", "--session", "one")
        process = subprocess.run(
            ["sh", "-c", '"$@"; echo "code $?" >&2', "sh", *program("ls", "--json")],
            stdout=os.open(os.devnull, os.O_RDONLY),
            stderr=subprocess.PIPE,
            cwd=workspace,
            text=True,
            check=False,
        )
        assert "Traceback" not in process.stderr
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.run(
            program("ls"), stdout=writing, stderr=subprocess.PIPE, cwd=workspace, check=False
        )
        os.close(writing)
        assert (process.returncode, process.stderr) == (BROKEN_PIPE, b"")

    def test_a_full_disk_behind_stdout(self, run, workspace):
        with Path("/dev/full").open("w", encoding="utf-8") as full:
            process = subprocess.run(
                program("ls"), stdout=full, stderr=subprocess.PIPE, cwd=workspace, text=True, check=False
            )
        assert process.returncode == 2
        assert process.stderr.startswith("mam: the output could not be written")

    def test_no_output_at_all(self, run, workspace):
        process = subprocess.run(
            ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *program("ls", "--json")], cwd=workspace, check=False
        )
        assert process.returncode == 0

    def test_a_terminal_without_unicode(self, run, workspace):
        env = {**os.environ, "PYTHONIOENCODING": "ascii"}
        process = subprocess.run(
            program("stop", "--help"), env=env, capture_output=True, cwd=workspace, check=False
        )
        assert process.returncode == 0

    def test_ctrl_c_ends_a_wait_with_130(self, run, terminal):
        run("create", "--agent", "human", "--session", "one")
        waiting = terminal("wait", "one", "--for", "exited")
        waiting.sees("waiting until one is exited")
        waiting.type("\x03")
        assert waiting.leave() == INTERRUPTED
        assert "Traceback" not in waiting.text()
        assert "interrupted while waiting until one is exited" in waiting.text()

    @pytest.mark.parametrize("is_busy", [False, True], ids=["quiet", "busy"])
    def test_ctrl_c_that_python_has_to_ignore_comes_again(self, is_busy):
        """Python ignores an exception in the callback of a weak reference; imports have such callbacks.

        On a busy machine the repeated one may come before Python has done with the first.
        """
        script = (
            "import os, signal, sys, time, weakref\n"
            "from mam.surfaces.cli.main import main\n"
            "def be_late(*given):\n"
            "    signal.setitimer = set_timer\n"
            "    signal.raise_signal(signal.SIGALRM)\n"
            "set_timer = signal.setitimer\n"
            f"signal.setitimer = {'be_late' if is_busy else 'set_timer'}\n"
            "sys.argv, os._exit = ['mam', '--version'], lambda code: None\n"
            "main()\n"
            "class Thing: pass\n"
            "def callback(_):\n"
            "    raise KeyboardInterrupt\n"
            "thing = Thing()\n"
            "reference = weakref.ref(thing, callback)\n"
            "try:\n"
            "    del thing\n"
            "    time.sleep(60)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n"
        )
        process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert (process.stdout.splitlines()[1:], process.stderr) == (["interrupted"], "")

    def test_files_are_private_and_the_umask_is_put_back(self, run, workspace):
        before = os.umask(0o022)
        try:
            run("init")
            assert os.umask(0o022) == 0o022
        finally:
            os.umask(before)
        state = workspace / ".mam"
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
        assert stat.S_IMODE((state / "state.db").stat().st_mode) == 0o600


class TestAnswer:
    def test_json_is_ascii_and_carries_no_controls(self, capsys):
        output.write_json({"text": "\x1b[31m\x9b\u202e\x7fé"})
        out = capsys.readouterr().out
        assert out.isascii()
        assert out.rstrip("\n").isprintable()
        assert json.loads(out)["text"] == "\x1b[31m\x9b\u202e\x7fé"

    def test_an_os_error_that_is_not_about_output_is_a_bug(self):
        assert output.as_mam_error(FileNotFoundError(2, "no", "x")).code == "broken"


def test_a_signal_to_end_needs_no_words(run, workspace, until):
    run("create", "--agent", "human", "--session", "one")
    waiting = subprocess.Popen(
        program("ls", "--watch", "--json"), cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert json.loads(waiting.stdout.readline())["sessions"][0]["name"] == "one"
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(10) == INTERRUPTED
    assert waiting.stderr.read() == b""
    waiting.stdout.close()
    waiting.stderr.close()


def test_a_changed_skill_is_kept_with_words_for_what_was_asked(run, workspace) -> None:
    page = workspace / ".agents/skills/tmux-agent-orchestrate-stop/SKILL.md"
    page.parent.mkdir(parents=True)
    page.write_text("mine\n", encoding="utf-8")
    assert "move it away to get the file of this version" in run("skills", "install").out
    answer = run("skills", "uninstall")
    assert "kept: a person has changed a file; mam did not remove it" in answer.out
    assert "to get the file" not in answer.out


@pytest.mark.parametrize(("word", "verb"), [("kill", "stop"), ("list", "ls"), ("start", "create")])
def test_a_word_that_people_try_first_leads_to_its_verb(run, word, verb) -> None:
    assert run(word, "x").err.splitlines()[1] == f"  did you mean {verb}?"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ("board", "create", "--title", "X"),
            "the title has no option; mam board create --help shows where it stands",
        ),
        (("job", "submit", "--zzz"), "mam job submit --help explains its use"),
        (("job", "submit", "--promt", "x"), "did you mean --prompt?"),
        (("board", "lst"), "mam board --help explains its use"),
        (("ls", "--zzz"), "mam ls --help explains its use"),
    ],
)
def test_an_unknown_option_leads_to_the_help_of_its_subcommand(run, arguments, hint) -> None:
    answer = run(*arguments)
    assert answer.code == 64
    assert answer.err.splitlines()[1] == f"  {hint}"
