"""The interface of a Kanban board: cards, comments, and claims that expire.

Two boards implement it: mam's own and that of Hermes. Every changing call reads the card from the board
afterwards and returns it; a call without effect raises an error.
"""

from __future__ import annotations

from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol, TypedDict, Unpack

CLAIM_SECONDS = 900
# Where the work of a card is done, in the words of Hermes.
SCRATCH, DIRECTORY, WORKTREE = "scratch", "dir", "worktree"
PLACES = (SCRATCH, DIRECTORY, WORKTREE)


class Comment:
    """One comment. `id` grows with every comment of a board, so it can be used as a cursor."""

    __slots__ = ("at", "author", "body", "id")

    def __init__(self, id: int, author: str, body: str, at: float) -> None:
        self.id = id
        self.author = author
        self.body = body
        self.at = at

    def as_json(self) -> dict[str, Any]:
        """Return the comment as `mam board show` prints it."""
        return {"id": self.id, "author": self.author, "body": self.body, "at": stamp(self.at)}


class Card:
    """One card as the board shows it. Times are seconds, or None if the board has none.

    `workspace_kind` is one of PLACES: where the work is done. `skills` are those that a worker loads.
    `summary` is the text with which the last run ended: why the card is blocked, or what was done.
    `ended_at` is when the card was last blocked or unblocked.
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
    heartbeat_note: str | None
    summary: str | None
    comments: int
    goal_mode: bool
    goal_max_turns: int | None
    max_runtime: int | None
    workspace: str | None
    workspace_kind: str
    branch: str | None
    skills: list[str] | None
    worker_pid: int | None
    run_id: int | None
    run_started_at: float | None
    key: str | None
    ended_at: float | None

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Store a value for every field."""
        self.__dict__.update(values, goal_mode=bool(values["goal_mode"]))

    def as_json(self) -> dict[str, Any]:
        """Return the card as every verb prints it."""
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
    "heartbeat_note",
    "summary",
    "comments",
    "goal_mode",
    "goal_max_turns",
    "max_runtime",
    "workspace",
    "workspace_kind",
    "branch",
    "skills",
    "worker_pid",
    "run_id",
    "key",
    "body",
)

if TYPE_CHECKING:
    # Aliases, because `list` is a method inside the class.
    Cards = list[Card]
    Comments = list[Comment]

    class CardGoal(TypedDict, total=False):
        """The fields of a card besides title and text; a runtime is in seconds."""

        goal_mode: bool
        goal_max_turns: int | None
        max_runtime: int | None
        max_retries: int | None
        assignee: str | None
        workspace: str | None
        workspace_kind: str | None
        branch: str | None
        skills: Sequence[str] | None

    class Board(Protocol):
        """The cards of one board."""

        name: str
        # The path of the database, which verbs show.
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
            """Create a card with status ready; if an open card has the key, return that card."""

        def show(self, card: str) -> Card:
            """Return a card; raises CardNotFound."""

        def list(self, status: str | None = None) -> Cards:
            """Return the cards that are not archived, newest last; or those of one status."""

        def comment(self, card: str, author: str, text: str) -> Comment:
            """Add a comment."""

        def comments_since(self, card: str, cursor: int) -> Comments:
            """Return the comments after the id `cursor`, oldest first; 0 for all."""

        def claim(self, card: str, holder: str, ttl: float | None = None, *, over: str | None = None) -> Card:
            """Claim a card for `ttl` seconds; if `holder` has it already, extend the claim.

            Raises Conflict if another holder has the card. `over` is a holder that is known to be dead.
            """

        def heartbeat(
            self,
            card: str,
            holder: str,
            note: str | None = None,
            ttl: float | None = None,
            *,
            run: int | None = None,
        ) -> Card:
            """Record that the work continues, and extend the claim; raise Conflict without the claim.

            Without `ttl` a claim that lasts longer keeps its end. With `run` the claim must be of that run,
            because a dispatcher gives the same `holder` to each run that it starts.
            """

        def block(self, card: str, reason: str, *, holder: str | None = None, run: int | None = None) -> Card:
            """End the run and block the card for a person; with `holder` only if that one has the card."""

        def release(self, card: str, holder: str, reason: str, *, run: int | None = None) -> Card:
            """Give up a claim, so that the card is ready. Hermes' dispatcher does that on its board."""

        def complete(
            self, card: str, summary: str, *, holder: str | None = None, run: int | None = None
        ) -> Card:
            """End the run and set the card to done; with `holder` only if that one has the card."""
