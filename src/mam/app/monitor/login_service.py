"""Installs a resident that starts at login: as a systemd user unit, or as a launchd agent.

Neither starts or ends a tmux server, so sessions keep running whatever happens to the service.
"""

from __future__ import annotations

import hashlib
import os
import sys

from mam.adapters.system import concurrent_program, program_lookup
from mam.app.context.resident_start_and_lock import command
from mam.core.errors import ReadOnly
from mam.core.names import slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context

_SECONDS = 30.0
# The service manager does not pass on these variables, which locate programs, tmux servers and files.
_WHERE = (
    "PATH",
    "TMUX_TMPDIR",
    "TMUX_SERVER_NAME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "MAM_STATE_HOME",
)


def install(context: Context) -> dict[str, Any]:
    """Write and start the unit of this root; `notes` names each command that the user must run."""
    path, text = unit(context)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error
    return _run(context, path, _start(path))


def uninstall(context: Context) -> dict[str, Any]:
    """Stop and remove the unit of this root; a missing unit is no error."""
    path, _ = unit(context)
    if not os.path.exists(path):
        return {"unit": path, "changed": False, "notes": []}
    report = _run(context, path, _stop(path))
    os.unlink(path)
    return report


def unit(context: Context) -> tuple[str, str]:
    """Return the path of the unit of a root, and its content."""
    home = context.environ.get("HOME") or os.path.expanduser("~")
    digest = hashlib.sha256(os.fsencode(context.paths.root)).hexdigest()[:8]
    name = f"mam-{slug(os.path.basename(context.paths.root)) or 'root'}-{digest}"
    argv = [*(word for word in command(context) if word != "--resident"), "--idle-timeout", "0"]
    environ = {key: value for key in _WHERE if (value := context.environ.get(key))}
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "LaunchAgents", f"{name}.plist"), _plist(name, argv, environ)
    config = context.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(config, "systemd", "user", f"{name}.service"), _unit(
        context.paths.root, argv, environ
    )


def _unit(root: str, argv: list[str], environ: dict[str, str]) -> str:
    variables = "".join(f"Environment={_quoted(f'{key}={value}', '%')}\n" for key, value in environ.items())
    return f"""\
[Unit]
Description=mam watches {_plain(root)}

[Service]
{variables}ExecStart={" ".join(map(_quoted, argv))}
Restart=on-failure
KillMode=process

[Install]
WantedBy=default.target
"""


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text).replace("%", "%%")


def _quoted(word: str, doubled: str = "%$") -> str:
    """Return a word quoted for a systemd unit, where `%` and, in a command, `$` are special."""
    out = []
    for character in word:
        if character in '\\"':
            out.append("\\" + character)
        elif character in doubled:
            out.append(character * 2)
        elif character.isprintable():
            out.append(character)
        else:
            out += [f"\\x{byte:02x}" for byte in character.encode()]
    return '"' + "".join(out) + '"'


def _plist(name: str, argv: list[str], environ: dict[str, str]) -> str:
    import plistlib

    facts = {
        "Label": name,
        "ProgramArguments": argv,
        "EnvironmentVariables": environ,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
    }
    return plistlib.dumps(facts).decode()


def _start(path: str) -> list[list[str]]:
    if sys.platform == "darwin":
        return [["launchctl", "load", "-w", path]]
    return [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", "--now", os.path.basename(path)],
    ]


def _stop(path: str) -> list[list[str]]:
    if sys.platform == "darwin":
        return [["launchctl", "unload", "-w", path]]
    return [["systemctl", "--user", "disable", "--now", os.path.basename(path)]]


def _run(context: Context, path: str, commands: list[list[str]]) -> dict[str, Any]:
    notes = []
    for argv in commands:
        program = program_lookup.which(argv[0], context.environ.get("PATH", os.defpath))
        if program is None:
            notes.append(f"{argv[0]} is not on PATH; run it yourself: {' '.join(argv)}")
            continue
        result = concurrent_program.Running([program, *argv[1:]], context.environ).finish(_SECONDS)
        if result.status != 0:
            notes.append(f"{' '.join(argv)}: {result.output or f'exit {result.status}'}")
    return {"unit": path, "changed": True, "notes": notes}
