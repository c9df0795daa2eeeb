"""The fault matrix: what each verb answers while each fault lasts. docs/faults.md shows the same.

A row is a fault, or one variant of a fault; a column is a verb. A cell is one of

    done                 the verb does what it is for
    done: STATE          it succeeds, and afterwards the state (states.py) holds
    CODE                 an error of that code, and nothing has changed
    CODE: STATE          an error of that code, and afterwards the state holds
    n/a: reason          the fault cannot meet the verb

Each of the first four may end with ` @ TEST`: the cell is tried there, and not again by the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

STOP = "tests/app/sessions/test_stop.py::"
LEFT = "tests/app/sessions/test_left_running.py::"
DOCTOR = "tests/app/monitor/test_doctor.py::"
DISK = "tests/faults/test_disk.py::"
EVENT = "tests/app/jobs/test_event.py::"
SEND = "tests/app/messages/test_send.py::"
ANSWER = "tests/app/messages/test_answer.py::"
ALL = [
    *("create", "send", "stop", "resume", "archive", "adopt", "rename", "purge", "fork"),
    *("job-submit", "job-event", "job-wait", "job-cancel", "task-claim", "team-up"),
    *("answer", "interrupt", "pass", "ls", "status", "read", "doctor", "backup", "restore"),
]


@dataclass(frozen=True)
class Row:
    """One fault, or one variant of it, with a cell for each verb."""

    fault: str
    what: str
    cells: dict[str, str]
    # What a person does about it.
    way_out: str
    variant: str = ""
    # Tried in `./dev test --all` only.
    is_long: bool = False

    @property
    def name(self) -> str:
        """The name of the row among all rows."""
        return f"{self.fault}, {self.variant}" if self.variant else self.fault

    def cell(self, verb: str) -> str:
        """Return the cell of a verb."""
        (found,) = (cell for verbs, cell in self.cells.items() if verb in verbs.split())
        return found

    def is_tried_here(self, verb: str) -> bool:
        """Tell whether the matrix itself tries a cell."""
        return not is_not_applicable(self.cell(verb)) and tried_by(self.cell(verb)) is None


def is_not_applicable(cell: str) -> bool:
    """Tell whether the fault cannot meet the verb."""
    return cell.startswith("n/a: ")


def expected(cell: str) -> tuple[str, str]:
    """Return the code of a cell, or `done`, and the state afterwards."""
    outcome = cell.partition(" @ ")[0]
    code, _, state = outcome.partition(": ")
    return code, state or ("done" if code == "done" else "unchanged")


def tried_by(cell: str) -> str | None:
    """Return the test that tries a cell, if it is not the matrix."""
    return cell.partition(" @ ")[2] or None


def filled(cells: dict[str, str], other: str) -> dict[str, str]:
    """Return the cells of a row in which all other verbs have the same one."""
    named = {verb for verbs in cells for verb in verbs.split()}
    return {**cells, " ".join(verb for verb in ALL if verb not in named): other}


WAY_OF_CLOCKS = "None is needed: mam orders by numbers, and waits by a clock that nobody sets."
GREETED = "n/a: it asks the broker for its greeting alone, and gets that"
NEW_PANE = "n/a: it starts a pane of its own"
NO_PANE = "n/a: it looks at no pane"

TMUX_HANGS = {
    "create resume adopt fork team-up stop purge rename": "terminals_down",
    "job-submit": "terminals_down: job failed",
    "send": "done: held",
    "archive": "done",
    "job-event job-cancel task-claim backup": "done",
    "job-wait": "timeout: open",
    "answer interrupt": "terminals_down",
    "pass ls status": "done: unknown",
    "read restore": "terminals_down",
    "doctor": "done: named",
}

ROWS = [
    Row(
        "tmux server killed",
        "The process of the tmux server is killed; all its panes end.",
        {
            "create resume fork job-submit team-up": "done",
            "send": "done: held",
            "stop purge rename archive": "done",
            "adopt": "pane_gone",
            "job-event job-cancel task-claim": "done",
            "job-wait": "done: job died",
            "answer interrupt": "pane_gone",
            "pass": "done: died",
            "ls status": "done: gone",
            "read": "pane_gone: said",
            "backup restore": "done",
            "doctor": "done: named",
        },
        "`mam resume --all` brings the sessions back with their conversations. What starts a session starts"
        " a server.",
    ),
    Row(
        "tmux socket deleted",
        "The socket of a tmux server is deleted; the server and its panes run on, out of reach.",
        {
            "create resume fork job-submit team-up": "done",
            "send": "done: held",
            "stop purge rename archive": "done",
            "adopt": "pane_gone",
            "job-event job-cancel task-claim": "done",
            "job-wait": "timeout: open",
            "answer interrupt": "pane_gone",
            "pass ls status": "done: loose",
            "read": "pane_gone: said",
            "backup restore": "done",
            "doctor": "done: named",
        },
        "`kill -USR1 PID` has the server make its socket again; `mam stop` ends an agent without a pane.",
    ),
    Row(
        "pane killed",
        "A person or a program closes the pane of a session.",
        {
            "create adopt fork job-submit team-up": NEW_PANE,
            "resume archive": "n/a: the session has ended, and has no pane",
            "send": "done: held",
            "stop": f"done @ {STOP}test_a_pane_that_is_gone_already_only_changes_the_record",
            "purge rename": "done",
            "job-event job-cancel": NO_PANE,
            "task-claim backup restore": "done",
            "job-wait": "done: job died",
            "answer interrupt": "pane_gone",
            "pass": "done: died",
            "ls status": "done: gone",
            "read": "pane_gone: said",
            "doctor": "done: named",
        },
        "`mam resume NAME`.",
    ),
    Row(
        "pane replaced",
        "The pane of a session is gone, and somebody else's tmux session has its name.",
        {
            "create fork job-submit team-up": NEW_PANE,
            "resume": "name_taken",
            "archive": "done",
            "adopt": "done",
            "send": "done: held",
            "stop purge rename": "done",
            "job-event job-cancel": NO_PANE,
            "task-claim backup restore": "done",
            "job-wait": "done: job died",
            "answer interrupt": "pane_gone",
            "pass": "done: died",
            "ls status": "done: gone",
            "read": "pane_gone: said",
            "doctor": "done: named",
        },
        "End the other tmux session or adopt it under another name, then `mam resume NAME`.",
    ),
    *(
        Row(
            "tmux hangs",
            "The tmux server does not answer, because it is stopped (SIGSTOP) or busy.",
            TMUX_HANGS,
            "`kill -CONT PID` wakes a stopped server; `mam doctor` shows the pid. Then repeat.",
            variant,
            is_long=bool(variant),
        )
        # The first one with a time limit of half a second, the other one with ten as everywhere.
        for variant in ("", "with the time limits of mam")
    ),
    Row(
        "dialog open",
        "The agent asks a question, and nobody has answered yet.",
        {
            "create resume archive adopt fork job-submit job-event job-cancel team-up backup": (
                "n/a: it looks at no running session"
            ),
            "send": "done: held",
            "stop": f"done @ {STOP}test_a_tool_never_runs_because_of_a_stop",
            "purge rename task-claim restore": "done",
            "job-wait": "n/a: docs/jobs.md has the time limits of a question",
            "answer": "done",
            "interrupt": f"dialog_open @ {ANSWER}test_an_interrupt_refuses_no_dialog",
            "pass ls status read doctor": "done: asking",
        },
        "`mam answer NAME allow` or `deny`; the messages that were held follow by themselves.",
    ),
    Row(
        "clock",
        "The clock is a day ahead (a fake clock).",
        {" ".join(verb for verb in ALL if verb != "job-wait"): "done", "job-wait": "timeout: open"},
        WAY_OF_CLOCKS,
        "ahead",
        is_long=True,
    ),
    Row(
        "clock",
        "The clock is a day behind (a fake clock).",
        {" ".join(verb for verb in ALL if verb != "job-wait"): "done", "job-wait": "timeout: open"},
        WAY_OF_CLOCKS,
        "behind",
    ),
    Row(
        "clock",
        "The clock stands still (a fake clock).",
        {" ".join(verb for verb in ALL if verb != "job-wait"): "done", "job-wait": "timeout: open"},
        WAY_OF_CLOCKS,
        "frozen",
        is_long=True,
    ),
    Row(
        "reboot",
        "The machine has booted anew (a fake boot id): no server, no agent, and a stranger has the old pid.",
        {
            "create resume fork job-submit team-up": "done",
            "send": "done: held",
            "stop purge rename archive": "done",
            "adopt": "pane_gone",
            "job-event job-cancel task-claim": "done",
            "job-wait": "done: job died",
            "answer interrupt": "pane_gone",
            "pass": "done: died",
            "ls status": "done: gone",
            "read": "pane_gone: said",
            "backup restore": "done",
            "doctor": "done: named",
        },
        "`mam resume --all`. `mam drill` says beforehand which sessions will come back.",
    ),
    Row(
        "registry file",
        "A person edits the registry file, and the edit is valid.",
        {" ".join(verb for verb in ALL if verb != "job-wait"): "done", "job-wait": "timeout: open"},
        "None is needed: the next change takes the edit in.",
        "edited",
        is_long=True,
    ),
    *(
        Row(
            "registry file",
            what,
            {
                "create send stop resume archive adopt rename purge fork job-submit team-up task-claim": (
                    "registry_corrupt"
                ),
                "answer interrupt pass": "registry_corrupt",
                "job-event job-cancel backup": "done",
                "job-wait": "timeout: open",
                "ls status": "done: warned",
                "read": "done",
                "restore": "done: file kept",
                "doctor": "done: named",
            },
            "Correct the line that the error names, or delete the file: mam writes it from its database.",
            variant,
            is_long=variant == "cut",
        )
        for variant, what in (
            ("corrupt", "The registry file is no YAML any more."),
            ("cut", "The registry file is cut in the middle."),
        )
    ),
    *(
        Row(
            "registry file",
            what,
            {" ".join(verb for verb in ALL if verb != "job-wait"): "done", "job-wait": "timeout: open"},
            "None is needed: mam writes the file from its database.",
            variant,
            is_long=variant == "empty",
        )
        for variant, what in (
            ("empty", "The registry file has 0 bytes."),
            ("deleted", "The registry file is deleted."),
        )
    ),
    Row(
        "agent ignores TERM",
        "The agent ignores SIGTERM and SIGHUP, and does not end when it is asked to.",
        filled(
            {
                "stop": f"done @ {STOP}test_an_agent_that_ignores_everything_is_killed_with_its_tree",
                "purge": "done",
            },
            "n/a: it ends no agent",
        ),
        "None is needed: after its time limits `mam stop` kills the process and what it started.",
    ),
    Row(
        "agent forks a daemon",
        "The agent has detached a process, which outlives it.",
        filled(
            {
                "stop": f"done @ {LEFT}test_d8_a_stop_names_what_the_session_detached_and_ends_nothing_of_it",
                "doctor": f"done: named @ {LEFT}test_d8_doctor_names_what_is_left_until_it_ends",
                "purge": "n/a: it ends the agent as stop does",
            },
            "n/a: it ends no agent",
        ),
        "`mam stop` names the process and how to end it; mam ends nothing that was detached.",
    ),
    Row(
        "agent floods",
        "The agent prints as much as its terminal takes.",
        filled(
            {
                "stop purge rename pass task-claim restore ls status doctor": "done",
                "read": "done: as it is",
                "send": f"done: taken or held @ {SEND}test_while_it_works_the_agent_queues_it",
                "answer": "n/a: it asks nothing",
                "interrupt": "n/a: it may find no moment in which the screen stands, and then says not_ready",
            },
            "n/a: it looks at no running session",
        ),
        "`mam stop NAME` ends it.",
        is_long=True,
    ),
    *(
        Row(
            fault,
            what,
            filled(
                {
                    "job-event": "not_published: recorded",
                    "job-submit pass": "done",
                    "job-cancel": "done: warned",
                    "job-wait": "timeout: open",
                    "doctor": doctor,
                },
                "n/a: it publishes nothing",
            ),
            way_out,
            is_long=fault in ("broker killed", "broker slow"),
        )
        for fault, doctor, what, way_out in (
            (
                "broker down",
                "done: named",
                "Nobody listens at the address of the broker.",
                "Start the broker; mam publishes then what waits. Nothing is to be repeated.",
            ),
            (
                "broker killed",
                GREETED,
                "The broker dies while mam is connected.",
                "Start the broker; mam publishes then what waits.",
            ),
            (
                "broker half open",
                GREETED,
                "The connection stands, and nobody reads it any more.",
                "None is needed: mam gives the connection up, and publishes over another one.",
            ),
            (
                "broker slow",
                "done: named",
                "The broker answers later than mam waits.",
                "None is needed: the resident publishes what waits.",
            ),
            (
                "reconnect storm",
                "done: named",
                "Every connection to the broker ends at once, 50 times in a row.",
                "None is needed: mam connects again, after growing pauses.",
            ),
        )
    ),
    Row(
        "disk full",
        "There is no space left for the files of mam (calls that fail).",
        {
            "create send resume archive adopt rename purge fork job-submit job-event job-cancel": "disk_full",
            "task-claim team-up backup restore": "disk_full",
            "answer": "done: warned",
            "stop": "done",
            "interrupt": f"done @ {DISK}test_e6_a_turn_is_interrupted_on_a_full_disk",
            "job-wait": "timeout: open",
            "pass ls status read": "done",
            "doctor": f"done: named @ {DOCTOR}test_e2_little_free_space_is_a_problem",
        },
        # tests/faults/test_disk.py lets the disk fill up on the way.
        "Make room, and repeat. `mam stop` and `mam interrupt` work meanwhile. If the disk fills up while "
        "`job submit` runs, the job may be recorded and its agent run: the error is `not_recorded` then, and "
        "says how to end both.",
    ),
    Row(
        "directory read-only",
        "The directories of mam cannot be written (calls that fail).",
        {
            "create send resume archive adopt rename purge fork job-submit job-event job-cancel": "read_only",
            "task-claim team-up backup restore": "read_only",
            "stop": "not_recorded: ended",
            "answer interrupt": "done: warned",
            "job-wait": "timeout: open",
            "pass ls status read": "done",
            "doctor": "n/a: it asks the file system, and here single calls fail",
        },
        "Mount or permit it for writing, and repeat. `mam stop` and `mam interrupt` work meanwhile.",
    ),
    *(
        Row(
            "stale lock",
            what,
            {" ".join(verb for verb in ALL if verb != "job-wait"): "done", "job-wait": "timeout: open"},
            "None is needed: the next command finishes or drops what the dead process began.",
            variant,
            is_long=variant == "dead owner",
        )
        for variant, what in (
            ("dead owner", "A process that claimed the session is dead."),
            ("reused pid", "A process that claimed the session is dead, and a stranger has its pid."),
        )
    ),
    Row(
        "stale lock",
        "A process that claimed the session lives, and does not go on.",
        filled(
            {
                "send": "done",
                "stop resume archive rename purge": "registry_busy",
                "restore": "registry_busy",
                "job-wait": "timeout: open",
            },
            "done",
        ),
        "The error names the process: wait for it, or end it, and repeat.",
        "live owner",
    ),
    Row(
        "stale lock",
        "A process holds the lock of the registry, and does not go on.",
        filled(
            {
                "ls status read doctor pass backup": "done",
                "job-wait": "timeout: open",
                "answer interrupt": "done: warned",
            },
            "registry_busy",
        ),
        "End the process that the error names, and repeat.",
        "registry held",
    ),
    *(
        Row(
            fault,
            what,
            filled(
                {
                    "job-event": cell,
                    "job-cancel pass backup": "done",
                    "job-wait": "timeout: open",
                },
                "n/a: it looks at no event",
            ),
            "None is needed: an event counts once, and only for the attempt that is under way.",
        )
        for fault, what, cell in (
            (
                "events twice",
                "Signed events arrive three times each, and in any order.",
                f"done @ {EVENT}test_any_order_and_twice",
            ),
            (
                "events late",
                "Signed events arrive again after a week (a fake clock), and from an attempt that is over.",
                f"event_refused @ {EVENT}test_an_older_attempt_is_refused",
            ),
        )
    ),
]
