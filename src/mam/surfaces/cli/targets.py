"""Find the sessions that a command line names, and check the names before the verb acts on any session.

`send` separates the name from the text by itself.
"""

from __future__ import annotations

from mam.core.errors import InvalidName, MamError, Usage
from mam.core.names import is_session_id, parse_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation

_LONGEST = 200


def session(call: Invocation) -> str:
    """Return the session that the command line names; raise Usage if it names none."""
    name = optional_session(call)
    if name is None:
        raise Usage("name a session", hint="mam ls shows them")
    return name


def optional_session(call: Invocation) -> str | None:
    """Return the session that the command line names; None if it names none."""
    argument, option = call.options.name, call.options.session
    if argument is not None and option is not None and argument != option:
        raise Usage("the command line names two sessions", hint="give NAME or --session NAME")
    name = argument if option is None else option
    return None if name is None else check_name(call, name)


def sessions(call: Invocation) -> list[str]:
    """Return the sessions that the command line names, each once, in their order."""
    names = dict.fromkeys([*call.options.names, *(call.options.session or [])])
    return [check_name(call, name) for name in names]


def check_name(call: Invocation, text: str) -> str:
    """Return a valid name or id, or raise InvalidName.

    A person who edits the registry may give a row a name that mam would not allow. Such a name is valid
    if a row has exactly this name.
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
