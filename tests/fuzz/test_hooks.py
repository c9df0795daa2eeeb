"""Payloads of hooks, of every kind: what an agent, or whoever writes into the spool, may send."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.store.making import new_row
from tests.conftest import settle_in
from tests.fuzz import oracle
from tests.fuzz.agent_records import HOOKS
from tests.fuzz.bad_input import as_json, damaged, examples, json_texts, strange_documents

import mam
from mam.adapters.agents.catalogue import kind
from mam.adapters.store.files import hook_spool
from mam.adapters.store.tables import set_aside
from mam.app.observation import hook_intake
from mam.app.observation.newest_hook_reports import as_report, newest_reports, recorded_reports
from mam.core.activity import IDLE, WAITING, WORKING

KINDS = sorted(HOOKS)
PID = 4_000_001


def check_event(name: str, payload: object) -> None:
    event = oracle.read(kind(name).read_hook, payload)
    if event is None:
        return
    report = as_report(event)
    assert report["state"] in (None, IDLE, WORKING, WAITING)
    assert isinstance(event.prompt, str | None)
    for text in (event.asks, event.waiting_for, event.conversation):
        assert text is None or oracle.is_plain(text), f"{text!r} is shown in one line"
    json.dumps(report, allow_nan=False)


@pytest.mark.parametrize("name", KINDS)
def test_every_valid_payload_is_read(name):
    for payload in HOOKS[name]:
        check_event(name, payload)
    assert not kind(name).has_hooks or any(kind(name).read_hook(payload) for payload in HOOKS[name])


@pytest.mark.parametrize("name", KINDS)
def test_a_payload_with_strange_values_is_an_event_or_none(name):
    @examples(40)
    @given(payload=strange_documents(HOOKS[name]).map(lambda document: json.loads(as_json(document))))
    def check(payload):
        if isinstance(payload, dict):
            check_event(name, payload)

    check()


class Spool:
    """A root with one session of each kind, and the spool of their hooks."""

    def __init__(self, root: Path) -> None:
        self.fleet = mam.open(str(root))
        self.fleet.init()
        self.context = self.fleet._access.context
        for number, name in enumerate(KINDS, 1):
            pane = {"id": f"%{number}", "pid": PID, "cmd": name, "cwd": str(root)}
            row = new_row(number, agent=name, start_command=[name], workspace=str(root), pane=pane)
            self.context.registry.change(lambda transaction, row=row: transaction.add(row))
        self.rows = list(self.context.registry.view().rows)
        self.folder = Path(self.context.paths.spool)
        self.folder.mkdir(exist_ok=True)

    def write(self, row: dict, payload: bytes) -> Path:
        path = self.folder / f"{row['id']}.{PID}.1.json"
        path.write_bytes(payload)
        return path

    def flaws(self) -> list[str]:
        found: list = []
        return [item.reason for item in self.context.registry.peek(set_aside.listed, found)]


@pytest.fixture(scope="module")
def spool(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        settle_in(home, patch)
        made = Spool(tmp_path_factory.mktemp("root"))
        yield made
        made.fleet.close()


PAYLOADS = some.sampled_from(KINDS).flatmap(
    lambda name: some.tuples(some.just(name), json_texts(HOOKS[name]))
)


@pytest.mark.promise("P46")
@examples(120)
@given(drawn=PAYLOADS)
def test_a_payload_of_any_bytes_is_taken_in_and_changes_no_session(spool, drawn):
    name, payload = drawn
    row = next(row for row in spool.rows if row["agent"] == name)
    path = spool.write(row, payload)
    with oracle.unchanged(path, Path(spool.context.paths.yaml)):
        reports = oracle.read(newest_reports, spool.context, spool.rows)
    assert isinstance(reports, dict)
    oracle.read(hook_intake.take_in, spool.context)
    assert not path.exists(), "a payload that nobody can read would come again for ever"
    assert list(spool.context.registry.view().rows) == spool.rows
    assert spool.flaws() == [], "mam failed on a payload"
    for report in recorded_reports(spool.context).values():
        json.dumps([report.at, report.data], allow_nan=False)


@pytest.mark.parametrize("name", ["claude", "opencode"])
def test_a_payload_cut_at_every_byte(spool, name):
    """A hook that is killed leaves no file; a full disk, or somebody else, may."""
    row = next(row for row in spool.rows if row["agent"] == name)
    payload = as_json(HOOKS[name][1])
    for length in range(len(payload) + 1):
        spool.write(row, payload[:length])
        (found,) = hook_spool.pending(str(spool.folder))
        data = oracle.read(lambda found=found: found.data)
        assert bool(data) == (length == len(payload)), length
        check_event(name, data)
    oracle.read(hook_intake.take_in, spool.context)


NAMES = damaged([b"s_00000001.4000001.1.json", b".s_00000001.4000001.x.tmp"]).filter(
    lambda name: 0 < len(name) < 200 and b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)


@examples(60)
@given(name=NAMES)
def test_a_file_of_any_name_in_the_spool_stops_nothing(spool, name):
    path = Path(os.fsdecode(spool.folder) + "/" + os.fsdecode(name))
    path.write_bytes(as_json(HOOKS["claude"][0]))
    oracle.read(newest_reports, spool.context, spool.rows)
    oracle.read(hook_intake.take_in, spool.context)
    oracle.read(hook_spool.remove_unfinished, str(spool.folder))
    path.unlink(missing_ok=True)
