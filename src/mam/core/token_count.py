"""The tokens of requests to one model, as an agent's record has them and as a provider bills them."""

from __future__ import annotations


class TokenCount:
    """The tokens of one request to a model, or of several.

    `input` has neither what was read from the cache of the provider (`cache_read`) nor what was written to it
    for some minutes (`cache_write`) or for an hour (`cache_write_1h`). A model of None means that the record
    does not name it, or that the request has another price than the model's list price.
    """

    __slots__ = (
        "cache_read",
        "cache_write",
        "cache_write_1h",
        "input",
        "is_one_request",
        "model",
        "output",
    )

    def __init__(
        self,
        model: str | None,
        *,
        input: int,
        output: int,
        cache_read: int = 0,
        cache_write: int = 0,
        cache_write_1h: int = 0,
        is_one_request: bool = True,
    ) -> None:
        """Raise ValueError for a negative number: then the record contradicts itself."""
        self.model = model
        self.input = input
        self.output = output
        self.cache_read = cache_read
        self.cache_write = cache_write
        self.cache_write_1h = cache_write_1h
        self.is_one_request = is_one_request
        if min(input, output, cache_read, cache_write, cache_write_1h) < 0:
            raise ValueError("a number of tokens is negative")

    @property
    def all_input(self) -> int:
        """The tokens that were sent to the model, in the cache or not."""
        return self.input + self.cache_read + self.cache_write + self.cache_write_1h
