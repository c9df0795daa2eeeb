"""Reading the settings: first the user's file, then the root's, which overrides the user's."""

from __future__ import annotations

import os

from mam.adapters.system import owners
from mam.core.errors import InvalidSettings
from mam.core.owner_rule import OWNER
from mam.core.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST = 1024 * 1024


def load_settings(root: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings in force; a file that does not exist changes nothing."""
    settings = load_user_settings(environ)
    _load(settings, os.path.join(root, "mam.toml"), environ, of_root=True)
    return settings


def load_user_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of the user's own file, which no root can change."""
    settings = Settings()
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    _load(settings, os.path.join(config, "mam", "config.toml"), environ, of_root=False)
    return settings


def _load(settings: Settings, path: str, environ: Mapping[str, str], *, of_root: bool) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidSettings(f"{path} is not a regular file", hint="remove it")
    try:
        with open(path, "rb") as file:
            if not of_root:
                _check_owner(path, file.fileno(), environ)
            text = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from error
    if len(text) > _LARGEST:
        raise InvalidSettings(f"{path} is too large for a settings file")
    _apply(settings, text, path, of_root=of_root)


def _check_owner(path: str, handle: int, environ: Mapping[str, str]) -> None:
    """Refuse a file of the user's that another user could have written: it names programs to run."""
    danger = owners.danger_of([owners.look_at(path, handle)])
    if danger is None:
        return
    message, mend = owners.sentence(danger)
    if danger.kind == OWNER and os.geteuid() == 0 and environ.get("SUDO_USER"):
        mend = "run mam without sudo, or with sudo -H, which takes the settings of root"
    raise InvalidSettings(message, hint=mend)


def _apply(settings: Settings, text: bytes, path: str, *, of_root: bool) -> None:
    import tomllib

    try:
        settings.apply(tomllib.loads(text.decode()), path, of_root=of_root)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(f"{path} is not valid TOML: {error}", hint="correct the line") from None
