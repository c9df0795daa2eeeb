"""How each real program is started without questions, and how a person speaks to it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.launch import KEY, lighten_opencode
from tests.conformance.model_server import ModelServer
from tests.conformance.replies import Call, Question, Reply, Shell


@dataclass
class Habits:
    """One program: how it is started without questions, and how a person speaks to it."""

    # (model, home) -> environment that points it at the model and keeps it from asking anything first
    environment: Callable[[ModelServer, Path], dict[str, str]]
    # (model, folder) -> arguments after `--`
    arguments: Callable[[ModelServer, Path], list[str]] = lambda model, folder: []
    # (home, folder): make the folder one that the program trusts; None: it never asks
    trust: Callable[[Path, Path], None] | None = None
    # (home, folder): make the folder one about which it asks
    distrust: Callable[[Path, Path], None] | None = None
    permissions: str = "ask"
    pause: float = 0.0
    interrupt: tuple[str, ...] = ("Escape",)
    refuse: tuple[str, ...] = ("Escape",)
    allow: tuple[str, ...] = ("Enter",)
    clear: str = "/clear"
    asks_questions: bool = True
    # How often a 400 has to be answered before the program gives up, and what it shows then.
    error_requests: int = 1
    error_shown: str = "400"
    # Seconds until it is ready, on a machine with other work.
    ready: float = 60.0
    # Whether its record speaks of every turn that ended.
    is_recorded: bool = True
    # Pressed where a fresh conversation has to be confirmed.
    confirm_clear: str | None = None
    # A model that speaks of the program's own tools.
    model: type[ModelServer] = ModelServer


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def _claude(model: ModelServer, home: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _claude_knows(home: Path, *folders: Path) -> None:
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
        "projects": {str(folder): {"hasTrustDialogAccepted": True} for folder in folders},
    }
    (home / ".claude.json").write_text(json.dumps(known), encoding="utf-8")


def _codex(model: ModelServer, folder: Path) -> list[str]:
    provider = f'{{name="fake",base_url="{model.url}/v1",wire_api="responses",env_key="FAKE_KEY"}}'
    settings = ('model="fake-model"', 'model_provider="fake"', f"model_providers.fake={provider}")
    return [word for one in settings for word in ("-c", one)]


def _gemini(model: ModelServer, home: Path) -> dict[str, str]:
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}', encoding="utf-8")
    return {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": model.url}


def _gemini_trusts(home: Path, *folders: Path) -> None:
    known = {str(folder): "TRUST_FOLDER" for folder in folders}
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps(known), encoding="utf-8")


def _opencode(model: ModelServer, home: Path) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "fake",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "fake"},
        "models": {"fake-model": {"name": "fake-model"}},
    }
    config = {"autoupdate": False, "provider": {"fake": provider}, "model": "fake/fake-model"}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), **lighten_opencode(home)}


def _hermes(model: ModelServer, home: Path) -> dict[str, str]:
    folder = home / ".hermes"
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(
        f"model:\n  default: fake-model\n  provider: custom\n  base_url: {model.url}/v1\n  api_key: fake\n"
        # Its own updates and downloads lead nowhere here, and each costs a start some seconds.
        "security:\n  tirith_enabled: false\n  allow_lazy_installs: false\n",
        encoding="utf-8",
    )
    return {}


class HermesModel(ModelServer):
    """Replies in the words of Hermes: it asks only about commands that it finds dangerous."""

    def answer(self, *replies: Reply) -> None:
        super().answer(*map(_as_hermes, replies))


def _as_hermes(reply: Reply) -> Reply:
    if isinstance(reply, Shell):
        return Call(
            "terminal", {"command": f"rm -rf ./gone; {reply.command}" if reply.asks else reply.command}
        )
    if isinstance(reply, Question):
        return Call("clarify", {"question": reply.text, "choices": list(reply.options)})
    return reply


HABITS: dict[str, Habits] = {
    "claude": Habits(
        environment=_claude,
        trust=_claude_knows,
        distrust=lambda home, folder: _claude_knows(home),
        error_requests=6,
        error_shown="API Error: 400",
    ),
    "codex": Habits(
        environment=lambda model, home: {"FAKE_KEY": "fake"},
        arguments=_codex,
        # It asks only in a repository.
        distrust=lambda home, folder: make_repository(folder),
        pause=0.1,
        # In plan mode alone: test_codex.py.
        asks_questions=False,
        error_shown="fake error 400",
    ),
    "gemini": Habits(
        environment=_gemini,
        trust=_gemini_trusts,
        distrust=lambda home, folder: _gemini_trusts(home),
        # On a loaded machine it takes a paste in late, and the Enter must come after that.
        pause=1.0,
        error_shown="fake error 400",
    ),
    "opencode": Habits(
        environment=_opencode,
        # A command is chosen from a menu, which must have opened.
        pause=0.5,
        interrupt=("Escape", "Escape"),
        clear="/new",
        # Its plugin's word was seen alone, without one of the record, half a minute after a turn.
        is_recorded=False,
        error_shown="fake error 400",
    ),
    "hermes": Habits(
        environment=_hermes,
        permissions="default",
        interrupt=("C-c",),
        refuse=("C-c",),
        allow=("1",),
        ready=90.0,
        error_requests=4,
        confirm_clear="1",
        model=HermesModel,
    ),
}
