"""Tables, colours and widths, without any session."""

import io
import re

import pytest

from mam.surfaces.cli import render_listing, render_sessions, table
from mam.surfaces.cli.style import Paint
from mam.surfaces.cli.verbs import backup, log
from mam.surfaces.cli.verbs.job import render_jobs
from mam.surfaces.cli.verbs.read import fit


class Screen(io.StringIO):
    """Return the colours and the width of a terminal."""

    def isatty(self):
        return True


def paint(width: int | None = None, *, colours: bool = False) -> Paint:
    made = Paint(io.StringIO())
    made.width, made.colours = width, colours
    return made


def entry(name: str, **fields):
    return {
        "name": name,
        "agent": "claude",
        "role": None,
        "status": "running",
        "activity": "idle",
        "activity_age_s": 8.4,
        "waiting_for": None,
        "tmux_alive": True,
        "resume": {"id": "1f00ab42-0000", "tier": 1, "on_disk": True},
        "job": None,
        "drift": "-",
        **fields,
    }


ENTRIES = [
    entry(
        "demo-creator-claude",
        role="developer",
        activity="waiting",
        activity_age_s=185,
        waiting_for="permission",
    ),
    entry("api", agent="codex", resume={"id": None, "tier": None, "on_disk": None}),
    entry("web", status="stopped", activity="exited", activity_age_s=90000, tmux_alive=False, job="j_42"),
    entry(
        "lost",
        activity="unknown",
        tmux_alive=None,
        drift="A",
        resume={"id": "abc", "tier": None, "on_disk": False},
    ),
]

SNAPSHOT = """\
NAME                 AGENT   ROLE       STATUS   ACTIVITY               TMUX  RESUME            JOB   DRIFT
demo-creator-claude  claude  developer  running  waiting 3m permission  yes   1f00ab42 t1 disk  -     -
api                  codex   -          running  idle 8s                yes   -                 -     -
web                  claude  -          stopped  exited 1d              no    1f00ab42 t1 disk  j_42  -
lost                 claude  -          running  unknown                ?     abc - -           -     A
"""


def test_the_table_of_a_listing():
    assert "\n".join(render_sessions.table(ENTRIES, paint())) + "\n" == SNAPSHOT


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize("width", [20, 60, 80, 100, 140])
def test_fits_a_terminal(width, colours):
    lines = [
        re.sub(r"\x1b\[[0-9;]*m", "", line)
        for line in render_sessions.table(ENTRIES, paint(width, colours=colours))
    ]
    assert max(table.width_of(line) for line in lines) <= width
    assert len(lines) == len(ENTRIES) + 1


def test_a_narrow_terminal_keeps_what_matters():
    lines = render_sessions.table(
        [entry("demo-app-creator-claude", activity="waiting", waiting_for="permission")], paint(80)
    )
    assert "JOB" not in lines[0]
    assert "demo-app-creator-claude" in lines[1]
    assert "waiting 8s permission" in lines[1]


LONG = "demo-app-creator-with-a-long-name-claude"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_argument_of_another_verb_is_cut(width):
    job = "delegate-20261119-101112-abcdef"
    path = (
        "/home/somebody/.local/state/mam/0123456789abcdef/backups/0123456789abcdef/2026-11-19T103200Z.db.gz"
    )
    copy = {"age": 4.0, "size": 4096, "reason": "change", "path": path}
    tables = {
        LONG: render_sessions.table([entry(LONG, role="developer", job=job)], paint(width)),
        path: backup.show([copy], paint(width)),
        job: render_jobs.table([listed_job(job_id=job)], paint(width)),
    }
    for argument, lines in tables.items():
        assert argument in lines[1]
        assert max(map(table.width_of, lines)) <= width or lines[1].endswith(path)


def listed_job(**fields):
    """Return a job as `job list` has it."""
    job = {
        "job_id": "j_1",
        "status": "running",
        "agent": "claude",
        "agent_session": LONG,
        "last_event_at": "2026-11-19T10:32:33Z",
        "prompt": "make the tests of the shop pass, and say what was wrong",
    }
    return {**job, **fields}


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 140])
@pytest.mark.parametrize(
    "shown",
    [
        lambda made: render_sessions.table([entry(LONG, role="developer", job="j_1", drift="A")], made),
        lambda made: render_jobs.table([listed_job()], made),
        lambda made: log.show([log_entry()], made),
    ],
    ids=["ls", "job list", "log"],
)
def test_columns_are_left_out_whole_and_with_a_sign(shown, width):
    whole, lines = shown(paint())[0].replace("LAST EVENT", "LAST_EVENT"), shown(paint(width))
    *titles, last = lines[0].replace("LAST EVENT", "LAST_EVENT").split()
    if last == "…":
        assert len(titles) < len(whole.split())
    else:
        titles.append(last)
        assert titles == whole.split()
    assert set(titles) <= set(whole.split())
    date = re.search("2026-11-19[^ ]*", lines[1])
    assert date is None or date[0] == "2026-11-19T10:32:33Z"


def log_entry():
    """Return an entry of the log."""
    entry = {"at": "2026-11-19T10:32:33Z", "by": "user", "verb": "stop", "session": LONG, "reason": "restart"}
    return {**entry, "detail": {}}


def test_a_narrow_listing_keeps_name_status_and_activity():
    lines = render_sessions.table(
        [entry("demo-app-creator-claude", job="delegate-20261119-101112", drift="A")], paint(60)
    )
    assert lines[0].split() == ["NAME", "STATUS", "ACTIVITY", "DRIFT", "…"]
    assert lines[1].split() == ["demo-app-creator-claude", "running", "idle", "8s", "A"]


def test_a_frame_has_no_line_beyond_the_edge():
    frame = paint(30)
    frame.wraps = False
    lines = render_sessions.table([entry(LONG)], frame)
    assert max(map(table.width_of, lines)) <= 30


def test_colours_change_no_width():
    plain = render_sessions.table(ENTRIES, paint(100))
    coloured = render_sessions.table(ENTRIES, paint(100, colours=True))
    assert [table.width_of(without_colours(line)) for line in coloured] == [
        table.width_of(line) for line in plain
    ]
    assert "\x1b[33;1mwaiting 3m permission\x1b[0m" in "\n".join(
        render_sessions.table(ENTRIES, paint(colours=True))
    )


def without_colours(text: str) -> str:
    from tests.surfaces.cli.terminal import SEQUENCE

    return SEQUENCE.sub("", text)


def test_wide_letters_keep_the_columns_straight():
    lines = render_sessions.table([entry("a", role="開発者"), entry("b", role="é")], paint())
    assert len({table.width_of(line[: line.index("running")]) for line in lines[1:]}) == 1


def test_what_came_from_outside_is_clean():
    evil = "x\x1b[2J\x9b31m\u202egnp.exe\nNAME\ttab"
    session = entry(
        evil, role=evil, agent=evil, status=evil, activity=evil, waiting_for=evil, job=evil, drift=evil
    )
    session |= {
        "resume": {"id": evil, "tier": 1, "on_disk": True},
        "workspace": evil,
        "start_command": [evil],
    }
    session |= {"stop_reason": evil, "last_visible_note": evil, "last_action": {"by": evil, "verb": evil}}
    for lines in (
        render_sessions.table([session], paint()),
        render_sessions.details(session, paint()),
        [render_sessions.line(session)],
    ):
        assert all(line.isprintable() for line in lines)
    assert len(render_sessions.table([session], paint())) == 2


def test_a_listing_names_a_root_that_is_not_here_to_a_person():
    document = {"root": "/r", "sessions": ENTRIES}
    assert render_listing.show(document, paint(80), workspace="/r/below")[-1] == "root: /r"
    assert render_listing.show(document, paint(80), workspace="/r") == render_sessions.table(
        ENTRIES, paint(80)
    )
    assert render_listing.show(document, paint(), workspace="/r/below") == render_sessions.table(
        ENTRIES, paint()
    )


def test_an_empty_listing_says_how_to_go_on():
    empty = {"root": "/r", "sessions": [], "root_state": "known"}
    lines = render_listing.show(empty, paint())
    assert lines[0] == "no sessions in /r"
    assert "mam create --agent" in lines[1]
    assert render_listing.show(empty, paint(), is_filtered=True) == ["no session matches"]
    assert render_listing.show({**empty, "root_state": "missing"}, paint()) == lines[:1]


def test_every_root_has_its_table():
    document = {
        "root": "/a",
        "sessions": [entry("one", root="/a"), entry("two", root="/b")],
        "unreadable": [{"root": "/c", "error": "damaged"}],
    }
    lines = render_listing.show(document, paint())
    assert lines[0] == "/c: damaged"
    assert [line for line in lines if line.startswith("/")] == ["/c: damaged", "/a", "/b"]
    assert sum(line.startswith("NAME") for line in lines) == 2


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("demo-app-creator-claude", 23, "demo-app-creator-claude"),
        ("demo-app-creator-claude", 12, "demo-app…ude"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
        ("開発者開発者", 7, "開発…者"),
    ],
)
def test_a_shortened_text_keeps_both_ends(text, width, shown):
    assert table.shorten(text, width) == shown
    assert table.width_of(table.shorten(text, width)) <= width


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}])
def test_no_colours_where_they_are_not_wanted(monkeypatch, variables):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Paint(Screen())("text", "red") == "\x1b[31mtext\x1b[0m"
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Paint(Screen())("text", "red") == "text"


def test_no_colours_and_no_width_without_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    plain = Paint(io.StringIO())
    assert (plain("text", "red"), plain.width) == ("text", None)
    assert Paint(None)("text", "red") == "text"


def test_rules_of_a_screen_do_not_wrap():
    assert fit("─" * 50 + " writer ──", 30) == "─" * 20 + " writer ──"
    assert fit("words that are long stay whole", 10) == "words that are long stay whole"
    assert fit("─" * 50, None) == "─" * 50
    assert fit("─" * 50, 20) == "─" * 20


@pytest.mark.parametrize(
    ("version", "tested", "shown"),
    [(None, False, False), ("1.0", False, True), ("1.0", True, False), (None, None, False)],
)
def test_only_a_version_can_be_untested(version, tested, shown) -> None:
    session = {"name": "one", "agent_version": version, "version_tested": tested}
    lines = render_sessions.details(session, paint())
    assert any("mam was not tested with it" in line for line in lines) is shown


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"changed_files": 0}, "main, no changed files"),
        ({"changed_files": 1}, "main, 1 changed file"),
        ({"changed_files": 3}, "main, 3 changed files"),
        ({"changed_files": 1000, "changed_more": True}, "main, more than 1000 changed files"),
        ({"changed_files": None}, "main, changed files unknown"),
        (
            {"branch": "1f00ab4", "detached": True, "changed_files": 0},
            "detached at 1f00ab4, no changed files",
        ),
        ({"branch": "a\x1b[2Jb"}, "a[2Jb, no changed files"),
    ],
)
def test_the_branch_and_the_changed_files(fields, shown) -> None:
    summary = {"branch": "main", "detached": False, "changed_files": 0, "changed_more": False, **fields}
    lines = render_sessions.details({"name": "one", "git": summary}, paint())
    assert f"  git              {shown}" in lines


def test_no_line_for_git_outside_of_a_work_tree() -> None:
    for session in ({"name": "one"}, {"name": "one", "git": None}):
        assert not any(line.startswith("  git ") for line in render_sessions.details(session, paint()))
