"""The first prompt of a session: typed only into an empty box, and proven by the agent's own record."""

from __future__ import annotations

import time

from mam.app.hearing import overhear
from mam.app.submit import look_at, proof_seconds, submit
from mam.app.transcript import now_open
from mam.app.versions import is_waiting, refuse_blind
from mam.core.errors import DeliveryUnconfirmed, DialogOpen, InvalidPrompt, NotReady
from mam.core.message import LARGEST
from mam.core.row import current_conversation
from mam.core.text import for_paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.protocol import Kind
    from mam.app.world import World
    from mam.core.row import Row

_STEP = 0.01


def check_prompt(prompt: str) -> str:
    """Return the prompt as it can be typed, or refuse it before anything is started."""
    if len(prompt.encode()) > LARGEST:
        raise InvalidPrompt("a prompt is at most 1 MB long", hint="put it into a file and name the file")
    cleaned = for_paste(prompt)
    if not cleaned.strip():
        raise InvalidPrompt("the prompt is empty")
    return cleaned


def first_prompt(world: World, row: Row, prompt: str) -> None:
    """Submit the prompt and return once it is proven; DeliveryUnconfirmed where it cannot be."""
    kind = world.kind(row["agent"])
    stores = row.get("stores") or {}
    conversation = current_conversation(row) or ""
    prompt = typed(kind, prompt)
    if kind.reads_screen:
        refuse_blind(world, row, "the prompt was not typed")
        if is_waiting(world, row):
            raise DialogOpen(f"'{row['name']}' waits for a person; the prompt was not typed", session=row)
        look = look_at(world, row)
        if look.dialog:
            raise DialogOpen(
                f"'{row['name']}' shows its {look.dialog} dialog; the prompt was not typed", session=row
            )
        if look.box != "empty":
            raise NotReady(f"'{row['name']}' has no empty input box; the prompt was not typed", session=row)
    before = kind.record_size(conversation, stores)
    submit(world, row, prompt)
    deadline = time.monotonic() + proof_seconds(prompt)
    while time.monotonic() < deadline:
        if any(heard.prompt == prompt for heard in overhear(world, row)):
            return
        # Some have no conversation before their first message.
        said = kind.has_submitted(prompt, conversation or now_open(world, row) or "", stores, before)
        if said:
            return
        if said is None:
            break
        time.sleep(_STEP)
    raise DeliveryUnconfirmed(
        f"the prompt was typed into '{row['name']}', and nothing proves that it was taken",
        hint=f"look: mam read {row['name']}",
        session=row,
    )


def typed(kind: Kind, prompt: str) -> str:
    """Return what to paste, or refuse words that would not arrive as such."""
    words = kind.typed(prompt)
    if words is None:
        raise InvalidPrompt(
            f"{kind.name} would take this prompt for a command, or alter it",
            hint="put other words before it, or put it into a file and name the file",
        )
    return words
