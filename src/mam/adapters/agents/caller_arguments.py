"""Splitting a caller's arguments into options with their values, and words such as a first prompt.

Whatever follows an unknown option counts as its value, because only known options tell a value from a word.
"""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

REST = "--"
_HINT = "mam resume NAME, mam fork NAME, or mam adopt"


class Options:
    """The options of a program: `flags` have no value, `single` have one, and all others may have several."""

    __slots__ = ("flags", "single")

    def __init__(self, flags: Collection[str], single: Collection[str]) -> None:
        self.flags = flags
        self.single = single

    def parts(self, args: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield each option with its arguments; a word has an empty name, and `--` has all that follows."""
        at = 0
        while at < len(args):
            word, name = args[at], name_of(args[at])
            end = at + 1
            if word == REST:
                end = len(args)
            elif name and word not in self.flags and "=" not in word:
                if name in self.single:
                    end += word == name
                else:
                    while end < len(args) and not name_of(args[end]):
                        end += 1
            yield name, args[at:end]
            at = end

    def refuse(
        self,
        args: list[str],
        names: Collection[str],
        *,
        of: str = "the conversation",
        hint: str = _HINT,
    ) -> None:
        """Raise Usage for an option that only mam may pass."""
        for name, _ in self.parts(args):
            if name in names:
                raise Usage(f"only mam may pass {name}: it keeps track of {of}", hint=hint)

    def without_prompt(self, args: list[str], names: Collection[str] = ()) -> list[str]:
        """Return the arguments without words, and without the options `names`, which hold a prompt.

        A resumed conversation has had its first prompt, and must not get it again.
        """
        options: list[str] = []
        for name, part in self.parts(args):
            if name not in ("", REST, *names):
                options += part
        return options

    def words(self, args: list[str]) -> list[str]:
        """Return the words that belong to no option."""
        return [
            word
            for name, part in self.parts(args)
            if name in ("", REST)
            for word in (part[1:] if name else part)
        ]


def name_of(word: str) -> str:
    """Return the option that an argument names: `--x` for `--x=1`, `-x` for `-x1`, else nothing."""
    if len(word) < 2 or word[0] != "-":
        return ""
    return word.partition("=")[0] if word.startswith("--") else word[:2]
