"""The verbs of a board by the API: which board is meant, who writes, and what is never made."""

import threading
from contextlib import suppress

import pytest
from tests.adapters.kanban.conftest import make_hermes
from tests.app.environment import use_environment

import mam
from mam.app.boards import board as boards
from mam.core.errors import CardNotFound, Conflict, NoRegistry, Unavailable, Usage


@pytest.fixture
def hermes(tmp_path):
    """The file of a board of Hermes."""
    return make_hermes(tmp_path)


def test_from_card_to_done(fleet) -> None:
    card = fleet.boards.create("watch", body="all of it")["card"]["id"]
    fleet.boards.comment(card, "hello")
    assert fleet.boards.claim(card, who="me", ttl=60)["card"]["claimed_by"] == "me"
    assert fleet.boards.heartbeat(card, who="me", note="1 of 2")["card"]["heartbeat_at"]
    with pytest.raises(Conflict):
        fleet.boards.claim(card, who="you")
    fleet.boards.block(card, "which?")
    assert fleet.boards.complete(card, "done")["card"]["status"] == "done"
    document = fleet.boards.show(card)
    assert document["board"] == {"name": "ours", "path": fleet._access.context.paths.db}
    assert [(comment["author"], comment["body"]) for comment in document["comments"]] == [("user", "hello")]
    assert [comment["id"] for comment in fleet.boards.list()["cards"]] == [card]


def test_cards_outlive_the_process(fleet, workspace) -> None:
    card = fleet.boards.create("watch", key="once")["card"]["id"]
    fleet.close()
    with mam.open(str(workspace)) as other_fleet:
        assert other_fleet.boards.create("watch", key="once")["card"]["id"] == card


def test_of_many_claims_one_wins(fleet, workspace) -> None:
    card = fleet.boards.create("watch")["card"]["id"]
    won = []

    def claim(number) -> None:
        with mam.open(str(workspace)) as own, suppress(Conflict):
            won.append(own.boards.claim(card, who=f"host:{number}")["card"]["claimed_by"])

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [fleet.boards.show(card)["card"]["claimed_by"]]


def test_the_environment_says_which_board(fleet, hermes, monkeypatch) -> None:
    for variables in ({}, {"HERMES_HOME": "/x"}):
        use_environment(fleet, variables)
        assert boards.open_board(fleet._access.context).name == "ours"
    for variables in (
        {"HERMES_KANBAN_DB": str(hermes)},
        {"HERMES_KANBAN_TASK": "t_1", "HERMES_HOME": str(hermes.parent)},
    ):
        use_environment(fleet, variables)
        opened = boards.open_board(fleet._access.context)
        assert (opened.name, opened.path) == ("hermes", str(hermes))
        assert boards.open_board(fleet._access.context, "ours").name == "ours"
    with pytest.raises(Usage):
        boards.open_board(fleet._access.context, "jira")


def test_who_writes(fleet, hermes, monkeypatch) -> None:
    use_environment(fleet, {"HERMES_KANBAN_DB": str(hermes), "HERMES_PROFILE": "coder"})
    card = fleet.boards.create("watch")["card"]
    assert card["created_by"] == "coder"
    assert fleet.boards.comment(card["id"], "hello")["comment"]["author"] == "coder"
    assert fleet.boards.comment(card["id"], "hello", author="me")["comment"]["author"] == "me"


def test_looking_makes_nothing(fleet, workspace) -> None:
    assert fleet.boards.list()["cards"] == []
    with pytest.raises(CardNotFound):
        fleet.boards.show("t_1")
    with pytest.raises(NoRegistry):
        fleet.boards.comment("t_1", "hello")
    assert list(workspace.iterdir()) == []


def test_a_board_that_is_not_there(fleet, tmp_path, monkeypatch) -> None:
    use_environment(fleet, {"HERMES_KANBAN_DB": str(tmp_path / "none.db")})
    with pytest.raises(Unavailable):
        fleet.boards.list()
    assert not (tmp_path / "none.db").exists()
