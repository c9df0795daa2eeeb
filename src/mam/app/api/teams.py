"""The verbs of `fleet.teams`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, changing, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from mam.app.teams.spawn import MemberOptions, SpawnOptions

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Teams(VerbGroup):
    """Several sessions with roles in one window."""

    __slots__ = ()

    @changing
    def up(self, what: str, *, work: str | None = None, **options: Unpack[MemberOptions]) -> Document:
        """Start all roles of a preset or file, or none; `{team, members, permissions, session_file}`.

        Options for every role: agent, permissions, model, env, args, trust, mcp, timeout. `work` is a task
        for the first role.
        """
        from mam.app.teams.team_up_down import up

        return up(self._context, self._caller, what, work=work, **options)

    @changing
    def down(self, team: str | None = None, *, force: bool = False) -> Document:
        """End every member of a team, gracefully; `{team, closed, failed, unfinished, changed}`."""
        from mam.app.teams.team_up_down import down

        return down(self._context, self._caller, team, force=force)

    @reading
    def list(self, *, ended: bool = False) -> Document:
        """Return `{teams, presets}`, each team with its members and their checklists."""
        from mam.app.teams.team_up_down import listing

        return listing(self._context, ended=ended)

    @changing
    def spawn(self, role: str, *, team: str | None = None, **options: Unpack[SpawnOptions]) -> Document:
        """Start an agent in a new pane of the caller's window, and send it its role and its task.

        Options: agent, task, permissions, name, model, prompt, colour, env, args, trust, mcp, timeout.
        `{session, member, team, permissions, dialog, task, identity, receipt, session_file}`. The caller has
        the master's pane; outside of tmux the team has a tmux session of its own. Permissions are skipped
        unless the settings say otherwise. Raises NotReady after three tries, and then leaves nothing behind.
        Raises DialogOpen but keeps the session: its messages are sent once the dialog is answered.
        """
        from mam.app.teams.spawn import spawn

        limit = self._access.child_limit
        return spawn(self._context, self._caller, role, team=team, child_limit=limit, **options)

    @changing
    def close(self, target: str, *, force: bool = False, accept: bool = False) -> Document:
        """End a member of a team whose checklist is complete; `{session, member, changed, note}`.

        It never closes the caller's own pane or a master's. `accept` takes a report as received that nothing
        proves; `force` ignores the checklist.
        """
        from mam.app.teams.close import close

        return close(self._context, self._caller, target, force=force, accept=accept)

    @changing
    def rebalance(self, *, main: str | None = None, team: str | None = None) -> Document:
        """Arrange a team's window, the master `left` or on `top`; `{team, layout, panes, expected, runs}`."""
        from mam.app.teams.rebalance import rebalance

        return rebalance(self._context, self._caller, main=main, team=team)

    @changing
    def register(
        self, role: str, *, agent: str | None = None, name: str | None = None, team: str | None = None
    ) -> Document:
        """Register the agent in the caller's pane, which a person started, and claim its first task.

        `{session, team, member, task, session_file}`
        """
        from mam.app.teams.register import register

        return register(self._context, self._caller, role, agent=agent, name=name, team=team)

    @changing
    def report(
        self, task: str | None = None, *, result: str | None = None, session: str | None = None
    ) -> Document:
        """Report a task as done: notify the spawner, and claim the next task or complete the checklist.

        `{report, receipt, task, next, member}`
        """
        from mam.app.teams.report import report

        return report(self._context, self._caller, task, result=result, session=session)

    def is_member(self, target: str) -> bool:
        """Tell whether a session is a member of a team that is up."""
        from mam.app.teams.close import is_member

        return is_member(self._context, target)
