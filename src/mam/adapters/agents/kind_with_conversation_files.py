"""The base class of the kinds whose programs keep one growing file per conversation."""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Transcript

HOME = "HOME"


def config_folder(stores: Mapping[str, str], variable: str, default: str) -> str | None:
    """Return the folder of the configuration of a launch; None if the row has neither variable."""
    if stores.get(variable):
        return stores[variable]
    return os.path.join(stores[HOME], default) if stores.get(HOME) else None


class KindWithConversationFiles(Kind):
    """A kind whose conversations have one file each, below the home or below the folder of a variable."""

    # The variable that names the folder of the files. mam keeps it only if the caller sets it.
    config_variable = ""

    def find_record(self, conversation: str, stores: Mapping[str, str]) -> str | None:
        """Return the file of a conversation; None if there is none. Raises OSError."""
        raise NotImplementedError

    def has_prompt(self, text: str, conversation: str, path: str, since: int) -> bool:
        """Tell whether the file has this user prompt beyond `since` bytes. Raises OSError."""
        raise NotImplementedError

    def count_prompts(self, text: str, conversation: str, path: str, since: int) -> int:
        """Return how often the file has this user prompt beyond `since` bytes, or fewer. Raises OSError."""
        return int(self.has_prompt(text, conversation, path, since))

    def read_turns(self, path: str, turns: int) -> Transcript | None:
        """Return the last turns of a file; None if it cannot be read."""
        raise NotImplementedError

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variable if the caller sets it, else the home."""
        if environ.get(self.config_variable):
            return {self.config_variable: os.path.abspath(environ[self.config_variable])}
        return {HOME: environ.get(HOME) or os.path.expanduser("~")}

    def has_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> bool | None:
        """Look for the prompt in the file of the conversation."""
        try:
            path = self.find_record(conversation, stores)
            return path is not None and self.has_prompt(text, conversation, path, since)
        except OSError:
            return None

    def count_submitted(
        self, text: str, conversation: str, stores: Mapping[str, str], since: int
    ) -> int | None:
        """Count the prompt in the file of the conversation."""
        try:
            path = self.find_record(conversation, stores)
            return 0 if path is None else self.count_prompts(text, conversation, path, since)
        except OSError:
            return None

    def read_transcript(
        self, conversation: str, workspace: str, stores: Mapping[str, str], turns: int
    ) -> Transcript | None:
        """Read the end of the file, whatever workspace the conversation began in."""
        try:
            path = self.find_record(conversation, stores)
        except OSError:
            return None
        return self.read_turns(path, turns) if path else None

    def transcript_size(self, conversation: str, stores: Mapping[str, str]) -> int:
        """Return the bytes of the file."""
        try:
            return os.path.getsize(self.find_record(conversation, stores) or "")
        except OSError:
            return 0
