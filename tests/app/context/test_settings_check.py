"""Settings that are not valid are seen in every verb that looks or changes something, and remove nothing."""

import os

import pytest

import mam
from mam.app.context import settings, settings_check
from mam.app.monitor import retention
from mam.core.errors import InvalidSettings

MISTAKES = ['keep_lgo = "2w"', 'keep_log = "1h"']


@pytest.fixture
def warnings_of(workspace):
    """Return a function that uses a verb as a command of its own does, and returns its warnings."""

    def use(verb):
        warnings: list[str] = []
        with mam.open(str(workspace)) as own:
            own.on_warning(warnings.append)
            verb(own)
        return warnings

    return use


@pytest.fixture
def write(home, fleet):
    """Return a function that writes the user's settings file; a session runs."""
    fleet.sessions.create("sleep", args=["1000"], name="one")

    def write_settings(text: str, *, resident: str = "off") -> None:
        path = home / ".config/mam/config.toml"
        path.write_text(f'resident = "{resident}"\n{text}\n', encoding="utf-8")

    return write_settings


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_verb_warns_once(write, warnings_of, mistake) -> None:
    write(mistake, resident="auto")
    key = mistake.split()[0]
    verbs = {
        "ls": lambda own: own.sessions.ls(),
        "task": lambda own: own.tasks.add("something", role="developer"),
        "backup": lambda own: own.monitor.backup(),
        "stop": lambda own: own.sessions.stop("one", force=True),
    }
    for name, verb in verbs.items():
        (warning,) = warnings_of(verb)
        assert key in warning, name
        assert "starts no agent and no resident" in warning
    write("", resident="off")
    assert [warnings_of(verb) for verb in verbs.values()] == [[], [], [], []]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_nothing_is_removed_with_settings_that_are_not_valid(write, fleet, workspace, mistake) -> None:
    fleet._access.context.registry.note(
        lambda transaction: transaction.connection.execute("UPDATE log SET at=1.0")
    )
    before = len(fleet.sessions.log())
    write(mistake)
    with mam.open(str(workspace)) as own, pytest.raises(InvalidSettings):
        retention.remove_some(own._access.context)
    assert len(fleet.sessions.log()) == before > 0


def test_valid_settings_are_read_once(write, warnings_of, monkeypatch, workspace) -> None:
    write('keep_log = "2w"')
    read: list[str] = []
    load = settings_check.load_settings

    def count(root, *arguments):
        read.append(root)
        return load(root, *arguments)

    monkeypatch.setattr(settings_check, "load_settings", count)
    for _ in range(2):
        warnings_of(lambda own: own.tasks.add("something", role="developer"))
        warnings_of(lambda own: own.sessions.ls())
    assert read == [str(workspace)]
    (workspace / "mam.toml").write_text("keep_log = 0\n", encoding="utf-8")
    os.utime(workspace / "mam.toml")
    warnings_of(lambda own: own.sessions.ls())
    assert len(read) == 2


@pytest.fixture
def resident_in_list(workspace):
    """Return a function that lists as a command of its own does, and returns what is said of the resident."""

    def look() -> str:
        with mam.open(str(workspace)) as own:
            return own.sessions.ls()["resident"]["state"]

    return look


def test_a_listing_knows_the_setting_of_the_resident_from_the_record(
    write, warnings_of, resident_in_list, monkeypatch
) -> None:
    write("", resident="off")
    warnings_of(lambda own: own.tasks.add("something", role="developer"))
    read: list[str] = []
    load = settings.load_settings
    monkeypatch.setattr(settings, "load_settings", lambda *given: read.append("file") or load(*given))
    assert (resident_in_list(), read) == ("off", [])
    write("# another", resident="auto")
    assert (resident_in_list(), read) == ("down", ["file"])


def test_a_record_of_an_older_mam_lacks_the_setting(write, warnings_of, resident_in_list, fleet) -> None:
    write("", resident="off")
    warnings_of(lambda own: own.tasks.add("something", role="developer"))

    def shorten(transaction):
        record = transaction.meta("valid_settings")
        transaction.set_meta("valid_settings", {key: record[key] for key in ("mam", "files")})

    fleet._access.context.registry.note(shorten)
    assert resident_in_list() == "off"


def test_the_warning_of_what_a_root_may_not_set_comes_only_from_who_uses_it(
    fleet, warnings_of, workspace
) -> None:
    fleet.init()
    (workspace / "mam.toml").write_text('notify_command = ["touch"]\n', encoding="utf-8")
    assert warnings_of(lambda own: own.tasks.add("something", role="developer")) == []
