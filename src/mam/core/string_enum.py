"""StrEnum for the words of mam: the part of `enum.StrEnum` that mam uses, without the module enum.

Every command imports several enums of words. The module enum and those classes take 2 ms of the 30 ms of a
listing, and their members are hashed by a function in Python. Type checkers see `enum.StrEnum`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum as StrEnum  # noqa: PLC0414, TID251  (exported; only for type checkers)
    from typing import Any
else:

    class _Words(type):
        """The type of an enum: to call it looks up a member, and to go through it yields all members."""

        _members: dict[str, StrEnum]

        def __call__(cls, word: Any) -> StrEnum:
            member = cls._members.get(word) if isinstance(word, str) else None
            if member is None:
                raise ValueError(f"{word!r} is not a valid {cls.__name__}")
            return member

        def __iter__(cls) -> Iterator[StrEnum]:
            return iter(cls._members.values())

        def __len__(cls) -> int:
            return len(cls._members)

        def __contains__(cls, word: object) -> bool:
            return isinstance(word, str) and word in cls._members

    class StrEnum(str, metaclass=_Words):
        """An enum whose members are texts. Each member is the only instance of its word."""

        __slots__ = ("name",)

        def __init_subclass__(cls) -> None:
            cls._members = {}
            words = {name: word for name, word in vars(cls).items() if type(word) is str and name[0] != "_"}
            for name, word in words.items():
                if word in cls._members:
                    raise TypeError(f"{cls.__name__} has the word {word!r} twice")
                member = str.__new__(cls, word)
                member.name = name
                setattr(cls, name, member)
                cls._members[word] = member

        @property
        def value(self) -> str:
            """The word as a plain text."""
            return str.__str__(self)

        def __repr__(self) -> str:
            return f"<{type(self).__name__}.{self.name}: {str.__repr__(self)}>"

        def __copy__(self) -> StrEnum:
            return self

        def __deepcopy__(self, _memo: object) -> StrEnum:
            return self

        def __reduce__(self) -> tuple[type[StrEnum], tuple[str]]:
            return type(self), (self.value,)
