"""Draw docs/picture.svg, the picture in the README.

The script types real commands into a real terminal, and draws what the terminal shows.
Run it with `.venv/bin/python docs/picture.py` after a change of what mam prints.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
COLUMNS, LINES = 100, 50
# The size of one character in the picture, the space above a comment, and the outer edge.
CELL, HEIGHT, GAP, EDGE = 8.43, 18, 12, 24
PROMPT, COMMENT = "❱", "❱ #"
TEXT, COMMAND, GREY = "#b6bdc9", "#ffffff", "#8f97a5"
COLOURS = {
    "30": "#3b4252", "31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "34": "#61afef", "35": "#c678dd",
    "36": "#56b6c2", "37": "#dcdfe4", "90": "#7f848e", "91": "#e06c75", "92": "#98c379", "93": "#e5c07b",
    "94": "#61afef", "95": "#c678dd", "96": "#56b6c2", "97": "#ffffff",
}  # fmt: skip
# A line that begins with # is typed too: the shell ignores it, and the picture shows it as a comment.
STEPS = [
    "# Start two agents, each in a tmux pane of its own.",
    "mam create --agent practice --session api --role developer --prompt 'run the tests'",
    "mam create --agent practice --session docs --role writer --prompt 'describe the API'",
    "# Wait until the developer needs you. Then see what both of them do.",
    "mam wait api --for waiting",
    "mam ls",
    "# Read the question that is open, and answer it.",
    "mam answer api",
    "mam answer api allow",
    "# Stop both in the evening. Go on in the morning, with the same conversations.",
    "mam stop --all --reason 'going home'",
    "mam resume --all --stopped",
]


def tmux(server: str, *arguments: str) -> str:
    """Run tmux on a server that only this script uses."""
    command = ["tmux", "-L", server, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def capture(server: str) -> str:
    """Return the lines of the terminal with their colour codes."""
    return tmux(server, "capture-pane", "-p", "-e", "-t", "=picture:", "-S", "-200")


def without_codes(text: str) -> str:
    """Return a text without the colour codes of the terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def wait_for_prompt(server: str, count: int) -> None:
    """Wait until the terminal shows that many prompts of the shell."""
    deadline = time.monotonic() + 60
    while len(re.findall(rf"^{PROMPT}", without_codes(capture(server)), re.MULTILINE)) < count:
        if time.monotonic() > deadline:
            raise SystemExit("the shell shows no new prompt:\n" + capture(server))
        time.sleep(0.05)


def record(folder: str, server: str) -> list[str]:
    """Type the steps and return the lines that the terminal shows."""
    work = Path(folder) / "shop" / "web"
    work.mkdir(parents=True)
    env = {
        "HOME": folder, "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "tmux-256color", "LANG": "C.UTF-8",
        "PS1": f"\\[\\e[32m\\]{PROMPT}\\[\\e[0m\\] ", "TMUX_SERVER_NAME": f"{server}-agents",
        "TMUX_TMPDIR": folder, "HISTFILE": "/dev/null",
    }  # fmt: skip
    variables = [f"{key}={value}" for key, value in env.items()]
    tmux(
        server, "-f", "/dev/null", "new-session", "-d", "-s", "picture", "-x", str(COLUMNS), "-y", str(LINES),
        "-c", str(work), "env", "-i", *variables, "bash", "--norc", "--noprofile",
    )  # fmt: skip
    wait_for_prompt(server, 1)
    for number, line in enumerate(STEPS, 2):
        tmux(server, "send-keys", "-t", "=picture:", "-l", line)
        tmux(server, "send-keys", "-t", "=picture:", "Enter")
        wait_for_prompt(server, number)
    lines = capture(server).rstrip().splitlines()
    return lines[:-1]


def spans(line: str) -> list[tuple[int, str, str]]:
    """Return the pieces of a line as (column, text, SVG attributes)."""
    plain = without_codes(line)
    if plain.startswith(COMMENT):
        return [(0, plain.removeprefix(PROMPT).strip(), f'fill="{GREY}" font-style="italic"')]
    pieces, column, codes = [], 0, ["0"]
    default = COMMAND if plain.startswith(PROMPT) else TEXT
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            fresh = [code or "0" for code in piece[2:-1].split(";")]
            codes = ["0"] if "0" in fresh else codes
            codes = [code for code in [*codes, *fresh] if not ("39" in fresh and code in COLOURS)]
        elif piece:
            pieces.append((column, piece, attributes(codes, default)))
            column += len(piece)
    return pieces


def attributes(codes: list[str], default: str) -> str:
    """Return the SVG attributes that stand for the colour codes of a terminal."""
    colour = next((COLOURS[code] for code in reversed(codes) if code in COLOURS), default)
    weight = ' font-weight="bold"' if "1" in codes else ""
    faint = ' fill-opacity="0.6"' if "2" in codes else ""
    return f'fill="{colour}"{weight}{faint}'


def draw(lines: list[str]) -> str:
    """Return the picture as SVG."""
    texts, y = [], 54
    for number, line in enumerate(lines):
        pieces = spans(line)
        if number and "italic" in pieces[0][2]:
            y += GAP
        for column, text, attributes_of_text in pieces:
            if text.strip():
                # Every font gets the width of the terminal's cells, so that columns stay below each other.
                length = f' textLength="{len(text) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
                texts.append(
                    f'<text x="{EDGE + column * CELL:.1f}" y="{y}" xml:space="preserve" '
                    f"{attributes_of_text}{length}>{html.escape(text)}</text>"
                )
        y += HEIGHT
    width, height = COLUMNS * CELL + 2 * EDGE, y + 6
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="A terminal with mam commands">',
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#1e2127"/>',
        *(
            f'<circle cx="{EDGE + 6 + 20 * number}" cy="22" r="6" fill="{colour}"/>'
            for number, colour in enumerate(("#e06c75", "#e5c07b", "#98c379"))
        ),
        '<g font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">',
    ]
    return "\n".join([*head, *texts, "</g>", "</svg>", ""])


def main() -> None:
    """Record the terminal, draw it, and end both tmux servers."""
    server, folder = f"mam-picture-{os.getpid()}", tempfile.mkdtemp(prefix="mam-picture-")
    # Both servers have their sockets in this folder, also where the caller has set another one.
    os.environ["TMUX_TMPDIR"] = folder
    try:
        picture = draw(record(folder, server))
    finally:
        for name in (server, f"{server}-agents"):
            subprocess.run(["tmux", "-L", name, "kill-server"], check=False, capture_output=True, timeout=20)
        remove(folder)
    (HERE / "picture.svg").write_text(picture.replace(folder, "~"), encoding="utf-8")


def remove(folder: str) -> None:
    """Remove the folder. Until the resident has ended, it may write into it again."""
    deadline, absent_since = time.monotonic() + 60, time.monotonic()
    while time.monotonic() < min(deadline, absent_since + 3):
        if Path(folder).exists():
            shutil.rmtree(folder, ignore_errors=True)
            absent_since = time.monotonic()
        time.sleep(0.1)


if __name__ == "__main__":
    main()
