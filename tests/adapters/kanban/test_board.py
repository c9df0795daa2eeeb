"""Both boards have the same calls and events, and a refused call changes nothing."""

import json

import pytest

from mam.core.errors import CardNotFound, Conflict, Usage
from mam.core.times import stamp


def test_a_card_is_made_once_per_key(board, events) -> None:
    card = board.create("watch", body="the body", key="k", goal_mode=True, goal_max_turns=5, max_runtime=60)
    assert (card.status, card.body, card.goal_mode, card.goal_max_turns) == ("ready", "the body", True, 5)
    assert board.create("another", key="k").id == card.id
    assert board.create("another").id != board.create("another").id
    assert events(card.id) == ["created"]
    assert [listed.title for listed in board.list()] == ["watch", "another", "another"]
    assert board.list("done") == []


def test_s001_23_a_card_keeps_its_place_branch_and_skills(board) -> None:
    place = {"workspace_kind": "worktree", "workspace": "/repo", "branch": "wt/one"}
    card = board.create("one", skills=["monitor", " other ", "monitor"], **place)
    for shown in (card.as_json(), board.list()[0].as_json(), board.show(card.id).as_json()):
        assert {key: shown[key] for key in place} == place
        assert shown["skills"] == ["monitor", "other"]
    facts = board.read(
        lambda connection: connection.run(
            "SELECT branch_name, skills, workspace_kind, workspace_path,"
            " (SELECT payload FROM {events} WHERE task_id = {tasks}.id) FROM {tasks}"
        ).fetchone(),
        None,
    )
    assert facts[:4] == ("wt/one", '["monitor", "other"]', "worktree", "/repo")
    assert json.loads(facts[4])["branch_name"] == "wt/one"
    assert json.loads(facts[4])["skills"] == ["monitor", "other"]


@pytest.mark.parametrize(
    ("goal", "kind", "path"),
    [
        ({}, "scratch", None),
        ({"workspace": "/w"}, "dir", "/w"),
        ({"workspace_kind": "worktree"}, "worktree", None),
        ({"workspace_kind": "dir", "workspace": "/w"}, "dir", "/w"),
        ({"workspace_kind": "scratch"}, "scratch", None),
    ],
)
def test_s001_23_where_the_work_is_done(board, goal, kind, path) -> None:
    card = board.create("one", **goal)
    assert (card.workspace_kind, card.workspace) == (kind, path)
    assert (card.branch, card.skills) == (None, None)


@pytest.mark.parametrize(
    "goal",
    [
        {"branch": "x"},
        {"branch": "x", "workspace": "/w"},
        {"branch": "-x", "workspace_kind": "worktree"},
        {"branch": "a b", "workspace_kind": "worktree"},
        {"branch": " ", "workspace_kind": "worktree"},
        {"workspace_kind": "cloud"},
        {"workspace_kind": "dir"},
        {"workspace_kind": "scratch", "workspace": "/w"},
        {"workspace_kind": "worktree", "workspace": "relative"},
        {"skills": ["a,b"]},
    ],
)
def test_s001_23_what_hermes_would_refuse_is_refused(board, goal) -> None:
    with pytest.raises(Usage) as refused:
        board.create("one", **goal)
    assert refused.value.hint
    assert board.list() == []


@pytest.mark.parametrize("skills", [[""], ["a", " "]])
def test_a_skill_without_a_name_is_refused(board, skills) -> None:
    with pytest.raises(Usage, match="empty"):
        board.create("one", skills=skills)
    assert board.list() == []


@pytest.mark.parametrize("text", ["not json", "{}", "3"])
def test_s001_23_skills_of_another_program_may_be_anything(board, text) -> None:
    card = board.create("one").id
    board.write(lambda connection: connection.run("UPDATE {tasks} SET skills = ?", text) and None)
    assert board.show(card).skills is None


@pytest.mark.parametrize("title", ["", "  ", "x" * 201])
def test_a_title_is_needed(board, title) -> None:
    with pytest.raises(Usage):
        board.create(title)
    assert board.list() == []


def test_comments_have_a_cursor(board, events) -> None:
    card, other = board.create("one").id, board.create("two").id
    first = board.comment(card, "me", " hello \n")
    board.comment(other, "me", "elsewhere")
    second = board.comment(card, "you", "again")
    assert [(comment.author, comment.body) for comment in board.comments_since(card, 0)] == [
        ("me", "hello"),
        ("you", "again"),
    ]
    assert [comment.id for comment in board.comments_since(card, first.id)] == [second.id]
    assert board.comments_since(card, second.id) == []
    assert board.show(card).comments == 2
    assert events(card) == ["created", "commented", "commented"]
    with pytest.raises(Usage):
        board.comment(card, "me", "  ")


def test_a_claim_is_one_holders(board, clock, events) -> None:
    card = board.create("one").id
    held = board.claim(card, "host:1", 60)
    assert (held.status, held.claimed_by, held.claim_expires) == ("running", "host:1", clock() + 60)
    assert held.run_id is not None
    with pytest.raises(Conflict, match="host:1 has claimed"):
        board.claim(card, "host:2")
    assert board.show(card).claimed_by == "host:1"
    clock.at += 10
    assert board.claim(card, "host:1", 60).claim_expires == clock() + 60, "the same holder extends it"
    assert events(card) == ["created", "claimed"]


def test_without_a_ttl_no_claim_gets_shorter(board, clock) -> None:
    card = board.create("long").id
    until = board.claim(card, "host:1", 10 * board.ttl).claim_expires
    assert board.heartbeat(card, "host:1").claim_expires == until
    assert board.claim(card, "host:1").claim_expires == until
    assert board.heartbeat(card, "host:1", None, 60).claim_expires == clock() + 60, "an explicit ttl counts"


def test_a_heartbeat_extends_the_claim_of_its_holder_only(board, clock, events) -> None:
    card = board.create("one").id
    with pytest.raises(Conflict):
        board.heartbeat(card, "host:1")
    board.claim(card, "host:1", 60)
    clock.at += 50
    beat = board.heartbeat(card, "host:1", "3 drifts", 60)
    assert (beat.claim_expires, beat.heartbeat_at) == (clock() + 60, clock())
    with pytest.raises(Conflict):
        board.heartbeat(card, "host:2")
    assert events(card) == ["created", "claimed", "heartbeat"]


def test_s001_17_the_last_heartbeat_is_shown_with_its_note(board, clock) -> None:
    card = board.create("one").id
    board.claim(card, "host:1")
    assert board.show(card).as_json()["heartbeat_note"] is None
    board.heartbeat(card, "host:1", "1 of 5 done")
    clock.at += 50
    board.heartbeat(card, "host:1", "3 of 5 done")
    shown = board.show(card).as_json()
    assert (shown["heartbeat_at"], shown["heartbeat_note"]) == (stamp(clock()), "3 of 5 done")
    board.heartbeat(card, "host:1")
    assert board.show(card).heartbeat_note is None, "the note of another heartbeat would have a wrong time"


@pytest.mark.parametrize("payload", ["not json", "[1]", '{"note": 3}', '{"other": "x"}', None])
def test_s001_17_a_heartbeat_of_another_program_may_have_any_payload(board, payload) -> None:
    card = board.create("one").id
    board.write(
        lambda connection: (
            connection.run(
                "INSERT INTO {events} (task_id, kind, payload, created_at) VALUES (?, 'heartbeat', ?, 1)",
                card,
                payload,
            )
            and None
        )
    )
    assert board.show(card).heartbeat_note is None


def test_a_block_ends_the_run(board, events, run_of) -> None:
    card = board.create("one").id
    board.claim(card, "host:1")
    with pytest.raises(Conflict):
        board.block(card, "why", holder="host:2")
    blocked = board.block(card, "which one?", holder="host:1")
    assert (blocked.status, blocked.summary) == ("blocked", "which one?")
    assert (blocked.claimed_by, blocked.run_id) == (None, None)
    assert run_of(card) == ("blocked", "blocked", "which one?", 1)
    assert events(card) == ["created", "claimed", "blocked"]
    with pytest.raises(Conflict):
        board.block(card, "again")


def test_a_card_that_nobody_claimed_can_be_blocked_and_done(board, run_of) -> None:
    card = board.create("one").id
    assert board.block(card, "wait").summary == "wait"
    assert run_of(card) == ("blocked", "blocked", "wait", 1)
    completed = board.complete(card, "it is done\nreally")
    assert (completed.status, completed.summary) == ("done", "it is done\nreally")
    assert board.complete(card, "twice").summary == "it is done\nreally"


def test_what_is_not_there(board) -> None:
    for call in (board.show, lambda card: board.comments_since(card, 0), lambda card: board.claim(card, "x")):
        with pytest.raises(CardNotFound, match="t_nothing"):
            call("t_nothing")
    with pytest.raises(CardNotFound):
        board.comment("t_nothing", "me", "hello")


def test_a_card_waits_for_its_parents(board) -> None:
    parent, child = board.create("first").id, board.create("then").id
    board.write(
        lambda connection: connection.run("INSERT INTO {links} VALUES (?, ?)", parent, child) and None
    )
    with pytest.raises(Conflict, match="waits"):
        board.claim(child, "host:1")
    board.complete(parent, "done")
    assert board.claim(child, "host:1").status == "running"


def test_the_same_holder_in_another_run_is_another(board) -> None:
    card = board.create("one").id
    run = board.claim(card, "host:1").run_id
    for call in (
        lambda: board.heartbeat(card, "host:1", run=run + 1),
        lambda: board.block(card, "why", holder="host:1", run=run + 1),
        lambda: board.complete(card, "done", holder="host:1", run=run + 1),
    ):
        with pytest.raises(Conflict, match="another run"):
            call()
    assert board.show(card).status == "running"
    assert board.heartbeat(card, "host:1", run=run).heartbeat_at
    assert board.complete(card, "done", holder="host:1", run=run).status == "done"


class TestMamBoard:
    def test_anybody_may_take_over_an_expired_claim(self, mam_board, clock) -> None:
        card = mam_board.create("one").id
        mam_board.claim(card, "host:1", 60)
        clock.at += 61
        assert mam_board.claim(card, "host:2").claimed_by == "host:2"
        with pytest.raises(Conflict):
            mam_board.heartbeat(card, "host:1")

    def test_the_holder_may_extend_an_expired_claim(self, mam_board, clock) -> None:
        card = mam_board.create("one").id
        mam_board.claim(card, "host:1", 60)
        clock.at += 61
        assert mam_board.heartbeat(card, "host:1").claim_expires > clock()

    def test_a_dead_holder_is_replaced(self, mam_board) -> None:
        card = mam_board.create("one").id
        mam_board.claim(card, "host:1")
        with pytest.raises(Conflict):
            mam_board.claim(card, "host:2", over="host:3")
        assert mam_board.claim(card, "host:2", over="host:1").claimed_by == "host:2"

    def test_a_blocked_card_is_taken_up_again(self, mam_board) -> None:
        card = mam_board.create("one").id
        mam_board.block(card, "why")
        assert mam_board.claim(card, "host:1").status == "running"
        assert mam_board.block(card, "why").status == mam_board.show(card).status == "blocked"


class TestHermesBoard:
    def test_an_expired_claim_is_left_to_the_dispatcher(self, hermes, clock) -> None:
        card = hermes.create("one").id
        hermes.claim(card, "host:1", 60)
        clock.at += 61
        with pytest.raises(Conflict):
            hermes.claim(card, "host:2", over="host:1")

    def test_a_second_block_for_the_same_cause_goes_to_triage(self, hermes) -> None:
        card = hermes.create("one").id
        hermes.block(card, "why")
        with pytest.raises(Conflict):
            hermes.claim(card, "host:1")
        hermes.write(lambda connection: connection.run("UPDATE {tasks} SET status = 'ready'") and None)
        assert hermes.block(card, "why").status == "triage"
