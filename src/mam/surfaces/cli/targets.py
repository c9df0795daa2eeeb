"""Which sessions a command line means, checked before anything is done to any of them."""

from __future__ import annotations

from mam.core.errors import InvalidName, MamError, Usage
from mam.core.names import is_session_id, parse_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation

_LONGEST = 200


def one(call: Invocation) -> str:
    """Return the session that was named."""
    name = one_or_none(call)
    if name is None:
        raise Usage("name a session", hint="mam ls shows them")
    return name


def one_or_none(call: Invocation) -> str | None:
    """Return the session that was named, if one was."""
    given, option = call.options.name, call.options.session
    if given is not None and option is not None and given != option:
        raise Usage("two sessions are named", hint="give NAME or --session NAME")
    name = given if option is None else option
    return None if name is None else checked(call, name)


def several(call: Invocation) -> list[str]:
    """Return the sessions that were named, each once, in their order."""
    named = dict.fromkeys([*call.options.names, *(call.options.session or [])])
    return [checked(call, name) for name in named]


def checked(call: Invocation, text: str) -> str:
    """Return a name or id that may be looked up.

    A row that a person wrote by hand may carry a name that mam itself would not give; it is
    accepted if it is registered exactly so. Everything else that is no name is refused here.
    """
    if is_session_id(text):
        return text
    try:
        return parse_name(text)
    except InvalidName:
        if len(text) <= _LONGEST and text.isprintable() and _is_registered(call, text):
            return text
        raise


def _is_registered(call: Invocation, text: str) -> bool:
    try:
        return call.fleet.sessions.get(text).name == text
    except MamError:
        return False
