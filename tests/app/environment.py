"""A fleet whose caller has another environment, on the same root."""

from __future__ import annotations

from collections.abc import Mapping

import mam


def use_environment(fleet: mam.Fleet, environ: Mapping[str, str]) -> None:
    """Have a fleet go on with another environment; what it has open stays open."""
    context = fleet._access.context
    fleet._access.context = context.replace(environ=environ, resources=context.resources)
