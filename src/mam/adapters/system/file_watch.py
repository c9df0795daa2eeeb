"""Notices at once that something in a folder changed: with inotify on Linux, with kqueue on macOS."""

from __future__ import annotations

import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from typing import Protocol

    class _Events(Protocol):
        """A source of changed folders. `add` returns False for a folder that the source cannot watch."""

        def add(self, path: str, *, only_names: bool) -> bool: ...
        def discard(self, path: str) -> None: ...
        def poll(self) -> list[str]: ...
        def fileno(self) -> int: ...
        def close(self) -> None: ...


class FileWatch:
    """Watched folders, each with a tag that `poll` returns after a change in the folder."""

    __slots__ = ("_events", "_tags")

    def __init__(self) -> None:
        """Start with nothing to watch."""
        self._events: _Events = _Inotify() if sys.platform == "linux" else _Kqueue()
        self._tags: dict[str, Hashable] = {}

    def keep(self, tags: dict[str, Hashable], only_names: Collection[str] = ()) -> None:
        """Watch exactly these folders; the next call tries a missing folder again.

        For folders in `only_names`, files that appear and disappear count as changes; writes do not.
        """
        for path in self._tags.keys() - tags.keys():
            self._events.discard(path)
            del self._tags[path]
        for path, tag in tags.items():
            if path in self._tags or self._events.add(path, only_names=path in only_names):
                self._tags[path] = tag

    def fileno(self) -> int:
        """Return a descriptor that is readable when something changed."""
        return self._events.fileno()

    def poll(self) -> set[Hashable]:
        """Return the tags of the folders that changed since the last call; never waits."""
        changed = self._events.poll()
        missing = [path for path in changed if path in self._tags and not os.path.isdir(path)]
        tags = {self._tags[path] for path in changed if path in self._tags}
        for path in missing:
            self._events.discard(path)
            del self._tags[path]
        return tags

    def __len__(self) -> int:
        """Return how many folders are watched."""
        return len(self._tags)

    def close(self) -> None:
        """Close every descriptor."""
        self._events.close()
        self._tags.clear()


# The head of an event, and the flags of <sys/inotify.h>.
_HEAD = struct.Struct("iIII")
_NAMES = 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
_WRITES = 0x2
_ONLY_FOLDER, _NO_LINK = 0x01000000, 0x02000000


class _Inotify:
    """inotify, called through the C library because Python has no function for it."""

    def __init__(self) -> None:
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def add(self, path: str, *, only_names: bool) -> bool:
        changes = _NAMES if only_names else _NAMES | _WRITES
        mask = changes | _ONLY_FOLDER | _NO_LINK
        number = self._libc.inotify_add_watch(self._handle, os.fsencode(path), mask)
        if number < 0:
            return False
        self._paths[number] = path
        self._numbers[path] = number
        return True

    def discard(self, path: str) -> None:
        number = self._numbers.pop(path, None)
        if number is not None and self._paths.get(number) == path:
            del self._paths[number]
            self._libc.inotify_rm_watch(self._handle, number)

    def poll(self) -> list[str]:
        changed: dict[str, None] = {}
        while True:
            try:
                data = os.read(self._handle, 65536)
            except BlockingIOError:
                return list(changed)
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size + length
                if mask & 0x4000:
                    # IN_Q_OVERFLOW: the kernel lost events, so anything may have changed.
                    changed.update(dict.fromkeys(self._paths.values()))
                elif number in self._paths:
                    changed[self._paths[number]] = None

    def fileno(self) -> int:
        return int(self._handle)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class _Kqueue:
    """One open descriptor per folder. kqueue does not report writes into existing files."""

    def __init__(self) -> None:
        import select

        self._select = select
        self._queue = select.kqueue()  # type: ignore[attr-defined,unused-ignore]
        self._open: dict[str, int] = {}

    def add(self, path: str, *, only_names: bool) -> bool:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        select = self._select
        event = select.kevent(  # type: ignore[attr-defined,unused-ignore]
            handle,
            filter=select.KQ_FILTER_VNODE,  # type: ignore[attr-defined,unused-ignore]
            flags=select.KQ_EV_ADD | select.KQ_EV_CLEAR,  # type: ignore[attr-defined,unused-ignore]
            fflags=select.KQ_NOTE_WRITE | select.KQ_NOTE_DELETE | select.KQ_NOTE_RENAME,  # type: ignore[attr-defined,unused-ignore]
        )
        self._queue.control([event], 0)
        self._open[path] = handle
        return True

    def discard(self, path: str) -> None:
        handle = self._open.pop(path, None)
        if handle is not None:
            os.close(handle)

    def poll(self) -> list[str]:
        paths = {handle: path for path, handle in self._open.items()}
        return [paths[event.ident] for event in self._queue.control(None, 256, 0) if event.ident in paths]

    def fileno(self) -> int:
        return int(self._queue.fileno())

    def close(self) -> None:
        for path in list(self._open):
            self.discard(path)
        self._queue.close()
