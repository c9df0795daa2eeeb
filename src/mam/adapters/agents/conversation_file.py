"""What the kinds share that keep one growing file per conversation."""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Transcript

HOME = "HOME"


def config_folder(stores: Mapping[str, str], variable: str, usual: str) -> str | None:
    """Return the folder of a launch's configuration, or None if the row does not say."""
    if stores.get(variable):
        return stores[variable]
    return os.path.join(stores[HOME], usual) if stores.get(HOME) else None


class FileKind(Kind):
    """A kind whose conversations are one file each, in the home or where a variable says."""

    # The variable that says where the files lie. It is kept only if the caller sets it.
    config_variable = ""

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """Return the file of a conversation, None if there is none. Raises OSError where nobody can say."""
        raise NotImplementedError

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """Tell whether the file beyond `since` has a prompt of the user's. Raises OSError."""
        raise NotImplementedError

    def read_turns(self, path: str, turns: int) -> Transcript | None:
        """Return the last turns that a file has; None where it cannot be read."""
        raise NotImplementedError

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Name the variable if the caller did, else the home."""
        if environ.get(self.config_variable):
            return {self.config_variable: os.path.abspath(environ[self.config_variable])}
        return {HOME: environ.get(HOME) or os.path.expanduser("~")}

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """A prompt is in the file of its conversation."""
        try:
            path = self.find_record(conversation, stores)
            return path is not None and self.has_prompt(text, conversation, path, since)
        except OSError:
            return None

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """The end of the file, wherever the conversation began."""
        try:
            path = self.find_record(conversation, stores)
        except OSError:
            return None
        return self.read_turns(path, turns) if path else None

    def record_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Bytes of the file."""
        try:
            return os.path.getsize(self.find_record(conversation, stores) or "")
        except OSError:
            return 0
