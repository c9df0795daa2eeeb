"""A root whose state is gone: every verb that reads says so, once."""

import json
import shutil

import pytest

GONE = "the state of this root is gone"


@pytest.fixture
def lost(run, workspace):
    """A root after `git clean -fdx`."""
    run("create", "--agent", "human", "--session", "one")
    for folder in (".mam", ".hermes"):
        shutil.rmtree(workspace / folder)
    return run


def test_d3_every_verb_that_reads_says_once_that_the_state_is_gone(lost, workspace) -> None:
    verbs = (
        "ls",
        "ls --all",
        "ls --names",
        "status",
        "status one",
        "read one",
        "explain one",
        "answer one",
        "inbox one",
        "inbox --parked",
        "log",
        "log one",
        "wait one --for idle",
        "job list",
        "job status 1f00ab42",
        "job logs --list",
        "job logs 1f00ab42",
        "task list",
        "team list",
        "board list",
        "board show c_1",
        "drill",
    )
    said = {}
    for verb in verbs:
        answer = lost(*verb.split())
        text = answer.err + answer.out
        said[verb] = (text.count(GONE), "mam restore" in text, "mam create" in text)
    assert said == dict.fromkeys(verbs, (1, True, False))
    assert not (workspace / ".mam").exists()


def test_a_listing_of_all_roots_names_those_whose_state_is_gone(lost, workspace, tmp_path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    answer = lost("ls", "--all", "--workspace", str(other))
    assert f"{workspace}: {GONE}" in answer.out
    assert f"mam init --new --workspace {workspace}" in answer.out
    (entry,) = answer_of(lost("ls", "--all", "--json", "--workspace", str(other)))["unreadable"]
    assert (entry["root"], entry["root_state"]) == (str(workspace), "missing")


def answer_of(answer):
    return json.loads(answer.out)


def test_d3_a_document_has_the_warning(lost) -> None:
    for verb in ("job list", "task list", "board list", "log"):
        (warning,) = json.loads(lost("--json", *verb.split()).out)["warnings"]
        assert GONE in warning, verb
