"""The monitor's card: each drift is commented once, and a comment ends the monitor, whatever dies."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.adapters.kanban.conftest import make_hermes
from tests.app.environment import use_environment

import mam
from mam.adapters.kanban.mam_board import MamBoard
from mam.adapters.store.tables import drifts, set_aside
from mam.app.boards import monitor_card_task, monitor_with_card
from mam.app.boards.board import open_board
from mam.app.context import resident_start_and_lock
from mam.core import drift_detection as rules
from mam.core.errors import Conflict, NoRegistry, RegistryCorrupt, Unavailable, Usage
from mam.core.monitor_card_comments import AUTHOR, LONGEST_COMMENT


@pytest.fixture
def hands_on(monkeypatch):
    """Let a pass change a row at once; normally it leaves a row alone that a person has just changed."""
    monkeypatch.setattr(rules, "HANDS_OFF_SECONDS", -10.0)


@pytest.fixture
def card(fleet):
    fleet.init()
    return fleet.boards.create("watch")["card"]["id"]


@pytest.fixture
def now(fleet, monkeypatch):
    """Move the clock of the fleet, and of its database."""

    class Clock:
        ahead = 0.0

        def __call__(self):
            return time.time() + self.ahead

    clock = Clock()
    fleet._access.context = fleet._access.context.replace(clock=clock)
    monkeypatch.setattr(fleet._access.context.registry, "clock", clock)
    return clock


@pytest.fixture
def claim(fleet, card):
    """Return a function that claims a card with a CardWatch."""

    def hold(card=card, **options):
        card_watch = monitor_card_task.CardWatch(
            fleet._access.context, open_board(fleet._access.context), card, **options
        )
        card_watch.claim()
        return card_watch

    return hold


@pytest.fixture
def hermes(fleet, tmp_path, monkeypatch):
    """A board of Hermes that the environment names; returns its file."""
    path = make_hermes(tmp_path)
    fleet.init()
    use_environment(fleet, {**os.environ, "HERMES_KANBAN_DB": str(path)})
    return path


def differ(fleet, *messages):
    """Record differences as a resident does."""
    for message in messages:
        drift = {"id": f"A:{message}", "class": "A", "session": message, "message": message}
        fleet._access.context.registry.note(
            lambda transaction, drift=drift: drifts.record(transaction, drift, is_written=True)
        )


def crash(state) -> None:
    raise KeyboardInterrupt


def bodies(fleet, card, author=AUTHOR):
    return [comment["body"] for comment in fleet.boards.show(card)["comments"] if comment["author"] == author]


def messages(fleet, card):
    return [line.split(" ", 2)[2] for body in bodies(fleet, card) for line in body.splitlines()]


def status(fleet, card):
    card_document = fleet.boards.show(card)["card"]
    return card_document["status"], card_document["summary"]


class TestDrifts:
    def test_a_pass_tells_the_card_what_is_new(self, fleet, hands_on, card) -> None:
        sessions = [fleet.sessions.create("sleep", args=["1000"], name=f"s{number}") for number in range(2)]
        report = fleet.monitor.once_with_card(card)
        assert (report["drifts"], report["card"]["id"], report["ended"]) == ([], card, None)
        for session in sessions:
            os.kill(session.row["pane"]["pid"], signal.SIGKILL)
        fleet.sessions.wait("s0", "exited", timeout=10)
        fleet.sessions.wait("s1", "exited", timeout=10)
        assert len(fleet.monitor.once_with_card(card)["drifts"]) == 2
        (body,) = bodies(fleet, card)
        assert [line.split(" ")[1:3] for line in body.splitlines()] == [["A:", "s0:"], ["A:", "s1:"]]
        for _ in range(3):
            fleet.monitor.once_with_card(card)
        assert len(bodies(fleet, card)) == 1

    def test_s001_16_the_cursor_of_a_card_starts_where_the_card_was_made(self, fleet, now) -> None:
        fleet.init()
        differ(fleet, "before the card")
        now.ahead = 2
        card = fleet.boards.create("watch")["card"]["id"]
        now.ahead = 4
        differ(fleet, "before the first look")
        fleet.monitor.once_with_card(card)
        assert messages(fleet, card) == ["before the first look"]
        differ(fleet, "between")
        with mam.open(fleet.root) as other_fleet:
            other_fleet.monitor.once_with_card(card)
        assert messages(fleet, card) == ["before the first look", "between"]

    @pytest.mark.parametrize("is_made", [True, False], ids=["a card that is there", "a new card"])
    def test_s001_16_the_first_pass_comments_what_it_prints_as_new(self, fleet, now, is_made) -> None:
        """A resident has recorded the difference, and nobody has printed it yet."""
        fleet.init()
        differ(fleet, "printed before")
        fleet.monitor.once(emit_diff=True)
        differ(fleet, "not printed yet")
        now.ahead = 2
        card = fleet.boards.create("watch")["card"]["id"] if is_made else "new"
        report = fleet.monitor.once_with_card(card, emit_diff=True)
        assert [(drift["message"], drift["new"]) for drift in report["drifts"]] == [("not printed yet", True)]
        assert messages(fleet, report["card"]["id"]) == ["not printed yet"]
        assert fleet.monitor.once_with_card(report["card"]["id"], emit_diff=True)["drifts"] == []
        assert messages(fleet, report["card"]["id"]) == ["not printed yet"]

    def test_s001_13_a_lost_conversation_of_an_ended_session_is_told_once(
        self, fleet, hands_on, card
    ) -> None:
        session = fleet.sessions.create("practice", args=["--speed", "0"], prompt="hello", name="one")
        own = session.stop().row["practice_session_id_own"]
        fleet.monitor.once_with_card(card)
        (transcript,) = Path(os.environ["XDG_DATA_HOME"]).rglob(f"{own}.jsonl")
        transcript.unlink()
        for _ in range(3):
            fleet.monitor.once_with_card(card)
        assert messages(fleet, card) == [f"one: its conversation {own} is not on disk any more (not written)"]

    def test_many_at_once_are_few_comments(self, fleet, claim, card) -> None:
        card_watch = claim()
        names = [f"session-{number}: process {number} (claude) is gone: no pane" for number in range(50)]
        differ(fleet, *names)
        card_watch.tick()
        assert messages(fleet, card) == names
        assert len(bodies(fleet, card)) < 5
        assert all(len(body.encode()) <= LONGEST_COMMENT for body in bodies(fleet, card))

    def test_a_crash_between_comment_and_cursor_repeats_nothing(
        self, fleet, claim, card, monkeypatch
    ) -> None:
        card_watch = claim()
        differ(fleet, "one", "two")
        monkeypatch.setattr(card_watch, "_keep", crash)
        with pytest.raises(KeyboardInterrupt):
            card_watch.tick()
        differ(fleet, "three")
        claim().tick()
        assert messages(fleet, card) == ["one", "two", "three"]

    def test_each_card_has_its_own_cursor(self, fleet, claim, card) -> None:
        other_card = fleet.boards.create("another")["card"]["id"]
        first, second = claim(), claim(other_card)
        differ(fleet, "one")
        first.tick()
        second.tick()
        assert messages(fleet, card) == messages(fleet, other_card) == ["one"]

    def test_a_new_card(self, fleet) -> None:
        fleet.init()
        report = fleet.monitor.once_with_card("new")
        assert report["card"]["workspace"] == fleet.root
        assert report["card"]["created_by"] == AUTHOR
        assert [entry["id"] for entry in fleet.boards.list()["cards"]] == [report["card"]["id"]]


class TestHeartbeat:
    def test_every_five_minutes_with_counts(self, fleet, claim, card, now) -> None:
        card_watch = claim()
        assert card_watch.tick() == ""
        first = fleet.boards.show(card)["card"]
        now.ahead = 299
        card_watch.tick()
        assert fleet.boards.show(card)["card"]["heartbeat_at"] == first["heartbeat_at"]
        differ(fleet, "one")
        now.ahead = 301
        card_watch.tick()
        second = fleet.boards.show(card)["card"]
        assert second["heartbeat_at"] > first["heartbeat_at"]
        assert second["claim_expires"] > first["claim_expires"]
        notes = heartbeats(fleet, card)
        assert notes[0] == "alive, 0 drifts, none so far; 0 running"
        assert notes[1].startswith("alive, 1 drift, last at 20")
        assert len(notes) == 2

    def test_a_claim_that_is_shorter_than_that_does_not_run_out(
        self, fleet, hermes, claim, now, monkeypatch
    ) -> None:
        brief = {**fleet._access.context.environ, "HERMES_KANBAN_CLAIM_TTL_SECONDS": "60"}
        use_environment(fleet, brief)
        card = fleet.boards.create("watch")["card"]["id"]
        card_watch = claim(card)
        board = open_board(fleet._access.context)
        for now.ahead in (0, 20, 40, 70, 100):
            assert card_watch.tick() == ""
            assert board.show(card).claim_expires > fleet._access.context.now() + 20
        with closing(sqlite3.connect(hermes)) as connection:
            beats = connection.execute("SELECT count(*) FROM task_events WHERE kind = 'heartbeat'").fetchone()
        assert beats == (1,)

    def test_a_visit_beats_only_for_a_claim_that_is_its_own(self, fleet, card, monkeypatch) -> None:
        fleet.monitor.once_with_card(card)
        fleet.boards.claim(card, who="worker")
        fleet.monitor.once_with_card(card)
        assert heartbeats(fleet, card) == []
        variables = {"HERMES_KANBAN_TASK": card, "HERMES_KANBAN_CLAIM_LOCK": "worker"}
        use_environment(fleet, {**os.environ, **variables})
        for _ in range(2):
            fleet.monitor.once_with_card(card, board="ours")
        assert len(heartbeats(fleet, card)) == 1


class TestStop:
    def test_s001_19_what_is_not_understood_is_answered_once(self, fleet, claim, card, monkeypatch) -> None:
        card_watch = claim()
        fleet.boards.comment(card, "it goes well")
        assert (card_watch.tick(), bodies(fleet, card)) == ("", [])
        fleet.boards.comment(card, "the build will stop soon")
        with monkeypatch.context() as patch:
            patch.setattr(card_watch, "_keep", crash)
            with pytest.raises(KeyboardInterrupt):
                card_watch.tick()
        card_watch = claim()
        assert card_watch.tick() == ""
        fleet.boards.comment(card, "stop it?")
        assert claim().tick() == ""
        (answer,) = bodies(fleet, card)
        assert answer.startswith("The monitoring goes on.")
        assert "`stop monitoring`" in answer
        fleet.boards.comment(card, "please stop monitoring")
        assert card_watch.tick().startswith("stop-requested")

    def test_s001_19_a_visit_leaves_the_answer_to_who_holds_the_card(self, fleet, card) -> None:
        fleet.boards.claim(card, who="worker")
        fleet.boards.comment(card, "stop it?")
        fleet.monitor.once_with_card(card)
        assert bodies(fleet, card) == []

    @pytest.mark.parametrize("text", ["stop", "please\nstop monitoring", "please stop monitoring"])
    def test_somebody_says_stop(self, fleet, claim, card, text) -> None:
        card_watch = claim()
        card_watch.tick()
        fleet.boards.comment(card, text)
        reason = card_watch.tick()
        assert reason.startswith("stop-requested by user at 20")
        assert status(fleet, card) == ("blocked", reason)

    def test_our_own_words_do_not(self, fleet, claim, card) -> None:
        card_watch = claim()
        fleet.boards.comment(card, "stop", author=AUTHOR)
        fleet.boards.comment(card, "it stopped")
        assert card_watch.tick() == ""
        assert status(fleet, card) == ("running", None)

    def test_what_is_still_to_be_told_is_told_first(self, fleet, claim, card) -> None:
        card_watch = claim()
        differ(fleet, "one")
        fleet.boards.comment(card, "stop")
        assert card_watch.tick()
        assert messages(fleet, card) == ["one"]

    def test_said_while_nobody_watched(self, fleet, claim, card) -> None:
        claim().tick()
        fleet.boards.comment(card, "stop")
        assert claim().tick().startswith("stop-requested")

    def test_what_ended_it_once_does_not_end_it_again(self, fleet, claim, card, monkeypatch) -> None:
        """Also where the process died between the block and the note that the comment was read."""
        card_watch = claim()
        fleet.boards.comment(card, "stop")
        monkeypatch.setattr(card_watch, "_keep", lambda state: None)
        assert card_watch.tick().startswith("stop-requested")
        assert claim().tick() == ""

    def test_a_visit_leaves_the_word_to_who_holds_the_card(self, fleet, claim, card) -> None:
        fleet.boards.claim(card, who="worker")
        fleet.boards.comment(card, "stop")
        assert fleet.monitor.once_with_card(card)["ended"] is None
        assert status(fleet, card) == ("running", None)
        fleet.boards.complete(card, "done")
        assert fleet.monitor.once_with_card(card)["ended"] == f"card {card} is done"

    def test_a_visit_ends_a_card_that_nobody_holds(self, fleet, card) -> None:
        fleet.boards.comment(card, "stop")
        assert fleet.monitor.once_with_card(card)["ended"].startswith("stop-requested")
        assert fleet.boards.show(card)["card"]["status"] == "blocked"


class TestEndOfMonitor:
    def test_the_claim_ends_with_the_monitor(self, fleet, claim, card) -> None:
        card_watch = claim()
        card_watch.tick()
        card_watch.leave("the time is over")
        shown = fleet.boards.show(card)["card"]
        assert (shown["status"], shown["claimed_by"]) == ("ready", None)
        assert bodies(fleet, card) == ["monitoring ended: the time is over"]
        assert claim().tick() == ""

    def test_a_monitor_with_a_time_limit_gives_up_its_card(self, fleet, card) -> None:
        fleet.monitor.run_with_card(card, lambda _report: None, timeout=0.01)
        shown = fleet.boards.show(card)["card"]
        assert (shown["status"], shown["claimed_by"]) == ("ready", None)

    def test_an_interrupted_one_that_follows_a_resident_gives_it_up_too(self, fleet, card, monkeypatch):
        def interrupt(*_arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(monitor_with_card.watch_or_follow, "watch_or_follow", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fleet.monitor.run_with_card(card, lambda _report: None)
        assert fleet.boards.show(card)["card"]["claimed_by"] is None

    def test_the_claim_of_somebody_else_stays(self, fleet, claim, card, now) -> None:
        card_watch = claim()
        now.ahead = 3600
        fleet.boards.claim(card, who="somebody")
        card_watch.leave("the time is over")
        assert fleet.boards.show(card)["card"]["claimed_by"] == "somebody"

    def test_a_card_of_hermes_is_left_to_its_dispatcher(self, fleet, hermes, claim) -> None:
        card = fleet.boards.create("watch")["card"]["id"]
        card_watch = claim(card)
        card_watch.leave("the time is over")
        assert fleet.boards.show(card)["card"]["claimed_by"] == card_watch.holder

    def test_a_stop_for_nobody_is_said_and_obeyed_by_the_next(self, fleet, claim, card) -> None:
        warnings: list[str] = []
        fleet._access.context = fleet._access.context.replace(warn=warnings.append)
        fleet.boards.comment(card, "stop")
        assert warnings == []  # no monitor ever had this card
        card_watch = claim()
        fleet.boards.comment(card, "stop soon?")
        assert warnings == []
        card_watch.leave("the time is over")
        fleet.boards.comment(card, "stop")
        assert warnings == [
            f"nobody monitors card {card} now; the next monitor of it reads the comment, and ends"
        ]
        assert "stop-requested" in claim().tick()


class TestOtherEnds:
    def test_somebody_else_ends_the_card(self, fleet, claim, card) -> None:
        card_watch = claim()
        fleet.boards.complete(card, "enough")
        assert card_watch.tick() == f"card {card} is done"

    def test_somebody_else_takes_the_card(self, fleet, claim, card, now) -> None:
        card_watch = claim()
        now.ahead = 1000
        fleet.boards.claim(card, who="another")
        assert card_watch.tick() == f"another has claimed card {card}"
        assert fleet.boards.show(card)["card"]["claimed_by"] == "another"

    def test_a_card_that_is_gone(self, fleet, claim, card) -> None:
        card_watch = claim()
        fleet._access.context.registry.note(
            lambda transaction: transaction.connection.execute("DELETE FROM board_tasks") and None
        )
        assert card_watch.tick() == f"card {card} is gone"

    def test_a_board_that_cannot_be_read_ends_nothing(self, fleet, hermes, claim) -> None:
        card = fleet.boards.create("watch")["card"]["id"]
        card_watch = claim(card)
        moved = hermes.with_name("moved.db")
        hermes.rename(moved)
        with pytest.raises(Unavailable):
            card_watch.tick()
        assert card_watch.due() > time.monotonic() + 10
        moved.rename(hermes)
        assert card_watch.tick() == ""

    def test_the_time_of_the_card_is_over(self, fleet, claim, now) -> None:
        fleet.init()
        card = fleet.boards.create("watch", max_runtime=100)["card"]["id"]
        card_watch = claim(card)
        now.ahead = 80
        assert card_watch.tick() == ""
        now.ahead = 95
        assert card_watch.tick().startswith("the time limit of the card was reached at 20")
        assert status(fleet, card)[0] == "blocked"

    def test_its_turns_are_spent(self, fleet, claim, now) -> None:
        fleet.init()
        card = fleet.boards.create("watch", goal_mode=True, goal_max_turns=2)["card"]["id"]
        card_watch = claim(card)
        for now.ahead in (0, 301):
            assert card_watch.tick() == ""
        now.ahead = 602
        assert card_watch.tick().startswith("all 2 turns were used")


@pytest.mark.parametrize("is_done", [False, True], ids=["before the commit", "after the commit"])
def test_dying_at_any_write_neither_loses_nor_repeats(fleet, claim, now, monkeypatch, is_done) -> None:
    """Each write in turn is the last one of its process; the next process goes on from there."""
    note = fleet._access.context.registry.note
    writes_left = [0]

    def dying(work):
        writes_left[0] -= 1
        if writes_left[0] == 0 and not is_done:
            raise KeyboardInterrupt
        result = note(work)
        if writes_left[0] == 0:
            raise KeyboardInterrupt
        return result

    fleet.init()
    comments, ended = [], 0
    for number in range(1, 30):
        # A card tells what was found since the second in which it was made.
        now.ahead += 2
        card = fleet.boards.create("watch")["card"]["id"]
        claim(card).tick()
        names = [f"{number}: {name}" for name in ("one", "two")]
        differ(fleet, names[0])
        fleet.boards.comment(card, "stop")
        writes_left[0] = number
        monkeypatch.setattr(fleet._access.context.registry, "note", dying)
        with suppress(KeyboardInterrupt):
            claim(card).tick()
        ended += writes_left[0] > 0
        monkeypatch.setattr(fleet._access.context.registry, "note", note)
        differ(fleet, names[1])
        if status(fleet, card)[0] == "running":
            claim(card).tick()
        assert status(fleet, card)[0] == "blocked"
        comments = messages(fleet, card)
        assert comments in (names, names[:1]), number
    assert ended, "all writes of one process were tried"
    assert comments == names[:1]


class TestClaim:
    def test_another_run_of_the_same_dispatcher_is_another_holder(
        self, fleet, claim, card, monkeypatch
    ) -> None:
        run = fleet.boards.claim(card, who="host:1")["card"]["run_id"]
        variables = {"HERMES_KANBAN_TASK": card, "HERMES_KANBAN_CLAIM_LOCK": "host:1"}
        use_environment(fleet, {**os.environ, **variables, "HERMES_KANBAN_RUN_ID": str(run + 1)})
        board = open_board(fleet._access.context, "ours")
        with pytest.raises(Conflict, match="another run"):
            monitor_card_task.CardWatch(fleet._access.context, board, card).claim()
        use_environment(fleet, {**os.environ, **variables, "HERMES_KANBAN_RUN_ID": str(run)})
        card_watch = monitor_card_task.CardWatch(fleet._access.context, board, card)
        card_watch.claim()
        assert card_watch.tick() == ""
        fleet.boards.block(card, "again", board="ours")
        fleet.boards.claim(card, who="host:1", board="ours")
        assert card_watch.tick() == f"card {card} is in another run"

    def test_a_holder_that_died_is_replaced(self, fleet, claim, card) -> None:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        host = monitor_card_task.socket.gethostname()
        fleet.boards.claim(card, who=f"{host}:{dead.pid}")
        assert claim().tick() == ""

    def test_a_holder_that_lives_is_not(self, fleet, claim, card) -> None:
        host = monitor_card_task.socket.gethostname()
        for holder in (f"{host}:{os.getppid()}", f"elsewhere:{2**22 - 1}", "builder"):
            other_card = fleet.boards.create("watch")["card"]["id"]
            fleet.boards.claim(other_card, who=holder)
            with pytest.raises(Conflict):
                claim(other_card)


class TestJudge:
    @pytest.fixture
    def judge(self, fleet, tmp_path, monkeypatch):
        """Have this script decide."""

        def judge(script):
            path = tmp_path / "judge"
            path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            path.chmod(0o755)
            monkeypatch.setattr(fleet._access.context.settings(), "judge_command", (str(path),))

        return judge

    @staticmethod
    def has_answered(card_watch):
        return card_watch._judge._thread is None or not card_watch._judge._thread.is_alive()

    def goal(self, fleet):
        fleet.init()
        return fleet.boards.create("watch", body="until noon", goal_mode=True)["card"]["id"]

    def test_it_says_done(self, fleet, claim, judge, tmp_path, until) -> None:
        judge(f'printf "%s" "$MAM_CARD" > {tmp_path}/asked; echo done')
        card = self.goal(fleet)
        fleet.boards.comment(card, "hello")
        card_watch = claim(card)
        assert until(card_watch.tick) == f"card {card} is done: the judge ended the monitoring"
        assert status(fleet, card)[0] == "done"
        question = json.loads((tmp_path / "asked").read_text(encoding="utf-8"))
        assert (question["title"], question["body"]) == ("watch", "until noon")
        assert [comment["body"] for comment in question["comments"]] == ["hello"]

    @pytest.mark.parametrize("script", ["echo continue", "echo done; exit 3", "kill -9 $$", "echo undone"])
    def test_anything_else_goes_on(self, fleet, claim, judge, until, script, tmp_path) -> None:
        judge(f"touch {tmp_path}/asked\n{script}")
        card_watch = claim(self.goal(fleet))
        card_watch.tick()
        until(lambda: (tmp_path / "asked").exists() and self.has_answered(card_watch))
        assert card_watch.tick() == ""

    def test_a_missing_judge_goes_on(self, fleet, claim, until, monkeypatch) -> None:
        monkeypatch.setattr(fleet._access.context.settings(), "judge_command", ("/nonexistent/judge",))
        card_watch = claim(self.goal(fleet))
        card_watch.tick()
        until(lambda: self.has_answered(card_watch))
        assert card_watch.tick() == ""

    def test_nobody_is_asked_about_a_card_without_a_goal(self, fleet, claim, judge, card, tmp_path) -> None:
        judge(f"touch {tmp_path}/asked; echo done")
        card_watch = claim()
        assert card_watch.tick() == ""
        assert card_watch._judge._thread is None

    def test_a_visit_asks_nobody_because_it_does_not_stay_for_the_answer(
        self, fleet, judge, monkeypatch
    ) -> None:
        judge("echo done")
        card = self.goal(fleet)
        fleet.boards.claim(card, who="host:1")
        variables = {"HERMES_KANBAN_TASK": card, "HERMES_KANBAN_CLAIM_LOCK": "host:1"}
        use_environment(fleet, {**os.environ, **variables})
        visit = monitor_card_task.CardWatch(
            fleet._access.context, open_board(fleet._access.context, "ours"), card, is_visit=True
        )
        assert visit.tick() == ""
        assert visit._state["beat"] > 0
        assert visit._judge._thread is None


class TestWorker:
    def test_it_needs_a_card(self, fleet) -> None:
        fleet.init()
        with pytest.raises(Usage, match="no card"):
            fleet.monitor.run_as_worker(print)

    def test_without_a_registry_the_card_says_so(self, fleet, hermes, tmp_path, monkeypatch) -> None:
        card = fleet.boards.create("watch")["card"]["id"]
        (tmp_path / "empty").mkdir()
        environ = {**fleet._access.context.environ, "HERMES_KANBAN_TASK": card}
        with (
            mam.open(str(tmp_path / "empty"), environ=environ) as other_fleet,
            pytest.raises(NoRegistry),
        ):
            other_fleet.monitor.run_as_worker(print)
        assert status(fleet, card)[0] == "blocked"
        assert not list((tmp_path / "empty").iterdir())


class TestLive:
    def test_the_resident_beside_it_dies_and_it_takes_over(self, fleet, monitor, until) -> None:
        fleet.init()
        first = monitor()
        until(lambda: resident_start_and_lock.lock(fleet._access.context).holder())
        running = monitor("--card", "new", "--json")
        card = json.loads(running.stdout.readline())["card"]["id"]
        until(lambda: heartbeats(fleet, card))
        first.kill()
        first.wait()
        until(
            lambda: (
                (resident_start_and_lock.lock(fleet._access.context).holder() or {}).get("pid") == running.pid
            )
        )
        fleet.boards.comment(card, "stop")
        running.communicate(timeout=20)
        assert status(fleet, card)[0] == "blocked"

    @pytest.mark.parametrize("beside", [False, True], ids=["as the resident", "beside a resident"])
    def test_from_card_to_block(self, fleet, monitor, until, beside) -> None:
        fleet.init()
        if beside:
            monitor()
            until(lambda: resident_start_and_lock.lock(fleet._access.context).holder())
        session = fleet.sessions.create("sleep", args=["1000"], name="one")
        running = monitor("--card", "new", "--json")
        card = json.loads(running.stdout.readline())["card"]["id"]
        until(lambda: heartbeats(fleet, card))
        time.sleep(max(0.0, rules.hands_off_until(fleet.sessions.get("one").row) - time.time()))
        os.kill(session.row["pane"]["pid"], signal.SIGKILL)
        until(lambda: bodies(fleet, card))
        fleet.boards.comment(card, "stop monitoring")
        out, err = running.communicate(timeout=20)
        assert (running.returncode, err) == (0, "")
        assert "A" in [entry["class"] for line in out.splitlines() for entry in json.loads(line)["drifts"]]
        assert status(fleet, card)[0] == "blocked"
        assert "stop-requested by user at" in status(fleet, card)[1]

    def test_killed_it_goes_on_where_it_was(self, fleet, monitor, until) -> None:
        fleet.init()
        card = fleet.boards.create("watch")["card"]["id"]
        first = monitor("--card", card)
        until(lambda: heartbeats(fleet, card))
        first.kill()
        first.wait()
        differ(fleet, "one")
        second = monitor("--card", card)
        until(lambda: messages(fleet, card) == ["one"])
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=20)
        assert second.returncode == 0
        assert bodies(fleet, card)[-1] == "monitoring ended: the monitor was told to stop"

    def test_a_dry_run_tells_nobody(self, fleet, monitor) -> None:
        result = monitor("--once", "--dry-run", "--card", "new")
        _, error = result.communicate(timeout=20)
        assert result.returncode == 64, error


def heartbeats(fleet, card):
    """Return the notes of a card's heartbeats."""
    board = open_board(fleet._access.context, "ours")
    assert isinstance(board, MamBoard)
    return board.read(
        lambda connection: [
            json.loads(payload)["note"]
            for (payload,) in connection.run(
                "SELECT payload FROM {events} WHERE task_id = ? AND kind = 'heartbeat' ORDER BY id", card
            )
        ],
        [],
    )


def test_e2_a_card_on_which_mam_fails_is_set_aside(fleet, card, claim, monkeypatch):
    warnings = []
    fleet.on_warning(warnings.append)
    watch = claim()

    def fail(*_arguments):
        raise TypeError("a comment without words")

    monkeypatch.setattr(watch, "_look", fail)
    assert [watch.tick(), watch.tick()] == ["", ""]
    reason = "TypeError: a comment without words"
    assert warnings == [f"mam cannot work on card {card}: {reason}; it is set aside, see mam doctor"]
    (item,) = fleet._access.context.registry.peek(set_aside.listed, [])
    assert (item.kind, item.key, item.reason) == ("card", card, reason)
    monkeypatch.undo()
    watch.tick()
    assert fleet._access.context.registry.peek(set_aside.listed, []) == []


def test_a_damaged_row_leaves_no_card_behind(fleet) -> None:
    row = fleet.sessions.create("sleep", args=["1000"], wait=False).row
    fleet._access.context.registry.note(
        lambda transaction: transaction.connection.execute(
            "UPDATE sessions SET data='{cut' WHERE id=?", (row["id"],)
        )
    )
    with pytest.raises(RegistryCorrupt):
        fleet.monitor.once_with_card("new", board="ours")
    assert fleet.boards.list(board="ours")["cards"] == []
