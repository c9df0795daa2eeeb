"""git that mam runs executes nothing that a repository names, whatever is in its settings.

Each attack is also run with plain git, which shows that it would work.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.adapters.git.repository import Repository

from mam.adapters.git import repository_settings, run_git
from mam.adapters.git.run_git import Program
from mam.adapters.git.worktree import Worktrees
from mam.core.errors import MamError, Refused

HOOKS = ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc")


class Attack:
    """A repository, and a program that proves that it ran."""

    def __init__(self, repo: Repository, tmp_path: Path) -> None:
        self.repo = repo
        self.marker = tmp_path / "ran"
        self.program = tmp_path / "evil"
        # It fails: git then goes on without what it would print, and waits for nothing.
        self.program.write_text(f"#!/bin/sh\ntouch {self.marker}\nexit 1\n", encoding="utf-8")
        self.program.chmod(0o755)

    def set(self, key: str, value: str | None = None) -> None:
        self.repo("config", key, str(self.program) if value is None else value)

    def has_run(self) -> bool:
        has_run = self.marker.exists()
        self.marker.unlink(missing_ok=True)
        return has_run


@pytest.fixture
def attack(repo, tmp_path):
    return Attack(repo, tmp_path)


def by_filter(variable):
    def prepare(attack):
        attack.repo.commit(".gitattributes", "* filter=evil\n")
        attack.set(f"filter.evil.{variable}")

    return prepare


def by_included_filter(attack):
    attack.repo.commit(".gitattributes", "* filter=evil\n")
    included = attack.repo.top / "included"
    included.write_text(f'[filter "evil"]\nsmudge = {attack.program}\nclean = {attack.program}\n', "utf-8")
    attack.set("include.path", str(included))


def by_filter_of_a_worktree(attack):
    attack.repo.commit(".gitattributes", "* filter=evil\n")
    attack.set("extensions.worktreeConfig", "true")
    attack.repo("config", "--worktree", "filter.evil.smudge", str(attack.program))


def by_hook(name):
    def prepare(attack):
        attack.repo.hook(attack.program.read_text(encoding="utf-8"), name)

    return prepare


def by_hooks_path(attack):
    folder = attack.repo.top / "elsewhere"
    folder.mkdir()
    attack.program.rename(folder / "post-checkout")
    attack.set("core.hooksPath", str(folder))


def by_file_monitor(attack):
    attack.set("core.fsmonitor")
    attack.set("core.untrackedCache", "true")


def by_attributes(attack):
    """`info/attributes` counts without a commit."""
    (attack.repo.top / ".git" / "info").mkdir(exist_ok=True)
    (attack.repo.top / ".git" / "info" / "attributes").write_text("* filter=evil\n", encoding="utf-8")
    attack.set("filter.evil.smudge")
    attack.set("filter.evil.clean")


def by_diff(attack):
    attack.repo.commit(".gitattributes", "* diff=evil\n")
    attack.set("diff.external")
    attack.set("diff.evil.textconv")
    attack.set("diff.evil.command")


def by_pager_editor_and_alias(attack):
    for key in (
        "core.pager",
        "pager.status",
        "core.editor",
        "sequence.editor",
        "core.askPass",
        "gpg.program",
    ):
        attack.set(key)
    for command in ("status", "worktree", "rev-parse", "branch"):
        attack.set(f"alias.{command}", f"!{attack.program}")


def by_fetch(attack):
    """A partial clone fetches what it lacks, with the program that the address of its remote names."""
    attack.set("extensions.partialClone", "origin")
    attack.set("remote.origin.promisor", "true")
    attack.set("remote.origin.url", f"ext::{attack.program}")
    attack.set("protocol.ext.allow", "always")
    blob = attack.repo("rev-parse", "HEAD:file")
    (attack.repo.top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def by_upload_pack(attack):
    by_fetch(attack)
    attack.set("remote.origin.url", str(attack.repo.top))
    attack.set("remote.origin.uploadpack")


def by_ssh(attack):
    by_fetch(attack)
    attack.set("remote.origin.url", "ssh://localhost/nowhere")
    attack.set("core.sshCommand")


WORKING = {
    "a smudge filter": by_filter("smudge"),
    "a clean filter": by_filter("clean"),
    "a filter process": by_filter("process"),
    "an included filter": by_included_filter,
    "a filter of a worktree": by_filter_of_a_worktree,
    "attributes outside of the tree": by_attributes,
    **{f"the hook {name}": by_hook(name) for name in HOOKS[:3]},
    "a folder of hooks": by_hooks_path,
    "a file monitor": by_file_monitor,
    "a remote of its own kind": by_fetch,
    "a program at the remote": by_upload_pack,
    "a command for ssh": by_ssh,
}
# git runs these with no command that mam uses. They must not begin to run.
IDLE = {
    "drivers of diffs": by_diff,
    "a pager, an editor and aliases": by_pager_editor_and_alias,
    f"the hook {HOOKS[3]}": by_hook(HOOKS[3]),
}


def use_all(trees, repo, path) -> None:
    """Run everything that mam can do with a worktree; an attack may make some of it fail."""
    top = str(repo.top)
    for step in (
        lambda: trees.toplevel(top),
        lambda: trees.main(top),
        lambda: trees.entries(top),
        lambda: trees.branches.names(top),
        lambda: trees.branches.on_remote(top, "main"),
        lambda: trees.has_directory(top, "HEAD", "folder"),
        lambda: trees.add(top, str(path), "x"),
        lambda: trees.sign(str(path), "text"),
        lambda: trees.signature(str(path)),
        # The content must be compared, not only the times.
        lambda: (path / "file").write_text("other\n", encoding="utf-8"),
        lambda: trees.state(str(path)),
        lambda: trees.state(top),
        lambda: trees.remove(top, str(path)),
        lambda: (path / "file").write_text("text\n", encoding="utf-8"),
        lambda: trees.remove(top, str(path)),
        lambda: trees.delete_branch(top, "x", repo.head()),
    ):
        try:
            step()
        except (MamError, OSError):
            continue


def use_plain_git(repo, path) -> None:
    """Run the same commands as a person would."""
    for at, *words in (
        (repo.top, "worktree", "add", "-q", "-b", "plain", str(path)),
        (path, "status"),
        (repo.top, "worktree", "remove", "--force", str(path)),
    ):
        subprocess.run(
            ["git", "-C", str(at), *words], env=repo.env, capture_output=True, check=False, timeout=20
        )
        if at is repo.top and path.is_dir():
            (path / "file").write_text("other\n", encoding="utf-8")


@pytest.mark.promise("P38")
@pytest.mark.parametrize("name", WORKING)
def test_d5_git_runs_nothing_that_a_repository_names(attack, trees, tmp_path, name) -> None:
    WORKING[name](attack)
    attack.marker.unlink(missing_ok=True)
    use_all(trees, attack.repo, tmp_path / "w")
    assert not attack.has_run()
    use_plain_git(attack.repo, tmp_path / "plain")
    assert attack.has_run()


@pytest.mark.parametrize("name", IDLE)
def test_d5_git_runs_nothing_else_either(attack, trees, tmp_path, name) -> None:
    IDLE[name](attack)
    attack.marker.unlink(missing_ok=True)
    use_all(trees, attack.repo, tmp_path / "w")
    assert not attack.has_run()


def test_d5_a_worktree_with_settings_of_its_own(attack, trees, tmp_path) -> None:
    """`git worktree remove` runs a status in the worktree, with the settings of the worktree."""
    repo, path = attack.repo, tmp_path / "w"
    repo.commit(".gitattributes", "* filter=evil\n")
    attack.set("extensions.worktreeConfig", "true")

    def prepare(branch):
        trees.add(str(repo.top), str(path), branch)
        repo("config", "--worktree", "filter.evil.clean", str(attack.program), at=path)
        # A new time lets git compare the content.
        (path / "file").write_text("text\n", encoding="utf-8")
        attack.marker.unlink(missing_ok=True)

    prepare("x")
    trees.remove(str(repo.top), str(path))
    assert not path.exists()
    assert not attack.has_run()
    prepare("y")
    plain = ["git", "-C", str(repo.top), "worktree", "remove", str(path)]
    subprocess.run(plain, env=repo.env, capture_output=True, check=False, timeout=20)
    assert attack.has_run()


def test_d5_a_submodule_with_settings_of_its_own(attack, trees, env, tmp_path) -> None:
    repo = attack.repo
    inner = Repository(tmp_path / "inner", env)
    inner.commit(".gitattributes", "* filter=evil\n")
    inner.commit("file", "text\n")
    repo("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
    repo("commit", "-q", "-m", "sub")
    sub = repo.top / "sub"
    for key in ("filter.evil.clean", "core.fsmonitor"):
        repo("config", key, str(attack.program), at=sub)
    (sub / "file").write_text("other\n", encoding="utf-8")
    attack.marker.unlink(missing_ok=True)
    assert trees.state(str(repo.top)).changes == ("sub",)
    assert not attack.has_run()
    repo("status")
    assert attack.has_run()


def test_changes_in_a_submodule_of_a_submodule_count(repo, env, trees, tmp_path) -> None:
    place = repo.top
    for name in ("one", "two"):
        inner = Repository(tmp_path / name, env)
        inner.commit()
        repo(
            "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub", at=place
        )
        repo("commit", "-q", "-m", "sub", at=place)
        place = place / "sub"
    repo("commit", "-q", "-a", "-m", "newer sub")
    assert trees.state(str(repo.top)).changes == ()
    (place / "new").touch()
    assert trees.state(str(repo.top)).changes == ("sub",)


def test_d5_a_repository_inside_of_a_repository(attack, trees, env, tmp_path) -> None:
    """A clone can hold the files of a bare repository, which git takes for one."""
    bare = attack.repo.top / "folder"
    attack.repo("clone", "-q", "--bare", str(attack.repo.top), str(bare))
    attack.repo("config", "--file", str(bare / "config"), "core.fsmonitor", str(attack.program))
    attack.repo("config", "--file", str(bare / "config"), "core.bare", "false")
    attack.repo("config", "--file", str(bare / "config"), "core.worktree", "..")
    use_all(trees, Repository(bare, env), tmp_path / "w")
    for step in (lambda: trees.state(str(bare)), lambda: trees.state(str(attack.repo.top))):
        try:
            step()
        except MamError:
            continue
    assert not attack.has_run()


def test_d5_a_filter_whose_name_looks_like_an_option_is_refused(attack, trees, tmp_path) -> None:
    attack.set("filter.a=b.smudge")
    with pytest.raises(Refused, match="cannot switch off"):
        trees.add(str(attack.repo.top), str(tmp_path / "w"), "x")
    assert attack.repo.branches() == {"main"}
    assert not attack.has_run()


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("prepare", [by_fetch, by_upload_pack, by_ssh])
def test_d5_a_partial_clone_fetches_nothing(attack, env, tmp_path, monkeypatch, prepare, is_new) -> None:
    """git before 2.45 does not know GIT_NO_LAZY_FETCH; no protocol is allowed there."""
    monkeypatch.setitem(run_git._OWN, "GIT_NO_LAZY_FETCH", str(int(is_new)))
    prepare(attack)
    with pytest.raises(MamError) as caught:
        Worktrees(env).add(str(attack.repo.top), str(tmp_path / "w"), "x")
    assert not attack.has_run()
    assert "fetch it with git yourself" in (caught.value.hint or "")
    assert attack.repo.branches() == {"main"}


def test_without_scopes_every_filter_is_off(repo, env, tmp_path) -> None:
    """git before 2.26 does not tell whose a setting is."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "git"
    old.write_text(
        f'#!/bin/sh\ncase "$*" in *--show-scope*) exit 129;; esac\nexec {real} "$@"\n', encoding="utf-8"
    )
    old.chmod(0o755)
    repo.commit(".gitattributes", "* filter=evil\n")
    repo("config", "filter.evil.smudge", f"touch {tmp_path}/ran; cat")
    trees = Worktrees({**env, "PATH": f"{old.parent}:{env['PATH']}"})
    trees.add(str(repo.top), str(tmp_path / "w"), "x")
    assert (tmp_path / "w" / "file").is_file()
    assert not (tmp_path / "ran").exists()


def test_settings_that_cannot_be_read_stop_git(repo, env, tmp_path) -> None:
    (repo.top / ".git" / "config").write_text("[broken\n", encoding="utf-8")
    with pytest.raises(Refused, match="bad config"):
        Program(env).ask(str(repo.top), "status")


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ([("global", "filter.lfs.smudge", "git-lfs")], []),
        ([("local", "filter.x.smudge", "evil")], ["-c", "filter.x.smudge="]),
        ([("worktree", "filter.x.required", "true")], ["-c", "filter.x.required=false"]),
        (
            [("global", "filter.x.clean", "mine"), ("local", "filter.x.clean", "evil")],
            ["-c", "filter.x.clean=mine"],
        ),
        ([("local", "filter.a.b.process", "evil")], ["-c", "filter.a.b.process="]),
        ([("local", "hook.x.command", "evil")], ["-c", "hook.x.enabled=false"]),
        ([("local", "diff.external", "evil")], ["-c", "diff.external="]),
        ([("local", "diff.x.textconv", "evil")], ["-c", "diff.x.textconv="]),
        ([("local", "diff.renames", "true")], []),
    ],
)
def test_what_is_switched_off(settings, options) -> None:
    assert repository_settings.switched_off(settings) == options
