"""The verbs of `fleet.teams`."""

from __future__ import annotations

from mam.app.api.access import Group, changing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from mam.app.teams.spawn import MemberOptions, SpawnOptions

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]


class Teams(Group):
    """Several sessions with roles in one window."""

    __slots__ = ()

    @changing
    def up(self, what: str, *, work: str | None = None, **options: Unpack[MemberOptions]) -> Document:
        """Start every role of a preset or file, all or none; `{team, members, permissions, session_file}`.

        Options for every role: agent, permissions, model, env, args, trust, mcp, timeout. `work` is a task
        for the first role.
        """
        from mam.app.teams.team import up

        return up(self._context, self._caller, what, work=work, **options)

    @changing
    def down(self, team: str | None = None, *, force: bool = False) -> Document:
        """End every member of a team, gracefully; `{team, closed, failed, unfinished}`."""
        from mam.app.teams.team import down

        return down(self._context, self._caller, team, force=force)

    def list(self, *, ended: bool = False) -> Document:
        """Return `{teams, presets}`, each team with its members and their boxes."""
        from mam.app.teams.team import listing

        return listing(self._context, ended=ended)

    @changing
    def spawn(self, role: str, *, team: str | None = None, **options: Unpack[SpawnOptions]) -> Document:
        """Start an agent in one more pane of the caller's window, and tell it its role and its task.

        Options: agent, task, permissions, name, model, prompt, colour, env, args, trust, mcp, timeout.
        `{session, member, team, permissions, dialog, task, identity, receipt, session_file}`. The caller has
        the master's pane; outside of tmux the team has a tmux session of its own. Permissions are skipped
        unless the settings say otherwise. Raises NotReady after three tries, with nothing left behind, and
        DialogOpen while the session stays: what it is to be told goes out once the dialog is answered.
        """
        from mam.app.teams.spawn import spawn

        limit = self._access.child_limit
        return spawn(self._context, self._caller, role, team=team, child_limit=limit, **options)

    @changing
    def close(self, target: str, *, force: bool = False) -> Document:
        """End a member of a team whose four boxes are ticked; `{session, member, changed, note}`.

        Never the caller's own pane, never a master's; `force` closes without the boxes.
        """
        from mam.app.teams.close import close

        return close(self._context, self._caller, target, force=force)

    @changing
    def rebalance(self, *, main: str | None = None, team: str | None = None) -> Document:
        """Put a window in order, the master `left` or on `top`; `{team, layout, panes, expected, runs}`."""
        from mam.app.teams.rebalance import rebalance

        return rebalance(self._context, self._caller, main=main, team=team)

    @changing
    def register(
        self, role: str, *, agent: str | None = None, name: str | None = None, team: str | None = None
    ) -> Document:
        """Register the agent of the caller's own pane, which was started by hand, and claim its first task.

        `{session, team, member, task, session_file}`
        """
        from mam.app.teams.register import register

        return register(self._context, self._caller, role, agent=agent, name=name, team=team)

    @changing
    def report(
        self, task: str | None = None, *, result: str | None = None, session: str | None = None
    ) -> Document:
        """Say that a task is done: its spawner is told, and the next task is claimed or the boxes are ticked.

        `{report, receipt, task, next, member}`
        """
        from mam.app.teams.report import report

        return report(self._context, self._caller, task, result=result, session=session)

    def is_member(self, target: str) -> bool:
        """Tell whether a session is a member of a team that is up."""
        from mam.app.teams.close import is_member

        return is_member(self._context, target)
