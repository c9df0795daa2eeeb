"""Settings from the user's file and from the root's, in that order; the root's wins."""

from __future__ import annotations

import os

from mam.core.errors import InvalidSettings
from mam.core.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST = 1024 * 1024


def load_settings(root: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings in force; files that are not there say nothing."""
    settings = Settings()
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    theirs = os.path.join(root, "mam.toml")
    for path in (os.path.join(config, "mam", "config.toml"), theirs):
        if os.path.exists(path) and not os.path.isfile(path):
            raise InvalidSettings(f"{path} is not a regular file", hint="remove it")
        try:
            with open(path, "rb") as file:
                text = file.read(_LARGEST + 1)
            if len(text) > _LARGEST:
                raise InvalidSettings(f"{path} is too large for a settings file")
            _take(settings, text, path, of_root=path == theirs)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from error
    return settings


def _take(settings: Settings, text: bytes, path: str, *, of_root: bool) -> None:
    import tomllib

    try:
        settings.take(tomllib.loads(text.decode()), path, of_root=of_root)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(f"{path} is not valid TOML: {error}", hint="mend the line") from None
