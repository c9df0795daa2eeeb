"""The rest of the crash sweep: killed after each call, a full disk, a failing one, and more verbs."""

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("sweeping", Path(__file__).parents[1] / "faults/sweeping.py")
sweeping = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sweeping)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return sweeping.build_shim(tmp_path_factory.mktemp("shim"))


@pytest.mark.parametrize("scenario", ["purge", "rename"])
def test_more_verbs_killed_before_every_call(shim, home, tmp_path, scenario) -> None:
    assert sweeping.sweep(shim, tmp_path, scenario, "kill-before")["broken"] == []


@pytest.mark.parametrize("mode", ["kill-after", "ENOSPC", "EIO"])
@pytest.mark.parametrize("scenario", ["create", "stop", "resume", "purge", "rename", "edit"])
def test_other_faults_at_every_call(shim, home, tmp_path, scenario, mode) -> None:
    found = sweeping.sweep(shim, tmp_path, scenario, mode)
    assert found["broken"] == []
