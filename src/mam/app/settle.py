"""What every changing verb does first: nothing new begins while something is left half done."""

from __future__ import annotations

from mam.app import flight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.world import World


def settle(world: World) -> None:
    """Finish or clean what died half way; most of the time there is nothing."""
    if not world.place.exists():
        return
    if any(not flight.is_owned(intent) for intent in world.registry.view().intents):
        from mam.app.recover import recover

        recover(world)
