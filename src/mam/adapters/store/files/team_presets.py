"""Reads teams from files: presets of mam, presets in the user's configuration folder, or any file."""

from __future__ import annotations

import os

from mam.adapters.store.yaml import yaml_text
from mam.core import team_plan
from mam.core.errors import InvalidPath, InvalidSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDING = ".yaml"
_LARGEST = 256 * 1024


def load(name_or_path: str, environ: Mapping[str, str]) -> team_plan.TeamPlan:
    """Return the team of a preset or of a file; the user's presets come before those of mam."""
    path = _find(name_or_path, environ)
    if os.path.exists(path) and not os.path.isfile(path):
        # Opening a pipe would wait for a writer.
        raise InvalidPath(
            f"{path} is not a file", hint="name a YAML file, or a preset: mam team list shows them"
        )
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidPath(
            f"{path} cannot be read: {error.strerror}", hint="name a file that you can read"
        ) from None
    if len(text) > _LARGEST:
        raise InvalidSettings(f"{path}: larger than 256 KB")
    try:
        document = yaml_text.parse(text, path)
    except yaml_text.Unusable as error:
        raise InvalidSettings(error.message) from None
    return team_plan.parse(document, path, os.path.splitext(os.path.basename(path))[0])


def presets(environ: Mapping[str, str]) -> list[str]:
    """Return the names of presets, in order."""
    preset_names: set[str] = set()
    for folder in _folders(environ):
        try:
            names = [name for name in os.listdir(folder) if name.endswith(_ENDING)]
        except OSError:
            continue
        preset_names |= {
            name.removesuffix(_ENDING) for name in names if os.path.isfile(os.path.join(folder, name))
        }
    return sorted(preset_names)


def _find(name_or_path: str, environ: Mapping[str, str]) -> str:
    if "/" in name_or_path or name_or_path.endswith((_ENDING, ".yml")):
        return os.path.abspath(name_or_path)
    if name_or_path in presets(environ):
        paths = [os.path.join(folder, name_or_path + _ENDING) for folder in _folders(environ)]
        return next(path for path in paths if os.path.isfile(path))
    import difflib

    similar = difflib.get_close_matches(name_or_path[:40], presets(environ), n=1, cutoff=0.5)
    hint = f"did you mean {similar[0]}?" if similar else f"there are {', '.join(presets(environ))}"
    raise InvalidPath(f"there is no preset '{name_or_path[:60]}'", hint=hint)


def _folders(environ: Mapping[str, str]) -> list[str]:
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    package = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
    return [os.path.join(config, "mam", "teams"), os.path.join(package, "presets")]
