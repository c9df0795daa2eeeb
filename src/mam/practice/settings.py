"""Reads `--settings`: the hooks, as a file or as JSON."""

from __future__ import annotations

from .transcript import Refused


def load_hooks(setting: str) -> dict[str, str]:
    """Return the shell command of each event; raises Refused."""
    if not setting:
        return {}
    import json

    text = setting if setting.lstrip().startswith("{") else _read(setting)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("Error: --settings is not valid JSON") from None
    hooks = value.get("hooks", {}) if isinstance(value, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(command, str) for command in hooks.values()):
        raise Refused('Error: --settings must look like {"hooks": {"Stop": "shell command"}}')
    return hooks


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not readable as text"
        raise Refused(f"Error: settings file {path}: {reason}") from None
