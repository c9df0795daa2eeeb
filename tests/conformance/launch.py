"""How each program is started so that it talks to the model server and asks nothing first.

Everything is per launch: arguments, environment, and files in a fresh HOME. An option takes one of these
away, so that the dialog it prevents appears.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.model_server import ModelServer
from tests.conformance.programs import program
from tests.conformance.terminal import HEIGHT, WIDTH, Pane, Terminals

# What shows that a program waits for input, on a screen without a dialog.
READY = {
    "claude": r"^❯\u00a0",
    "codex": r"^› (?!\d\.)",
    # The prompt is there up to 1.5 s before the header; on a loaded machine an Enter in between was lost.
    "gemini": r"Gemini CLI v(?s:.*)Type your message",
    "opencode": r"Ask anything|ctrl\+p commands",
}
EXIT = {"claude": "/exit", "codex": "/quit", "gemini": "/quit", "opencode": "/exit"}
KEY = "sk-ant-test"


@dataclass(slots=True)
class Launch:
    """A command line and its environment, and the questions that it may leave open."""

    home: Path
    folder: Path
    model: ModelServer
    trusted: bool = True
    authenticated: bool = True
    moderated: bool = True
    argv: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: object) -> None:
        """Write a JSON file into the home, unless an earlier launch of this home left one."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(json.dumps(content), encoding="utf-8")


def start(
    kind: str,
    terminals: Terminals,
    folder: Path,
    model: ModelServer,
    *,
    home: Path,
    arguments: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    trusted: bool = True,
    authenticated: bool = True,
    moderated: bool = True,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Pane:
    """Start a program in a pane, and return at once: wait for `READY[kind]`.

    `trusted=False` leaves the folder unknown, `authenticated=False` the key unapproved or the login undone,
    `moderated=False` lets Claude choose its permission mode.
    """
    launch = Launch(home, folder, model, trusted, authenticated, moderated)
    home.mkdir(parents=True, exist_ok=True)
    PREPARE[kind](launch)
    argv = [str(program(kind)), *launch.argv, *arguments]
    base = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        **guard(model),
    }
    return terminals.open(argv, folder, {**base, **launch.environment, **(environment or {})}, size)


def guard(model: ModelServer) -> dict[str, str]:
    """Make the model server the proxy: it refuses every way out, on a machine with a net as well."""
    out = {name: model.url for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    return out | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def prepare_claude(launch: Launch) -> None:
    approved = [KEY] if launch.authenticated else []
    projects = {str(launch.folder): {"hasTrustDialogAccepted": True}} if launch.trusted else {}
    launch.write(
        ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": approved, "rejected": []},
            "projects": projects,
        },
    )
    launch.environment = {
        "ANTHROPIC_BASE_URL": launch.model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    # Without a mode it is auto: a notice stands above the prompt, and tools run unasked.
    launch.argv = ["--permission-mode", "manual"] if launch.moderated else []


def prepare_codex(launch: Launch) -> None:
    launch.environment = {"FAKE_KEY": "fake"}
    launch.argv = ["--no-daemon"]
    if launch.authenticated:
        provider = f'{{name="fake",base_url="{launch.model.url}/v1",wire_api="responses",env_key="FAKE_KEY"}}'
        launch.argv += ["-c", 'model="fake-model"', "-c", 'model_provider="fake"']
        launch.argv += ["-c", f"model_providers.fake={provider}"]
    if launch.trusted:
        launch.argv += ["-c", f'projects={{"{launch.folder}"={{trust_level="trusted"}}}}']


def prepare_gemini(launch: Launch) -> None:
    if launch.authenticated:
        launch.write(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
        launch.environment = {"GEMINI_API_KEY": "test-key"}
    launch.environment["GOOGLE_GEMINI_BASE_URL"] = launch.model.url
    launch.argv = ["--skip-trust"] if launch.trusted else []


def prepare_opencode(launch: Launch) -> None:
    config: dict[str, object] = {"permission": {"bash": "ask"}, "autoupdate": False}
    if launch.authenticated:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "fake",
            "options": {"baseURL": f"{launch.model.url}/v1", "apiKey": "fake"},
            "models": {"fake-model": {"name": "fake-model"}},
        }
        config |= {"provider": {"fake": provider}, "model": "fake/fake-model"}
    launch.environment = {"OPENCODE_CONFIG_CONTENT": json.dumps(config), **lighten_opencode(launch.home)}


def lighten_opencode(home: Path) -> dict[str, str]:
    """Keep opencode from fetching anything, and from what makes a start cost 13 s of a core instead of 6.

    Its list of all models of all providers is replaced by an empty one: the tests bring their own provider.
    Its plugin package counts as installed, as it is wherever opencode was started before.
    """
    folder = home / ".config" / "opencode"
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    wanted = {"dependencies": {"@opencode-ai/plugin": "*"}}
    (folder / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    (folder / "package-lock.json").write_text(json.dumps({"packages": {"": wanted}}), encoding="utf-8")
    models = folder / "no-models.json"
    models.write_text("{}", encoding="utf-8")
    return {
        "OPENCODE_MODELS_PATH": str(models),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        # Where it asks the registry all the same, one refusal is enough.
        "npm_config_fetch_retries": "0",
    }


PREPARE: dict[str, Callable[[Launch], None]] = {
    "claude": prepare_claude,
    "codex": prepare_codex,
    "gemini": prepare_gemini,
    "opencode": prepare_opencode,
}
