"""The cases of the crash sweep for tasks, teams, copies of the state, and a restore from one."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from tests.app.team_desk import said
from tests.faults.machine import KEEPER, NEXT_VERBS
from tests.faults.sweep import Case
from tests.waiting import send_and_wait, wait_for

import mam
from mam.adapters.store.files.team_page_file import path_of
from mam.adapters.store.tables import messages, teams
from mam.app.messages.delivery import deliver_all
from mam.app.roots.restore_source import open_source
from mam.core.errors import Refused, RootMissing

TWO = "name: two\nroles:\n  - dev\n  - qa\n"


def state_folder() -> str:
    """Return the folder of the user state."""
    return os.environ["MAM_STATE_HOME"]


def check_pages(fleet) -> None:
    """I9: the next task brings every page up to date, and no unfinished page is left."""
    fleet.tasks.add("the next", role="dev")
    for folder in (Path(fleet.registry_file).parent, Path(fleet.root)):
        left = [path.name for path in folder.rglob("*.md.tmp")]
        assert not left, f"unfinished pages: {left}"


class TaskClaim(Case):
    """A task of a team is claimed: by one, once, and the team's page says what is recorded."""

    needs_no_agent = True
    verb = "task-claim"
    allowed = ({"dev": "stopped"},)

    def prepare(self) -> None:
        machine = self.machine
        machine.clear()
        assert not machine.run("spawn")["error"]
        with mam.open(str(machine.root)) as fleet:
            fleet.sessions.stop("dev", force=True)
            fleet.tasks.add("the second", role="dev")
        machine.begin_conversations()
        machine.save()

    def look(self, statuses: dict[str, str]) -> None:
        with mam.open(str(self.machine.root)) as fleet:
            found = next(one for one in fleet.tasks.list()["tasks"] if one["id"] == "TASK-002")
            is_claimed = found["claimed_by"] == "user"
            assert is_claimed == (found["status"] == "in-progress")
            assert is_claimed or not self.is_acknowledged, "I1: acknowledged, and nobody has the task"
            assert fleet.tasks.claim("TASK-002")["changed"] is not is_claimed
            claims = [one for one in fleet.sessions.log() if one["verb"] == "task claim"]
            assert sum("TASK-002" in json.dumps(one) for one in claims) == 1, claims
            (team,) = fleet.teams.list()["teams"]
            page = Path(path_of(fleet._access.context.paths, team["id"])).read_text(encoding="utf-8")
            assert "TASK-002" in page
            assert any("TASK-002" in line and "in-progress" in line for line in page.splitlines()), page
            check_pages(fleet)


class TeamUp(Case):
    """A team of two is started: each member is whole or gone, and what was acknowledged is all of them."""

    verb = "team-up"
    agent_reports = True
    allowed = (
        {"other": "stopped"},
        {"other": "stopped", "dev": "running"},
        {"other": "stopped", "dev": "running", "qa": "running"},
    )
    # The team is taken down again. A member that could not be ended goes on.
    allowed_with_error = ({"other": "stopped", "qa": "running"},)

    def check_after(self, n: int) -> dict[str, str]:
        """A member that was ended and could not be recorded is found by the next pass of the monitor."""
        if not self.has_failed:
            return super().check_after(n)
        self.machine.run_next(NEXT_VERBS[n % len(NEXT_VERBS)], self.is_edited, is_after_loss=True)
        with mam.open(str(self.machine.root)) as fleet:
            self._record_deaths(fleet)
        return {name: status for name, status in self.check().items() if status != "terminated"}

    def prepare(self) -> None:
        super().prepare()
        (self.machine.place / "two.yaml").write_text(TWO, encoding="utf-8")

    def look(self, statuses: dict[str, str]) -> None:
        started = sorted(statuses.keys() - {"other"})
        with mam.open(str(self.machine.root)) as fleet:
            self.machine.until(lambda: self._is_settled(fleet), "the onboarding of a member stays open")
            up = fleet.teams.list()["teams"]
            members = {one["session"]: one for team in up for one in team["members"]}
            rows = {one.name: one.row for one in fleet.sessions.list()}
            # A member that has died stays one, and may be resumed.
            members = {name: one for name, one in members.items() if rows[name]["status"] == "running"}
            assert sorted(members) == started, f"members {sorted(members)}, sessions {started}"
            panes = {pane.mark: pane for pane in self.machine.tmux.panes().panes if not pane.dead}
            for name in started:
                assert (members[name]["state"], rows[name]["status"]) == ("active", "running"), members[name]
                assert members[name]["pane"] == panes[rows[name]["id"]].id
                heard = [text for text in said(fleet, name) if "role" in text]
                assert len(heard) <= 1, heard
            live = {mark for mark in panes if mark and mark != KEEPER}
            assert live == {rows[name]["id"] for name in started}, "a pane that is no member"
            check_pages(fleet)

    @staticmethod
    def _is_settled(fleet) -> bool:
        fleet._access.begin()
        deliver_all(fleet._access.context)
        registry = fleet._access.context.registry
        running = [one for one in fleet.sessions.list() if one.row["status"] == "running"]
        held = [one for session in running for one in fleet.messages.inbox(session.id)]
        return not registry.peek(teams.starting, []) and not any(one["state"] == "held" for one in held)


class Backup(Case):
    """A copy is made, and the one before is compressed: each is whole, and none is lost."""

    needs_no_agent = True
    verb = again = "backup"
    allowed = ({"other": "stopped"},)
    goal = allowed[-1]

    def prepare(self) -> None:
        self.machine.clear()
        self._stopped("other")
        assert not self.machine.run("backup")["error"]
        self.machine.save()

    def begin(self) -> None:
        super().begin()
        self.former = self._copies()
        assert self.former

    def look(self, statuses: dict[str, str]) -> None:
        copies = self._copies()
        assert self.former.items() <= copies.items(), f"a copy was lost: {self.former} of {copies}"
        assert len(copies) > len(self.former) or not self.is_acknowledged, "I1: acknowledged, and no copy"

    def _copies(self) -> dict[str, list[str]]:
        with mam.open(str(self.machine.root)) as fleet:
            return {one["made_at"]: sessions_of(one["path"]) for one in fleet.monitor.backups()}


def sessions_of(path: str) -> list[str]:
    """Return the names of the sessions in a copy; it has to be whole."""
    with open_source(path, state_folder()) as source:
        return [name for (name,) in source.connection.execute("SELECT name FROM sessions ORDER BY name")]


class BackupFile(Case):
    """The state is copied into a file: it is whole, or it is not there."""

    needs_no_agent = True
    verb = "backup-file"
    allowed = ({"other": "stopped"},)

    @property
    def file(self) -> Path:
        """Where the copy goes."""
        return self.machine.root / "copy.db"

    def look(self, statuses: dict[str, str]) -> None:
        if self.file.exists():
            assert sessions_of(str(self.file)) == ["other"]
        else:
            assert not self.is_acknowledged, "I1: acknowledged, and no copy"
        with mam.open(str(self.machine.root)) as fleet:
            fleet.monitor.backup_to(str(self.file), force=True)
        assert sessions_of(str(self.file)) == ["other"]


class BackupOverFile(BackupFile):
    """An older copy in a file is replaced: the file is the old one or the new one."""

    verb = "backup-over-file"
    allowed = ({"one": "stopped", "other": "stopped"},)

    def prepare(self) -> None:
        self.machine.clear()
        self._stopped("other")
        assert not self.machine.run("backup-file")["error"]
        self._stopped("one")
        self.machine.save()

    def look(self, statuses: dict[str, str]) -> None:
        names = sessions_of(str(self.file))
        assert names in (["other"], ["one", "other"]), names
        assert names != ["other"] or not self.is_acknowledged, "I1: acknowledged, and an older copy"


class Restore(Case):
    """The state folder is lost: the same session, its pane, and the words of a copy, typed once.

    The agent lives on through all cases. In the copy a message is held; the agent got it afterwards.
    """

    verb = recovery = "restore"
    allowed = ({"one": "running"},)
    WORDS = ("before the copy", "held in the copy")

    def prepare(self) -> None:
        machine = self.machine
        machine.clear()
        assert not machine.run("create")["error"]
        with mam.open(str(machine.root)) as fleet:
            session = fleet.sessions.get("one")
            wait_for(session, "idle")
            send_and_wait(fleet, "one", self.WORDS[0])
            pane = fleet.sessions.get("one").row["pane"]["id"]
            machine.tmux_words("send-keys", "-t", pane, "-l", "a draft")
            machine.until(lambda: "a draft" in fleet.sessions.read("one"), "there is no draft")
            assert fleet.messages.send("one", self.WORDS[1], timeout=0)["state"] == "held"
            fleet.monitor.backup()
            machine.tmux_words("send-keys", "-t", pane, *["BSpace"] * len("a draft"))

            def is_heard() -> bool:
                deliver_all(fleet._access.context)
                return said(fleet, "one").count(self.WORDS[1]) == 1

            machine.until(is_heard, "the held message does not arrive")
            wait_for(session, "idle")
            self.id = session.id
        shutil.rmtree(machine.root / ".mam")
        machine.save()

    def begin(self) -> None:
        """Lose the state again; the agent in its pane goes on."""
        self.before = {}
        if not any(pane.mark == self.id and not pane.dead for pane in self.machine.tmux.panes().panes):
            self.prepare()
        self.machine.restore_files()

    def check_after(self, n: int) -> dict[str, str]:
        """Run the verb that comes after a fault, which may find no state, and restore once more."""
        machine, is_missing = self.machine, False
        with suppress(RootMissing):
            is_missing = True
            with mam.open(str(machine.root)) as fleet:
                fleet.sessions.log()
                NEXT_VERBS[n % len(NEXT_VERBS)](fleet, {"one": "running"})
            is_missing = False
        assert not (is_missing and self.is_acknowledged), "I1: acknowledged, and there is no state"
        with mam.open(str(machine.root)) as fleet:
            try:
                fleet.restore()
            except Refused as error:
                assert "sound" in error.message, error
        return self.check()

    def check_after_loss(self, n: int) -> None:
        """Check as after a death: here the machine is lost, and the agent in its pane is not."""
        statuses = self.check_after(n)
        assert statuses == self.allowed[-1]
        self.look(statuses)

    def look(self, statuses: dict[str, str]) -> None:
        with mam.open(str(self.machine.root)) as fleet:
            deliver_all(fleet._access.context)
            assert fleet.sessions.get("one").id == self.id
            states = {one["text"]: one["state"] for one in fleet.messages.inbox("one")}
            open_words = fleet._access.context.registry.peek(messages.open_of, [])
            heard = [text for text in said(fleet, "one") if text in self.WORDS]
        assert not open_words, open_words
        assert sorted(heard) == sorted(self.WORDS), heard
        assert set(states.values()) <= {"submitted"}, states


CASES = (TaskClaim, TeamUp, Backup, BackupFile, BackupOverFile, Restore)
