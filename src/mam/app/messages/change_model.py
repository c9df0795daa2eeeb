"""Have a running agent go on with another model, by a command of the agent's program."""

from __future__ import annotations

from mam.app.messages.send import send
from mam.core.errors import Refused
from mam.core.names import parse_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller


def change_model(context: Context, caller: Caller, target: str, model: str) -> dict[str, Any]:
    """Send the command and return its receipt; raise Refused for a kind without such a command."""
    row = context.registry.view().find(target)
    command = context.kind(row["agent"]).model_command
    parse_model(model)
    if command is None:
        raise Refused(
            f"mam does not know how to change the model of a running {row['agent']}",
            hint=f"stop it, and mam create --session {row['name']} --model {model}",
        )
    return send(context, caller, row["id"], f"{command} {model}", is_command=True)
