"""A name that a shell, tmux or a terminal could misread is refused before anything happens."""

import pytest

HOSTILE = [
    "#(touch marker)",
    "a;b",
    "a;",
    "../up",
    "a/b",
    "a\nb",
    "a\u202eb",
    "a\u200bb",
    "\x1b[31mred",
    "$(touch marker)",
    "`touch marker`",
    "-rf",
    "",
    " ",
    "A",
    "ä",
    "=a",
    "%1",
    "$1",
    "a" * 101,
    "a" * 1_000_000,
]
ids = [ascii(name[:20]) for name in HOSTILE]


@pytest.mark.parametrize("name", HOSTILE, ids=ids)
@pytest.mark.parametrize(
    "line",
    [
        "create --agent human --session=NAME",
        "stop -- NAME",
        "stop --session=NAME",
        "stop --purge-conversation --yes -- NAME",
        "stop --force-no-yaml -- NAME",
        "resume -- NAME",
        "restart -- NAME",
        "status -- NAME",
        "read -- NAME",
        "explain -- NAME",
        "wait --for idle -- NAME",
        "archive -- NAME",
        "forget -- NAME",
        "rename -- NAME new",
        "rename -- one NAME",
        "fork -- NAME",
        "fork --session=NAME one",
        "log -- NAME",
        "adopt --agent human -- NAME",
    ],
)
def test_is_64_and_changes_nothing(run, workspace, line, name):
    arguments = [word.replace("NAME", name) for word in line.split()]
    answer = run(*arguments, "--json") if "--" not in arguments else run("--json", *arguments)
    assert answer.code == 64, answer
    assert answer.error["code"] in ("invalid_name", "usage")
    assert len(answer.error["message"]) < 300
    assert answer.error["message"].isprintable()
    assert list(workspace.iterdir()) == []
    person = run(*arguments)
    assert (person.code, person.out) == (64, "")
    assert person.err.replace("\n", "").isprintable()
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("option", ["--agent", "--role", "--tmux-server"])
@pytest.mark.parametrize(
    "value", ["#(touch marker)\n", "a\u202eb\x07", "x" * 1_000_000], ids=["format", "marks", "long"]
)
def test_other_words_of_create(run, workspace, option, value):
    agent = [] if option == "--agent" else ["--agent", "human"]
    answer = run("create", *agent, f"{option}={value}", "--json")
    assert answer.code == 64, answer
    assert len(answer.error["message"]) < 300
    assert list(workspace.iterdir()) == []


def test_a_name_that_a_person_wrote_into_the_file_can_be_used(run, workspace):
    folder = workspace / ".hermes"
    folder.mkdir()
    row = "- name: Old_Name\n  agent: claude\n  status: stopped\n  workspace: /\n"
    (folder / "agent-sessions.yaml").write_text(f"schema_version: 1\ntmux_sessions:\n{row}", encoding="utf-8")
    assert run("status", "Old_Name", "--json").json["session"]["name"] == "Old_Name"
    assert run("status", "Old_Names", "--json").error["code"] == "invalid_name"
