"""How each program is spoken to, and what shows that it is in a state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Manners:
    """One program: the patterns of its states, its keys and commands, its arguments."""

    permission: str
    error: str
    retry: str
    queued: str
    question: str | None = None
    erase: tuple[str, ...] = ("C-u",)
    interrupt: tuple[str, ...] = ("Escape",)
    clear: str = "/clear"
    resume: tuple[str, ...] = ("--continue",)
    free: tuple[str, ...] = ()


MANNERS = {
    "claude": Manners(
        permission=r"Do you want to proceed\?",
        question=r"Enter to select",
        error=r"API Error: 400",
        retry=r"attempt \d+/\d+",
        queued=r"and this too",
        free=("--allowedTools", "Bash"),
    ),
    "codex": Manners(
        permission=r"Would you like to run",
        error=r"fake error 400",
        retry=r"Reconnecting",
        queued=r"and this too",
        erase=("C-c",),
        resume=("resume", "--last"),
        free=("--dangerously-bypass-approvals-and-sandbox",),
    ),
    "gemini": Manners(
        permission=r"Allow execution of",
        question=r"Which color",
        error=r"fake error 400",
        retry=r"Thinking",
        queued=r"Queued",
        resume=("--resume", "latest"),
        free=("--approval-mode", "yolo"),
    ),
    "opencode": Manners(
        permission=r"Permission required",
        question=r"Which color",
        error=r"fake error 400",
        retry=r"retrying",
        queued=r"QUEUED",
        interrupt=("Escape", "Escape"),
        clear="/new",
        free=("--auto",),
    ),
}
