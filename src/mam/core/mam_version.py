"""Comparing versions of mam, such as 0.2.0 and 0.2.0.dev0."""

from __future__ import annotations

import re

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)", re.ASCII | re.DOTALL)


def is_newer(version: str, other: str) -> bool:
    """Tell whether a version is newer than another; a text that is no version counts as the oldest."""
    return _key(version) > _key(other)


def _key(version: str) -> tuple[int, int, int, bool, str]:
    found = _VERSION.fullmatch(version)
    if found is None:
        return -1, 0, 0, False, ""
    major, minor, patch, rest = found.groups()
    return int(major), int(minor), int(patch), not rest, rest
