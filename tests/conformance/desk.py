"""A fleet with a real agent program, a model on loopback, and what a person at the terminal can do.

How a program is started and spoken to is in its `Habits`: one entry per kind, and one set of scenarios
for all of them (`test_life.py`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.launch import KEY, guard
from tests.conformance.model_server import ModelServer
from tests.conformance.programs import PACKAGES, program

import mam
from mam.adapters.tmux.client import Tmux
from mam.app import conversations

VERSION = "MAM_CONFORMANCE_VERSION"


def promptly() -> float:
    """Return how soon a state must be shown: within a second, unless the machine has other work."""
    return 1.0 if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) else 15.0


def wait_for(condition: Callable[[], Any], what: object, timeout: float = 20.0) -> None:
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what() if callable(what) else what}"
        time.sleep(0.02)


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
    # What the row calls its own conversation, and whether it is known before the first message.
    own: str = ""
    # Whether an interrupted turn is still part of the history.
    remembers: bool = True
    # Seconds until it is ready, on a machine with other work.
    ready: float = 60.0
    extra: dict[str, Any] = field(default_factory=dict)


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
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        # It asks the registry for its plugin package at each start; one refusal is enough.
        "npm_config_fetch_retries": "0",
    }


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
        remembers=False,
    ),
    "opencode": Habits(
        environment=_opencode,
        # A command is chosen from a menu, which must have opened.
        pause=0.5,
        interrupt=("Escape", "Escape"),
        clear="/new",
        error_shown="fake error 400",
    ),
}


class Desk:
    """A fleet, a model, and what a person at the terminal can do."""

    def __init__(self, kind: str, fleet: mam.Fleet, model: ModelServer, home: Path, server: str) -> None:
        self.kind, self.fleet, self.model, self.home = kind, fleet, model, home
        self.workspace = Path(fleet.root)
        self.tmux = Tmux(server)
        self.habits = HABITS[kind]

    def create(self, name: str, **options: Any) -> mam.Session:
        args = self.habits.arguments(self.model, self.workspace)
        given = {"name": name, "permissions": self.habits.permissions, "timeout": self.habits.ready} | options
        return self.fleet.create(self.kind, args=[*args, *given.pop("args", [])], **given)

    def say(self, session: mam.Session, text: str, *, is_command: bool = False) -> None:
        """Type into the box as a person does; words are seen to reach the model."""
        before = len(self.model.turns())
        row = self.fleet.get(session.id).row
        self.tmux.paste(row["pane"]["id"], text, mark=session.id, enter=True, pause=self.habits.pause)
        if not is_command:
            wait_for(
                lambda: len(self.model.turns()) > before, lambda: f"a turn for {text!r}: {session.read()}", 30
            )

    def press(self, session: mam.Session, *keys: str) -> None:
        pane = self.fleet.get(session.id).row["pane"]["id"]
        for key in keys:
            self.tmux.keys(pane, [key], mark=session.id)
            if len(keys) > 1:
                time.sleep(0.3)

    def becomes(self, session: mam.Session, activity: str, waiting_for: str | None = None) -> None:
        """Both the quick listing and the thorough status say so, soon."""

        def shown() -> bool:
            (listed,) = [one for one in self.fleet.ls()["sessions"] if one["id"] == session.id]
            both = (listed, session.status())
            return all((one["activity"], one["waiting_for"]) == (activity, waiting_for) for one in both)

        wait_for(
            shown,
            lambda: f"{activity} {waiting_for}: {json.dumps(session.explain(), indent=1)}\n{session.read()}",
            promptly(),
        )

    def rests(self, session: mam.Session) -> None:
        """The turn is over, on the screen and by every other word as well."""

        def is_over() -> bool:
            found = session.explain()
            states = {one["state"] for one in found["evidence"] if one["source"] != "process"}
            return found["activity"] == "idle" and states <= {"idle", "unknown"}

        wait_for(is_over, lambda: f"rest: {json.dumps(session.explain(), indent=1)}\n{session.read()}", 30)
        self.becomes(session, "idle")

    def sees(self, session: mam.Session, source: str, state: str) -> None:
        """One source says so; the others may not have noticed yet."""
        wait_for(lambda: said(session, source) == state, lambda: f"{source} {state}: {session.explain()}")

    def capture(self, session: mam.Session) -> Any:
        return conversations.capture(self.fleet.world, self.fleet.get(session.id).row)

    def own(self, session: mam.Session) -> str | None:
        """Return the id of the session's own conversation, taken in as any changing verb does."""
        return mam_own_id(self.capture(session))

    def kill(self, session: mam.Session) -> None:
        """End the agent as a crash does, and every process of it."""
        row = self.fleet.get(session.id).row
        from mam.adapters.system import process
        from mam.app.sight import identity_of

        identity = identity_of(row)
        assert identity is not None
        for one in process.tree(identity, None):
            process.signal(one, signal.SIGKILL)
        self.becomes(session, "exited")


def mam_own_id(row: Any) -> str | None:
    from mam.core.row import own_id

    return own_id(row)


def said(session: mam.Session, source: str) -> str | None:
    return next((one["state"] for one in session.explain()["evidence"] if one["source"] == source), None)


def version_under_test(kind: str) -> str:
    """Return the version that is asked for, else the one that the facts were seen with."""
    return os.environ.get(VERSION) or PACKAGES[kind].version


@contextmanager
def opened(kind: str, home: Path, server: str, workspace: Path, patch: Any) -> Iterator[Desk]:
    """Give a desk in this home; raises `Unavailable` where the program cannot be had."""
    executable = program(kind, version_under_test(kind))
    habits = HABITS[kind]
    with ModelServer() as model:
        environment = habits.environment(model, home) | guard(model)
        for name, value in {"PATH": f"{executable.parent}:{os.environ['PATH']}", **environment}.items():
            patch.setenv(name, value)
        if habits.trust is not None:
            habits.trust(home, workspace)
        vouch(home, kind)
        with mam.open(str(workspace)) as fleet:
            yield Desk(kind, fleet, model, home, server)


def vouch(home: Path, kind: str) -> None:
    """Let the version under test count as one that was tested: that is what is being found out."""
    version = version_under_test(kind)
    if version != PACKAGES[kind].version:
        config = home / ".config" / "mam" / "config.toml"
        with config.open("a", encoding="utf-8") as file:
            file.write(f'known_versions = ["{kind} {version}"]\n')


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
