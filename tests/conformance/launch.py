"""A program is started without mam so that it talks to the model server and asks nothing first.

Everything is per launch: arguments, environment, and files in a fresh HOME. An option takes one of these
away, so that the dialog it prevents appears.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.install import installed
from tests.conformance.model_server import ModelServer
from tests.conformance.program import PROGRAMS
from tests.conformance.terminal import HEIGHT, WIDTH, Pane, Terminals


def start(
    kind: str,
    terminals: Terminals,
    folder: Path,
    model: ModelServer,
    *,
    home: Path,
    arguments: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    trusted: bool = True,
    authenticated: bool = True,
    moderated: bool = True,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Pane:
    """Start a program in a pane, and return at once: wait for `PROGRAMS[kind].ready`.

    `trusted=False` leaves the folder unknown, `authenticated=False` the key unapproved or the login undone,
    `moderated=False` lets Claude choose its permission mode.
    """
    launch = PROGRAMS[kind].launch_bare(
        model.url, home, folder, trusted=trusted, authenticated=authenticated, moderated=moderated
    )
    home.mkdir(parents=True, exist_ok=True)
    # What an earlier launch of this home left is kept.
    launch.write(home, anew=False)
    argv = [str(installed(kind)), *launch.arguments, *arguments]
    base = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        **guard(model),
    }
    return terminals.open(argv, folder, {**base, **launch.variables(), **(environment or {})}, size)


def guard(model: ModelServer) -> dict[str, str]:
    """Make the model server the proxy: it refuses every way out, on a machine with a net as well."""
    out = {name: model.url for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    return out | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
