"""What the options of `mam init` say in a root that they are not for."""

from __future__ import annotations

from mam.core.errors import Refused
from mam.core.root_state import RootState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context

    Document = dict[str, Any]


def answer_in_other_state(context: Context, command: str) -> Document:
    """Return the answer of an option of `mam init` in a known root, where there is nothing to do.

    Raises Refused in a root of any other state, with the way out that fits.
    """
    if context.root.verdict().state == RootState.KNOWN:
        return {"registry": context.paths.yaml, "changed": False}
    refusal = context.root.refusal()
    if refusal is None:
        raise Refused(
            f"there is no state of mam in {context.paths.root}, so {command} has nothing to do",
            hint="mam init makes this directory a root",
        )
    raise type(refusal)(f"{command} does not help here: {refusal.message}", hint=refusal.hint)
