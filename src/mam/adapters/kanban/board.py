"""What a Kanban board is to mam: cards, comments, and claims that run out.

Two boards keep this contract: our own, and Hermes'. Every changing call returns the card as the board
shows it afterwards, read from the board itself; a call that did not have its effect raises.
"""

from __future__ import annotations

from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol, TypedDict, Unpack

CLAIM_SECONDS = 900


class Comment:
    """One comment. `id` grows with every comment of a board, so it serves as a cursor."""

    __slots__ = ("at", "author", "body", "id")

    def __init__(self, id: int, author: str, body: str, at: float) -> None:
        self.id = id
        self.author = author
        self.body = body
        self.at = at

    def as_json(self) -> dict[str, Any]:
        """Return it as `mam board show` prints it."""
        return {"id": self.id, "author": self.author, "body": self.body, "at": stamp(self.at)}


class Card:
    """One card as the board shows it. Points in time are seconds, None where the board has none.

    `summary` is what was said when its last run ended: why it is blocked, or what was done. `ended_at` is
    when it was last blocked or taken up again after that.
    """

    id: str
    title: str
    body: str | None
    status: str
    assignee: str | None
    created_by: str | None
    created_at: float
    claimed_by: str | None
    claim_expires: float | None
    heartbeat_at: float | None
    summary: str | None
    comments: int
    goal_mode: bool
    goal_max_turns: int | None
    max_runtime: int | None
    workspace: str | None
    worker_pid: int | None
    run_id: int | None
    run_started_at: float | None
    key: str | None
    ended_at: float | None

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Take a value for every field."""
        self.__dict__.update(values, goal_mode=bool(values["goal_mode"]))

    def as_json(self) -> dict[str, Any]:
        """Return it as every verb prints it."""
        shown = {name: getattr(self, name) for name in _ORDER}
        times = ("created_at", "heartbeat_at", "claim_expires")
        return {
            **shown,
            **{name: stamp(shown[name]) if shown[name] is not None else None for name in times},
        }


_ORDER = (
    "id",
    "title",
    "status",
    "assignee",
    "created_by",
    "created_at",
    "claimed_by",
    "claim_expires",
    "heartbeat_at",
    "summary",
    "comments",
    "goal_mode",
    "goal_max_turns",
    "max_runtime",
    "workspace",
    "worker_pid",
    "run_id",
    "key",
    "body",
)

if TYPE_CHECKING:
    # Names of their own: inside the class `list` is a method.
    Cards = list[Card]
    Comments = list[Comment]

    class CardGoal(TypedDict, total=False):
        """What a card says of its work besides title and text; a runtime is in seconds."""

        goal_mode: bool
        goal_max_turns: int | None
        max_runtime: int | None
        max_retries: int | None
        assignee: str | None
        workspace: str | None

    class Board(Protocol):
        """The cards of one board."""

        name: str
        # The database, for a person who asks which board this is.
        path: str
        # Seconds that a claim lasts.
        ttl: int

        def create(
            self,
            title: str,
            *,
            body: str = "",
            key: str | None = None,
            created_by: str | None = None,
            **goal: Unpack[CardGoal],
        ) -> Card:
            """Make a card that is ready; the open one of that key where there is one."""

        def show(self, card: str) -> Card:
            """Return a card; raises CardNotFound."""

        def list(self, status: str | None = None) -> Cards:
            """Return the cards that are not archived, newest last; or those of one status."""

        def comment(self, card: str, author: str, text: str) -> Comment:
            """Add a comment."""

        def comments_since(self, card: str, cursor: int) -> Comments:
            """Return the comments after the one of that id, oldest first; 0 for all."""

        def claim(self, card: str, who: str, ttl: float | None = None, *, over: str | None = None) -> Card:
            """Take a card for so many seconds; one that `who` holds already is extended.

            Raises Conflict where somebody else holds it. `over` is a holder known to be dead.
            """

        def heartbeat(
            self,
            card: str,
            who: str,
            note: str | None = None,
            ttl: float | None = None,
            *,
            run: int | None = None,
        ) -> Card:
            """Say that work goes on, and extend the claim; Conflict where `who` does not hold it.

            Without `ttl` a claim that lasts longer stays as long as it is.
            With `run` only in that run: a dispatcher gives the same `who` to each run that it starts.
            """

        def block(self, card: str, reason: str, *, who: str | None = None, run: int | None = None) -> Card:
            """End the run and have a person decide; with `who` only while that one holds the card."""

        def complete(
            self, card: str, summary: str, *, who: str | None = None, run: int | None = None
        ) -> Card:
            """End the run: the card is done; with `who` only while that one holds the card."""
