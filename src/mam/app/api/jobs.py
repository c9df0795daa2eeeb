"""The verbs of the API that concern jobs: delegated work with events and an end."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.monitor.resident import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]


class JobVerbs:
    """What can be done with jobs. `folder` is another folder of records than the root's own."""

    context: Context
    caller: Caller
    _tasks: list[ResidentTask]
    _caller: Caller | None
    _child_limit: bool

    def job_submit(self, prompt: str, *, folder: str | None = None, **options: Any) -> Document:
        """Record a job, start its agent and give it its task; return the job, which then goes on by itself.

        Options: agent ("claude"), workdir, session (one that runs), agent_session (name of the new one),
        type ("once", "loop" with reviewer, reviewer_session and max_rounds, "human"), timeout (3600 s),
        idle_timeout (120 s), validate (a script), expect (paths), permissions ("skip"), broker (else the
        one that is configured), trust, mcp, args. What goes wrong after the job was recorded ends it with an
        error and is raised.
        """
        from mam.app.job_runner.submit import submit
        from mam.app.sessions.begin_change import settle

        settle(self.context, self.caller)
        try:
            return submit(
                self.context,
                self.caller,
                prompt,
                folder=self._folder(folder),
                child_limit=self._child_limit,
                **options,
            )
        finally:
            self._flush()

    def job_preview(self, prompt: str, *, folder: str | None = None, **options: Any) -> Document:
        """Return what `job_submit` would tell its agent; nothing is started, and nothing is written."""
        from mam.app.job_runner.submit import preview

        return preview(self.context, prompt, folder=self._folder(folder), **options)

    def job_instructions(self, job: str | None = None) -> str:
        """Return what whoever does a job is told: the commands that report on it, and its task."""
        from mam.app.job_runner.submission import message_of
        from mam.app.jobs.find import document, meant

        found = document(self.context, meant(self.context, job))
        return message_of(self.context, found["job_id"], found["attempt"], found["prompt"])

    def job_cancel(
        self, job: str | None, *, reason: str | None = None, stop: bool = False, folder: str | None = None
    ) -> Document:
        """End a job at once, and with `stop` its session too; `{job, changed}`."""
        from mam.app.job_runner.cancel import cancel
        from mam.app.jobs.find import meant

        named = meant(self.context, job)
        done, changed = cancel(
            self.context, self.caller, named, reason=reason, stop=stop, folder=self._folder(folder)
        )
        self._flush()
        return {"job": done, "changed": changed}

    def job_verify(self, job: str | None, script: str, *, folder: str | None = None) -> Document:
        """Run a script on a job, with JOB_ID and REGISTRY_DIR; `{job_id, passed, exit_code, output}`."""
        from mam.app.job_runner.check import verify
        from mam.app.jobs.find import meant

        return verify(self.context, meant(self.context, job), script, folder=self._folder(folder))

    def job_event(
        self,
        job: str | None,
        event: str,
        *,
        detail: str = "",
        data: dict[str, Any] | None = None,
        attempt: int | None = None,
        folder: str | None = None,
        publish: float | None = None,
    ) -> Document:
        """Report `started`, `permission_required`, `progress`, `completed` or `error`.

        Returns `{job_id, status, event, published}`; `published` is None for a job without a broker.
        Inside an agent its own job is meant. Raises EventRefused where the job has ended, and NotPublished
        where the broker does not have it after `publish` seconds (5): it is recorded all the same.
        """
        from mam.app.jobs.event import event as report

        done = report(
            self.context,
            self._reporter(),
            job,
            event,
            detail=detail,
            data=data,
            attempt=attempt,
            folder=self._folder(folder),
        )
        published = None
        if done.pop("has_broker"):
            from mam.app.brokers.publish import publish as have_published

            published = have_published(self.context, done["job_id"], publish) or None
        return {**done, "published": published}

    def job_take_in(self, payload: bytes | str, *, job: str | None = None) -> Document:
        """Take in an event that was signed elsewhere; `{job_id, verdict, reason}`, whatever it says."""
        from mam.app.jobs.event import take_in

        return take_in(self.context, self._reporter(), payload, job_id=job)

    def job_status(self, job: str | None = None, *, folder: str | None = None) -> Document:
        """Return one job as its record shows it."""
        from mam.app.jobs.find import document, meant

        return document(self.context, meant(self.context, job), self._folder(folder))

    def jobs(self, *, folder: str | None = None, only_open: bool = False) -> list[Document]:
        """Return every job, oldest first, each with the beginning of its prompt."""
        from mam.app.jobs.find import documents

        return documents(self.context, self._folder(folder), only_open=only_open)

    def job_wait(
        self,
        jobs: Sequence[str] = (),
        tell: Callable[[Document], None] = lambda _entry: None,
        *,
        timeout: float | None = None,
        folder: str | None = None,
        from_start: bool = False,
    ) -> list[Document]:
        """Wait until jobs have ended, or all that are open; return them. Raises TimedOut.

        `tell` gets each entry of their logs when it is recorded; with `from_start` those before it, too.
        """
        from mam.app.job_runner.resident_task import Watcher
        from mam.app.job_runner.wait import wait
        from mam.app.jobs.find import meant

        limits: Document = {"timeout": timeout, "after": 0 if from_start else None}
        named = [meant(self.context, one) for one in jobs]
        try:
            return wait(
                self.context,
                named,
                tell,
                folder=self._folder(folder),
                tend=Watcher(self.context, self.caller),
                **limits,
            )
        finally:
            self._flush()

    def job_wait_remote(
        self,
        tokens: Mapping[str, str],
        tell: Callable[[Document], None] = lambda _event: None,
        *,
        broker: str | None = None,
        timeout: float | None = None,
    ) -> list[Document]:
        """Wait for jobs of another machine over a broker: `tokens` is job id -> token file.

        Nothing of their root is needed. `tell` gets each signed event once. Raises TimedOut.
        """
        from mam.app.brokers.config import find
        from mam.app.brokers.wait_remote import read_token, wait
        from mam.app.jobs.find import meant
        from mam.core.errors import InvalidSettings

        found = find(self.context, broker)
        if found is None:
            raise InvalidSettings("no broker is configured", hint="--broker mqtt://user@host names one")
        known = {meant(self.context, job): read_token(path) for job, path in tokens.items()}
        return wait(self.context, found, known, tell, timeout=timeout)

    def monitor_subscribed(
        self,
        tell: Callable[[Document], None],
        *,
        broker: str | None = None,
        timeout: float = 0.0,
        idle_timeout: float = 0.0,
    ) -> str:
        """Monitor as `monitor` does, and take in what is signed for jobs of this root from a broker.

        `tell` also gets `{event}`, `{refused}` and `{broker: {address, state, error}}`. Returns why it ended.
        """
        from mam.app.monitor.broker_subscription import subscribe
        from mam.app.sessions.begin_change import settle

        settle(self.context, self.caller)
        return subscribe(
            self.context,
            self.caller,
            broker,
            tell,
            timeout=timeout,
            idle_timeout=idle_timeout,
            tasks=self._tasks,
        )

    def job_logs(self, job: str | None = None, *, folder: str | None = None) -> Document:
        """Return `{job_id, directory, events}` of a job."""
        from mam.app.jobs.find import meant
        from mam.app.jobs.logs import logs

        return logs(self.context, meant(self.context, job), folder=self._folder(folder))

    def job_audits(self) -> list[Document]:
        """Return every audit folder with the state of its job."""
        from mam.app.jobs.logs import list_logs

        return list_logs(self.context)

    def _reporter(self) -> Caller:
        """Return who calls. The registry's file is not read: a report gets through where that is broken."""
        if self._caller is not None:
            return self._caller
        import os

        from mam.app.context.caller import find_reporter

        return find_reporter(self.context, os.getpid())

    def _flush(self) -> None:
        """Have heard elsewhere what a verb recorded, where nobody is awake to publish it."""
        from mam.app.brokers.publish import flush

        flush(self.context)

    def _folder(self, folder: str | None) -> str | None:
        from mam.app.jobs.find import folder_of

        return folder_of(self.context, folder) if folder else None
