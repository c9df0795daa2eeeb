"""The choice of a resume: the first tier on disk, and never a conversation of another session."""

from mam.core.resume_choice import choose
from mam.core.session_row import with_all_fields


def row(**fields):
    return with_all_fields(
        {"id": "s_1", "name": "n", "agent": "claude", "status": "stopped", "workspace": "/w", **fields}
    )


def pick(session, *, disk=(), workspace=(), taken=(), identity=None):
    choice = choose(
        session,
        identity,
        on_disk=lambda conversation: conversation in disk,
        in_workspace=lambda: list(workspace),
        is_taken=lambda conversation: conversation in taken,
    )
    return choice.id, choice.tier, choice.on_disk


def test_tier_1_is_the_rows_own() -> None:
    assert pick(row(claude_session_id_own="own"), disk={"own", "new"}, workspace=["new"]) == ("own", 1, True)


def test_an_own_id_that_is_gone_is_never_replaced_by_another() -> None:
    assert pick(row(claude_session_id_own="own"), disk={"new"}, workspace=["new"]) == ("own", None, False)


def test_tier_2_is_the_workspaces_newest_that_is_nobody_elses() -> None:
    assert pick(row(), disk={"a", "b"}, workspace=["a", "b"], taken={"a"}) == ("b", 2, True)


def test_tier_3_only_for_this_workspace() -> None:
    cache = {"session_id": "c", "project_cwd": "/w"}
    assert pick(row(), disk={"c"}, identity=cache) == ("c", 3, True)
    assert pick(row(), disk={"c"}, identity={**cache, "project_cwd": "/elsewhere"}) == (None, None, None)
    assert pick(row(), disk={"c"}, identity=cache, taken={"c"}) == (None, None, None)


def test_a_chosen_id_without_an_artifact_is_launched_again() -> None:
    chosen = row(conversations=[{"id": "x", "source": "chosen", "since": ""}])
    assert pick(chosen, disk={"other"}, workspace=["other"]) == ("x", None, False)
