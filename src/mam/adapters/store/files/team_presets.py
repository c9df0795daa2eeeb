"""Teams as files: presets that come with mam, a person's own in the configuration folder, or any file."""

from __future__ import annotations

import os

from mam.adapters.store.yaml import yaml_text
from mam.core import team
from mam.core.errors import InvalidPath, InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDING = ".yaml"
_LARGEST = 256 * 1024


def load(what: str, environ: Mapping[str, str]) -> team.TeamPlan:
    """Return the team of a preset's name or of a file; a person's own preset comes before one of ours."""
    path = _find(what, environ)
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe would be waited for.
        raise InvalidPath(f"{path} is no file")
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidPath(f"{path} cannot be read: {error.strerror}") from None
    if len(text) > _LARGEST:
        raise InvalidSettings(f"{path}: larger than 256 KB")
    try:
        document = yaml_text.parse(text, path)
    except yaml_text.Unusable as error:
        raise InvalidSettings(error.message) from None
    return team.parse(document, path, os.path.splitext(os.path.basename(path))[0])


def presets(environ: Mapping[str, str]) -> list[str]:
    """Return the names of presets, in order."""
    found: set[str] = set()
    for folder in _folders(environ):
        try:
            names = [name for name in os.listdir(folder) if name.endswith(_ENDING)]
        except OSError:
            continue
        found |= {name.removesuffix(_ENDING) for name in names if os.path.isfile(os.path.join(folder, name))}
    return sorted(found)


def _find(what: str, environ: Mapping[str, str]) -> str:
    if "/" in what or what.endswith((_ENDING, ".yml")):
        return os.path.abspath(what)
    if what in presets(environ):
        paths = [os.path.join(folder, what + _ENDING) for folder in _folders(environ)]
        return next(path for path in paths if os.path.isfile(path))
    import difflib

    near = difflib.get_close_matches(what[:40], presets(environ), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(presets(environ))}"
    raise InvalidPath(f"there is no preset '{what[:60]}'", hint=hint)


def _folders(environ: Mapping[str, str]) -> list[str]:
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    package = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
    return [os.path.join(config, "mam", "teams"), os.path.join(package, "presets")]
