"""mam task: what it prints, and its exit codes."""

import io


def test_from_add_to_done(run, monkeypatch):
    assert run("task", "list").out.startswith("no tasks")
    assert run("task", "add", "fix the test", "--role", "dev").out == "added: TASK-001 (dev)\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"two\nlines"), encoding="utf-8"))
    assert run("task", "add", "-", "--role", "qa", "--json").json["task"]["text"] == "two\nlines"
    lines = run("task", "list").out.splitlines()
    assert lines[1].split() == ["TASK-001", "pending", "dev", "-", "fix", "the", "test", "-"]
    claimed = run("task", "claim", "--role", "qa").out
    assert claimed == "claimed: TASK-002 (qa)\n\ntwo\nlines\n"
    assert run("task", "claim", "TASK-002").out.startswith("no change: TASK-002")
    assert run("task", "done", "TASK-002", "--result", "well").out == "done: TASK-002 (qa)\n"
    assert "well" in run("task", "list", "--status", "done").out
    refused = run("task", "claim", "--role", "qa", "--json")
    assert (refused.code, refused.error["code"]) == (1, "task_not_found")


def test_s003_35_a_done_task_is_listed_with_its_text_and_its_result(run):
    run("task", "add", "fix the login test", "--role", "dev")
    run("task", "add", "check it", "--role", "qa")
    run("task", "done", "TASK-001", "--result", "fixed in 4f2a")
    head, done, pending = run("task", "list").out.splitlines()
    assert head.split() == ["TASK", "STATUS", "ROLE", "CLAIMED", "TEXT", "RESULT"]
    assert "fix the login test" in done and done.endswith("fixed in 4f2a")
    assert "check it" in pending and pending.endswith(" -")
    task = run("task", "list", "--json").json["tasks"][0]
    assert (task["text"], task["result"]) == ("fix the login test", "fixed in 4f2a")


def test_wrong_usage(run):
    for arguments in (("add", "x"), ("claim",), ("list", "--status", "lost"), ("done",), ("done", "x")):
        refused = run("task", *arguments, "--json")
        assert (refused.code, refused.error["code"]) == (64, "usage"), arguments
