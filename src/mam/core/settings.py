"""The settings of mam: their defaults, and the checks for each key of a settings file."""

from __future__ import annotations

from mam.core import authority
from mam.core.authority import GRANTS, REACHES
from mam.core.errors import InvalidName, InvalidSettings
from mam.core.names import parse_server
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.core.authority import Rule
    from mam.core.broker_address import Broker

PERMISSIONS = ("default", "ask", "auto", "skip")
RESIDENT = ("auto", "off")
# What a process without a terminal counts as that a session may have detached.
DETACHED = ("unknown", "user")
_LONGEST_SECONDS = 86_400
_DAY = 86_400.0
_KEPT_SECONDS = 90 * _DAY
_KEEPS = ("keep_jobs", "keep_log", "keep_messages")
_PERMISSIONS = ("job_permissions", "permissions", "team_permissions")
# Only the settings file of the user sets these: the file of a root may come with a foreign repository.
USER_ONLY = (
    "answers",
    "broker",
    "codex",
    "detached",
    "judge_command",
    "known_versions",
    "mcp",
    "messages",
    "notify_command",
    "safe_roots",
)
# MCP tools that an agent gets only if the operator allows them.
GUARDED_TOOLS = ("answer_prompt", "kill", "purge")


class Settings:
    """The current settings; each has a default."""

    __slots__ = (
        "answers",
        "broker",
        "codex",
        "detached",
        "job_permissions",
        "judge_command",
        "keep_jobs",
        "keep_log",
        "keep_messages",
        "known_versions",
        "mcp",
        "messages",
        "notify_command",
        "notify_desktop",
        "permissions",
        "ready_timeout",
        "resident",
        "safe_roots",
        "team_permissions",
        "tmux_server",
        "validation_timeout",
    )

    def __init__(self) -> None:
        """Set the defaults."""
        self.tmux_server = "default"
        self.permissions = "default"
        # Permissions of a job's agent. Nobody watches its screen, so nobody would answer a permission dialog.
        self.job_permissions = "skip"
        # Permissions of an agent that `spawn` or `team up` starts.
        self.team_permissions = "skip"
        self.ready_timeout = 60.0
        # Seconds that the validation script of a job may take.
        self.validation_timeout = 600.0
        self.known_versions: tuple[str, ...] = ()
        self.resident = "auto"
        self.notify_desktop = True
        self.notify_command: tuple[str, ...] = ()
        self.judge_command: tuple[str, ...] = ()
        self.codex: dict[str, bool] = {}
        self.messages: Rule = authority.ALL
        self.answers = authority.PARENT
        self.detached = DETACHED[0]
        self.broker: Broker | None = None
        # Seconds that mam keeps what has ended; None keeps it for ever.
        self.keep_jobs: float | None = _KEPT_SECONDS
        self.keep_log: float | None = _KEPT_SECONDS
        self.keep_messages: float | None = _KEPT_SECONDS
        # Roots that mam uses whoever owns them, and also on a network file system.
        self.safe_roots: tuple[str, ...] = ()
        # What sessions may do to others than their descendants, and which guarded tools they get.
        self.mcp: dict[str, Any] = {"message": "descendants", "stop": "descendants", "allow": ()}

    def of_kind(self, name: str) -> dict[str, bool]:
        """Return the settings that apply only to one agent kind."""
        return self.codex if name == "codex" else {}

    def apply(self, values: dict[str, Any], path: str, *, of_root: bool = False) -> list[str]:
        """Override the settings with the values of one file; raise InvalidSettings for a wrong value.

        The file of a root (`of_root`) may come with a foreign repository, so it cannot weaken a protection:
        what only the user sets is ignored there. Return the keys that are ignored.
        """
        ignored = []
        checks: dict[str, Callable[[object], object]] = {
            "tmux_server": _server,
            "permissions": _permissions,
            "job_permissions": _permissions,
            "team_permissions": _permissions,
            "ready_timeout": _seconds,
            "validation_timeout": _seconds,
            "known_versions": _versions,
            "resident": _resident,
            "notify_desktop": _switch,
            "notify_command": _command,
            "judge_command": _command,
            "codex": _codex,
            "messages": _messages,
            "answers": _answers,
            "detached": _detached,
            "broker": _broker,
            "mcp": _mcp,
            "safe_roots": _paths,
            "keep_jobs": _kept,
            "keep_log": _kept,
            "keep_messages": _kept,
        }
        for key, value in values.items():
            if key not in checks:
                raise InvalidSettings(
                    f"{path}: there is no setting '{key}'", hint=f"settings are {', '.join(sorted(checks))}"
                )
            # A root may choose a tmux server of this user by its name, and no socket.
            is_socket = key == "tmux_server" and "/" in str(value)
            if of_root and (key in USER_ONLY or is_socket or (key in _PERMISSIONS and value != "ask")):
                ignored.append(key)
                continue
            try:
                checked = checks[key](value)
                # A root may keep its history longer than the user wants, and not delete it sooner.
                if of_root and key in _KEEPS and _is_shorter(checked, getattr(self, key)):
                    ignored.append(key)
                    continue
                setattr(self, key, checked)
            except InvalidSettings as error:
                raise InvalidSettings(f"{path}: '{key}': {error}", hint=error.hint) from None
            except (InvalidName, TypeError, ValueError) as error:
                text = one_line(repr(value), 80)
                raise InvalidSettings(f"{path}: '{key}' cannot be {text}: {error}") from None
        return ignored


def _server(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("it must be a text")
    return parse_server(value)


def _permissions(value: object) -> str:
    if value not in PERMISSIONS:
        raise ValueError(f"it must be one of {', '.join(PERMISSIONS)}")
    return str(value)


def _codex(value: object) -> dict[str, bool]:
    if not isinstance(value, dict) or value.keys() - {"bypass_hook_trust"}:
        raise TypeError("it must be a table with bypass_hook_trust")
    return {key: _switch(switch) for key, switch in value.items()}


def _broker(value: object) -> Broker:
    from mam.core.broker_address import of_json

    return of_json(value)


def _messages(value: object) -> Rule:
    if isinstance(value, str) and value in authority.MESSAGES:
        return value
    if isinstance(value, list) and all(isinstance(text, str) and text.count("->") == 1 for text in value):
        pairs = [tuple(part.strip() for part in text.split("->")) for text in value]
        if all(part for pair in pairs for part in pair):
            return tuple((sender, target) for sender, target in pairs)
    raise ValueError(
        f"it must be one of {', '.join(authority.MESSAGES)}, or a list of pairs: "
        '["reviewer -> developer", "* -> lead"]'
    )


def _answers(value: object) -> str:
    if value not in authority.ANSWERS:
        raise ValueError(f"it must be one of {', '.join(authority.ANSWERS)}")
    return str(value)


def _detached(value: object) -> str:
    if value not in DETACHED:
        raise ValueError(f"it must be one of {', '.join(DETACHED)}")
    return str(value)


def _mcp(value: object) -> dict[str, Any]:
    grants: dict[str, Any] = {"message": "descendants", "stop": "descendants", "allow": ()}
    if not isinstance(value, dict) or value.keys() - grants:
        raise TypeError("it must be a table with message, stop and allow")
    for grant in GRANTS:
        if value.get(grant, "descendants") not in REACHES:
            raise ValueError(f"{grant} must be one of {', '.join(REACHES)}")
    allowed = value.get("allow", [])
    if not isinstance(allowed, list) or set(allowed) - set(GUARDED_TOOLS):
        raise ValueError(f"allow must be a list of {', '.join(GUARDED_TOOLS)}")
    return {**grants, **value, "allow": tuple(allowed)}


def _resident(value: object) -> str:
    if value not in RESIDENT:
        raise ValueError(f"it must be one of {', '.join(RESIDENT)}")
    return str(value)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("it must be true or false")
    return value


def _command(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise TypeError("it must be a list of words, the program first")
    return tuple(value)


def _paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        isinstance(path, str) and path.startswith("/") and "\0" not in path for path in value
    ):
        raise ValueError('it must be a list of full paths: ["/srv/app", "/srv/teams/*"]')
    return tuple(value)


def _versions(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        isinstance(text, str) and len(text.split()) == 2 for text in value
    ):
        raise ValueError('it must be a list of texts, each an agent kind and a version: ["claude 2.1.325"]')
    return tuple(" ".join(text.split()) for text in value)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= _LONGEST_SECONDS:
        raise ValueError("it must be a number of seconds, at most a day")
    return float(value)


def _kept(value: object) -> float | None:
    """Return how many seconds something is kept: a number is in days; 0 and "forever" are None."""
    from mam.core.errors import Usage
    from mam.core.times import parse_span

    if value == "forever" or (value == 0 and not isinstance(value, bool)):
        return None
    refusal = 'it must be a duration such as "90d", a number of days, or "forever"'
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(refusal)
    if isinstance(value, str) and (number := value.strip()).isdecimal():
        # Elsewhere a text without a unit is in seconds, which nobody means here.
        if not number.strip("0"):
            raise ValueError('write 0 without quotes, or "forever", to keep everything')
        number = one_line(number, 20)
        raise ValueError(f'the unit is missing: write "{number}d", or {number} without quotes, which is days')
    try:
        seconds = parse_span(value).total_seconds() if isinstance(value, str) else value * _DAY
    except (Usage, OverflowError):
        raise ValueError(refusal) from None
    if not seconds >= _DAY:
        raise ValueError("it must be at least a day")
    return seconds


def _is_shorter(seconds: object, than: float | None) -> bool:
    return isinstance(seconds, float | int) and (than is None or seconds < than)
