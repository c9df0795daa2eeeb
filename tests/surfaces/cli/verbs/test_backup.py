"""What a person reads who copies the state of a root."""

from __future__ import annotations

import re

import mam


def test_a_copy_is_made_listed_and_named(run, workspace) -> None:
    run("init")
    assert run("backup", "--list").out == "there is no copy yet\n"
    answer = run("backup")
    assert answer.code == 0
    found = re.fullmatch(r"copied to (\S+) \(\d+ KiB\)\n", answer.out)
    document = run("backup", "--list", "--json").json
    assert [(copy["path"], copy["reason"]) for copy in document["copies"]] == [(found[1], "manual")]
    title, row = run("backup", "--list").out.splitlines()
    assert title.split() == ["AGE", "SIZE", "REASON", "FILE"]
    assert row.split()[2:] == ["KiB", "manual", found[1]]
    with mam.open(str(workspace)) as fleet:
        fleet.jobs.submit("look at it", type="human")
    assert run("backup").out.endswith(" KiB, with the tokens of jobs)\n")


def test_a_file_is_written_where_the_person_is_and_replaced_on_request(run, workspace) -> None:
    run("init")
    assert run("backup", "mine.db").out.endswith(" KiB, without the tokens of jobs)\n")
    assert (workspace / "mine.db").stat().st_mode & 0o777 == 0o600
    refused = run("backup", "mine.db")
    assert (refused.code, "repeat with --force" in refused.err) == (1, True)
    answer = run("backup", "mine.db", "--force", "--with-secrets", "--json")
    assert answer.json["has_secrets"] is True
    folder = run("backup", str(workspace))
    assert (folder.code, "is a directory" in folder.err, "--force" in folder.err) == (1, True, False)
    for options in ((), ("--force",)):
        dash = run("backup", "-", *options)
        assert (dash.code, "a copy cannot go to stdout" in dash.err) == (64, True)
    assert not (workspace / "-").exists()
    inside = run("backup", ".mam/mine.db")
    assert (inside.code, "name a file outside it" in inside.err) == (1, True)
    assert run("backup", "--list").out == "there is no copy yet\n"


def test_options_that_do_not_fit_are_refused(run, workspace) -> None:
    for words in (["--force"], ["--with-secrets"], ["--list", "mine.db"], ["--list", "--force"]):
        assert run("backup", *words).code == 64
    assert run("backup").code == 1
    assert list(workspace.iterdir()) == []
