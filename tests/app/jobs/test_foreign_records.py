"""Records that the original system left: what mam lists, and what it says of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mam.core.errors import NotAllowed

WHOLE = {"schema_version": 1, "job_id": "1f00ab42", "status": "completed", "prompt": "count the files"}


@pytest.fixture
def warnings(fleet) -> list[str]:
    said: list[str] = []
    fleet._access.context = fleet._access.context.replace(warn=said.append)
    return said


def leave(fleet, **fields) -> Path:
    path = Path(fleet.root) / ".hermes/jobs" / "1f00ab42.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**WHOLE, **fields}), encoding="utf-8")
    return path


@pytest.mark.parametrize("field", ["schema_version", "status"])
def test_a_record_that_lacks_a_field_is_not_missing_in_silence(fleet, warnings, field) -> None:
    fleet.init()
    path = leave(fleet, **{field: None})
    assert fleet.jobs.list() == []
    (line,) = warnings
    assert line.startswith(f"{path} is not listed")


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("running", "cancel the job and submit it again"),
        ("completed", "the job has ended: mam job status 1f00ab42"),
    ],
)
def test_a_job_without_a_token_gets_a_hint_for_its_status(fleet, warnings, status, hint) -> None:
    fleet.init()
    leave(fleet, status=status)
    with pytest.raises(NotAllowed) as caught:
        fleet.jobs.event("1f00ab42", event="progress")
    assert caught.value.hint == hint
    assert warnings == []
