"""A resident that the machine itself starts at login: a systemd user unit, or a launchd agent.

Neither ever starts or ends a tmux server: sessions live on, whatever happens to the unit.
"""

from __future__ import annotations

import hashlib
import os
import sys

from mam.adapters.system import program_lookup
from mam.app.context.start_resident import command
from mam.core.errors import ReadOnly
from mam.core.names import slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context

_SECONDS = 30.0
# Where programs, tmux servers and files are; what starts a service does not say it.
_WHERE = (
    "PATH",
    "TMUX_TMPDIR",
    "TMUX_SERVER_NAME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)


def install(context: Context) -> dict[str, Any]:
    """Write the unit of this root and have it started; what the machine refuses is said with the way out."""
    path, text = unit(context)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error
    return _run(context, path, _start(path))


def uninstall(context: Context) -> dict[str, Any]:
    """Stop and remove the unit of this root; one that is not there is no error."""
    path, _ = unit(context)
    if not os.path.exists(path):
        return {"unit": path, "changed": False, "notes": []}
    done = _run(context, path, _stop(path))
    os.unlink(path)
    return done


def unit(context: Context) -> tuple[str, str]:
    """Return where the unit of a root lies, and what it says."""
    home = context.environ.get("HOME") or os.path.expanduser("~")
    digest = hashlib.sha256(os.fsencode(context.paths.root)).hexdigest()[:8]
    name = f"mam-{slug(os.path.basename(context.paths.root)) or 'root'}-{digest}"
    argv = [*(word for word in command(context) if word != "--resident"), "--idle-timeout", "0"]
    known = {key: value for key in _WHERE if (value := context.environ.get(key))}
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "LaunchAgents", f"{name}.plist"), _plist(name, argv, known)
    config = context.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(config, "systemd", "user", f"{name}.service"), _unit(context.paths.root, argv, known)


def _unit(root: str, argv: list[str], environ: dict[str, str]) -> str:
    known = "".join(f"Environment={_quoted(f'{key}={value}', '%')}\n" for key, value in environ.items())
    return f"""\
[Unit]
Description=mam watches {_plain(root)}

[Service]
{known}ExecStart={" ".join(map(_quoted, argv))}
Restart=on-failure
KillMode=process

[Install]
WantedBy=default.target
"""


def _plain(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text).replace("%", "%%")


def _quoted(word: str, doubled: str = "%$") -> str:
    """Return a word as systemd reads it back: `%` and, in a command, `$` mean something there."""
    out = []
    for one in word:
        if one in '\\"':
            out.append("\\" + one)
        elif one in doubled:
            out.append(one * 2)
        elif one.isprintable():
            out.append(one)
        else:
            out += [f"\\x{byte:02x}" for byte in one.encode()]
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
    for words in commands:
        program = program_lookup.which(words[0], context.environ.get("PATH", os.defpath))
        if program is None:
            notes.append(f"there is no {words[0]} here; run it yourself: {' '.join(words)}")
            continue
        done = program_lookup.Running([program, *words[1:]], context.environ).finish(_SECONDS)
        if done.status != 0:
            notes.append(f"{' '.join(words)}: {done.words or f'exit {done.status}'}")
    return {"unit": path, "changed": True, "notes": notes}
