"""A verb that is killed before any of its durable system calls leaves nothing half done.

After each kill the next changing verb runs; registry, file and tmux must then agree, what was
acknowledged must be there, and no pane may be left without a row (invariants 1 to 4 and 7 to 9).
"""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("sweeping", Path(__file__).parent / "sweeping.py")
sweeping = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sweeping)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return sweeping.build_shim(tmp_path_factory.mktemp("shim"))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["create", "stop", "resume", "edit"])
def test_killed_before_every_call(shim, home, tmp_path, scenario) -> None:
    found = sweeping.sweep(shim, tmp_path, scenario, "kill-before")
    assert found["broken"] == []
    assert found["calls"] >= 25
    assert found["killed"] == found["cases"] == found["calls"]
