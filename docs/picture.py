"""Renders docs/picture.svg: real commands typed into a real terminal, drawn as they were shown.

Run it with `.venv/bin/python docs/picture.py` when what mam prints has changed.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
COLUMNS, LINES = 118, 41
CELL, HEIGHT = 8.43, 18
COLOURS = {
    "30": "#3b4252", "31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "34": "#61afef", "35": "#c678dd",
    "36": "#56b6c2", "37": "#dcdfe4", "90": "#7f848e", "91": "#e06c75", "92": "#98c379", "93": "#e5c07b",
    "94": "#61afef", "95": "#c678dd", "96": "#56b6c2", "97": "#ffffff",
}  # fmt: skip
STEPS = [
    "mam create --agent practice --role developer --prompt 'add a login page'",
    "mam create --agent practice --session reviewer --role reviewer --prompt 'run the tests'",
    "mam wait reviewer --for waiting",
    "mam ls",
    "mam read reviewer --lines 8",
    "mam stop reviewer --reason lunch",
    "mam resume reviewer",
]


def tmux(server: str, *words: str) -> str:
    """Run tmux on the picture's own server."""
    command = ["tmux", "-L", server, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout


def shown(server: str) -> str:
    """Return the terminal's lines with their colours."""
    return tmux(server, "capture-pane", "-p", "-e", "-t", "=picture:", "-S", "-200")


def wait_for_prompt(server: str, count: int) -> None:
    """Wait until the shell has come back that many times."""
    deadline = time.monotonic() + 60
    while len(re.findall(r"^❱", re.sub(r"\x1b\[[0-9;]*m", "", shown(server)), re.MULTILINE)) < count:
        if time.monotonic() > deadline:
            raise SystemExit("the picture's shell did not come back:\n" + shown(server))
        time.sleep(0.05)


def record(folder: str, server: str) -> list[str]:
    """Type the steps and return what the terminal shows."""
    work = Path(folder) / "shop" / "web"
    work.mkdir(parents=True)
    env = {
        "HOME": folder, "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "tmux-256color", "LANG": "C.UTF-8",
        "PS1": "\\[\\e[32m\\]❱\\[\\e[0m\\] ", "TMUX_SERVER_NAME": f"{server}-agents", "HISTFILE": "/dev/null",
    }  # fmt: skip
    words = [f"{key}={value}" for key, value in env.items()]
    tmux(
        server, "-f", "/dev/null", "new-session", "-d", "-s", "picture", "-x", str(COLUMNS), "-y", str(LINES),
        "-c", str(work), "env", "-i", *words, "bash", "--norc", "--noprofile",
    )  # fmt: skip
    wait_for_prompt(server, 1)
    for number, line in enumerate(STEPS, 2):
        tmux(server, "send-keys", "-t", "=picture:", "-l", line)
        tmux(server, "send-keys", "-t", "=picture:", "Enter")
        wait_for_prompt(server, number)
    lines = shown(server).rstrip().splitlines()
    return lines[:-1]


def spans(line: str) -> list[tuple[int, str, str]]:
    """Return the pieces of a line as (column, text, style)."""
    found, column, codes = [], 0, ["0"]
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            fresh = [code or "0" for code in piece[2:-1].split(";")]
            codes = ["0"] if "0" in fresh else codes
            codes = [code for code in [*codes, *fresh] if not ("39" in fresh and code in COLOURS)]
        elif piece:
            found.append((column, piece, style(codes)))
            column += len(piece)
    return found


def style(codes: list[str]) -> str:
    """Return SVG attributes for a terminal's colour codes."""
    colour = next((COLOURS[code] for code in reversed(codes) if code in COLOURS), "#dcdfe4")
    weight = ' font-weight="bold"' if "1" in codes else ""
    faint = ' fill-opacity="0.6"' if "2" in codes else ""
    return f'fill="{colour}"{weight}{faint}'


def draw(lines: list[str]) -> str:
    """Return the picture."""
    width, height = COLUMNS * CELL + 40, len(lines) * HEIGHT + 62
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" aria-label="A terminal with mam commands">',
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#1e2127"/>',
        *(
            f'<circle cx="{20 + 20 * n}" cy="20" r="6" fill="{c}"/>'
            for n, c in enumerate(("#e06c75", "#e5c07b", "#98c379"))
        ),
        '<g font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14">',
    ]
    for number, line in enumerate(lines):
        y = 54 + number * HEIGHT
        for column, text, attributes in spans(line):
            if text.strip():
                length = f' textLength="{len(text) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
                out.append(
                    f'<text x="{20 + column * CELL:.1f}" y="{y}" xml:space="preserve" {attributes}{length}>'
                    f"{html.escape(text)}</text>"
                )
    return "\n".join([*out, "</g>", "</svg>", ""])


def main() -> None:
    """Record, draw, clean up."""
    server = f"mam-picture-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="mam-picture-") as folder:
        try:
            picture = draw(record(folder, server))
        finally:
            for name in (server, f"{server}-agents"):
                subprocess.run(
                    ["tmux", "-L", name, "kill-server"], check=False, capture_output=True, timeout=20
                )
    (HERE / "picture.svg").write_text(picture.replace(folder, "~"), encoding="utf-8")


if __name__ == "__main__":
    main()
