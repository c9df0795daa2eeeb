"""What the API returns is plain data: any program that writes JSON, YAML or TOML can write it."""

from __future__ import annotations

PLAIN = (str, int, float, bool, type(None))


def others(value: object, path: str = "") -> list[str]:
    """Return where something else than plain data is, and what."""
    if type(value) is dict:
        return [found for key, part in value.items() for found in others(part, f"{path}.{key}")]
    if type(value) in (list, tuple):
        return [found for number, part in enumerate(value) for found in others(part, f"{path}[{number}]")]
    return [] if type(value) in PLAIN else [f"{path}: {value!r}"]


def test_documents_are_plain_data(fleet) -> None:
    job = fleet.jobs.submit("write it down", agent="practice", agent_session="one", args=["--speed", "0"])
    ended = fleet.jobs.wait([job["job_id"]], timeout=60)
    receipt = fleet.messages.send("one", "hello", timeout=10)
    fleet.sessions.create("practice", name="asking", args=["--speed", "0"])
    fleet.messages.send("asking", "run ls", timeout=10)
    fleet.sessions.wait("asking", "waiting", timeout=10)
    held = fleet.messages.send("asking", "must wait")
    assert held["reason"] == "its permission dialog is open"
    documents = {
        "submit": job,
        "job wait": ended,
        "job status": fleet.jobs.status(job["job_id"]),
        "job logs": fleet.jobs.logs(job["job_id"]),
        "send": receipt,
        "inbox": fleet.messages.inbox("one"),
        "held": held,
        "inbox with a held message": fleet.messages.inbox("asking"),
        "ls": fleet.sessions.ls(),
        "status": fleet.sessions.status("one"),
        "wait": fleet.sessions.wait("one", "text:.", timeout=10),
        "explain": fleet.sessions.explain("one"),
        "dry run": fleet.monitor.once(dry_run=True),
        "pass": fleet.monitor.once(),
        "agents": fleet.agents.list(),
        "interrupt": fleet.messages.interrupt("one"),
        "stop": fleet.sessions.stop("one").session.row,
        "resume": fleet.sessions.resume("one").session.row,
        "restart": fleet.sessions.restart("one").session.row,
        "fork": fleet.sessions.fork("one", name="two").row,
        "rename": fleet.sessions.rename("two", "three").row,
        "archive": fleet.sessions.archive(fleet.sessions.stop("three").session.id).row,
        "log": fleet.sessions.log(),
        "teams": fleet.teams.list(),
        "tasks": fleet.tasks.list(),
    }
    assert others(documents) == []
