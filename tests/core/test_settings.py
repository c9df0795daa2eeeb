"""Settings: what a file may say."""

import pytest

from mam.core.errors import InvalidSettings
from mam.core.settings import Settings


def test_what_is_allowed() -> None:
    settings = Settings()
    settings.take({"tmux_server": "work", "permissions": "ask", "ready_timeout": 5}, "mam.toml")
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
        Settings().take(values, "mam.toml")
