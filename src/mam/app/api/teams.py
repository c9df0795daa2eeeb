"""The verbs of the API that concern teams and their tasks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]


class TeamVerbs:
    """What can be done with roles, panes and tasks."""

    context: Context
    caller: Caller
    _child_limit: bool

    def _begin(self) -> None:
        """Begin a changing verb: nothing new while something is left half done."""
        from mam.app.sessions.begin_change import settle
        from mam.app.teams.onboarding import finish_spawns

        settle(self.context, self.caller)
        finish_spawns(self.context)

    def spawn(
        self,
        role: str,
        *,
        agent: str | None = None,
        task: str | None = None,
        permissions: str | None = None,
        name: str | None = None,
        team: str | None = None,
        model: str | None = None,
        prompt: str | None = None,
        colour: str | None = None,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        trust: bool = False,
        mcp: bool = False,
        timeout: float | None = None,
    ) -> Document:
        """Start an agent in one more pane of the caller's window, and tell it its role and its task.

        `{session, member, team, permissions, dialog, task, identity, receipt, session_file}`. The caller has
        the master's pane; outside of tmux the team has a tmux session of its own. Permissions are skipped
        unless the settings say otherwise. Raises NotReady after three tries, with nothing left behind, and
        DialogOpen while the session stays: what it is to be told goes out once the dialog is answered.
        """
        from mam.app.teams.spawn import spawn

        self._begin()
        return spawn(
            self.context,
            self.caller,
            role,
            agent=agent,
            task=task,
            permissions=permissions,
            name=name,
            team=team,
            model=model,
            prompt=prompt,
            colour=colour,
            env=env,
            args=args,
            trust=trust,
            mcp=mcp,
            timeout=timeout,
            child_limit=self._child_limit,
        )

    def close_member(self, target: str, *, force: bool = False) -> Document:
        """End a member of a team whose four boxes are ticked; `{session, member, changed, note}`.

        Never the caller's own pane, never a master's; `force` closes without the boxes.
        """
        from mam.app.teams.close import close

        self._begin()
        return close(self.context, self.caller, target, force=force)

    def rebalance(self, *, main: str | None = None, team: str | None = None) -> Document:
        """Put a window in order, the master `left` or on `top`; `{team, layout, panes, expected, runs}`."""
        from mam.app.teams.rebalance import rebalance

        self._begin()
        return rebalance(self.context, self.caller, main=main, team=team)

    def register(
        self, role: str, *, agent: str | None = None, name: str | None = None, team: str | None = None
    ) -> Document:
        """Register the agent of the caller's own pane, which was started by hand, and claim its first task.

        `{session, team, member, task, session_file}`
        """
        from mam.app.teams.register import register

        self._begin()
        return register(self.context, self.caller, role, agent=agent, name=name, team=team)

    def report(
        self, task: str | None = None, *, result: str | None = None, session: str | None = None
    ) -> Document:
        """Say that a task is done: its spawner is told, and the next task is claimed or the boxes are ticked.

        `{report, receipt, task, next, member}`
        """
        from mam.app.teams.report import report

        self._begin()
        return report(self.context, self.caller, task, result=result, session=session)

    def team_up(self, what: str, **options: Any) -> Document:
        """Start every role of a preset or file, all or none; `{team, members, permissions, session_file}`.

        Options: `agent`, `permissions`, `model`, `trust`, `mcp`, `timeout`, `args` for every role; `work` is
        a task for the first one.
        """
        from mam.app.teams.team import up

        self._begin()
        return up(self.context, self.caller, what, **options)

    def team_down(self, team: str | None = None, *, force: bool = False) -> Document:
        """End every member of a team, gracefully; `{team, closed, failed, unfinished}`."""
        from mam.app.teams.team import down

        self._begin()
        return down(self.context, self.caller, team, force=force)

    def team_list(self, *, ended: bool = False) -> Document:
        """Return `{teams, presets}`, each team with its members and their boxes."""
        from mam.app.teams.team import listing

        return listing(self.context, ended=ended)

    def task_add(self, text: str, *, role: str, team: str | None = None) -> Document:
        """Add a task for a role; `{task}`. Without a team, whoever has that role may claim it."""
        from mam.app.teams.task import add

        return add(self.context, self.caller, text, role=role, team=team)

    def task_list(self, *, role: str | None = None, status: str | None = None) -> Document:
        """Return `{tasks}`, oldest first."""
        from mam.app.teams.task import list_tasks

        return list_tasks(self.context, role=role, status=status)

    def task_claim(
        self, task: str | None = None, *, role: str | None = None, session: str | None = None
    ) -> Document:
        """Claim a task, or the oldest that waits for a role; `{task, changed}`.

        Of any number who try one gets it: the others get Conflict, or TaskNotFound where nothing waits.
        """
        from mam.app.teams.task import claim

        return claim(self.context, self.caller, task, role=role, session=session)

    def task_done(self, task: str, *, result: str | None = None) -> Document:
        """Say that a task is done, without a report; `{task, changed}`."""
        from mam.app.teams.task import finish

        return finish(self.context, self.caller, task, result=result)
