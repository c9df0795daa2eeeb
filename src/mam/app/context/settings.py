"""Reading the settings: first the user's file, then the root's, which overrides the user's."""

from __future__ import annotations

import os

from mam.adapters.system import owners
from mam.core.errors import InvalidSettings
from mam.core.owner_rule import OWNER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from mam.core.settings import Settings

_LARGEST = 1024 * 1024


def load_settings(root: str, environ: Mapping[str, str], warn: Callable[[str], None]) -> Settings:
    """Return the settings in force; a file that does not exist changes nothing.

    `warn` is called once if the root's file has keys that count only in the user's own file.
    """
    settings, (user_file, root_file) = load_user_settings(environ), files(root, environ)
    if ignored := _load(settings, root_file, environ, of_root=True):
        warn(ignored_in_repository(root_file, ignored, user_file))
    return settings


def files(root: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the paths of the user's settings file and of the root's."""
    return user_file(environ, "config.toml"), os.path.join(root, "mam.toml")


def load_user_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of the user's own file, which no root can change."""
    from mam.core.settings import Settings

    settings = Settings()
    _load(settings, user_file(environ, "config.toml"), environ, of_root=False)
    return settings


def ignored_in_repository(
    path: str, keys: Iterable[str], user_file: str = "~/.config/mam/config.toml"
) -> str:
    """Return the warning that a file of the root has settings that only the user makes.

    The values are not shown: the address of a broker may hold a password by mistake.
    """
    return (
        f"{path} may come with a foreign repository, so mam ignores {', '.join(keys)} in it; "
        f"put what you want into {user_file}"
    )


def user_file(environ: Mapping[str, str], name: str) -> str:
    """Return the path of a file in the user's configuration folder of mam."""
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(config, "mam", name)


def read_file(path: str, environ: Mapping[str, str], *, of_root: bool = False) -> bytes | None:
    """Return a file with settings; None if there is none, and InvalidSettings if it cannot be used.

    A file of the user's counts only if no other user could have written it.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidSettings(f"{path} is not a regular file", hint="remove it")
    try:
        with open(path, "rb") as file:
            if not of_root:
                _check_owner(path, file.fileno(), environ)
            text = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from error
    if len(text) > _LARGEST:
        raise InvalidSettings(f"{path} is too large for a settings file")
    return text


def parse_toml(text: bytes, path: str) -> dict[str, Any]:
    """Return the document of a file with settings; raise InvalidSettings, which names the line."""
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise _not_valid(path, error) from None


def _not_valid(path: str, error: Exception) -> InvalidSettings:
    return InvalidSettings(f"{path} is not valid TOML: {error}", hint="correct the line")


def _load(settings: Settings, path: str, environ: Mapping[str, str], *, of_root: bool) -> list[str]:
    """Apply the values of one file; return the keys that do not count in it."""
    text = read_file(path, environ, of_root=of_root)
    if text is None:
        return []
    try:
        return settings.apply(parse_toml(text, path), path, of_root=of_root)
    except (ValueError, RecursionError) as error:
        raise _not_valid(path, error) from None


def _check_owner(path: str, handle: int, environ: Mapping[str, str]) -> None:
    """Refuse a file of the user's that another user could have written: it may name programs to run."""
    danger = owners.danger_of([owners.look_at(path, handle)])
    if danger is None:
        return
    message, mend = owners.sentence(danger)
    if danger.kind == OWNER and os.geteuid() == 0 and environ.get("SUDO_USER"):
        mend = "run mam without sudo, or with sudo -H, which takes the settings of root"
    raise InvalidSettings(message, hint=mend)
