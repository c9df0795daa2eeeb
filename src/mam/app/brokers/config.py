"""Which broker is configured here, and its password.

An option, the environment, the root's `.env` and the user's settings may name one, in this order. Only what
stands beside an address, or belongs to the same address, counts for it. A repository can bring a `.env`
along: what stands there sends no secret from elsewhere to the broker that it names.
"""

from __future__ import annotations

import os

from mam.core.broker import Broker, of_json
from mam.core.errors import InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.app.context.context import Context

VARIABLE = "MAM_BROKER"
_PASSWORD = "MAM_BROKER_PASSWORD"  # noqa: S105  (the name of a variable)
_FIELDS = {
    "ca_file": "MAM_BROKER_CA_FILE",
    "password_env": "MAM_BROKER_PASSWORD_ENV",
    "password_file": "MAM_BROKER_PASSWORD_FILE",
    "prefix": "MAM_BROKER_PREFIX",
    "protocol": "MAM_BROKER_PROTOCOL",
}
_LARGEST = 64 * 1024


def find(context: Context, asked: str | None = None) -> Broker | None:
    """Return the broker that is configured, or None; `asked` is an address that the caller named."""
    theirs = _of_variables(context.environ)
    url = asked or theirs.get("url")
    if url:
        if theirs.get("url") and Broker(theirs["url"]).address != Broker(url).address:
            theirs = {}
        return _checked(context, {**_known_of(context, url), **theirs, "url": url})
    brought = _of_env_file(context.paths.root)
    if brought:
        return _checked(context, brought)
    settings = context.settings().broker
    return _checked(context, {**settings.as_json(), **theirs}) if settings else None


def password(context: Context, broker: Broker) -> str | None:
    """Return the password that a broker's configuration refers to; nothing else may keep it."""
    if broker.password_file is not None:
        return _from_file(broker.password_file)
    name = broker.password_env or broker.password_dotenv
    if name is None:
        return None
    from_env = None if broker.password_env is None else context.environ.get(name)
    found = from_env if from_env is not None else _variables_of(context.paths.root).get(name)
    if not found:
        where = ".env" if broker.password_env is None else "the environment"
        raise InvalidSettings(
            f"the password of {broker.address} is to be in the variable {name}, which is not set in {where}",
            hint="set it, or name a file with it as password_file",
        )
    return found


def _checked(context: Context, values: dict[str, Any]) -> Broker:
    """Return the broker; its files are named so that another process finds them too."""
    broker = of_json(values)
    for field in ("ca_file", "password_file"):
        if (path := getattr(broker, field)) is not None:
            setattr(broker, field, os.path.join(context.paths.root, os.path.expanduser(path)))
    if broker.is_exposed and broker.username is not None:
        context.warn(
            f"the password for {broker.address} crosses the network in the clear; mqtts:// would not"
        )
    return broker


def _known_of(context: Context, url: str) -> dict[str, Any]:
    """Return what the settings know of the same broker."""
    settings = context.settings().broker
    return settings.as_json() if settings and settings.address == Broker(url).address else {}


def _of_variables(variables: Mapping[str, str]) -> dict[str, Any]:
    found = {field: variables[name] for field, name in _FIELDS.items() if variables.get(name)}
    if variables.get(VARIABLE):
        found["url"] = variables[VARIABLE]
    if variables.get(_PASSWORD) and not found.keys() & {"password_env", "password_file"}:
        found["password_env"] = _PASSWORD
    return found


def _of_env_file(root: str) -> dict[str, Any]:
    """Return the broker of a root's `.env`; its password is a variable of the same file, or there is none."""
    found = _of_variables(_variables_of(root))
    if "url" not in found:
        return {}
    if "password_file" in found:
        raise InvalidSettings(
            f"{root}/.env: a password file cannot be named here: a repository could bring this file along",
            hint=f"write the password itself as {_PASSWORD}, or put the broker into your own config.toml",
        )
    if "password_env" in found:
        found["password_dotenv"] = found.pop("password_env")
    return found


def _variables_of(root: str) -> dict[str, str]:
    path = os.path.join(root, ".env")
    try:
        if not os.path.isfile(path):
            return {}
        with open(path, "rb") as file:
            text = file.read(_LARGEST)
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from error
    found = {}
    for line in text.decode("utf-8", "replace").splitlines():
        key, equals, value = line.strip().removeprefix("export ").partition("=")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        if equals and not key.lstrip().startswith("#"):
            found[key.strip()] = value
    return found


def _from_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            is_open = os.fstat(file.fileno()).st_mode & 0o077
            text = file.read(_LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise InvalidSettings(f"the password file {path} cannot be read: {said}") from error
    if is_open:
        raise InvalidSettings(
            f"the password file {path} is open to others", hint=f"chmod 600 {path}, if nobody read it"
        )
    found = text.rstrip("\r\n")
    if not found:
        raise InvalidSettings(f"the password file {path} is empty")
    return found
