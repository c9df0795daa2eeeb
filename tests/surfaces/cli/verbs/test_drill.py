"""`mam drill`: the order is that of `mam ls`, and the exit code says the same as the last line."""

from __future__ import annotations

import pytest

from mam.surfaces.cli.style import Paint
from mam.surfaces.cli.verbs import doctor, drill


def result(name, outcome, *reasons, run=None):
    document = {
        "session": name,
        "agent": "claude",
        "status": "stopped",
        "outcome": outcome,
        "conversation": "0199a213-81c0-7800-8aa1-bbab2a035a53",
        "tier": 1 if outcome == "ok" else None,
        "reasons": [{"message": message, "hint": hint} for message, hint in reasons],
    }
    return {**document, "run": run} if run else document


def document(*results, root_ok=True):
    outcomes = [one["outcome"] for one in results]
    return {
        "root": [{"check": "registry", "ok": root_ok, "message": "it is broken", "hint": "mend it"}],
        "results": list(results),
        "ok": sum(outcome in ("ok", "warning") for outcome in outcomes),
        "unproven": outcomes.count("unproven"),
        "failed": outcomes.count("would_not"),
    }


def shown(document):
    class Plain(Paint):
        def __init__(self):
            self.width, self.colours = None, False

    return drill.show(document, Plain())


def test_what_a_person_reads() -> None:
    lines = shown(
        document(
            result("gone", "would_not", ("its record is gone", "look for it"), ("and more\x1b[31m", None)),
            result("slow", "unproven", ("no proof", None), run={"outcome": "unproven", "message": "no"}),
            result("fine", "ok", run={"outcome": "proven", "message": "it came up"}),
            result("unforked", "ok", run={"outcome": "n/a", "message": "mam cannot fork it"}),
        )
    )
    assert lines == [
        "NAME      AGENT   STATUS   RESULT    CONVERSATION  FORK",
        "gone      claude  stopped  lost      0199a213      -",
        "slow      claude  stopped  unproven  0199a213      unproven",
        "fine      claude  stopped  ok        0199a213 t1   proven",
        "unforked  claude  stopped  ok        0199a213 t1   n/a",
        "gone: its record is gone",
        "  look for it",
        "gone: and more[31m",
        "slow: no proof",
        "fine: it came up",
        "unforked: mam cannot fork it",
        "4 checked: 2 would come back, 1 not proven, 1 would not; 1 proven, 1 not tried",
    ]
    assert shown(document()) == ["no session runs or can be resumed"]
    assert shown(document(result("fine", "ok"), root_ok=False)) == [
        "problem  registry: it is broken",
        "  mend it",
        "NAME  AGENT   STATUS   RESULT  CONVERSATION",
        "fine  claude  stopped  ok      0199a213 t1",
        "no session can be resumed before that is mended",
    ]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (document(), 0),
        (document(result("a", "ok"), result("b", "warning")), 0),
        (document(result("a", "unproven")), 3),
        (document(result("a", "unproven"), result("b", "would_not")), 1),
        (document(result("a", "ok"), root_ok=False), 1),
    ],
)
def test_the_exit_code(run, monkeypatch, answer, code) -> None:
    asked = {}
    monkeypatch.setattr(
        "mam.app.api.sessions.Sessions.drill", lambda _self, names, **options: asked.update(options) or answer
    )
    assert run("drill", "a", "--run", "--timeout", "2m", "--agent", "claude", "--json").code == code
    assert asked == {"agent": "claude", "run": True, "timeout": 120.0}


def test_with_real_sessions(run) -> None:
    run("create", "--agent", "practice", "--session", "one", "--prompt", "a walrus", "--", "--speed", "0")
    run("create", "--agent", "human", "--session", "me")
    answer = run("drill")
    assert answer.code == 1
    assert [line.split()[:4] for line in answer.out.splitlines()[1:3]] == [
        ["one", "practice", "running", "ok"],
        ["me", "human", "running", "lost"],
    ]
    assert answer.out.endswith("2 checked: 1 would come back, 1 would not\n")
    answer = run("drill", "one", "--run", "--json")
    assert (answer.code, answer.json["results"][0]["run"]["outcome"]) == (0, "proven")
    assert run("ls", "--names").out.split() == ["one", "me"]


def test_what_is_refused(run) -> None:
    assert (run("drill", "--timeout", "2m").code, run("drill", "no-such").code) == (64, 1)
    assert run("drill", "--json").json["results"] == []


def test_a_command_in_a_hint_is_whole() -> None:
    command = f"ln -s /{'deep/' * 150}boutique /{'deep/' * 150}shop"
    lost = result("one", "would_not", (f"the workspace /{'deep/' * 150}shop is gone", command))
    assert any(line.strip() == command for line in shown(document(lost)))
    check = {"check": "session one", "ok": False, "message": "its workspace is gone", "mend": command}
    assert any(line.strip() == command for line in doctor.show([check], Paint(None)))
