"""Settings: which values a settings file may hold."""

import pytest

from mam.core.errors import InvalidSettings
from mam.core.settings import Settings


def test_what_is_allowed() -> None:
    settings = Settings()
    settings.apply({"tmux_server": "work", "permissions": "ask", "ready_timeout": 5}, "mam.toml")
    assert (settings.tmux_server, settings.permissions, settings.ready_timeout) == ("work", "ask", 5.0)


@pytest.mark.parametrize(
    "values",
    [
        {"tmux_servr": "x"},
        {"tmux_server": 3},
        {"tmux_server": "#(x)"},
        {"permissions": "all"},
        {"ready_timeout": True},
    ],
)
def test_what_is_not(values) -> None:
    with pytest.raises(InvalidSettings, match=r"mam\.toml"):
        Settings().apply(values, "mam.toml")


def test_what_one_kind_alone_is_told() -> None:
    settings = Settings()
    assert settings.of_kind("codex") == settings.of_kind("claude") == {}
    settings.apply({"codex": {"bypass_hook_trust": True}}, "here")
    assert settings.of_kind("codex") == {"bypass_hook_trust": True}
    assert settings.of_kind("claude") == {}


@pytest.mark.parametrize(
    "values",
    [
        {"codex": True},
        {"codex": {"bypass_hook_trust": "yes"}},
        {"codex": {"something": True}},
        {"resident": "on"},
        {"ready_timeout": float("nan")},
        {"ready_timeout": float("inf")},
        {"ready_timeout": 10**401},
        {"notify_desktop": 1},
        {"notify_command": "xmessage"},
        {"notify_command": [""]},
        {"known_versions": ["claude"]},
        {"known_versions": "claude 1"},
        {"messages": "some"},
        {"messages": ["a - b"]},
        {"messages": ["a -> b -> c"]},
        {"messages": [" -> b"]},
        {"messages": [1]},
        {"answers": "nobody"},
        {"safe_roots": "/srv"},
        {"safe_roots": ["srv"]},
        {"safe_roots": ["~/srv"]},
        {"safe_roots": ["/srv\0"]},
        {"safe_roots": [1]},
    ],
)
def test_what_else_is_not(values) -> None:
    with pytest.raises(InvalidSettings):
        Settings().apply(values, "here")


@pytest.mark.parametrize(
    "values",
    [
        {"permissions": "skip"},
        {"permissions": "auto"},
        {"permissions": "default"},
        {"known_versions": ["claude 9"]},
        {"notify_command": ["rm"]},
        {"judge_command": ["rm"]},
        {"codex": {"bypass_hook_trust": True}},
        {"safe_roots": ["/srv/app", "/srv/teams/*"]},
    ],
)
def test_what_the_file_of_a_root_cannot_set(values) -> None:
    assert Settings().apply(values, "config.toml") == []
    settings = Settings()
    assert settings.apply({**values, "resident": "off"}, "mam.toml", of_root=True) == list(values)
    for key in values:
        assert getattr(settings, key) == getattr(Settings(), key)
    assert settings.resident == "off"
    assert Settings().apply({"permissions": "ask", "resident": "off"}, "mam.toml", of_root=True) == []


def test_an_unknown_key_of_a_root_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="there is no setting 'brokers'"):
        Settings().apply({"brokers": 1}, "mam.toml", of_root=True)


def test_grants_to_agents_stand_in_the_users_own_file_only() -> None:
    settings = Settings()
    settings.apply({"mcp": {"message": "all", "allow": ["kill"]}}, "config.toml")
    assert settings.mcp == {"message": "all", "stop": "descendants", "allow": ("kill",)}
    settings = Settings()
    assert settings.apply({"mcp": {"message": "all"}}, "mam.toml", of_root=True) == ["mcp"]
    assert settings.mcp["message"] == "descendants"


@pytest.mark.parametrize(
    "table", [1, {"message": "some"}, {"allow": "kill"}, {"allow": ["rm"]}, {"allow": [["kill"]]}, {"x": 1}]
)
def test_grants_are_checked(table) -> None:
    with pytest.raises(InvalidSettings):
        Settings().apply({"mcp": table}, "config.toml")


def test_who_may_write_and_answer() -> None:
    settings = Settings()
    assert (settings.messages, settings.answers) == ("all", "parent")
    settings.apply({"messages": ["reviewer -> developer", "* -> lead"], "answers": "user"}, "here")
    assert settings.messages == (("reviewer", "developer"), ("*", "lead"))
    settings.apply({"messages": "family"}, "here")
    assert (settings.messages, settings.answers) == ("family", "user")
    assert settings.apply({"messages": "all", "answers": "all"}, "mam.toml", of_root=True) == [
        "messages",
        "answers",
    ]
    assert (settings.messages, settings.answers) == ("family", "user")


@pytest.mark.parametrize(
    ("value", "seconds"), [("2w", 14 * 86400.0), (30, 30 * 86400.0), (0, None), ("forever", None)]
)
def test_e7_how_long_something_is_kept(value, seconds) -> None:
    settings = Settings()
    settings.apply({"keep_log": value}, "config.toml")
    assert settings.keep_log == seconds


@pytest.mark.parametrize("value", ["soon", True, -1, "1h", 0.5, [90]])
def test_e7_what_is_no_time_to_keep(value) -> None:
    with pytest.raises(InvalidSettings, match="keep_jobs"):
        Settings().apply({"keep_jobs": value}, "config.toml")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("90", 'the unit is missing: write "90d", or 90 without quotes, which is days'),
        (" 100000 ", 'the unit is missing: write "100000d", or 100000 without quotes, which is days'),
        ("0", 'write 0 without quotes, or "forever", to keep everything'),
        ("00", 'write 0 without quotes, or "forever", to keep everything'),
        ("12h", "it must be at least a day"),
        (0.5, "it must be at least a day"),
    ],
)
def test_what_is_wrong_with_a_time_to_keep_is_said(value, said) -> None:
    with pytest.raises(InvalidSettings) as caught:
        Settings().apply({"keep_log": value}, "config.toml")
    assert caught.value.message == f"config.toml: 'keep_log' cannot be {value!r}: {said}"


def test_e7_a_root_keeps_longer_and_never_shorter() -> None:
    settings = Settings()
    assert settings.apply({"keep_jobs": "2d", "keep_log": "200d"}, "mam.toml", of_root=True) == ["keep_jobs"]
    assert (settings.keep_jobs, settings.keep_log) == (90 * 86400.0, 200 * 86400.0)
