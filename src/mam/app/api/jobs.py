"""The verbs of `fleet.jobs`."""

from __future__ import annotations

from mam.app.api.verb_group import VerbGroup, changing, checked, publishing, reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Unpack

    from mam.app.job_runner.submission import JobOptions

    Document = dict[str, Any]
    Documents = list[Document]
    Names = list[str]

# Surfaces take the type of the options from here.
__all__ = ["JobOptions", "Jobs"]


class Jobs(VerbGroup):
    """Delegated work with events and an end. `folder` names a folder of records other than the root's own."""

    __slots__ = ()

    @property
    def folder(self) -> str:
        """The folder of the records of this root's jobs, unless the fleet was opened with another one."""
        return self._access.records_folder or self._context.paths.jobs

    @changing
    def submit(self, prompt: str | None, **options: Unpack[JobOptions]) -> Document:
        """Record a job, start its agent and send the task; return the job without waiting for its end.

        Options: agent ("claude"), workdir, session (a running one), agent_session (name of the new one),
        type ("once", "loop" with reviewer, reviewer_session and max_rounds, "human"), timeout (3600 s),
        idle_timeout (120 s), validate (a script), expect (paths), permissions ("skip"), broker (default: the
        configured one), trust, mcp, args, folder, command (a program with arguments that runs instead of an
        agent; it needs no prompt), runner ("agent"), place ("here"). An error after the job is recorded ends
        the job with an error, and is raised.
        """
        from mam.app.job_runner.submit import submit

        options["folder"] = self._records_folder(options.get("folder"))
        limit = self._access.child_limit
        return submit(self._context, self._caller, prompt, child_limit=limit, **options)

    @reading
    def preview(self, prompt: str | None, **options: Unpack[JobOptions]) -> Document:
        """Return the message that `submit` would send, without starting or writing anything."""
        from mam.app.job_runner.submit import preview

        options["folder"] = self._records_folder(options.get("folder"))
        return preview(self._context, prompt, **options)

    @reading
    def instructions(self, job: str | None = None) -> str:
        """Return the message of a job for its agent: the commands that report on it, and its task."""
        from mam.app.job_runner.task_message import message_of
        from mam.app.jobs.find import document, resolve_id

        record = document(self._context, resolve_id(self._context, job))
        return message_of(self._context, record["job_id"], record["attempt"], record["prompt"])

    @publishing
    def cancel(
        self, job: str | None, *, reason: str | None = None, stop: bool = False, folder: str | None = None
    ) -> Document:
        """End a job at once, and with `stop` its session too; `{job, changed}`."""
        from mam.app.job_runner.cancel import cancel
        from mam.app.jobs.find import resolve_id

        job_id = resolve_id(self._context, job)
        record, changed = cancel(
            self._context,
            self._caller,
            job_id,
            reason=reason,
            stop=stop,
            folder=self._records_folder(folder),
        )
        return {"job": record, "changed": changed}

    @changing
    def release(self, *jobs: str) -> Documents:
        """Open parked jobs again, or without ids all of them; their timeouts count from now.

        Returns `{job_id, status, released, reason, hint}` of each. A job whose session does not run stays
        parked, because it would end with an error at once. Raises NotAllowed if the caller is a session.
        """
        from mam.app.job_runner.release import release
        from mam.app.jobs.find import resolve_id

        ids = [resolve_id(self._context, job) for job in jobs]
        return release(self._context, self._caller, ids or None)

    @publishing
    def forget(self, *jobs: str) -> Documents:
        """Remove jobs that have ended, with their logs, audit folders and the messages with their tasks.

        Returns `{job_id, forgotten, reason, hint}` of each. A job that has not ended stays.
        """
        from mam.app.jobs.find import resolve_id
        from mam.app.jobs.forget import forget

        self._context.root.check()
        self._access.has_removed = True
        return forget(self._context, self._caller, [resolve_id(self._context, job) for job in jobs])

    @checked
    def verify(self, job: str | None, script: str, *, folder: str | None = None) -> Document:
        """Run a script for a job, with JOB_ID and REGISTRY_DIR; `{job_id, passed, exit_code, output}`."""
        from mam.app.job_runner.check import verify
        from mam.app.jobs.find import resolve_id

        return verify(
            self._context, resolve_id(self._context, job), script, folder=self._records_folder(folder)
        )

    @checked
    def event(
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
        An agent may omit its own job. Raises EventRefused if the job has ended, and NotPublished if the
        broker does not have the event after `publish` seconds (5); the event is recorded nevertheless.
        """
        from mam.app.jobs.event import event as report

        outcome = report(
            self._context,
            self._access.reporter,
            job,
            event,
            detail=detail,
            data=data,
            attempt=attempt,
            folder=self._records_folder(folder),
        )
        published = None
        if outcome.pop("has_broker") and self._context.root.refusal() is None:
            from mam.app.brokers.publish import publish as publish_now

            published = publish_now(self._context, outcome["job_id"], publish) or None
        return {**outcome, "published": published}

    @checked
    def take_in(self, payload: bytes | str, *, job: str | None = None) -> Document:
        """Take in an event that was signed elsewhere; return `{job_id, verdict, reason}` in every case."""
        from mam.app.jobs.event import take_in

        return take_in(self._context, self._access.reporter, payload, job_id=job)

    @reading
    def status(self, job: str | None = None, *, folder: str | None = None) -> Document:
        """Return the record of one job."""
        from mam.app.jobs.find import document, resolve_id

        return document(self._context, resolve_id(self._context, job), self._records_folder(folder))

    @reading
    def list(self, *, folder: str | None = None, only_open: bool = False) -> Documents:
        """Return every job, oldest first, each with the beginning of its prompt."""
        from mam.app.jobs.find import documents

        return documents(self._context, self._records_folder(folder), only_open=only_open)

    @publishing
    def wait(
        self,
        jobs: Sequence[str] = (),
        tell: Callable[[Document], None] = lambda _entry: None,
        *,
        timeout: float | None = None,
        folder: str | None = None,
        from_start: bool = False,
    ) -> Documents:
        """Wait until the named jobs, or all open ones, have ended; return them. Raises TimedOut.

        `tell` gets each entry of their logs when it is recorded; with `from_start` the earlier ones, too.
        Where no resident runs, this does the resident's work meanwhile (`app/job_runner/waiter_task.py`).
        """
        from mam.app.job_runner.wait import wait
        from mam.app.job_runner.waiter_task import WaiterTask
        from mam.app.jobs.find import resolve_id

        limits: Document = {"timeout": timeout, "after": 0 if from_start else None}
        ids = [resolve_id(self._context, job) for job in jobs]
        return wait(
            self._context,
            ids,
            tell,
            folder=self._records_folder(folder),
            ticker=WaiterTask(self._context, self._caller),
            **limits,
        )

    @reading
    def wait_remote(
        self,
        tokens: Mapping[str, str],
        tell: Callable[[Document], None] = lambda _event: None,
        *,
        broker: str | None = None,
        timeout: float | None = None,
    ) -> Documents:
        """Wait for jobs of another machine over a broker: `tokens` is job id -> token file.

        It does not need their root. `tell` gets each signed event once. Raises TimedOut.
        """
        from mam.app.brokers.config import find
        from mam.app.brokers.wait_remote import read_token, wait
        from mam.app.jobs.find import resolve_id
        from mam.core.errors import InvalidSettings

        found_broker = find(self._context, broker)
        if found_broker is None:
            raise InvalidSettings("no broker is configured", hint="--broker mqtt://user@host names one")
        token_texts = {resolve_id(self._context, job): read_token(path) for job, path in tokens.items()}
        return wait(self._context, found_broker, token_texts, tell, timeout=timeout)

    @reading
    def logs(self, job: str | None = None, *, folder: str | None = None) -> Document:
        """Return `{job_id, directory, events}` of a job."""
        from mam.app.jobs.find import resolve_id
        from mam.app.jobs.logs import logs

        return logs(self._context, resolve_id(self._context, job), folder=self._records_folder(folder))

    @reading
    def output(self, job: str | None = None, *, attempt: int | None = None) -> Document:
        """Return `{job_id, attempt, file, output}` of a job with a command; `output` is bytes.

        It holds the first megabyte and the last nine, also while the command runs. Raises Refused if the job
        has no output.
        """
        from mam.app.jobs.find import resolve_id
        from mam.app.jobs.logs import output

        return output(self._context, resolve_id(self._context, job), attempt=attempt)

    @reading
    def audits(self) -> Documents:
        """Return every audit folder with the status of its job."""
        from mam.app.jobs.logs import list_logs

        return list_logs(self._context)

    def _records_folder(self, folder: str | None) -> str | None:
        """Return the folder of records that the caller or the fleet names; None for the root's own."""
        from mam.app.jobs.find import folder_of

        named_folder = folder or self._access.records_folder
        return folder_of(self._context, named_folder) if named_folder else None
