"""Eight processes change twenty sessions at once, and what must be true afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.adapters.store.making import Store, check_invariants, new_row
from tests.app.api.writer import VERBS, WANTED

import mam
from mam.app.jobs.new_job import new_id, record_job

REPOSITORY = Path(__file__).resolve().parents[3]
PROCESSES, SESSIONS, JOBS = 8, 20, 3
# What a verb may answer where several want the same. None of it says that mam itself was busy.
EXPLAINED = {("rename", "name_taken"), ("claim", "task_not_found")}

Answers = dict[str, list[list[Any]]]


def write_at_once(fleet: mam.Fleet, changes: int, commands: int) -> dict[str, int]:
    """Have every process make so many changes, and check them; return how many each verb acknowledged.

    So many of the changes of each process go by the command line, the others by the API.
    """
    with mam.open(fleet.root) as own:
        own.init()
        context = own._access.context
        for number in range(1, SESSIONS + 1):
            row = new_row(
                number, name=f"first-{number}", status="stopped", tmux_server=context.server_name(None)
            )
            context.registry.change(lambda transaction, row=row: transaction.add(row))
        for _ in range(JOBS):
            record_job(context, own.caller, new_id(), "do it")
    answers = _answers(fleet.root, changes, commands)
    store = Store(Path(fleet.root), time.time)
    try:
        check_refusals(answers, changes)
        check_names(store, answers["rename"])
        check_tasks(fleet, answers)
        check_reports(fleet, answers["report"])
        check_log(store, answers)
        check_invariants(store)
        assert not store.registry.has_unshown_changes()
    finally:
        store.registry.close()
    return {verb: len(entries) for verb, entries in answers.items()}


def _answers(root: str, changes: int, commands: int) -> Answers:
    """Return what all processes answer, together."""
    command = [sys.executable, "-m", "tests.app.api.writer", root]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [*command, *map(str, (number, changes, commands))],
            cwd=REPOSITORY,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )
        for number in range(PROCESSES)
    ]
    together: Answers = {}
    try:
        for process in processes:
            assert process.stdout.readline() == b"ready\n", process.stderr.read().decode()
        for process in processes:
            process.stdin.close()
        for process in processes:
            process.stdin = None
            out, err = process.communicate()
            assert (process.returncode, err) == (0, b""), err.decode()
            for verb, entries in json.loads(out).items():
                together.setdefault(verb, []).extend(entries)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return together


def check_refusals(answers: Answers, changes: int) -> None:
    """Every call has an answer, and every refusal a reason that holds."""
    assert sum(len(answers[verb]) for verb in (*VERBS, "refused")) == PROCESSES * changes
    assert not answers["warned"], answers["warned"]
    unexplained = [
        refusal
        for refusal in answers["refused"]
        if (refusal[0], refusal[1]) not in EXPLAINED
        or (refusal[0] == "rename" and not any(name in refusal[2] for name in WANTED))
    ]
    assert not unexplained, unexplained


def check_names(store: Store, renames: list[list[Any]]) -> None:
    """I1: the versions of a session rise one by one, and each has the name that was acknowledged with it."""
    history: dict[str, list[str]] = {key: [f"first-{number}"] for number, key in enumerate(store.rows(), 1)}
    for session_id, name, detail in _logged(store, "rename"):
        assert json.loads(detail)["before"] == history[session_id][-1], (
            "a change does not follow on its former"
        )
        history[session_id].append(name)
    for session_id, version, name in renames:
        assert history[session_id][version - 1] == name
    assert {(session_id, version) for session_id, version, _name in renames} == {
        (session_id, version) for session_id, names in history.items() for version in range(2, len(names) + 1)
    }
    again = Counter((session_id, version) for session_id, version, _name in renames)
    assert all(
        history[session_id][version - 1] in WANTED
        for (session_id, version), count in again.items()
        if count > 1
    ), "two writers were acknowledged the same version"
    assert {key: (row["version"], row["name"]) for key, row in store.rows().items()} == {
        session_id: (len(names), names[-1]) for session_id, names in history.items()
    }


def check_tasks(fleet: mam.Fleet, answers: Answers) -> None:
    """I1, I5: every task that was added is there once, with one claim and one result."""
    tasks = {task["id"]: task for task in fleet.tasks.list()["tasks"]}
    assert {(key, task["text"]) for key, task in tasks.items()} == {tuple(one) for one in answers["add"]}
    claimed = [task for (task,) in answers["claim"]]
    assert len(claimed) == len(set(claimed)), "two writers have claimed one task"
    assert {key for key, task in tasks.items() if task["status"] != "pending"} == set(claimed)
    assert {(key, task["result"]) for key, task in tasks.items() if task["status"] == "done"} == {
        tuple(one) for one in answers["finish"]
    }


def check_reports(fleet: mam.Fleet, reports: list[list[Any]]) -> None:
    """I6: every report that was acknowledged stands once in the log of its job, with its number."""
    found = []
    for job in (job["job_id"] for job in fleet.jobs.list()):
        entries = fleet.jobs.logs(job)["events"]
        assert [entry["seq"] for entry in entries] == list(range(len(entries)))
        found += [(job, entry["seq"], entry["detail"]) for entry in entries[1:]]
    assert sorted(found) == sorted(map(tuple, reports))


def check_log(store: Store, answers: Answers) -> None:
    """The log has each acknowledged change once, and no number of it is left out."""
    numbers = [seq for (seq,) in _query(store, "SELECT seq FROM log ORDER BY seq")]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    for verb, logged in (("add", "task add"), ("claim", "task claim"), ("finish", "task done")):
        assert len(_logged(store, logged)) == len(answers[verb])


def _logged(store: Store, verb: str) -> list[tuple[str, str, str]]:
    return _query(store, "SELECT session_id, name, detail FROM log WHERE verb=? ORDER BY seq", verb)


def _query(store: Store, query: str, *values: str) -> list[Any]:
    return store.registry.peek(
        lambda transaction: transaction.connection.execute(query, values).fetchall(), []
    )
