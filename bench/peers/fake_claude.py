"""A fake of Claude Code, which every program of the comparison starts as `claude`.

It has no model. It shows an input box, runs the hooks of its settings, keeps a transcript, and writes down
each text that reaches it, with the time. On request it starts two children that it does not end: one in its
own process group, one in a session of its own, as a command in the background is.

Enter submits; a line feed, a backslash before Enter, and a line break in a bracketed paste are line breaks.
The fake takes text as it comes: it has no shell mode for `!` and no command but /exit.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path
from typing import Any

VERSION = "2.1.325 (Claude Code)"
HERE = Path(sys.argv[0]).resolve().parent
# While this file is there, a fake that starts leaves children behind.
LEAVES = HERE / "with-children"
WITH_VALUE = ("--settings", "--session-id", "--resume")
PASTE, PASTE_END = b"\x1b[200~", b"\x1b[201~"
# What a terminal may send that is no text: control sequences, keys with Alt, and single function keys.
SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|\]|[^\[O])?")
FOLDED_BYTES, FOLDED_LINES = 800, 8
TURNS_SHOWN = 3
# A turn lasts long enough to be seen, and its screen changes all the while.
TURN_SECONDS, FRAME_SECONDS = 1.0, 0.1
# The program has a no-break space there, and others look for it.
PROMPT = "❯\xa0"


def write_down(event: str, **facts: object) -> None:
    """Append a line to the record; lines of many fakes do not mix."""
    line = json.dumps({"event": event, "pid": os.getpid(), "at": time.monotonic(), **facts}) + "\n"
    file = os.open(HERE / "heard.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)


def read_options(words: list[str]) -> dict[str, str]:
    """Return the options that mean something to the fake; it accepts and ignores all others."""
    found = {}
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in WITH_VALUE:
            found[name] = value if equals else (words[number + 1 : number + 2] or [""])[0]
    return found


def read_settings(settings: str) -> list[dict[str, Any]]:
    """Return the settings of the user, of the directory and of the launch."""
    config = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    texts = [settings] if settings.lstrip().startswith("{") else []
    files = [config / "settings.json", Path(".claude/settings.json"), Path(".claude/settings.local.json")]
    files += [Path(settings)] if settings and not texts else []
    texts += [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return [json.loads(text) for text in texts]


def hook_commands(settings: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    """Return the command lines of each event; a hook with `args` runs without a shell."""
    commands: dict[str, list[list[str]]] = {}
    for one in settings:
        for event, groups in (one.get("hooks") or {}).items():
            for hook in (hook for group in groups for hook in group["hooks"]):
                shell = ["/bin/sh", "-c", hook["command"]]
                argv = [hook["command"], *hook["args"]] if hook.get("args") else shell
                commands.setdefault(event, []).append(argv)
    return commands


class Fake:
    """One conversation in one terminal."""

    def __init__(self, options: dict[str, str]) -> None:
        """Read the settings; nothing runs yet."""
        settings = read_settings(options.get("--settings", ""))
        self.hooks = hook_commands(settings)
        for one in settings:
            os.environ.update(one.get("env") or {})
        drawn = f"{os.urandom(4).hex()}-0000-4000-8000-{os.urandom(6).hex()}"
        self.conversation = options.get("--session-id") or options.get("--resume") or drawn
        config = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        key = re.sub(r"[^0-9A-Za-z]", "-", str(Path.cwd()))
        self.transcript = config / "projects" / key / f"{self.conversation}.jsonl"
        self.box, self.pasting = bytearray(), False
        self.shown: list[str] = []
        # While a turn lasts: when it is over, and what it answers.
        self.over_at, self.answer_to = 0.0, ""

    def run_hooks(self, event: str, **facts: object) -> None:
        """Run the commands of an event to their end; write down what they tell the model."""
        payload = {
            "session_id": self.conversation,
            "transcript_path": str(self.transcript),
            "cwd": str(Path.cwd()),
            "permission_mode": "default",
            "hook_event_name": event,
            **facts,
        }
        for argv in self.hooks.get(event, ()):
            done = subprocess.run(
                argv,
                input=json.dumps(payload).encode(),
                capture_output=True,
                env={**os.environ, "CLAUDE_PROJECT_DIR": str(Path.cwd())},
                timeout=60,
                check=False,
            )
            if context := context_of(done.stdout.decode("utf-8", "replace").strip()):
                write_down("context", hook=event, text=context)

    def record(self, role: str, text: str) -> None:
        """Append a line to the transcript."""
        message: dict[str, object] = {"role": role, "content": text}
        if role == "assistant":
            message |= {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        entry = {"type": role, "message": message, "timestamp": stamp, "sessionId": self.conversation}
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def take(self, data: bytes) -> bytes:
        """Take in what the terminal sent; return what is not yet whole."""
        while data:
            if self.pasting:
                text, end, rest = data.partition(PASTE_END)
                if not end and len(data) < len(PASTE_END):
                    return data
                held = b"" if end else data[-len(PASTE_END) + 1 :]
                self.box += (text if end else data[: -len(PASTE_END) + 1]).replace(b"\r", b"\n")
                self.pasting, data = not end, rest
                if held:
                    return held
            elif data.startswith(PASTE):
                self.pasting, data = True, data[len(PASTE) :]
            elif data[0] == 0x1B:
                if PASTE.startswith(data):
                    return data
                data = data[len(SEQUENCE.match(data)[0]) :]  # type: ignore[index]
            else:
                self.press(data[0])
                data = data[1:]
        return b""

    def press(self, key: int) -> None:
        """Take in one byte that is a key or a part of a character."""
        if key == 0x0D and self.box.endswith(b"\\"):
            self.box[-1:] = b"\n"
        elif key == 0x0D:
            self.submit()
        elif key == 0x04 and not self.box:
            self.leave()
        elif key in (0x03, 0x15):
            self.box.clear()
        elif key == 0x7F:
            self.box[:] = self.box.decode("utf-8", "ignore")[:-1].encode()
        elif key >= 0x20 or key in (0x09, 0x0A):
            self.box.append(key)

    def submit(self) -> None:
        """Take the text of the box as a prompt; a turn begins, or goes on with it."""
        text = self.box.decode("utf-8", "replace")
        self.box.clear()
        if not text:
            return
        write_down("text", text=text)
        if text.strip() == "/exit":
            self.leave()
        self.run_hooks("UserPromptSubmit", prompt=text)
        self.record("user", text)
        self.over_at, self.answer_to = time.monotonic() + TURN_SECONDS, text

    def end_turn(self) -> None:
        """Show the answer, and rest."""
        text, self.answer_to = self.answer_to, ""
        self.record("assistant", "heard")
        first = text.partition("\n")[0][:60]
        self.shown = [
            *self.shown,
            f"❯ {first}",
            "",
            f"⏺ heard {len(text)} characters",
            "",
            "✻ Worked for 1s",
            "",
        ][-4 * TURNS_SHOWN :]
        self.run_hooks("Stop", stop_hook_active=False)
        write_down("rests")

    def clear(self) -> None:
        """Empty the input box, for whoever measures."""
        self.box.clear()
        self.pasting = False
        self.draw()

    def leave(self) -> None:
        """End as the program ends when it is asked to; the children stay."""
        self.run_hooks("SessionEnd", reason="prompt_input_exit")
        write_down("left")
        sys.exit(0)

    def draw(self) -> None:
        """Draw the screen: the last turns, the input box between two rules, a line below it."""
        columns, rows = os.get_terminal_size(1)
        text = self.box.decode("utf-8", "ignore")
        lines = text.split("\n")
        if len(text) > FOLDED_BYTES or len(lines) > FOLDED_LINES:
            lines = [f"[Pasted text #1 +{len(lines) - 1} lines]" if len(lines) > 1 else "[Pasted text #1]"]
        # A row keeps a cell free, because a wide character may need two.
        step = max(1, (columns - 4) // 2)
        inside = [line[at : at + step] for line in lines for at in range(0, max(1, len(line)), step)]
        inside = inside[-max(1, rows - 8) :]
        rule = "─" * columns
        box = [f"{'  ' if number else PROMPT}{line}" for number, line in enumerate(inside)]
        above = [" ✻ Welcome to Claude Code (a fake)", "", *self.shown]
        if self.answer_to:
            left = int((self.over_at - time.monotonic()) * 10)
            above += [f"✻ Thinking… (1s · ↓ {max(0, 10 - left)} tokens · esc to interrupt)", ""]
        above = above[-max(0, rows - len(box) - 4) :]
        shown = [*above, rule, *box, rule, "  ? for shortcuts"]
        out = "\x1b[?25l\x1b[H" + "\x1b[K\r\n".join(shown) + "\x1b[K\x1b[J"
        row, column = len(above) + 1 + len(box), min(columns, len(box[-1]) + 1)
        os.write(1, f"{out}\x1b[{row};{column}H\x1b[?25h".encode())


def context_of(out: str) -> str:
    """Return what the output of a hook gives to the model."""
    try:
        answer = json.loads(out)
    except ValueError:
        return out
    if not isinstance(answer, dict):
        return out
    specific = answer.get("hookSpecificOutput") or {}
    return str(specific.get("additionalContext") or answer.get("reason") or "")


def start_child(new_session: bool) -> int:
    """Start a program that outlives the fake unless somebody ends it; return its pid."""
    return subprocess.Popen(
        ["/bin/sleep", "7200"],
        start_new_session=new_session,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ).pid


def main() -> None:
    """Start the children, show the box, and take in what comes until the terminal is gone."""
    words = sys.argv[1:]
    if "--version" in words or "-v" in words:
        print(VERSION)
        return
    if words[:1] in (["mcp"], ["config"], ["plugin"], ["update"]) or not os.isatty(0):
        return
    fake = Fake(read_options(words))
    children = [start_child(new_session) for new_session in (False, True)] if LEAVES.exists() else []
    tty.setraw(0, termios.TCSANOW)
    signal.signal(signal.SIGWINCH, lambda *_: fake.draw())
    signal.signal(signal.SIGUSR1, lambda *_: fake.clear())
    os.write(1, b"\x1b[?2004h")
    fake.run_hooks("SessionStart", source="startup")
    fake.draw()
    write_down("started", children=children, cwd=str(Path.cwd()), arguments=words)
    held = b""
    while True:
        if not select.select([0], [], [], FRAME_SECONDS if fake.answer_to else None)[0]:
            if time.monotonic() >= fake.over_at:
                fake.end_turn()
            fake.draw()
            continue
        try:
            data = os.read(0, 65536)
        except OSError:
            return
        if not data:
            return
        held = fake.take(held + data)
        fake.draw()


if __name__ == "__main__":
    main()
