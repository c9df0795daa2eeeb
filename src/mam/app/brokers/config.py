"""Finds the configured broker and its password.

An option, the environment and the user's settings may name a broker, in this order. Other values count only
if they come from the same source or belong to the same address. A repository can contain a `.env`, so a
broker that it names is ignored, with a warning: it would get the events of all jobs. A job that mam 0.1
submitted keeps its broker from `.env`, which gets no secret from another source.
"""

from __future__ import annotations

import os

from mam.app.context.settings import ignored_in_repository
from mam.core.broker_address import Broker, of_json
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


def find(context: Context, requested_url: str | None = None) -> Broker | None:
    """Return the configured broker, or None; `requested_url` is an address that the caller names."""
    variables = _of_variables(context.environ)
    url = requested_url or variables.get("url")
    if url:
        if variables.get("url") and Broker(variables["url"]).address != Broker(url).address:
            variables = {}
        return _checked(context, {**_settings_for(context, url), **variables, "url": url})
    _warn_of_env_file(context)
    settings = context.settings().broker
    return _checked(context, {**settings.as_json(), **variables}) if settings else None


def password(context: Context, broker: Broker) -> str | None:
    """Return the password that a broker's configuration refers to. Callers must not store it."""
    if broker.password_file is not None:
        return _password_from_file(broker.password_file)
    name = broker.password_env or broker.password_dotenv
    if name is None:
        return None
    from_env = None if broker.password_env is None else context.environ.get(name)
    password_text = from_env if from_env is not None else _variables_of(context.paths.root).get(name)
    if not password_text:
        source = ".env" if broker.password_env is None else "the environment"
        raise InvalidSettings(
            f"the variable {name}, which holds the password of {broker.address}, is not set in {source}",
            hint="set it, or name a file that holds the password as password_file",
        )
    return password_text


def _checked(context: Context, values: dict[str, Any]) -> Broker:
    """Return the broker with absolute paths, so that other processes find its files too."""
    broker = of_json(values)
    for field in ("ca_file", "password_file"):
        if (path := getattr(broker, field)) is not None:
            setattr(broker, field, os.path.join(context.paths.root, os.path.expanduser(path)))
    if broker.is_exposed and broker.username is not None:
        context.warn(
            f"the password for {broker.address} crosses the network unencrypted; mqtts:// encrypts it"
        )
    return broker


def _settings_for(context: Context, url: str) -> dict[str, Any]:
    """Return the values of the settings if they name the same broker."""
    settings = context.settings().broker
    return settings.as_json() if settings and settings.address == Broker(url).address else {}


def _of_variables(variables: Mapping[str, str]) -> dict[str, Any]:
    values = {field: variables[name] for field, name in _FIELDS.items() if variables.get(name)}
    if variables.get(VARIABLE):
        values["url"] = variables[VARIABLE]
    if variables.get(_PASSWORD) and not values.keys() & {"password_env", "password_file"}:
        values["password_env"] = _PASSWORD
    return values


def _warn_of_env_file(context: Context) -> None:
    """Warn of a root's `.env` that names a broker."""
    named = [name for name in (VARIABLE, *_FIELDS.values()) if name in _variables_of(context.paths.root)]
    if named:
        context.warn(ignored_in_repository(os.path.join(context.paths.root, ".env"), named))


def _variables_of(root: str) -> dict[str, str]:
    path = os.path.join(root, ".env")
    try:
        if not os.path.isfile(path):
            return {}
        with open(path, "rb") as file:
            text = file.read(_LARGEST)
    except OSError as error:
        raise InvalidSettings(f"{path} cannot be read: {error.strerror}") from error
    variables = {}
    for line in text.decode("utf-8", "replace").splitlines():
        key, equals, value = line.strip().removeprefix("export ").partition("=")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        if equals and not key.lstrip().startswith("#"):
            variables[key.strip()] = value
    return variables


def _password_from_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            is_open = os.fstat(file.fileno()).st_mode & 0o077
            text = file.read(_LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise InvalidSettings(f"the password file {path} cannot be read: {reason}") from error
    if is_open:
        raise InvalidSettings(
            f"other users can read the password file {path}", hint=f"chmod 600 {path}, if nobody read it"
        )
    password_text = text.rstrip("\r\n")
    if not password_text:
        raise InvalidSettings(f"the password file {path} is empty")
    return password_text
