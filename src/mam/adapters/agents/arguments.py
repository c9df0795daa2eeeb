"""What a caller's arguments are to a program: options with their values, and words such as a first prompt.

Only options that are known tell a value from a word: whatever follows an unknown one is taken for its value.
"""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

REST = "--"
_HINT = "mam resume NAME, mam fork NAME, or mam adopt"


class Options:
    """The options of a program: `flags` have no value, `single` have one, any other may have several."""

    __slots__ = ("flags", "single")

    def __init__(self, flags: Collection[str], single: Collection[str]) -> None:
        self.flags = flags
        self.single = single

    def parts(self, args: list[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield each option's name and its words; a mere word has no name, and `--` has all the rest."""
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
        """Raise Usage for an option that is mam's part."""
        for name, _ in self.parts(args):
            if name in names:
                raise Usage(f"{name} is for mam to pass: it keeps track of {of}", hint=hint)

    def without_prompt(self, args: list[str], names: Collection[str] = ()) -> list[str]:
        """Return the arguments without words of their own, and without options that hold a prompt.

        A conversation that is taken up has had its first prompt, and would get it once more.
        """
        kept: list[str] = []
        for name, words in self.parts(args):
            if name not in ("", REST, *names):
                kept += words
        return kept

    def words(self, args: list[str]) -> list[str]:
        """Return the words that belong to no option."""
        return [
            one
            for name, words in self.parts(args)
            if name in ("", REST)
            for one in (words[1:] if name else words)
        ]


def name_of(word: str) -> str:
    """Return the option that a word names, empty for none: `--x=1` is --x, and -x1 is -x."""
    if len(word) < 2 or word[0] != "-":
        return ""
    return word.partition("=")[0] if word.startswith("--") else word[:2]
