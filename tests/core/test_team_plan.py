"""Teams: their file, the colours of roles, and the team page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.core import team_page, team_plan
from mam.core.errors import InvalidSettings


@pytest.mark.parametrize(
    ("role", "colour"),
    [
        ("master", "blue"),
        ("dev", "green"),
        ("QA", "red"),
        ("architect", "purple"),
        ("research", "orange"),
        ("ux", "cyan"),
        ("Tech Writer", "yellow"),
        ("gardener", "pink"),
    ],
)
def test_colours_of_roles(role, colour):
    assert team_plan.colour_of(role) == colour
    assert team_plan.COLOURS[colour].startswith("#") and len(team_plan.COLOURS[colour]) == 7


def test_the_id_of_a_team():
    assert team_plan.team_id("2026-11-15", "Dev & QA", "1f3a") == "2026-11-15-dev-qa-1f3a"
    assert team_plan.team_id("2026-11-15", "a b c d e f", "1f3a") == "2026-11-15-a-b-c-d-1f3a"
    assert team_plan.team_id("2026-11-15", "…", "1f3a") == "2026-11-15-team-1f3a"


def test_a_whole_file():
    plan = team_plan.parse(
        {
            "name": "API Team",
            "about": "two\nlines",
            "layout": "main-horizontal",
            "roles": ["qa", {"role": "Dev", "agent": "claude-code", "colour": "pink", "prompt": " a\x1bb "}],
        },
        "x.yaml",
        "x",
    )
    assert (plan.name, plan.about, plan.layout) == ("api-team", "two lines", "main-horizontal")
    qa, dev = plan.roles
    assert (qa.role, qa.agent, qa.colour, qa.prompt) == ("qa", None, None, None)
    assert (dev.role, dev.agent, dev.colour, dev.prompt) == ("dev", "claude", "pink", "ab")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "mapping"),
        ({}, "roles"),
        ({"roles": []}, "roles"),
        ({"roles": ["dev"] * 13}, "roles"),
        ({"roles": [1]}, "a role is"),
        ({"roles": [""]}, "name a role"),
        ({"roles": [{"agent": "x"}]}, "name a role"),
        ({"roles": [{"role": "dev", "agent": "a;b"}]}, "not an agent kind"),
        ({"roles": [{"role": "dev", "colour": "mauve"}]}, "colour"),
        ({"roles": [{"role": "dev", "permissions": "skip"}]}, "only be ask"),
        ({"roles": [{"role": "dev", "model": "--yolo"}]}, "name of a model"),
        ({"roles": [{"role": "dev", "prompt": 1}]}, "must be a text"),
        ({"roles": [{"role": "dev", "prompt": "\ud800" * 20_000}]}, "16 KB"),
        ({"roles": [{"role": "dev", "prompt": "x" * 20_000}]}, "16 KB"),
        ({"roles": [{"role": "dev", "args": []}]}, "there is no key 'args'"),
        ({"roles": ["dev"], "layout": "tiled"}, "layout"),
        ({"roles": ["dev"], "command": "x"}, "there is no key 'command'"),
    ],
)
def test_what_a_file_may_not_say(document, message):
    with pytest.raises(InvalidSettings, match=message):
        team_plan.parse(document, "x.yaml", "x")


def test_first_words():
    text = team_plan.first_message(
        role="dev", team="t", spawner="boss", work="TASK-001: x", prompt="You write."
    )
    assert text.startswith("You are the dev agent of the team t. You were started by session boss.")
    assert text.index("You write.") < text.index("TASK-001: x") < text.index("mam report")
    alone = team_plan.first_message(role="dev", team="t", spawner=None, work=None, prompt=None)
    assert "by a person" in alone and "no task yet" in alone


def test_the_report():
    assert (
        team_plan.report_line("TASK-001", "well", None)
        == "STEP COMPLETE: TASK-001 | result: well | session: -"
    )


def page(text):
    boxes = dict.fromkeys(team_plan.CHECKLIST, False)
    member = {
        **{key: text for key in ("session", "pane", "window", "role", "workspace", "label", "conversation")},
        "state": "active",
        "status": "running",
        "task": None,
        "boxes": {**boxes, "reported": True},
        "name_source": "auto",
        "spawned_at": "2026-11-15T12:00:00Z",
    }
    task = {"seq": 1, "status": "pending", "role": "dev", "text": text, "result": text, "pane": None}
    head = {"id": "t", "name": text, "master": text, "started_at": "2026-11-15T12:00:00Z", "ended_at": None}
    return team_page.render(head, [member], [{**task, "claimed_by": None}], [(0.0, text)])


@given(st.text())
def test_nobody_s_words_make_a_heading_or_a_cell(text):
    lines = page(text).splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings == [
        "# Agent Sessions — t",
        "## Active Agents",
        "## Pane Lifecycle",
        "## Tasks",
        "### TASK-001 · pending · dev",
        "## Messages that did not arrive",
    ]
    rows = [line.replace("\\\\", "").replace("\\|", "") for line in lines if line.startswith("|")]
    assert {row.count("|") for row in rows} == {11, 9}


def test_boxes_are_shown():
    assert "| [x] | [ ] | [ ] | [ ] |" in page("x")
