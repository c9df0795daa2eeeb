"""The program in a pseudo-terminal: ids, exits, signals, hooks, the terminal it leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import termios

import pytest
from tests.practice.drive import command_line, wait_for
from tests.processes import is_running

from mam.practice.transcript import new_id

pytestmark = pytest.mark.starts

ID = "11111111-2222-4333-8444-555555555555"


def without_terminal(store, *arguments: str):
    return subprocess.run(
        command_line(*arguments),
        env=store.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=store.folder,
        timeout=15,
        check=False,
    )


def test_version_and_help(store):
    assert without_terminal(store, "--version").stdout == "Practice agent v0.1\n"
    assert "example:" in without_terminal(store, "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "needs a terminal"),
        (["--nonsense"], 2, "unknown option: --nonsense"),
        (["--resume", ID], 1, f"No conversation found with session ID: {ID}"),
        (["--resume", "\x1b[2J"], 1, "No conversation found with session ID: ^[[2J"),
        (["--settings", "{"], 1, "not valid JSON"),
    ],
)
def test_refusals_are_one_line(arguments, code, message, store):
    result = without_terminal(store, *arguments)
    assert result.returncode == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_conversation_begun_resumed_and_refused(store, runs):
    run = runs.ready("--session-id", ID)
    assert store.turns(ID) == []
    run.send("the word is swordfish\r")
    wait_for(lambda: len(store.turns(ID)) == 2)
    run.send("/exit\r")
    assert run.exit_code() == 0
    assert f"Resume with: python -m mam.practice --resume {ID}" in run.text()

    result = without_terminal(store, "--session-id", ID)
    assert (result.returncode, result.stderr) == (1, f"Error: Session ID {ID} is already in use.\n")

    again = runs.ready("--resume", ID)
    assert "❯ the word is swordfish" in again.text()
    again.send("what did I say?\r")
    again.sees("1. the word is swordfish")
    wait_for(lambda: len(store.turns(ID)) == 4)
    assert [turn["type"] for turn in store.turns(ID)] == ["user", "assistant"] * 2


def test_fork_goes_on_under_another_id(store, runs):
    first, second = new_id(), new_id()
    run = runs.ready("--session-id", first, "original words")
    wait_for(lambda: len(store.turns(first)) == 2)
    run.send("/exit\r")
    run.exit_code()
    fork = runs.ready("--resume", first, "--fork-session", "--session-id", second)
    fork.send("more words\r")
    wait_for(lambda: len(store.turns(second)) == 4)
    assert [turn["text"] for turn in store.turns(second)][::2] == ["original words", "more words"]
    assert len(store.turns(first)) == 2
    notes = (store.data / "workspaces.jsonl").read_text().splitlines()
    assert [(json.loads(n)["id"], json.loads(n)["cwd"]) for n in notes] == [
        (first, str(store.folder)),
        (second, str(store.folder)),
    ]


def test_no_message_no_file_no_farewell(store, runs):
    run = runs.ready("--session-id", ID)
    run.send("/exit\r")
    assert run.exit_code() == 0
    assert "Resume with" not in run.text()
    assert not store.data.exists()


def test_terminal_is_raw_while_it_runs_and_restored_after(runs):
    run = runs.start()
    before = termios.tcgetattr(run.terminal)
    run.sees("for help")
    during = termios.tcgetattr(run.terminal)
    assert not during[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
    assert b"\x1b[?2004h" in run.raw
    assert b"\x1b[?1049h" not in run.raw
    assert b"\x1b]2;\xe2\x97\x87 practice \xc2\xb7 ready\x07" in run.raw
    run.send("\x04")
    assert run.exit_code() == 0
    assert b"\x1b[?2004l" in run.raw
    assert run.raw.rindex(b"\x1b[?25h") > run.raw.rindex(b"\x1b[?25l")
    assert termios.tcgetattr(run.terminal) == before


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)]
)
@pytest.mark.parametrize("prompt", ["", "/hang"])
def test_signals_end_it(number, code, prompt, store, runs):
    run = runs.ready("--settings", store.recorder(), *([prompt] if prompt else []))
    wait_for(lambda: len(store.heard()) == (2 if prompt else 1))
    run.signal(number)
    assert run.exit_code() == code
    assert b"\x1b[?2004l" in run.raw
    last = store.heard()[-1]
    assert (last["hook_event_name"], last["reason"]) == ("SessionEnd", "other")


def test_a_closed_terminal_ends_it(store, runs):
    run = runs.ready("--ignore-sigterm", "--settings", store.recorder())
    wait_for(lambda: store.heard_names() == ["SessionStart"])
    run.hang_up()
    assert run.exit_code() == 129
    assert store.heard()[-1]["reason"] == "other"


def test_one_that_ignores_everything_but_the_last_resort(runs):
    run = runs.ready("--ignore-sigterm")
    run.signal(signal.SIGTERM)
    run.signal(signal.SIGHUP)
    run.send("/exit\r")
    run.sees("Exiting…")
    run.signal(signal.SIGTERM)
    # It still follows the size of its terminal: it lives, and it took no notice of the rest.
    run.resize(60, 24)
    run.sees("\n" + "─" * 60 + "\r")
    run.signal(signal.SIGKILL)
    assert run.exit_code() == -signal.SIGKILL


@pytest.mark.parametrize("scene", ["a flood", "a long history"])
def test_a_terminal_that_nobody_reads_does_not_hold_it(scene, store, runs):
    if scene == "a flood":
        run = runs.ready()
        run.send("/flood 10000\r")
        run.reads_up_to("flood 0000")
    else:
        store.data.mkdir(parents=True)
        turn = json.dumps({"type": "user", "text": "word " * 100, "at": ""}) + "\n"
        (store.data / f"{ID}.jsonl").write_text(turn * 2000)
        run = runs.start("--resume", ID)
    # From here on the test reads nothing, so soon the agent's output has nowhere to go.
    wait_for(run.is_full, "a full terminal")
    run.signal(signal.SIGTERM)
    wait_for(run.has_ended, "an end without a reader")
    assert run.code == 143


def test_what_follows_an_exit_is_not_taken(store, runs):
    run = runs.ready("--session-id", ID)
    run.send("/exit\rmore words\r")
    assert run.exit_code() == 0
    assert store.turns(ID) == []


def test_the_last_hook_outlives_the_hangup(store, runs):
    hook = f"kill -HUP $$; cat > {store.events}/told"
    run = runs.ready("--settings", json.dumps({"hooks": {"SessionEnd": hook}}))
    run.signal(signal.SIGHUP)
    assert run.exit_code() == 129
    assert json.loads((store.events / "told").read_text())["reason"] == "other"


@pytest.mark.parametrize(("prompt", "code"), [("/crash", 1), ("/crash 42", 42)])
def test_crash_is_sudden(prompt, code, store, runs):
    run = runs.start("--session-id", ID, "--settings", store.recorder(), prompt)
    assert run.exit_code() == code
    assert [turn["text"] for turn in store.turns(ID)] == [prompt]
    wait_for(lambda: "UserPromptSubmit" in store.heard_names() or len(store.heard()) == 1)
    assert "SessionEnd" not in store.heard_names()


def test_hooks_hear_a_whole_life_in_order(store, runs):
    run = runs.ready("--session-id", ID, "--settings", store.recorder())
    run.send("hello\r")
    wait_for(lambda: "Stop" in store.heard_names())
    run.send("/ask touch made\r")
    run.sees("Do you want to proceed?")
    wait_for(lambda: "PermissionRequest" in store.heard_names())
    run.send("\r")
    wait_for(lambda: store.heard_names().count("Stop") == 2)
    run.send("/exit\r")
    assert run.exit_code() == 0
    assert store.heard_names() == [
        "SessionStart",
        "UserPromptSubmit",
        "Stop",
        "UserPromptSubmit",
        "PermissionRequest",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ]
    assert {payload["session_id"] for payload in store.heard()} == {ID}
    assert {payload["cwd"] for payload in store.heard()} == {str(store.folder)}
    assert {payload["transcript_path"] for payload in store.heard()} == {str(store.data / f"{ID}.jsonl")}
    assert store.heard()[-1]["reason"] == "prompt_input_exit"
    assert (store.folder / "made").exists()


def test_hooks_that_hang_or_fail_do_not_disturb(store, runs):
    pid = store.folder / "pid"
    hooks = {"SessionStart": f"echo $$ > {pid}; exec sleep 600", "UserPromptSubmit": "exit 1"}
    # A hook that hangs is killed after a while. On a very slow machine that may be before the turn is over.
    for ident in (ID, ID.replace("1", "2"), ID.replace("1", "3")):
        pid.unlink(missing_ok=True)
        run = runs.ready("--session-id", ident, "--settings", json.dumps({"hooks": hooks}))
        run.send("hello\r")
        wait_for(lambda ident=ident: len(store.turns(ident)) == 2)
        if is_running(int(wait_for(lambda: pid.exists() and pid.read_text(encoding="ascii").strip()))):
            return
    raise AssertionError("the turn waited for the hook")


def test_escape_is_told_from_the_sequences_it_begins(store, runs):
    run = runs.ready("--session-id", ID, "/hang")
    run.sees("esc to interrupt")
    for byte in b"\x1b[A":
        run.send(bytes([byte]))
    run.send("\x15")
    assert "Interrupted" not in run.text()
    run.send("\x1b")
    run.sees("Interrupted · What should the agent do instead?")


def test_a_megabyte_is_pasted_exactly(store, runs):
    run = runs.ready("--session-id", ID)
    text = ("0123456789 é漢\t\n" * 70_000)[: 1 << 20]
    run.send(b"\x1b[200~" + text.encode() + b"\x1b[201~")
    run.sees(f"[Pasted text #1 +{text.count(chr(10))} lines]")
    run.send("\r")
    wait_for(lambda: store.turns(ID))
    assert store.turns(ID)[0]["text"] == text


def test_utf8_cut_at_every_byte(store, runs):
    run = runs.ready("--session-id", ID)
    for byte in "é漢👍🏽".encode():
        run.send(bytes([byte]))
    run.send("\r")
    wait_for(lambda: store.turns(ID))
    assert store.turns(ID)[0]["text"] == "é漢👍🏽"


def test_controls_in_a_prompt_are_never_echoed(store, runs):
    run = runs.ready("--session-id", ID)
    run.send("\x1b[200~evil\x1b]0;owned\x07\x1b[2J\x9b31m\x1b[201~\r")
    wait_for(lambda: len(store.turns(ID)) == 2)
    run.send("/exit\r")
    run.exit_code()
    assert b"evil^[]0;owned^G^[[2J" in run.raw
    assert b"\x1b]0;owned" not in run.raw
    assert b"\x1b[2J" not in run.raw


def test_text_typed_before_the_box_is_not_lost(runs):
    run = runs.start("--slow-start", "0.3")
    run.sees("Starting…")
    run.send("early\r")
    run.sees("❯ early")
    assert "● " not in run.text()


EVERYTHING = "import mam.practice.__main__, mam.practice.loop, mam.practice.settings"


def test_nothing_slow_is_imported_before_the_box(store):
    code = f"{EVERYTHING}; import sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], env=store.environment, capture_output=True, text=True, check=True
    ).stdout.split()
    slow = {"argparse", "asyncio", "dataclasses", "inspect", "json", "logging", "pathlib", "random", "re"}
    assert not (slow | {"shutil", "subprocess", "tempfile", "threading", "typing", "uuid"}) & set(loaded)
    assert [name for name in loaded if name.startswith("mam.") and not name.startswith("mam.practice")] == []


def test_it_loads_little_more_than_python_itself(store):
    """How long it takes is measured by `./dev bench`."""
    code = f"import sys; before = set(sys.modules); {EVERYTHING}; print(*(set(sys.modules) - before))"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], env=store.environment, capture_output=True, text=True, check=True
    ).stdout.split()
    others = [name for name in loaded if not name.startswith("mam")]
    assert len(others) <= 28, sorted(others)
