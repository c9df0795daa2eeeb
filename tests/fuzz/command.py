"""Runs a command of mam in this process, without a terminal, and with nothing to read."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.fuzz import oracle

from mam.surfaces.cli.main import main


def run(line: Sequence[str]) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command."""
    out, err = io.StringIO(), io.StringIO()
    with Path(os.devnull).open(encoding="utf-8") as nothing, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", nothing)
        with redirect_stdout(out), redirect_stderr(err), oracle.bounded():
            code = main(list(line))
    return code, out.getvalue(), err.getvalue()
