"""The files of messages in a workspace: each has the text of a message that is not typed as it is."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager

from mam.core.message_rules import MAIL, file_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def opened(workspace: str) -> Iterator[int | None]:
    """Open the folder of these files; None if there is none, or a link in its place."""
    try:
        folder = os.open(
            os.path.join(workspace, MAIL), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)


def remove_file(folder: int, name: str, *, before: float | None = None) -> None:
    """Remove a file of this user's from the open folder; with `before` only one that is older."""
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        is_old = before is None or facts.st_mtime < before
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and is_old:
            os.unlink(name, dir_fd=folder)
    except OSError:
        # Somebody else has removed it, or it cannot be removed.
        return


def remove(workspace: str, message_ids: Iterable[str]) -> None:
    """Remove the files of messages from a workspace."""
    with opened(workspace) as folder:
        if folder is not None:
            for message_id in message_ids:
                remove_file(folder, os.path.basename(file_of(message_id)))
