"""The description of an MQTT broker: its address, its topics, and the pause after a failed connection.

An address never holds a password, because addresses appear in argv, in logs and in records. The address
names the user; a separate field names the variable or the file that holds the password.
"""

from __future__ import annotations

from mam.core.errors import InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "python/mqtt/jobs"
PROTOCOLS = ("5", "3.1.1")
EVENTS, STATUS, ASK = "events", "status", "ask"
_PORTS = {"mqtt": 1883, "mqtts": 8883}
# `password_dotenv` names a variable that mam reads only from the root's `.env`.
_FIELDS = (
    "ca_file",
    "keepalive",
    "password_dotenv",
    "password_env",
    "password_file",
    "prefix",
    "protocol",
)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Seconds. A connection without traffic is given up after at most twice this time.
_KEEPALIVE, _LONGEST_KEEPALIVE = 15, 3600
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0


class Broker:
    """One configured broker. It never holds the password itself."""

    __slots__ = ("host", "is_tls", "port", "username", *_FIELDS)

    def __init__(
        self,
        url: str,
        *,
        password_env: str | None = None,
        password_file: str | None = None,
        password_dotenv: str | None = None,
        ca_file: str | None = None,
        prefix: str = PREFIX,
        protocol: str = PROTOCOLS[0],
        keepalive: int = _KEEPALIVE,
    ) -> None:
        """Take an address such as `mqtts://user@host:8883`; raises InvalidSettings for anything else."""
        self.is_tls, self.host, self.port, self.username = _parse(url)
        self.password_env = _text("password_env", password_env)
        self.password_file = _text("password_file", password_file)
        self.password_dotenv = _text("password_dotenv", password_dotenv)
        self.ca_file = _text("ca_file", ca_file)
        self.prefix = parse_prefix(prefix)
        self.protocol = str(protocol)
        self.keepalive = keepalive
        if self.protocol not in PROTOCOLS:
            raise InvalidSettings(f"the protocol of a broker is {' or '.join(PROTOCOLS)}, not {protocol!r}")
        is_number = isinstance(keepalive, int) and not isinstance(keepalive, bool)
        if not is_number or not 1 <= keepalive <= _LONGEST_KEEPALIVE:
            raise InvalidSettings(f"keepalive is 1 to {_LONGEST_KEEPALIVE} seconds")
        if self.ca_file and not self.is_tls:
            raise InvalidSettings(
                "a CA file works only with mqtts://", hint="write mqtts://, or remove the CA file"
            )

    @property
    def address(self) -> str:
        """The address as people write it."""
        from urllib.parse import quote

        scheme = "mqtts" if self.is_tls else "mqtt"
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{user}{host}:{self.port}"

    @property
    def is_exposed(self) -> bool:
        """Whether a password would cross a network in the clear."""
        return not self.is_tls and self.host not in _LOOPBACK

    def as_json(self) -> dict[str, Any]:
        """Return the broker as a record keeps it; `of_json` reads it back."""
        fields = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        return {"url": self.address, **fields}

    def topic(self, job: str, leaf: str) -> str:
        """Return a topic of a job; the leaf is EVENTS, STATUS, or ASK for requests to publish again."""
        return f"{self.prefix}/{job}/{leaf}"

    def job_of(self, topic: str, leaf: str) -> str | None:
        """Return the job id in a topic; None if the topic has another prefix or leaf."""
        head, _, last = topic.rpartition("/")
        before, _, job = head.rpartition("/")
        return job if last == leaf and before == self.prefix and job else None


def of_json(values: object) -> Broker:
    """Return the broker of a settings table or of a record; raise InvalidSettings for a wrong value."""
    if not isinstance(values, dict) or not isinstance(values.get("url"), str):
        raise InvalidSettings("a broker is a table with url")
    if unknown := sorted(map(str, values.keys() - {"url", *_FIELDS})):
        raise InvalidSettings(
            f"a broker has no '{unknown[0]}'",
            hint=f"it has url, {', '.join(_FIELDS)}; it never holds a password itself",
        )
    return Broker(values["url"], **{name: values[name] for name in _FIELDS if name in values})


def of_record(data: dict[str, Any]) -> Broker | None:
    """Return the broker that a job's record names; None if there is none, or its description is invalid."""
    values = data.get("broker")
    try:
        return of_json(values) if isinstance(values, dict) else None
    except InvalidSettings:
        return None


def parse_prefix(text: str) -> str:
    """Return the prefix of all topics: levels without wildcards."""
    levels = text.split("/") if isinstance(text, str) else [""]
    if (
        not all(levels)
        or len(text) > 200
        or not text.isprintable()
        or text[0] == "$"
        or set("+#") & set(text)
    ):
        raise InvalidSettings(f"{text!r:.60} is not a topic prefix", hint=f"write levels as in {PREFIX}")
    return text


def pause(failures: int, chance: float) -> float:
    """Return the seconds to wait after a number of failures in a row; `chance` is from 0 to 1.

    The pause doubles each time. `chance` spreads it, so that many clients do not reconnect at once.
    """
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(max(failures - 1, 0), 20))
    return longest * (0.5 + chance / 2)


def _parse(url: str) -> tuple[bool, str, int, str | None]:
    from urllib.parse import unquote, urlsplit

    hint = "write mqtt://user@host:1883, or mqtts:// for TLS"
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise InvalidSettings("the text is not the address of a broker", hint=hint) from None
    # This check comes first, and its message does not show the text: a password must not reach a log.
    if parts.password is not None:
        raise InvalidSettings(
            "the address of a broker must not hold a password: others can read it",
            hint="remove it; put it into a file of mode 600 and name the file in password_file",
        )
    plain = not (parts.path.strip("/") or parts.query or parts.fragment)
    if parts.scheme not in _PORTS or not parts.hostname or not plain or not url.isprintable() or " " in url:
        raise InvalidSettings(f"{url!r:.100} is not the address of a broker", hint=hint)
    return parts.scheme == "mqtts", parts.hostname, port, unquote(parts.username) if parts.username else None


def _text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidSettings(f"{name} of a broker must be a text")
    return value
