"""mam task: what it prints, and its exit codes."""

import io


def test_from_add_to_done(run, monkeypatch):
    assert run("task", "list").out.startswith("no tasks")
    assert run("task", "add", "fix the test", "--role", "dev").out == "added: TASK-001 (dev)\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("two\nlines"))
    assert run("task", "add", "-", "--role", "qa", "--json").json["task"]["text"] == "two\nlines"
    lines = run("task", "list").out.splitlines()
    assert lines[1].split() == ["TASK-001", "pending", "dev", "-", "fix", "the", "test"]
    claimed = run("task", "claim", "--role", "qa").out
    assert claimed == "claimed: TASK-002 (qa)\n\ntwo\nlines\n"
    assert run("task", "claim", "TASK-002").out.startswith("no change: TASK-002")
    assert run("task", "done", "TASK-002", "--result", "well").out == "done: TASK-002 (qa)\n"
    assert "well" in run("task", "list", "--status", "done").out
    refused = run("task", "claim", "--role", "qa", "--json")
    assert (refused.code, refused.error["code"]) == (1, "task_not_found")


def test_wrong_usage(run):
    for arguments in (("add", "x"), ("claim",), ("list", "--status", "lost"), ("done",), ("done", "x")):
        refused = run("task", *arguments, "--json")
        assert (refused.code, refused.error["code"]) == (64, "usage"), arguments
