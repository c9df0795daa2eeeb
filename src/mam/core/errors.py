"""All errors of mam as one tree, with the code and the exit code of each.

    MamError                    str() is one line without control characters; hint says what to do
      Refused                     the request is wrong; repeating it cannot help
        InvalidName InvalidPath InvalidPrompt InvalidSettings Usage
        SessionNotFound CardNotFound JobNotFound TaskNotFound TeamNotFound NoRegistry AmbiguousTarget
        NameTaken NoTranscript IllegalTransition Conflict NotAllowed NeedsConfirmation EventRefused NoDialog
        RootRefused: RootForeign RootCopy RootElsewhere RootMissing RootUnsafe RootOnNetwork
      Damaged                     mam's own records are damaged; never repaired silently
        RegistryCorrupt EditRefused SchemaTooNew
      Unavailable                 something outside of mam is not available now
        TerminalsDown TmuxMissing AgentMissing PaneGone RegistryBusy NotRecorded
        Unwritable: DiskFull ReadOnly
        DialogOpen NotReady UntestedVersion TimedOut ResidentRuns ConversationBusy
        BrokerDown BrokerRefused BrokerUntrusted NotPublished
      Unconfirmed                 mam acted, and cannot prove the result
        StartUnconfirmed StopUnconfirmed DeliveryUnconfirmed
      Broken                      a bug of mam

Each class has an error code for programs and an exit code for the command line. A class inherits both
from its parent unless it sets its own.
"""

from __future__ import annotations

from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class MamError(Exception):
    """Something went wrong."""

    code = "error"
    exit_code = 70
    retryable = False
    # True if the change was committed before the error, and only showing or publishing it failed.
    recorded = False
    # The hint of an error that is raised without one.
    way_out: str | None = None

    def __init__(self, message: str = "", *, hint: str | None = None, session: Any = None) -> None:
        """Keep the message as one line; the default message is the first line of the class's docstring."""
        text = one_line(message or (type(self).__doc__ or type(self).__name__).splitlines()[0])
        super().__init__(text)
        self.message = text
        hint = hint or self.way_out
        self.hint = one_line(hint) if hint else None
        self.session = session

    def as_json(self) -> dict[str, Any]:
        """Return the error document that every surface shows."""
        error = {"code": self.code, "message": self.message, "hint": self.hint, "retryable": self.retryable}
        document: dict[str, Any] = {"error": error}
        if self.session is not None:
            document["session"] = self.session
        return document


class Refused(MamError):
    """The request cannot be carried out as it stands."""

    code, exit_code = "refused", 1


class Usage(Refused):
    """The command was used wrongly."""

    code, exit_code = "usage", 64


class InvalidName(Refused):
    """A name may hold only a-z, 0-9 and '-', start with a letter or digit, and be at most 100 long."""

    code, exit_code = "invalid_name", 64


class InvalidPath(Refused):
    """The directory does not exist or is not a directory."""

    code = "invalid_path"


class InvalidPrompt(Refused):
    """The text cannot be used as a prompt."""

    code, exit_code = "invalid_prompt", 64


class InvalidSettings(Refused):
    """The settings file is not valid."""

    code, exit_code = "invalid_settings", 64


class SessionNotFound(Refused):
    """No session of that name is registered."""

    code = "session_not_found"


class CardNotFound(Refused):
    """There is no such card on the board."""

    code = "card_not_found"


class JobNotFound(Refused):
    """There is no such job here."""

    code = "job_not_found"


class EventRefused(Refused):
    """The event is not valid for this job."""

    code = "event_refused"


class TaskNotFound(Refused):
    """There is no such task."""

    code = "task_not_found"


class TeamNotFound(Refused):
    """There is no such team."""

    code = "team_not_found"


class NoRegistry(Refused):
    """There is no registry here."""

    code = "no_registry"

    @classmethod
    def in_root(cls, root: str) -> NoRegistry:
        """Return the error for a root without a registry."""
        return cls(f"there is no registry in {root}", hint="mam init makes one")


class RootRefused(Refused):
    """mam may not change this root."""

    code = "root_refused"


class RootForeign(RootRefused):
    """This user's mam did not make this root."""

    code = "root_foreign"


class RootCopy(RootRefused):
    """This root is a copy of another root."""

    code = "root_copy"


class RootElsewhere(RootRefused):
    """This root is changed from another machine or container."""

    code = "root_elsewhere"


class RootMissing(RootRefused):
    """The state of this root is gone."""

    code = "root_missing"


class RootUnsafe(RootRefused):
    """Another user could have written what lies in this root."""

    code = "root_unsafe"


class RootOnNetwork(RootRefused):
    """This root lies on a network file system."""

    code = "root_network"


class AmbiguousTarget(Refused):
    """More than one thing matches."""

    code = "ambiguous_target"


class NameTaken(Refused):
    """A session of that name is alive."""

    code = "name_taken"


class IllegalTransition(Refused):
    """The session's state does not allow that."""

    code = "illegal_transition"


class Conflict(Refused):
    """Somebody else changed the session in the meantime."""

    code, retryable = "conflict", True


class NoTranscript(Refused):
    """No record of the conversation can be read."""

    code = "no_transcript"


class NoDialog(Refused):
    """No dialog is open that could be answered."""

    code = "no_dialog"


class NotAllowed(Refused):
    """The caller may not do that."""

    code = "not_allowed"


class NeedsConfirmation(Refused):
    """This cannot be undone and was not confirmed."""

    code, exit_code = "needs_confirmation", 64


class Damaged(MamError):
    """The records of mam are damaged."""

    code, exit_code = "damaged", 65


class RegistryCorrupt(Damaged):
    """The registry cannot be read."""

    code = "registry_corrupt"


class EditRefused(Damaged):
    """Somebody edited the registry file in a way that mam does not accept."""

    code = "edit_refused"


class SchemaTooNew(Damaged):
    """The records were written by a newer version of mam."""

    code = "schema_too_new"


class Unavailable(MamError):
    """Something that mam needs is not available now."""

    code, exit_code, retryable = "unavailable", 2, True


class TerminalsDown(Unavailable):
    """The tmux server does not answer."""

    code = "terminals_down"
    way_out = "repeat when tmux answers again; mam doctor looks at it"


class TmuxMissing(Unavailable):
    """tmux is missing or too old."""

    code, retryable = "tmux_missing", False


class AgentMissing(Unavailable):
    """The agent's program is not on PATH."""

    code, retryable = "agent_missing", False


class PaneGone(Unavailable):
    """mam could not act on the pane: it is gone, or, in the subclasses, in a mode, changed or occupied."""

    code = "pane_gone"


class RegistryBusy(Unavailable):
    """Another change is under way."""

    code = "registry_busy"


class Unwritable(Unavailable):
    """mam cannot write its records."""

    code = "unwritable"


class DiskFull(Unwritable):
    """There is no space left."""

    code = "disk_full"


class ReadOnly(Unwritable):
    """The directory cannot be written."""

    code, retryable = "read_only", False


class NotRecorded(Unavailable):
    """mam did what was asked, and cannot record it."""

    code, retryable = "not_recorded", False


class DialogOpen(Unavailable):
    """A dialog is open and waits for a person."""

    code, retryable = "dialog_open", False


class NotReady(Unavailable):
    """The agent did not become ready."""

    code, retryable = "not_ready", False


class UntestedVersion(Unavailable):
    """mam was not tested with this version, and only its screen shows that it takes input."""

    code, retryable = "untested_version", False


class TimedOut(Unavailable):
    """The time ran out."""

    code = "timeout"


class ResidentRuns(Unavailable):
    """Another resident watches this root."""

    code = "resident_runs"


class ConversationBusy(Unavailable):
    """A live process holds this conversation."""

    code = "conversation_busy"


class BrokerDown(Unavailable):
    """The broker cannot be reached."""

    code = "broker_down"


class BrokerRefused(Unavailable):
    """The broker refuses this user."""

    code, retryable = "broker_refused", False


class BrokerUntrusted(Unavailable):
    """The broker cannot prove its identity."""

    code, retryable = "broker_untrusted", False


class NotPublished(Unavailable):
    """The event is recorded, but not published yet; mam publishes it later."""

    code, retryable = "not_published", False
    recorded = True


class Unconfirmed(MamError):
    """mam acted, and cannot prove the result."""

    code, exit_code = "unconfirmed", 3


class StartUnconfirmed(Unconfirmed):
    """mam started the program, and cannot prove that it runs."""

    code = "start_unconfirmed"


class StopUnconfirmed(Unconfirmed):
    """mam told the session to end, and cannot prove that it did."""

    code = "stop_unconfirmed"


class DeliveryUnconfirmed(Unconfirmed):
    """mam typed the message, and cannot prove that the agent took it."""

    code = "delivery_unconfirmed"


class Broken(MamError):
    """A bug in mam."""

    code, exit_code = "broken", 70
