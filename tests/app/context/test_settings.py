"""The user's settings file is read only if nobody else could have written it."""

from __future__ import annotations

import os

import pytest
from tests.other_user import STRANGER, needs_root

from mam.adapters.system import owners
from mam.app.context.context import open_context
from mam.app.context.settings import load_settings, load_user_settings
from mam.core.errors import InvalidSettings, RootUnsafe


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "home" / ".config" / "mam" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('safe_roots = ["/srv/*"]\nready_timeout = 5\n', encoding="utf-8")
    return file


@pytest.fixture
def environ(config):
    return {"HOME": str(config.parents[2])}


def test_the_file_of_a_root_overrides_the_users(config, environ, tmp_path):
    (tmp_path / "mam.toml").write_text("ready_timeout = 7\n", encoding="utf-8")
    assert load_settings(str(tmp_path), environ, pytest.fail).ready_timeout == 7
    assert load_user_settings(environ).ready_timeout == 5
    assert load_settings(str(tmp_path), environ, pytest.fail).safe_roots == ("/srv/*",)


def test_a_file_that_everybody_may_write(config, environ, tmp_path):
    config.chmod(0o666)
    for load in (
        lambda: load_user_settings(environ),
        lambda: load_settings(str(tmp_path), environ, pytest.fail),
    ):
        with pytest.raises(InvalidSettings, match="every user can write to") as caught:
            load()
        assert caught.value.hint == f"chmod go-w {config}"


def test_a_file_that_a_group_may_write(config, environ, monkeypatch):
    config.chmod(0o664)
    key = (config.stat().st_gid, os.geteuid())
    monkeypatch.setattr(owners, "_others", {key: []})
    assert load_user_settings(environ).ready_timeout == 5
    monkeypatch.setattr(owners, "_others", {key: ["bob"]})
    with pytest.raises(InvalidSettings, match="bob"):
        load_user_settings(environ)


@needs_root
def test_a_file_of_another_user(config, environ):
    os.chown(config, STRANGER, STRANGER)
    with pytest.raises(InvalidSettings, match=f"belongs to user {STRANGER}") as caught:
        load_user_settings(environ)
    assert caught.value.hint == f"sudo chown {os.geteuid()} {config}"


@needs_root
def test_a_file_of_the_root_that_another_user_wrote_is_not_read(home, tmp_path):
    (tmp_path / "mam.toml").write_text("this is no TOML", encoding="utf-8")
    os.chown(tmp_path / "mam.toml", STRANGER, STRANGER)
    context = open_context(workspace=str(tmp_path))
    for read in (context.settings, context.root.verdict, context.root.check):
        with pytest.raises(RootUnsafe, match=r"mam\.toml belongs to"):
            read()
    context.close()
