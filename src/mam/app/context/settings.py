"""Reading the settings: first the user's file, then the root's, which overrides the user's."""

from __future__ import annotations

import os

from mam.core.errors import InvalidSettings
from mam.core.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST = 1024 * 1024


def load_settings(root: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings in force; a file that does not exist changes nothing."""
    settings = Settings()
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    root_file = os.path.join(root, "mam.toml")
    for path in (os.path.join(config, "mam", "config.toml"), root_file):
        if os.path.exists(path) and not os.path.isfile(path):
            raise InvalidSettings(f"{path} is not a regular file", hint="remove it")
        try:
            with open(path, "rb") as file:
                text = file.read(_LARGEST + 1)
            if len(text) > _LARGEST:
                raise InvalidSettings(f"{path} is too large for a settings file")
            _apply(settings, text, path, of_root=path == root_file)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from error
    return settings


def _apply(settings: Settings, text: bytes, path: str, *, of_root: bool) -> None:
    import tomllib

    try:
        settings.apply(tomllib.loads(text.decode()), path, of_root=of_root)
    except (ValueError, RecursionError) as error:
        raise InvalidSettings(f"{path} is not valid TOML: {error}", hint="correct the line") from None
