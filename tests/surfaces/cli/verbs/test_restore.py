"""What a person reads who restores a root."""

from __future__ import annotations

import re

import pytest
from tests.app.roots.test_init_ways import plain_fleet
from tests.app.roots.test_restore import copy_now, damage, lose, page_of, restored

import mam
from mam.adapters.store.salvage import SalvageReport
from mam.app.roots.restore_summary import summary_of
from mam.surfaces.cli.verbs import restore as restore_verb


@pytest.fixture
def copied(run, workspace):
    """A root with an ended session, a held message and an open job; return a copy of it, and the job."""
    job = plain_fleet(workspace)
    with mam.open(str(workspace)) as fleet:
        return copy_now(fleet), job


def test_a_lost_state_comes_back_with_one_command(run, copied, workspace) -> None:
    copy, job = copied
    lose(workspace)
    would = run("restore", "--dry-run")
    assert would.out.startswith(f"this root would be restored from {copy}, a copy of ")
    assert not (workspace / ".mam").exists()
    answer = run("restore")
    assert answer.code == 0
    assert answer.out.splitlines()[1:] == [
        "brought back: 1 session, 1 message, 1 job",
        "messages still held: m_held",
        f"parked jobs (mam job release ID…, or all): {job}",
    ]
    refused = run("restore")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("mam: the state of this root is sound")


def test_going_back_asks_a_person(run, terminal, copied, workspace) -> None:
    copy, _job = copied
    assert run("rename", "one", "renamed").code == 0
    refused = run("restore", str(copy))
    assert refused.code == 64
    assert "repeat with --yes" in refused.err
    asked = terminal("restore", str(copy))
    asked.sees("Go back? [y/N]")
    asked.type("n\n")
    asked.sees("mam has not changed anything")
    answer = run("restore", str(copy), "--yes", "--json").json
    assert (answer["changed"], answer["source"], answer["taken"]["sessions"]) == (True, "copy", 1)
    assert run("ls", "--names").out == "one\n"


def test_the_end_of_input_at_the_question_is_a_no_on_a_line_of_its_own(terminal, copied) -> None:
    copy, _job = copied
    asked = terminal("restore", str(copy))
    asked.sees("Go back? [y/N]")
    asked.type("\x04")
    asked.sees("mam has not changed anything")
    lines = asked.text().splitlines()
    assert not any("[y/N]" in line and "mam:" in line for line in lines), lines


def test_the_list_of_copies_is_named_where_it_is_looked_for(run) -> None:
    answer = run("restore", "--list")
    assert (answer.code, "mam backup --list" in answer.err, "--registry" in answer.err) == (64, True, False)


def test_a_damaged_database_says_what_came_from_where(run, copied, workspace) -> None:
    copy, _job = copied
    page = page_of(workspace, "sessions")
    damage(workspace, page)
    damaged = run("create", "--agent", "practice")
    assert damaged.code == 65
    assert "mam restore brings back what it still holds" in damaged.err
    answer = run("restore")
    assert answer.code == 0, answer
    assert answer.out.startswith("this root is restored from its damaged database\n")
    _first, verdict, *others = answer.out.splitlines()
    assert verdict == "no row is known to be lost"
    assert re.fullmatch(r"1 of \d+ pages was damaged", others[0])
    assert re.fullmatch(rf"page {page} \(sessions\): 1 row read", others[1])
    assert "from the damaged database" not in "".join(others), "no table needed the copy"
    assert f"the copy: {restored(copy)} of " in answer.out
    assert "the former state is kept in " in answer.out


PAGE = {"table": "messages", "problem": "it is damaged", "tree": 0, "leaf": 0, "left_out": 0, "from_copy": 0}


@pytest.mark.parametrize(
    ("pages", "sources", "expected"),
    [
        (
            [{"page": 7, "what": "unknown", **PAGE, "table": "open_drifts", "from_copy": None}],
            {"messages": {"tree": 4, "leaf": 0, "copy": 0}},
            ["nothing was lost", "1 of 57 pages was damaged; none held rows"],
        ),
        (
            [{"page": 7, "what": "table leaf", **PAGE, "tree": 2, "left_out": 3, "from_copy": 2}],
            {"messages": {"tree": 2, "leaf": 0, "copy": 2}, "log": {"tree": 9, "leaf": 0, "copy": 0}},
            [
                "1 row was lost; 2 came from the copy of then",
                "messages: 2 rows from the damaged database, 2 from the copy, 1 lost",
                "1 of 57 pages was damaged",
                "page 7 (messages): 2 rows read, 3 left out, 2 from the copy",
            ],
        ),
        (
            [{"page": page, "what": "table leaf", **PAGE} for page in range(20, 32)],
            {},
            [
                "nobody can tell whether a row was lost",
                f"12 of 57 pages were damaged; not readable: {', '.join(map(str, range(20, 30)))} (messages)"
                " and 2 more (--json has all)",
            ],
        ),
        (
            [
                {"page": 1, "what": "unknown", **PAGE, "table": "sqlite_schema"},
                {"page": 7, "what": "unknown", **PAGE},
                {"page": 9, "what": "unknown", **PAGE, "table": None},
                {"page": 8, "what": "table leaf", **PAGE, "tree": 1},
            ],
            {},
            [
                "nobody can tell whether a row was lost",
                "4 of 57 pages were damaged; not readable: 1 (list of tables), 7 (messages), 9 (unknown)",
                "page 8 (messages): 1 row read",
            ],
        ),
    ],
    ids=["no rows", "some rows", "unreadable", "of all kinds"],
)
def test_the_answer_of_a_salvage_names_only_what_matters(pages, sources, expected) -> None:
    report = SalvageReport()
    report.pages, report.sources, report.page_count = pages, sources, 57
    salvage = {**report.as_json(), "summary": summary_of(report)}
    lines = restore_verb._salvaged(salvage, {"file": "/x.db", "made_at": "then"})
    assert lines == [*expected, "the copy: /x.db of then"]


@pytest.mark.parametrize("problem", ["/c.db cannot be restored: it is damaged", "there is too little space"])
def test_a_copy_that_was_not_taken_is_named_once(problem) -> None:
    document = {"salvage": None, "dry_run": False, "file": "/d.db", "made_at": "then", "original": None}
    empty = (
        "sessions_taken_back",
        "conversations_unknown",
        "sessions_still_running",
        "jobs_not_in_copy",
        "left_out",
        "files_left",
    )
    rest = {"taken": {}, "messages": {}, "jobs": {"going_on": [], "parked": []}, "left_out_count": 0}
    dropped = {"intents": 0, "events": 0}
    tried = [{"file": "/c.db", "problem": problem}]
    lines = restore_verb._lines(
        {
            **document,
            **{key: [] for key in empty},
            **rest,
            "dropped": dropped,
            "tried": tried,
            "older_copy": None,
            "kept": None,
        }
    )
    (line,) = [line for line in lines if line.startswith("not taken: ")]
    assert line.count("/c.db") == 1 and problem in line


def test_jobs_that_the_copy_does_not_have_are_named() -> None:
    document = {"messages": {}, "jobs": {"going_on": [], "parked": []}, "jobs_not_in_copy": ["1f00ab42"]}
    (line,) = restore_verb._at_rest(document)
    assert line == "jobs that the copy does not have, ended with an error (submit them again): 1f00ab42"
