"""Who may own what mam reads, and who may write there."""

from __future__ import annotations

import pytest

from mam.core.owner_rule import (
    ABOVE,
    EVERYBODY,
    FILE,
    FOLDER,
    GROUP,
    LINK,
    OWNER,
    PRIVATE,
    OwnedPath,
    find_danger,
    is_named,
)

ME, BOB = 1000, 1001
# A group of this user alone, and one that bob is in.
MINE, TEAM = 1000, 2000


def danger(role: str, uid: int, gid: int, mode: int, *, unmapped: tuple[int, ...] = ()) -> str | None:
    found = find_danger(
        [OwnedPath("/x", role, uid, gid, mode)],
        ME,
        lambda group: ["bob"] if group == TEAM else [],
        lambda user: user in unmapped,
    )
    return found.kind if found else None


@pytest.mark.parametrize("role", [FILE, FOLDER, LINK, PRIVATE, ABOVE])
def test_only_this_user_and_root_are_trusted(role) -> None:
    assert danger(role, ME, MINE, 0o700) is None
    assert danger(role, 0, 0, 0o755 if role != PRIVATE else 0o700) is None
    assert danger(role, BOB, MINE, 0o700) == OWNER


@pytest.mark.parametrize(
    ("role", "gid", "mode", "expected"),
    [
        # umask 002, and a group of one's own or with others.
        (FOLDER, MINE, 0o775, None),
        (FILE, MINE, 0o664, None),
        (FOLDER, TEAM, 0o775, GROUP),
        (ABOVE, TEAM, 0o2775, GROUP),
        (FILE, TEAM, 0o664, GROUP),
        (FOLDER, TEAM, 0o755, None),
        # The sticky bit protects what lies in a folder; for a file it means nothing.
        (ABOVE, MINE, 0o1777, None),
        (FOLDER, TEAM, 0o1775, None),
        (ABOVE, MINE, 0o777, EVERYBODY),
        (FILE, MINE, 0o1666, EVERYBODY),
        # The mode of a link is 777 on Linux.
        (LINK, TEAM, 0o777, None),
        # .mam
        (PRIVATE, MINE, 0o700, None),
        (PRIVATE, MINE, 0o755, None),
        (PRIVATE, MINE, 0o770, GROUP),
        (PRIVATE, MINE, 0o1777, EVERYBODY),
    ],
)
def test_who_may_write(role, gid, mode, expected) -> None:
    assert danger(role, ME, gid, mode) == expected


def test_in_a_sandbox_the_folders_above_may_belong_to_a_user_that_it_does_not_know() -> None:
    nobody = 65534
    assert danger(ABOVE, nobody, 0, 0o755, unmapped=(nobody,)) is None
    assert danger(ABOVE, nobody, 0, 0o777, unmapped=(nobody,)) == EVERYBODY
    assert danger(FOLDER, nobody, 0, 0o755, unmapped=(nobody,)) == OWNER
    assert danger(ABOVE, nobody, 0, 0o755) == OWNER


def test_the_groups_are_looked_up_only_where_a_group_may_write() -> None:
    paths = [OwnedPath("/", ABOVE, 0, 0, 0o755), OwnedPath("/tmp", ABOVE, 0, 0, 0o1777)]

    def fail(_group: int) -> list[str]:
        raise AssertionError

    assert find_danger(paths, ME, fail, fail) is None


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("/srv/app", True),
        ("/srv/app/", True),
        ("/srv/*", True),
        ("/*", True),
        ("/srv", False),
        ("/srv/ap", False),
        ("/srv/ap*", False),
        ("/srv/app/*", False),
        ("/srv/app2", False),
    ],
)
def test_what_names_a_root(entry, expected) -> None:
    assert is_named("/srv/app", [entry]) is expected
