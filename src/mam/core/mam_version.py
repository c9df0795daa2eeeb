"""The version of this mam, and comparing versions such as 0.2.0 and 0.2.0.dev0."""

from __future__ import annotations

VERSION = "0.2.0.dev0"
_FORM = r"(\d+)\.(\d+)\.(\d+)(.*)"


def is_newer(version: str, other: str) -> bool:
    """Tell whether a version is newer than another; a text that is no version counts as the oldest."""
    return version != other and _key(version) > _key(other)


def _key(version: str) -> tuple[int, int, int, bool, str]:
    # `mam --version` needs no patterns.
    import re

    found = re.fullmatch(_FORM, version, re.ASCII | re.DOTALL)
    if found is None:
        return -1, 0, 0, False, ""
    major, minor, patch, rest = found.groups()
    return int(major), int(minor), int(patch), not rest, rest
