"""Who calls: a session by its process or its secret, a person, or unknown; in this order."""

import os
from types import SimpleNamespace

import pytest

from mam.adapters.system import process
from mam.adapters.system.process import Identity, Stat
from mam.app.context import caller as finding
from mam.app.context.caller import find_caller, find_reporter
from mam.core.errors import InvalidSettings
from mam.core.root_state import RootState

BOOT = "this boot"
ME = 900
INIT = (1, 0, 0, 1, 0)
SERVER = (50, 1, 0, 90, 50)
AGENT = (60, 50, 5, 100, 60)


def row(name, pid=60, start=100, *, pane="%1", server=50, boot=BOOT):
    place = {"id": pane, "pid": pid, "pid_start": start, "boot_id": boot, "server_pid": server}
    return {"id": f"s_{name}", "name": name, "status": "running", "pane": place}


class Machine:
    """The processes of a machine as (pid, parent, terminal, start, terminal session), and their groups."""

    def __init__(self, *facts, groups=None):
        self.stats = {
            pid: Stat(pid, parent, tty, start, False, session=session)
            for pid, parent, tty, start, session in (INIT, SERVER, AGENT, *facts)
        }
        self.groups = groups or {}

    def use(self, monkeypatch):
        monkeypatch.setattr(process, "stat", self.stats.get)
        monkeypatch.setattr(process, "boot_id", lambda: BOOT)
        monkeypatch.setattr(process, "control_groups", lambda pid: self.groups.get(pid, b"/"))


def context(rows, environ=None, *, detached="unknown", secrets=None, claimed=(), state=RootState.KNOWN):
    def settings():
        if detached is None:
            raise InvalidSettings("wrong")
        return SimpleNamespace(detached=detached)

    intents = SimpleNamespace(of=lambda session_id: session_id if session_id in claimed else None)
    no_jobs = SimpleNamespace(execute=lambda *_query: [])
    transaction = SimpleNamespace(intents=intents, connection=no_jobs, now=0.0)
    return SimpleNamespace(
        registry=SimpleNamespace(
            running_rows=lambda: rows,
            close=lambda: None,
            peek=lambda read, _default: read(transaction),
        ),
        environ=environ or {},
        settings=settings,
        root=SimpleNamespace(
            is_proven_session=False,
            forget_verdict=lambda: None,
            verdict=lambda: SimpleNamespace(state=state),
        ),
        root_id="r1",
        user_state=SimpleNamespace(
            session_with_secret=lambda _root, file: (secrets or {}).get(file), processes=list
        ),
    )


@pytest.fixture
def who(monkeypatch):
    """Return the name of the caller on a machine with these processes; the caller's pid is 900."""

    def find(*facts, rows=None, groups=None, pid=ME, **environ):
        options = {
            key: environ.pop(key) for key in ("detached", "secrets", "claimed", "state") if key in environ
        }
        Machine(*facts, groups=groups).use(monkeypatch)
        given = context([row("agent")] if rows is None else rows, environ, **options)
        return find_caller(given, pid)

    return find


# A command below the agent, one that the agent has detached, and one of a person's terminal.
INSIDE = (ME, 60, 5, 200, 60)
DETACHED = (ME, 1, 0, 200, ME)
TERMINAL = (ME, 70, 7, 200, 70), (70, 1, 7, 20, 70)


class TestAncestors:
    def test_count_with_and_without_variables(self, who) -> None:
        for environ in ({}, {"MAM_SESSION": "s_agent"}, {"TMUX_PANE": "%1"}, {"MAM_SESSION": "s_other"}):
            assert who(INSIDE, **environ).session_id == "s_agent"

    def test_the_nearest_one_counts(self, who) -> None:
        rows = [row("outer"), row("inner", 65, 150, pane="%2")]
        assert who((ME, 65, 0, 200, 65), (65, 60, 0, 150, 65), rows=rows).session_id == "s_inner"
        assert who((ME, 65, 0, 200, 65), (65, 60, 0, 151, 65), rows=rows).session_id == "s_outer"

    def test_another_process_with_the_pid_or_of_another_boot_is_none(self, who) -> None:
        for rows in ([row("agent", start=99)], [row("agent", boot="the last one")]):
            assert who(INSIDE, rows=rows).session_id is None

    def test_the_rows_of_a_root_that_somebody_else_made_prove_nothing(self, who) -> None:
        assert who(INSIDE, rows=[{"id": 7}], state=RootState.FOREIGN).is_user

    def test_few_processes_are_looked_at_however_many_sessions_there_are(self, monkeypatch) -> None:
        read = []
        Machine(*TERMINAL).use(monkeypatch)
        stat = process.stat
        monkeypatch.setattr(process, "stat", lambda pid: read.append(pid) or stat(pid))
        assert find_caller(context([row(str(n), 1000 + n) for n in range(50)]), ME).is_user
        assert len(read) < 10


WITH_SECRET = {"MAM_LAUNCH": "/f", "MAM_SESSION": "s_agent"}


class TestSecret:
    def test_proves_a_session_in_any_pid_namespace(self, who) -> None:
        caller = who((ME, 2, 0, 200, 0), (2, 1, 0, 199, 0), secrets={"/f": "s_agent"}, **WITH_SECRET)
        assert caller.session_id == "s_agent"

    def test_lets_the_session_change_the_root_from_there(self, monkeypatch) -> None:
        Machine(DETACHED).use(monkeypatch)
        forgotten = []
        for secrets, is_proven in (({"/f": "s_agent"}, True), ({}, False)):
            given = context([row("agent")], WITH_SECRET, secrets=secrets)
            given.root.forget_verdict = lambda: forgotten.append(1)
            find_caller(given, ME)
            assert given.root.is_proven_session is is_proven
        assert forgotten == [1]

    def test_of_a_session_that_does_not_run_proves_nothing(self, who) -> None:
        caller = who(DETACHED, secrets={"/f": "s_gone"}, **WITH_SECRET)
        assert (str(caller.kind), "unset MAM_SESSION MAM_LAUNCH" in caller.hint) == ("unknown", True)

    def test_waits_until_a_new_session_is_recorded(self, monkeypatch) -> None:
        Machine(DETACHED).use(monkeypatch)
        given = context([], WITH_SECRET, secrets={"/f": "s_agent"}, claimed=["s_agent"])
        looks = []

        def running_rows():
            looks.append(1)
            return [row("agent")] if len(looks) > 3 else []

        given.registry.running_rows = running_rows
        assert str(find_reporter(given, ME).kind) == "unknown", "a report does not wait"
        assert len(looks) == 1
        assert find_caller(given, ME).session_id == "s_agent"


class TestClaims:
    def test_of_a_session_that_is_no_ancestor(self, who) -> None:
        for facts in ([DETACHED], TERMINAL):
            caller = who(*facts, MAM_SESSION="s_agent", MAM_ROOT="/r")
            assert str(caller.kind) == "unknown"
            assert caller.hint.endswith("unset MAM_SESSION MAM_ROOT")

    def test_of_the_pane_of_a_running_session(self, who) -> None:
        at = "/tmp/tmux-0/default"
        assert str(who(*TERMINAL, TMUX_PANE="%1", TMUX=f"{at},50,0").kind) == "unknown"
        assert str(who(*TERMINAL, TMUX_PANE="%1").kind) == "unknown"
        assert who(*TERMINAL, TMUX_PANE="%1", TMUX=f"{at},51,0").is_user, "tmux numbers panes by server"
        assert who(*TERMINAL, TMUX_PANE="%2", TMUX=f"{at},50,0").is_user

    @pytest.mark.parametrize("number", ["²", "9" * 5000, "-1", ""])
    def test_of_a_tmux_server_that_is_no_number(self, who, number) -> None:
        """Then any server may have the pane."""
        assert str(who(*TERMINAL, TMUX_PANE="%1", TMUX=f"/tmp/x,{number},0").kind) == "unknown"

    def test_of_a_pane_whose_agent_has_died(self, who) -> None:
        """Its pane may show the shell of a person by now."""
        assert who(*TERMINAL, rows=[row("agent", start=99)], TMUX_PANE="%1").is_user


class TestTerminal:
    def test_of_a_person(self, who) -> None:
        assert who(*TERMINAL).is_user

    def test_of_a_session(self, who) -> None:
        caller = who((ME, 1, 5, 200, 60))
        assert (str(caller.kind), "the terminal of 'agent'" in caller.reason) == ("unknown", True)

    def test_of_an_ancestor_counts_too(self, who) -> None:
        """Agents that a person runs give the commands that they start no terminal."""
        assert who((ME, 80, 0, 200, ME), (80, 1, 8, 150, 80)).is_user
        assert str(who((ME, 80, 0, 200, ME), (80, 1, 5, 150, 60)).kind) == "unknown"

    def test_of_the_reaper_does_not_count(self, who) -> None:
        """A process that collects orphans may run in a person's terminal, and so may all that it collects."""
        reaper, server = (40, 1, 7, 10, 40), (50, 40, 0, 90, 50)
        assert str(who((ME, 40, 0, 200, ME), reaper, server).kind) == "unknown"

    def test_where_the_terminal_session_cannot_be_told(self, who) -> None:
        assert str(who((ME, 1, 5, 200, 0)).kind) == "unknown"
        assert who((ME, 1, 6, 200, 0)).is_user


class TestWithoutTerminal:
    def test_what_a_session_may_have_detached(self, who) -> None:
        caller = who(DETACHED)
        assert (str(caller.kind), 'detached = "user"' in caller.hint) == ("unknown", True)
        assert str(who((ME, 80, 0, 201, 80), (80, 1, 0, 200, 80)).kind) == "unknown"

    def test_nothing_runs(self, who) -> None:
        assert who(DETACHED, rows=[]).is_user
        assert who(DETACHED, rows=[row("agent", boot="the last one")]).is_user

    def test_what_is_older_than_every_session(self, who) -> None:
        """Cron, sshd, a runner of CI, a server for tools."""
        assert who((ME, 80, 0, 200, ME), (80, 1, 0, 99, 80)).is_user

    def test_what_another_control_group_holds(self, who) -> None:
        assert who(DETACHED, groups={ME: b"/user.slice/a.service"}).is_user
        assert str(who(DETACHED, groups={ME: None}).kind) == "unknown"
        assert str(who(DETACHED, groups={60: None}).kind) == "unknown"

    def test_what_init_itself_has_started(self, who) -> None:
        """In a container a server for tools may be process 1."""
        assert who((ME, 80, 0, 201, ME), (80, 1, 0, 200, 0)).is_user

    def test_what_has_no_parent_here(self, who) -> None:
        """`docker exec` starts a process whose parent is outside of the container."""
        assert who((ME, 0, 0, 200, ME)).is_user

    def test_where_the_processes_of_other_users_are_hidden(self, who, monkeypatch) -> None:
        hidden = Machine.use

        def use(machine, patch):
            del machine.stats[1]
            hidden(machine, patch)

        monkeypatch.setattr(Machine, "use", use)
        assert str(who(DETACHED).kind) == "unknown"
        assert who((ME, 70, 0, 200, ME)).is_user, "its parent belongs to root, as with sshd"

    def test_what_the_reaper_of_a_person_has_collected(self, who) -> None:
        """`systemd --user` collects what is detached, and is no ancestor that proves a person."""
        manager, server = (40, 1, 0, 10, 40), (50, 40, 0, 90, 50)
        assert str(who((ME, 40, 0, 200, ME), manager, server).kind) == "unknown"

    def test_what_tmux_itself_runs(self, who) -> None:
        """A key binding with run-shell."""
        assert who((ME, 50, 0, 200, 50)).is_user

    def test_the_setting_decides(self, who) -> None:
        assert who(DETACHED, detached="user").is_user
        assert str(who(DETACHED, detached=None).kind) == "unknown"
        assert str(who(DETACHED, detached="user", MAM_SESSION="s_agent").kind) == "unknown"

    def test_elsewhere_than_on_linux_nobody_looks(self, who, monkeypatch) -> None:
        monkeypatch.setattr(finding.sys, "platform", "darwin")
        assert who(DETACHED).is_user

    def test_a_process_that_has_ended(self, who) -> None:
        assert str(who(pid=12345).kind) == "unknown"


def test_this_process_is_the_user_and_has_its_parent_as_an_ancestor() -> None:
    above = process.ancestors(os.getpid())[0]
    mine = row("mine", above.pid, above.start, boot=above.boot, server=None)
    other = row("other", 1, 1, boot=above.boot, server=None)
    for rows in ([mine, other], [other, mine]):
        assert find_caller(context(rows), os.getpid()).session_id == "s_mine"
    assert find_caller(context([]), os.getpid()).is_user


def test_the_process_of_a_row_runs_inside_none() -> None:
    me = process.identify(os.getpid())
    assert isinstance(me, Identity)
    assert not finding.runs_inside(row("mine", me.pid, me.start, boot=me.boot), os.getpid())
    assert not finding.runs_inside({"id": "s_1", "name": "x", "pane": {}}, os.getpid())
