"""One real agent program as data: how it is installed, started and spoken to, and what it shows.

Each file in `programs/` describes one program; its name is the name of the kind. A new program needs a new
file there, and tests of its own only for what it alone has.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM_FILES = Path(__file__).parent / "programs"


@dataclass(frozen=True, slots=True)
class Package:
    """Where `npm` or `pip` has a program, and the name of its command."""

    installer: str
    package: str
    command: str
    version: str
    # The first Python that it runs on, and the first on which it does not; None: it needs none.
    pythons: tuple[tuple[int, int], tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool by the name that the program gives it, and the names of its arguments."""

    name: str
    command: str = ""
    # A command that the program asks about, made of any command.
    asking: str = "{command}"
    text: str = ""
    options: str = ""


@dataclass(frozen=True, slots=True)
class OwnStatus:
    """The files in which a program says what it is doing, and the keys that are kept of them."""

    files: str
    keys: list[str]


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The program's own settings file for an MCP server, and the block of docs/mcp.md that goes there."""

    file: str
    language: str
    word: str
    # What allows the tools without a question.
    allow: Any


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene for recordings: what is played, how the program is started, and the states that are kept."""

    name: str
    # A function of plays.py without its `play_`; None: the first screen that shows the pattern is kept.
    play: str | None = None
    # None: the program is ready.
    pattern: str | None = None
    # None: the name of the scene.
    states: list[str] | None = None
    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    in_repository: bool = False
    trusted: bool = True
    authenticated: bool = True
    moderated: bool = True


@dataclass(frozen=True, slots=True)
class Launch:
    """What a launch adds: words, variables, and files and folders below the home.

    A file or a variable that is a table is written as JSON. `{url}` is the model's address, `{home}` and
    `{folder}` are the directories.
    """

    arguments: list[str] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)

    def joined(self, other: Launch) -> Launch:
        """Return both: tables are merged, texts of files follow each other."""
        files = dict(self.files)
        for name, content in other.files.items():
            earlier = files.get(name, "" if isinstance(content, str) else {})
            files[name] = earlier + content if isinstance(content, str) else merge(earlier, content)
        return Launch(
            [*self.arguments, *other.arguments],
            merge(self.environment, other.environment),
            files,
            [*self.folders, *other.folders],
        )

    def filled(self, **names: object) -> Launch:
        """Return it with the names in braces replaced."""
        parts = (self.arguments, self.environment, self.files, self.folders)
        return Launch(*(fill(part, names) for part in parts))

    def variables(self) -> dict[str, str]:
        return {name: as_text(value) for name, value in self.environment.items()}

    def write(self, home: Path, *, anew: bool) -> None:
        """Make the folders and files; a file that is there is kept unless it is written anew."""
        for name in self.folders:
            (home / name).mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if anew or not path.exists():
                path.write_text(as_text(content), encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program. A pattern is a regular expression for its screen; keys have the names of tmux."""

    name: str
    install: Package
    # What it takes part in besides the life that every program goes through (test_life.py).
    scenarios: list[str] = field(default_factory=list)
    # The scenarios, and the tests of a life, that only `./dev test --all` has: they take long with it.
    long: list[str] = field(default_factory=list)

    # What shows that it waits for input, on a screen without a dialog; and the seconds until then, on a
    # machine with other work.
    ready: str
    ready_timeout: float = 60.0
    # What it shows after a 400, and how often a 400 has to be answered before it gives up.
    error: str
    error_requests: int = 1
    # Patterns of recordings.
    permission: str | None = None
    question: str | None = None
    retry: str | None = None
    queued: str | None = None

    # The seconds between a paste and its Enter.
    pause: float = 0.0
    interrupt: list[str] = field(default_factory=lambda: ["Escape"])
    refuse: list[str] = field(default_factory=lambda: ["Escape"])
    erase: list[str] = field(default_factory=lambda: ["C-u"])
    exit: str = "/exit"
    clear: str = "/clear"
    # Pressed where a fresh conversation has to be confirmed.
    confirm_clear: str | None = None
    # What opens a menu: keys, else a command.
    menu_keys: list[str] = field(default_factory=list)
    menu: str = "/model"

    # The permissions that make it ask before a tool runs.
    permissions: str = "ask"
    asks_questions: bool = True
    # It asks about a folder that is a repository, and about no other.
    asks_in_repositories: bool = False
    # Its record speaks of every turn that ended.
    is_recorded: bool = True
    # The prompt of an interrupted turn is in its box again.
    restores_prompt: bool = False

    # Words that take up the last conversation, and words that give every permission.
    resume: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)

    # Parts of a launch: `always`, `authenticated`, `trusted`, `moderated`; `by_mam`, or `bare` and, where it
    # is trusted in another way then, `bare_trusted`.
    launch: dict[str, Launch] = field(default_factory=dict)
    # Tools that are other ones than its way of speaking to a model says: `shell`, `question`.
    tools: dict[str, Tool] = field(default_factory=dict)
    own_status: OwnStatus | None = None
    mcp_settings: McpSettings | None = None
    scenes: list[Scene] = field(default_factory=list)

    @property
    def asks_about_folders(self) -> bool:
        return self.asks_in_repositories or "trusted" in self.launch

    @property
    def states(self) -> set[str]:
        """The recorded states that not every program has."""
        found = {state for scene in self.scenes for state in scene.states or [scene.name]}
        return found | ({"question", "question-refused"} if self.question else set())

    def launch_by_mam(self, url: str, home: Path, folder: Path) -> Launch:
        """Return what a launch by mam adds; whether the folder is trusted is written by `trust`."""
        return self._parts("always", "authenticated", "by_mam").filled(url=url, home=home, folder=folder)

    def launch_bare(
        self, url: str, home: Path, folder: Path, *, trusted: bool, authenticated: bool, moderated: bool
    ) -> Launch:
        """Return what a launch without mam adds."""
        wanted = {
            "authenticated": authenticated,
            "bare_trusted" if "bare_trusted" in self.launch else "trusted": trusted,
            "moderated": moderated,
        }
        parts = self._parts("bare", "always", *(name for name, is_wanted in wanted.items() if is_wanted))
        return parts.filled(url=url, home=home, folder=folder)

    def trust(self, home: Path, *folders: Path) -> None:
        """Write the files by which it trusts these folders and no others."""
        known, trusted = self._parts("always", "authenticated"), self._parts("trusted")
        found = Launch(files={name: known.files.get(name, {}) for name in trusted.files})
        for folder in folders:
            found = found.joined(trusted.filled(folder=folder))
        found.write(home, anew=True)

    def distrust(self, home: Path, folder: Path) -> None:
        """Make the folder one about which it asks."""
        self.trust(home)
        if self.asks_in_repositories:
            make_repository(folder)

    def _parts(self, *names: str) -> Launch:
        found = Launch()
        for name in names:
            found = found.joined(self.launch.get(name, Launch()))
        return found


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)


def merge(one: Any, other: Any) -> Any:
    """Return the second value; of two tables the keys of both."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return other
    return one | {key: merge(one.get(key), value) for key, value in other.items()}


def fill(value: Any, names: dict[str, object]) -> Any:
    """Return a value with the names in braces replaced, at any depth, in keys as well."""
    if isinstance(value, dict):
        return {fill(key, names): fill(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, names) for inner in value]
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", str(text))
    return value


def as_text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def load(path: Path) -> Program:
    """Read the file of one program; a key that no program has is an error."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    install = data.pop("install")
    pythons = tuple(map(tuple, install.pop("pythons", ()))) or None
    tables: dict[str, Any] = {
        "install": Package(installer=install.pop("with"), pythons=pythons, **install),  # type: ignore[arg-type]
        "launch": {name: Launch(**part) for name, part in data.pop("launch", {}).items()},
        "tools": {name: Tool(**tool) for name, tool in data.pop("tools", {}).items()},
        "scenes": [Scene(**scene) for scene in data.pop("scenes", [])],
    }
    for name, table in (("own_status", OwnStatus), ("mcp_settings", McpSettings)):
        if name in data:
            tables[name] = table(**data.pop(name))
    return Program(name=path.stem, **tables, **data)


def load_all(folder: Path = PROGRAM_FILES) -> dict[str, Program]:
    """Return every program by its name, those of npm first."""
    found: Iterable[Program] = map(load, folder.glob("*.toml"))
    return {one.name: one for one in sorted(found, key=lambda one: (one.install.installer, one.name))}


PROGRAMS = load_all()


def taking_part(scenario: str) -> tuple[str, ...]:
    """Return the names of the programs that take part in a scenario."""
    return tuple(name for name, program in PROGRAMS.items() if scenario in program.scenarios)
