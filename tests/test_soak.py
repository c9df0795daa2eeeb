"""Load and soak run and leave nothing behind, and each of their checks notices what it is for."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.soak import invariants
from bench.soak.faults import FAULTS
from bench.soak.history import History, Writer
from bench.soak.interrupt import Interrupt
from bench.soak.person import DRAFT, Asked, Person
from bench.soak.report import (
    ENOUGH_CALLS,
    Line,
    exactly,
    fault_lines,
    growth_lines,
    is_good,
    operation_lines,
    render,
    size_lines,
)
from bench.soak.samples import MB, SPARE, Sample, growth
from tests.adapters.store.making import new_row
from tests.bench_runs import begin_module, folder
from tests.waiting import wait_until

import mam
from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.app.jobs.new_job import new_id, record_job
from mam.core import job_event

__all__ = ["begin_module", "folder"]


@pytest.fixture
def begin(begin_module):
    """Start `./dev soak`."""
    return partial(begin_module, "bench.soak")


linux = pytest.mark.skipif(sys.platform != "linux", reason="the soak reads /proc")


@linux
@pytest.mark.slow
@pytest.mark.starts
def test_a_soak_with_each_fault_once(begin) -> None:
    process = begin("--sessions", "4", "--faults", str(len(FAULTS)), "--every", "0.5", "--seed", "5")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, ""), out + err
    missing = {"fill_disk"} if "no full disk" in out else set()
    for name in {fault.__name__ for fault in FAULTS} - missing:
        assert re.search(rf"^fault {name} +[1-9]\d* +> 0 +ok$", out, re.MULTILINE), out
    assert re.search(r"^operation look .*\d done", out, re.MULTILINE), out


@linux
@pytest.mark.slow
@pytest.mark.starts
def test_a_load_of_some_seconds(begin) -> None:
    words = ("--sessions", "3", "--minutes", "0.05", "--messages", "4", "--events", "50")
    process = begin("--load", *words)
    out, err = process.communicate()
    # The other lines are about rates: 1 says that a busy machine has not kept one of them.
    assert process.returncode in (0, 1), out + err
    for what in ("messages lost", "messages doubled or strange", "events lost", "events doubled"):
        assert re.search(rf"^{what} +0 +0 +ok$", out, re.MULTILINE), out


@linux
@pytest.mark.slow
@pytest.mark.starts
def test_an_interrupt_leaves_nothing(begin, folder) -> None:
    process = begin("--sessions", "2", "--minutes", "5", "--every", "0.5")
    wait_until(lambda: process.poll() is not None or list(folder.glob("*/history/*.jsonl")), "clients")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, err.splitlines()[-1:]) == (130, ["interrupted"]), out + err


def test_an_interrupt_that_comes_in_a_destructor_is_not_lost() -> None:
    class Interrupted:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupt = Interrupt()
    interrupt.watch()
    try:
        interrupt.heed()
        freed = Interrupted()
        del freed
        with pytest.raises(KeyboardInterrupt):
            interrupt.sleep_until(float("inf"))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ------------------------------------------------------------ each check can fail


class FakeSoakedRoot:
    """What the checks look at: a real root without tmux, a history, and what agents have taken."""

    def __init__(self, fleet, place: Path) -> None:
        self.fleet = fleet
        (place / "history").mkdir()
        (place / "home" / "mam-practice").mkdir(parents=True)
        self.panes: list[SimpleNamespace] = []
        listing = SimpleNamespace(panes=self.panes)
        tmux = SimpleNamespace(panes=lambda: listing)
        self.stage = SimpleNamespace(root=Path(fleet.root), home=place / "home", tmux=tmux)
        self.history = History(place / "history")
        self.writer = Writer(place / "history", "c0-1")
        self.clients = SimpleNamespace(failed=[])
        self.person = Person(self.stage)
        self.person.screen = lambda _pane: ""
        self.reporter = SimpleNamespace(published={}, failed=[])
        self.notes: dict[str, str] = {}

    def note(self, verb: str, asked: dict, **answer: dict) -> None:
        number = self.writer.call(verb, asked)
        if answer:
            self.writer.answer(number, **answer)
        self.history.read()

    def take(self, *texts: str, kind: str = "user") -> None:
        path = self.stage.home / "mam-practice" / "one.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"type": kind, "text": text}) + "\n" for text in texts)

    def add_row(self, number: int = 1, **fields) -> dict:
        row = new_row(number, name=f"c0-s{number}", **{"status": "stopped", **fields})
        self.fleet._access.context.registry.change(lambda draft: draft.add(row))
        return row

    def add_job(self) -> str:
        return record_job(self.fleet._access.context, self.fleet.caller, new_id(), "x").id

    def add_entry(self, job: str, name: str, detail: str, seq: int) -> None:
        event = job_event.make(job, name, seq=seq, attempt=1, timestamp="2026-11-15T08:00:00Z", detail=detail)
        self.fleet._access.context.registry.note(
            lambda draft: jobs.add_entry(draft, job, name, event, attempt=2 + seq)
        )


@pytest.fixture
def soaked(quick_path, home):
    root = quick_path / "root"
    root.mkdir()
    with mam.open(str(root)) as fleet:
        fleet.init()
        yield FakeSoakedRoot(fleet, quick_path)


def message(soaked, text="message c0-1-1", state="submitted", recorded="submitted"):
    """Record a message that was sent and acknowledged, and what mam says of it."""
    asked = {"session": "s_00000001", "text": text, "message": "m_00000001"}
    soaked.note("send", asked, result={"state": state})
    values = ("m_00000001", "s_00000001", "user", text, 0, "ready", recorded, 1, 0.0, 0.0)
    soaked.fleet._access.context.registry.note(
        lambda draft: draft.connection.execute(
            "INSERT INTO messages(id, session_id, sender, text, is_command, wanted, state, attempts,"
            " created_at, changed_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    )


@pytest.mark.parametrize(
    ("taken", "states", "problem"),
    [
        (["message c0-1-1"], {}, None),
        ([], {}, "submitted and not taken"),
        (["message c0-1-1"] * 2, {}, "taken 2 times"),
        (["message c0-1-1"], {"recorded": "held"}, "taken and recorded as held"),
        ([], {"state": "held", "recorded": "typing"}, "still being typed"),
        (["message c0-1-1", f"{DRAFT} 1"], {}, "which nobody sent"),
        (["message c0-1-1", f"{DRAFT} 1message c0-1-1"], {}, "which nobody sent"),
    ],
)
def test_messages(soaked, taken, states, problem) -> None:
    message(soaked, **states)
    soaked.take(*taken)
    found = list(invariants.sent(soaked))
    assert ([problem in text for text in found] == [True]) if problem else not found


def test_an_acknowledged_message_that_is_not_recorded(soaked) -> None:
    asked = {"session": "s_00000001", "text": "message c0-1-1", "message": "m_00000001"}
    soaked.note("send", asked, result={"state": "held"})
    assert "acknowledged and not recorded" in next(invariants.sent(soaked))
    soaked.note("forget", {"session": "s_00000001"}, result={"id": "s_00000001"})
    assert not list(invariants.sent(soaked))


def test_sessions(soaked) -> None:
    session = soaked.add_row()["id"]
    soaked.note("stop", {"session": session}, result={"status": "stopped"})
    assert not list(invariants.sessions(soaked))
    soaked.note("rename", {"session": session, "name": "c0-r-1"})
    assert not list(invariants.sessions(soaked)), "a killed rename may have had no effect"
    soaked.note("rename", {"session": session, "name": "c0-r-2"}, result={"name": "c0-r-2"})
    assert "is ('c0-s1', 'stopped'" in next(invariants.sessions(soaked))
    soaked.note("rename", {"session": session, "name": "c0-s1"})
    assert not list(invariants.sessions(soaked))
    soaked.note("archive", {"session": session}, result={"status": "archived"})
    assert "is ('c0-s1', 'stopped'" in next(invariants.sessions(soaked))
    soaked.note("resume", {"session": session})
    soaked.note("stop", {"session": session})
    assert not list(invariants.sessions(soaked)), "nobody knows what became of a killed call"
    soaked.note("forget", {"session": session}, result={"id": session})
    assert "is ('c0-s1', 'stopped'" in next(invariants.sessions(soaked))


def test_a_session_that_is_gone(soaked) -> None:
    soaked.note("create", {"name": "c0-c-1"}, result={"session": "s_00000001", "status": "running"})
    assert "s_00000001 is None" in next(invariants.sessions(soaked))
    soaked.note("forget", {"session": "s_00000001"})
    assert not list(invariants.sessions(soaked))


def test_the_registry(soaked) -> None:
    row = soaked.add_row()
    assert not list(invariants.registry(soaked))
    soaked.notes["note_0"] = row["id"]
    assert "the note of a person is lost" in next(invariants.registry(soaked))
    file = Path(soaked.fleet.registry_file)
    file.write_text(file.read_text(encoding="utf-8").replace("stopped", "archived"), encoding="utf-8")
    assert "the file and the database" in next(invariants.registry(soaked))


@pytest.mark.starts
def test_panes(soaked) -> None:
    row = soaked.add_row()
    assert not list(invariants.panes(soaked))
    soaked.panes += [SimpleNamespace(mark=row["id"], dead=False)] * 2
    assert [text.partition(" s_")[0] for text in invariants.panes(soaked)] == [
        "2 live panes claim",
        "a live pane of",
    ]


@pytest.mark.starts
def test_a_session_without_its_process(soaked) -> None:
    soaked.add_row(status="running")
    assert "c0-s1 (s_00000001) is running, its process" in next(invariants.panes(soaked))


@linux
def test_a_process_of_a_session_that_has_ended(soaked, monkeypatch) -> None:
    monkeypatch.setattr(invariants, "HOOK_SECONDS", 0.0)
    environ = {**os.environ, "MAM_SESSION": "s_00000001", "MAM_ROOT": soaked.fleet.root}
    with subprocess.Popen(["sleep", "100"], env=environ) as left:
        try:
            wait_until(lambda: b"sleep" in Path(f"/proc/{left.pid}/cmdline").read_bytes())
            assert f"process {left.pid} of s_00000001" in next(invariants.processes(soaked))
        finally:
            left.kill()
    assert not list(invariants.processes(soaked))


def test_dialogs(soaked) -> None:
    soaked.person.asked.append(Asked("s_00000001", "%1", process.me(), "touch asked-1"))
    assert "is gone" in next(invariants.dialogs(soaked))
    soaked.person.screen = lambda _pane: "touch asked-1\nDo you want to proceed?"
    assert not list(invariants.dialogs(soaked))
    soaked.take("`touch asked-1` is done.", kind="assistant")
    assert "somebody allowed" in next(invariants.dialogs(soaked))


def test_reports(soaked) -> None:
    job = soaked.add_job()
    soaked.note("report", {"job": job, "detail": "one"}, result={"seq": 1})
    assert "0 times in the log" in next(invariants.reports(soaked))
    soaked.add_entry(job, "progress", "one", 1)
    assert not list(invariants.reports(soaked))
    soaked.add_entry(job, "progress", "one", 2)
    assert "2 times in the log" in next(invariants.reports(soaked))


def test_ends(soaked) -> None:
    job = soaked.add_job()
    assert not list(invariants.ends(soaked))
    soaked.note("submit", {"prompt": "x"}, result={"job": "0badcafe"})
    assert "lost" in next(invariants.ends(soaked))
    soaked.note("end", {"job": job, "detail": "over"}, result={"status": "completed"})
    assert "not ended" in list(invariants.ends(soaked))[1]
    soaked.add_entry(job, "completed", "over", 1)
    assert f"job {job} is pending and has 1 ends" in next(invariants.ends(soaked))


def test_remote_reports(soaked) -> None:
    job = soaked.add_job()
    soaked.reporter.published[job] = 1
    assert "lost [1], doubled []" in next(invariants.remote_reports(soaked))
    soaked.add_entry(job, "progress", "number 1", 1)
    assert not list(invariants.remote_reports(soaked))
    soaked.add_entry(job, "progress", "forged", 2)
    assert "has a forged event" in next(invariants.remote_reports(soaked))


def test_tasks(soaked) -> None:
    soaked.note("task", {"text": "one"}, result={"id": "t_00000001"})
    assert "0 times" in next(invariants.tasks(soaked))
    task = soaked.fleet.tasks.add("two", role="soak")["task"]
    soaked.note("task", {"text": "two"}, result={"id": task["id"]})
    assert len(list(invariants.tasks(soaked))) == 1


def test_leftovers(soaked) -> None:
    soaked.add_job()
    assert not list(invariants.leftovers(soaked))
    state = soaked.stage.root / ".mam"
    for path in (
        state / "state.db.0badcafe",
        state / "launch" / "x.launch",
        state / "jobs" / "0badcafe.json.1",
    ):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert len(list(invariants.leftovers(soaked))) == 3


def test_a_check_that_is_not_possible_is_a_violation(soaked) -> None:
    Path(soaked.fleet.registry_file).write_text("a: 1\na: 2\n", encoding="utf-8")
    assert any(text.startswith("registry is not possible") for text in invariants.violations(soaked))


def test_bugs(soaked) -> None:
    soaked.note("look", {}, error={"code": "session_not_found", "message": "x"})
    assert not list(invariants.violations(soaked))
    soaked.note("look", {}, error={"code": "traceback", "message": "x"})
    soaked.clients.failed.append("c0 ended by itself")
    assert [text.partition(":")[0] for text in invariants.violations(soaked)] == ["bugs", "bugs"]


# ------------------------------------------------------------ the history and the table


def test_a_call_without_an_answer_was_killed(soaked) -> None:
    soaked.note("stop", {"session": "s_1"})
    soaked.note("stop", {"session": "s_2"}, error={"code": "pane_gone", "message": "x"})
    soaked.note("stop", {"session": "s_3"}, result={})
    assert Counter(call.outcome for call in soaked.history.calls) == {"killed": 1, "pane_gone": 1, "done": 1}
    assert [call.is_acknowledged for call in soaked.history.calls] == [False, False, True]


def samples(memory, descriptors=(10,), seconds=60.0):
    step = seconds / (len(memory) - 1)
    return [
        Sample(1, number * step, size * MB, descriptors[number % len(descriptors)], 2)
        for number, size in enumerate(memory)
    ]


def test_growth_counts_after_the_warm_up() -> None:
    flat = samples([10, 40, 50, 50, 51, 50, 52, 51])
    assert is_good(growth_lines("resident", flat))
    assert [one.before for one in growth(flat, SPARE)] == [50 * MB, 10, 2]
    grown = samples([10, 40, 50, 50, 51, 52, 54, 54])
    assert [line.ok for line in growth_lines("resident", grown)] == [False, True, True]
    assert is_good(growth_lines("resident", samples([10, 40, 50, 90], seconds=5))), (
        "a short run is not judged"
    )
    assert is_good(growth_lines("resident", grown, {"memory": 4 * MB})), "what it does may become more"
    leaking = samples([50] * 8, descriptors=(10, 11, 12, 13, 14, 15, 16, 17))
    assert [line.ok for line in growth_lines("resident", leaking)] == [True, False, True]


def test_the_table() -> None:
    lines = [Line("a", "1"), exactly("lost", 1, 0), *size_lines({"database": 2 * MB}, 1 * MB)]
    assert not is_good(lines)
    assert is_good(lines[:1])
    assert render(lines).splitlines()[2].split() == ["lost", "1", "0", "FAILED"]


def test_a_fault_that_never_hits_and_a_verb_that_is_never_done_are_noticed() -> None:
    hits, missed = Counter(kill_agent=2), Counter({"draft (nothing there)": 3})
    lines = fault_lines({"kill_agent", "draft"}, hits, missed)
    assert [(line.what, line.ok) for line in lines] == [
        ("fault draft", False),
        ("fault kill_agent", True),
        ("no fault draft (nothing there)", None),
    ]
    refused = [SimpleNamespace(verb="stop", outcome="not_found")] * ENOUGH_CALLS
    assert [line.ok for line in operation_lines(refused)] == [False]
    assert [line.ok for line in operation_lines(refused[1:])] == [None], "a few may all be refused"
    assert is_good(operation_lines([*refused, SimpleNamespace(verb="stop", outcome="done")]))


def test_a_reporter_that_dies_is_noticed(soaked) -> None:
    soaked.reporter.failed.append("the remote reporter has ended")
    assert [text.partition(":")[0] for text in invariants.violations(soaked)] == ["bugs"]


def test_wrong_usage_is_64(begin) -> None:
    process = begin("--nonsense")
    assert "unrecognized arguments" in process.communicate()[1]
    assert process.returncode == 64
