"""The places of a team page: the session folder of the team, or beside the registry file."""

from __future__ import annotations

import pytest

from mam.adapters.store.files import team_page_file
from mam.adapters.store.root_paths import of_root
from mam.core.team_page import beginning

ID = "2026-11-18-login-fix-ab12"
OTHER = "2026-11-18-other-work-cd34"
PLACE = f"_bmad-output/sessions/{ID}/agent-sessions.md"


def test_s003_19_the_places_in_their_order(tmp_path):
    paths = of_root(str(tmp_path))
    usual = tmp_path / ".hermes" / f"agent-sessions-{ID}.md"
    page = beginning(ID)
    assert team_page_file.write(paths, ID, page) == str(usual)
    assert team_page_file.make_session_folder(paths, ID) == [
        str(tmp_path / "_bmad-output"),
        str(tmp_path / "_bmad-output/sessions"),
        str(tmp_path / f"_bmad-output/sessions/{ID}"),
    ]
    assert team_page_file.make_session_folder(paths, ID) == []
    place = tmp_path / PLACE
    assert team_page_file.write(paths, ID, page) == str(place)
    assert not usual.exists(), "it would not be written any more"
    place.write_text("mine", encoding="utf-8")
    beside = place.with_name("agent-sessions-mam.md")
    assert team_page_file.write(paths, ID, page) == str(beside)
    beside.unlink()
    beside.symlink_to(tmp_path / "elsewhere")
    assert team_page_file.write(paths, ID, page) == str(usual)
    assert beside.is_symlink() and not (tmp_path / "elsewhere").exists()
    assert place.read_text(encoding="utf-8") == "mine"


def test_s003_19_the_page_of_another_team_is_not_replaced(tmp_path):
    paths = of_root(str(tmp_path))
    team_page_file.make_session_folder(paths, ID)
    (tmp_path / PLACE).write_text(beginning(OTHER), encoding="utf-8")
    assert team_page_file.path_of(paths, ID).endswith("agent-sessions-mam.md")


def test_s003_19_only_pages_of_mam_are_removed(tmp_path):
    paths = of_root(str(tmp_path))
    team_page_file.make_session_folder(paths, ID)
    (tmp_path / PLACE).write_text("mine", encoding="utf-8")
    team_page_file.write(paths, ID, beginning(ID))
    team_page_file.remove(paths, ID)
    assert [path.name for path in (tmp_path / PLACE).parent.iterdir()] == ["agent-sessions.md"]


@pytest.mark.parametrize("team_id", ["../x", "a/b", "..", ""])
def test_s003_19_an_id_that_leads_elsewhere_has_no_folder(tmp_path, team_id):
    (tmp_path / "_bmad-output" / "sessions" / "a" / "b").mkdir(parents=True)
    assert "_bmad-output" not in team_page_file.path_of(of_root(str(tmp_path)), team_id)
