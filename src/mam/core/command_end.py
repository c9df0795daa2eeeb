"""How the command of a job with --exec ended, as its runner records it. Pure."""

from __future__ import annotations

import json

from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNNER_GONE = "runner gone"
_EXIT_STATUS = "exit status"
_LONGEST_LINE = 200
_LAST_SIGNAL = 64
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


class CommandEnd:
    """The end of a command: its exit status, the signal that ended it, or why it did not start."""

    __slots__ = ("exit_status", "failure", "reason", "signal")

    def __init__(
        self,
        *,
        exit_status: int | None = None,
        signal: int | None = None,
        failure: str = "",
        reason: str = "",
    ) -> None:
        self.exit_status = exit_status
        self.signal = signal
        self.failure = failure
        self.reason = reason

    @property
    def is_success(self) -> bool:
        """Whether the command exited with 0."""
        return self.exit_status == 0 and not self.failure

    def facts(self) -> dict[str, Any]:
        """Return the fields of the event's data."""
        facts: dict[str, Any] = {"reason": self.reason} if self.reason else {}
        if self.signal is not None:
            return {**facts, "signal": self.signal}
        return {**facts, "exit_status": self.exit_status}

    def detail(self, last_line: str) -> str:
        """Return the end in one line; `last_line` is the last line of the output."""
        if self.failure:
            return self.failure
        end = f"exit {self.exit_status}" if self.signal is None else _by_signal(self.signal)
        return f"{end}: {one_line(last_line, _LONGEST_LINE)}" if last_line else end


def parse(content: bytes) -> CommandEnd | None:
    """Return the end that a record holds; None if it holds none, because the command has not ended."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    status, signal, failure = (record.get(key) for key in ("exit_status", "signal", "failure"))
    if isinstance(failure, str) and failure:
        reason = record.get("reason")
        return CommandEnd(
            failure=one_line(failure, 400), reason=reason if isinstance(reason, str) else "exec"
        )
    if type(signal) is int:
        return CommandEnd(signal=signal, reason="signal")
    if type(status) is int:
        return CommandEnd(exit_status=status, reason="" if status == 0 else _EXIT_STATUS)
    return None


def without_record(exit_status: int | None) -> CommandEnd:
    """Return the end of a command whose runner left no record, by the status of the pane if that is known.

    The runner ends with the status of its command, or with 128 plus the signal that ended the command. A
    runner that is ended by a signal itself has the same status, so such a status tells nothing.
    """
    if exit_status is None:
        why = "its runner is gone and left no record"
    elif 0 < exit_status - 128 <= _LAST_SIGNAL:
        why = f"it or its runner was {_by_signal(exit_status - 128)}"
    else:
        return CommandEnd(exit_status=exit_status, reason="" if exit_status == 0 else _EXIT_STATUS)
    failure = f"nobody knows how the command ended: {why}"
    return CommandEnd(exit_status=exit_status, failure=failure, reason=RUNNER_GONE)


def _by_signal(number: int) -> str:
    name = f" ({_SIGNALS[number]})" if number in _SIGNALS else ""
    return f"ended by signal {number}{name}"
