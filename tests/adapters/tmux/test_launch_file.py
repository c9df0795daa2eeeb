"""The launcher: argv, environment and directory arrive unchanged, or the pane shows the reason."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mam.adapters.tmux import launcher
from mam.adapters.tmux.launch_file import (
    cancel_launch,
    encode_launch,
    launch_failure,
    launcher_command,
    write_launch,
    write_private,
)
from mam.core.errors import DiskFull, InvalidName, ReadOnly, Usage

# A program that writes its arguments, environment and state to a file.
REPORT = """
import json, os, signal, sys
out = {
    "argv": [os.fsencode(word).hex() for word in sys.argv[2:]],
    "env": {name.hex(): value.hex() for name, value in os.environb.items()},
    "cwd": os.fsencode(os.getcwd()).hex(),
    "umask": os.umask(0),
    "status": open("/proc/self/status").read(),
}
with open(sys.argv[1] + ".part", "w") as file:
    json.dump(out, file)
os.rename(sys.argv[1] + ".part", sys.argv[1])
sys.stdin.read()
"""


@pytest.fixture
def launch(private, tmux):
    """Launch a program and return its pane and the path of its launch file."""

    def launch(argv, *, env=None, cwd=None, umask=None, prepare=lambda path: None):
        place = str(cwd or private.directory)
        folder = private.directory / "launch"
        folder.mkdir(exist_ok=True)
        path = write_launch(str(folder), "l_1", argv=argv, env=env or {}, cwd=place, umask=umask)
        prepare(path)
        return private.start(*launcher_command(path)), path

    return launch


@pytest.fixture
def report(private, launch):
    """Launch a program that reports what it received, and return the report."""

    def report(*arguments, env=None, cwd=None, umask=None):
        out = private.directory / "report.json"
        argv = [sys.executable, "-S", "-c", REPORT, str(out), *arguments]
        pane, path = launch(argv, env={"LANG": "C.UTF-8", **(env or {})}, cwd=cwd, umask=umask)
        private.until(out.exists)
        assert not Path(path).exists()
        assert launch_failure(path) is None
        received = json.loads(out.read_text(encoding="utf-8"))
        received["pane"] = pane
        received["env"] = {
            bytes.fromhex(name): bytes.fromhex(value) for name, value in received["env"].items()
        }
        return received

    return report


class TestWhatArrives:
    def test_the_callers_environment_and_not_the_servers(self, private, report):
        private.start(name="anchor")
        private.raw("set-environment", "-g", "SERVER_ONLY", "x")
        variables = {
            "TERM": "dumb",
            "TMUX": "forged",
            "TMUX_PANE": "%99",
            "TMUX_X": "1",
            "MAM_SESSION": "s_1",
            "A": "b=c",
        }
        received = report(env=variables)
        env = received["env"]
        assert b"SERVER_ONLY" not in env and b"TMUX_X" not in env
        assert env[b"A"] == b"b=c" and env[b"MAM_SESSION"] == b"s_1"
        assert env[b"TMUX_PANE"].decode() == received["pane"].id
        assert env[b"TMUX"] != b"forged" and env[b"TERM"] not in (b"dumb", b"")

    def test_where_the_sockets_are_is_kept(self, report):
        assert report(env={"TMUX_TMPDIR": "/somewhere"})["env"][b"TMUX_TMPDIR"] == b"/somewhere"

    def test_words_that_a_shell_or_tmux_would_read(self, report):
        arguments = ["#(touch x)", "a;", ";", "", "$HOME", "`id`", "'\"", "new\nline", "-x", "é"]
        assert [bytes.fromhex(argument).decode() for argument in report(*arguments)["argv"]] == arguments

    def test_bytes_that_are_not_utf8(self, report, private):
        odd = os.fsdecode(b"\xff\xfe\x01")
        place = private.directory / odd
        place.mkdir()
        received = report(odd, env={"ODD": odd}, cwd=place)
        assert bytes.fromhex(received["argv"][0]) == b"\xff\xfe\x01"
        assert received["env"][b"ODD"] == b"\xff\xfe\x01"
        assert bytes.fromhex(received["cwd"]) == os.fsencode(place) == received["env"][b"PWD"]

    def test_a_hundred_kilobytes_of_environment(self, report):
        env = {f"V{number}": "x" * 1000 for number in range(100)} | {"BIG": "y" * 100_000}
        received = report(env=env)["env"]
        assert {name.encode(): value.encode() for name, value in env.items()}.items() <= received.items()

    def test_signals_are_as_a_login_gives_them(self, report):
        status = dict(line.split(":", 1) for line in report()["status"].splitlines())
        # Python itself ignores PIPE and XFSZ again when it starts.
        own = (1 << 12) | (1 << 24)
        assert int(status["SigIgn"], 16) & ~own == 0 and int(status["SigBlk"], 16) == 0

    def test_a_program_that_is_not_python_ignores_nothing(self, private, launch, tmux):
        pane, _ = launch(["/bin/grep", "SigIgn", "/proc/self/status"])
        private.until(lambda: tmux.pane(pane.id).dead)
        assert "0000000000000000" in tmux.capture([pane.id], scrollback=10)[pane.id]

    @pytest.mark.parametrize("umask", [0o027, 0o077])
    def test_umask(self, report, umask):
        assert report(umask=umask)["umask"] == umask

    def test_the_file_is_private_until_it_is_taken(self, private, launch):
        modes = []
        launch(["/bin/cat"], prepare=lambda path: modes.append(stat.S_IMODE(Path(path).stat().st_mode)))
        assert modes == [0o600]

    def test_no_word_of_it_is_in_the_arguments_of_the_launcher(self, private):
        path = write_launch(
            str(private.directory), "l", argv=["/x", "secret"], env={"K": "secret"}, cwd="/secret"
        )
        command = launcher_command(path)
        assert command[:3] == [sys.executable, "-I", "-S"] and bytes.fromhex(command[4]) == os.fsencode(path)
        assert not any("secret" in argument for argument in command)


class TestFailures:
    @pytest.mark.parametrize(
        ("argv", "cwd", "status", "reason"),
        [
            (["/nonexistent/agent"], "/", 127, "cannot run /nonexistent/agent: No such file or directory"),
            (["/etc/passwd"], "/", 126, "cannot run /etc/passwd: Permission denied"),
            (["/bin/cat"], "/nonexistent", 127, "cannot enter /nonexistent: No such file or directory"),
            (["/bad\x1b[31m\nname"], "/", 127, "cannot run /bad?[31m?name: No such file or directory"),
        ],
    )
    def test_the_pane_and_a_file_say_why(self, private, launch, tmux, argv, cwd, status, reason):
        for _ in range(5):
            pane, path = launch(argv, cwd=cwd)
            dead = tmux.dead_status(pane.id, pane.server_pid, time.monotonic() + 5)
            assert dead.dead_status == status
            assert stat.S_IMODE(Path(path + ".failed").stat().st_mode) == 0o600
            assert launch_failure(path) == reason
            assert launch_failure(path) is None and not Path(path).exists()
            # Linux hands the output of a program over a little later, and tmux 3.3a may close the terminal of
            # one that ends at once before that: then the pane is empty. The file is what mam relies on.
            if screen := tmux.look(pane.id).screen.partition("Pane is dead")[0].strip():
                break
        assert "mam: " + reason in screen

    @pytest.mark.parametrize(
        "damage",
        [
            lambda content: content[:-1],
            lambda content: content[:20],
            lambda content: b"",
            lambda content: content + b"\0more",
            lambda content: content.replace(b"mam-launch-1", b"mam-launch-9"),
            lambda content: content.replace(b"\x001\x00/bin", b"\x0099\x00/bin"),
            lambda content: content.replace(b"\x001\x00/bin", b"\x00-1\x00/bin"),
            lambda content: content.replace(b"\x001\x00/bin", b"\x00x\x00/bin"),
        ],
    )
    def test_a_damaged_file_runs_nothing(self, private, launch, tmux, damage):
        def spoil(path):
            content = Path(path).read_bytes()
            assert damage(content) != content
            Path(path).write_bytes(damage(content))

        pane, path = launch(["/bin/cat"], prepare=spoil)
        private.until(lambda: tmux.pane(pane.id).dead)
        assert launch_failure(path) == "the launch file is damaged"

    def test_a_link_in_its_place_is_not_followed(self, private, launch, tmux):
        def swap(path):
            Path(path).rename(path + ".real")
            Path(path).symlink_to(path + ".real")

        pane, path = launch(["/bin/cat"], prepare=swap)
        private.until(lambda: tmux.pane(pane.id).dead)
        assert "cannot be read" in launch_failure(path)

    def test_a_withdrawn_launch_leaves_no_pane(self, private, launch, tmux):
        anchor = private.start("cat", "-", name="anchor", mark="s_00000002")

        def withdraw(path):
            assert cancel_launch(path)
            assert not cancel_launch(path)

        pane, path = launch(["/bin/cat"], prepare=withdraw)
        private.until(lambda: tmux.pane(pane.id) is None)
        assert [pane.id for pane in tmux.panes().panes] == [anchor.id]
        assert launch_failure(path) is None

    def test_a_launch_that_was_taken_cannot_be_withdrawn(self, private, launch, tmux):
        pane, path = launch(["/bin/cat"])
        private.until(lambda: tmux.pane(pane.id).command == "cat")
        assert not cancel_launch(path)

    def test_a_file_without_end_is_refused(self, monkeypatch, tmp_path):
        monkeypatch.setattr(launcher, "LIMIT", 10)
        (tmp_path / "f").write_bytes(b"x" * 100)
        with pytest.raises(launcher.Unusable, match="too long"):
            launcher.take(os.fsencode(tmp_path / "f"))


class TestWriting:
    @pytest.mark.parametrize(
        ("argv", "env", "cwd"),
        [
            ([], {}, "/"),
            (["relative"], {}, "/"),
            (["/x", "a\0b"], {}, "/"),
            (["/x"], {"A": "a\0b"}, "/"),
            (["/x"], {"A\0": "b"}, "/"),
            (["/x"], {"": "b"}, "/"),
            (["/x"], {"A=B": "c"}, "/"),
            (["/x"], {}, "relative"),
            (["/x"], {}, "/a\0"),
        ],
    )
    def test_what_no_process_can_be_given_is_refused(self, tmp_path, argv, env, cwd):
        with pytest.raises(Usage):
            write_launch(str(tmp_path), "l", argv=argv, env=env, cwd=cwd)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("launch_id", ["", "../x", "a/b", "a.b", "a\0"])
    def test_an_id_cannot_leave_the_directory(self, tmp_path, launch_id):
        with pytest.raises(InvalidName):
            write_launch(str(tmp_path), launch_id, argv=["/x"], env={}, cwd="/")

    def test_nothing_is_overwritten_or_followed(self, tmp_path):
        target = tmp_path / "target"
        (tmp_path / "l.launch").symlink_to(target)
        with pytest.raises(ReadOnly):
            write_launch(str(tmp_path), "l", argv=["/x"], env={}, cwd="/")
        assert not target.exists()

    def test_a_directory_that_is_not_there(self, tmp_path):
        with pytest.raises(ReadOnly):
            write_private(str(tmp_path / "none" / "f"), b"x")

    def test_a_full_disk_leaves_nothing(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(DiskFull):
            write_launch(str(tmp_path), "l", argv=["/x"], env={}, cwd="/")
        monkeypatch.undo()
        assert list(tmp_path.iterdir()) == []

    def test_both_sides_read_the_same(self):
        content = encode_launch(["/x", "", "b"], {"A": "", "B": "c=d"}, "/w", 0o22)
        launch = launcher.Launch(content)
        assert (launch.argv, launch.directory, launch.umask) == ([b"/x", b"", b"b"], b"/w", 0o22)
        assert launch.env == {b"A": b"", b"B": b"c=d"}
        assert launcher.Launch(encode_launch(["/x"], {}, "/w")).umask is None


def test_the_launcher_imports_nothing_that_agents_would_wait_for():
    script = launcher_command("/x")[3]
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", script, b"/nonexistent".hex()],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nonexistent"},
    ).stderr
    names = {line.split("|")[-1].strip() for line in out.splitlines() if "|" in line}
    assert not names & {"signal", "enum", "re", "typing", "subprocess", "pathlib", "json", "mam"}
