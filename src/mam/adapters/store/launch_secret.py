"""The file of a launch secret: it proves which session a process belongs to, also in another PID namespace.

Codex runs its tools in a PID namespace of their own, where the process of the session is not to be seen. The
secret lies in a private file of the user state, whose path the agent and its tools have in their environment.
The user state knows only a digest of the secret. File and digest end with the launch.
"""

from __future__ import annotations

import os
import stat

# Names the file, in the environment of an agent and of its MCP servers.
VARIABLE = "MAM_LAUNCH"
_BYTES = 32


def write_new(path: str) -> str:
    """Write a new secret into a private file, and return its digest. Raises OSError."""
    from mam.adapters.system import atomic_file

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    secret = os.urandom(_BYTES).hex().encode()
    atomic_file.create(path, secret)
    return _digest(secret)


def digest_in(path: str) -> str | None:
    """Return the digest of the secret in a file; None if this process cannot read a secret there."""
    try:
        # The path comes from an environment, so it may lead anywhere, also to a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        secret = os.read(handle, 2 * _BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    return _digest(secret) if len(secret) == 2 * _BYTES else None


def remove(path: str) -> None:
    """Remove the file of a secret. One that cannot be removed proves nothing, as its digest is gone."""
    try:
        os.unlink(path)
    except OSError:
        return


def _digest(secret: bytes) -> str:
    import hashlib

    return hashlib.sha256(secret).hexdigest()
