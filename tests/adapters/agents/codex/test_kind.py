"""The kind of Codex: its launch, the texts that arrive, and its hooks."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents import hook_command
from mam.adapters.agents.codex.kind import Codex
from mam.adapters.agents.kind import Request
from mam.core.errors import Usage

KIND = Codex()
HOOK = hook_command.command("/x y/spool")
PLAIN = ["/bin/codex", "--no-daemon"]


def launch(*args, **facts):
    facts = {"environ": {}, "stores": {"HOME": "/no/such/home"}} | facts
    return KIND.launch(Request(command=["codex", *args], program="/bin/codex", **facts))


def test_a_text_with_joiners_goes_as_a_file() -> None:
    assert KIND.keeps_unchanged("हिन्दी 👍🏽 e\u0301 漢字")
    assert not KIND.keeps_unchanged("👩\u200d👧 family") and not KIND.keeps_unchanged("a\u200db")


class TestLaunch:
    def test_mam_adds_only_what_the_request_needs(self) -> None:
        assert launch().argv == PLAIN
        assert launch().env == {}

    @pytest.mark.parametrize(
        ("facts", "before", "after"),
        [
            ({"conversation": "N", "resume": True}, ["resume", "N"], []),
            ({"fork_of": "O"}, ["fork", "O"], []),
            # The conversation has no message yet: Codex makes a new id.
            ({"conversation": "N"}, [], []),
            ({"permissions": "ask"}, [], ["-a", "on-request", "-s", "read-only"]),
            ({"permissions": "auto"}, [], ["--approve-for-me"]),
            ({"permissions": "skip"}, [], ["--dangerously-bypass-approvals-and-sandbox"]),
            ({"model": "gpt"}, [], ["-m", "gpt"]),
        ],
    )
    def test_the_arguments_for_a_request(self, facts, before, after) -> None:
        assert launch(**facts).argv == ["/bin/codex", *before, "--no-daemon", *after]

    def test_the_arguments_of_the_caller_come_last(self) -> None:
        own = ["-c", 'model="x"', "--", "resume"]
        assert launch(*own).argv[-4:] == own

    @pytest.mark.parametrize("facts", [{"conversation": "N", "resume": True}, {"fork_of": "N"}])
    @pytest.mark.parametrize("args", [["do it"], ["--", "do", "it"], ["do", "it"]])
    def test_a_resume_does_not_repeat_the_prompt(self, facts, args) -> None:
        own = ["-c", 'model="x"', "--search"]
        assert launch(*own, *args).argv[-len(args) :] == args
        assert launch(*own, *args, **facts).argv[-3:] == own

    def test_notify_is_an_option_of_this_launch(self) -> None:
        *_, option, value = launch(hook=HOOK).argv
        assert option == "-c"
        key, _, command = value.partition("=")
        assert key == "notify"
        # A list of strings is the same in JSON and TOML.
        assert json.loads(command) == ["/bin/sh", hook_command.SCRIPT, "/x y/spool"]

    @pytest.mark.parametrize(
        "own", [["-c", 'notify=["mine"]'], ['--config=notify=["mine"]'], ["-cnotify=[]"]]
    )
    def test_a_notify_of_the_caller_stays(self, own) -> None:
        assert launch(*own, hook=HOOK).argv == [*PLAIN, *own]

    def test_a_notify_in_the_configuration_stays(self, tmp_path) -> None:
        stores = {"CODEX_HOME": str(tmp_path)}
        (tmp_path / "config.toml").write_text('model = "x"\n# notify = []\n', encoding="utf-8")
        assert "-c" in launch(hook=HOOK, stores=stores).argv
        (tmp_path / "config.toml").write_text('model = "x"\nnotify = ["mine"]\n', encoding="utf-8")
        assert "-c" not in launch(hook=HOOK, stores=stores).argv

    @pytest.mark.parametrize(
        "args",
        [["resume", "X"], ["fork"], ["exec", "x"], ["--last"], ["-m", "gpt", "resume"], ["-m=x", "e"]],
    )
    def test_arguments_that_choose_a_conversation_are_refused(self, args) -> None:
        with pytest.raises(Usage, match="keeps track"):
            launch(*args)

    @pytest.mark.parametrize("args", [["-p", "resume"], ["please", "resume"], ["--search", "-C", "fork"]])
    def test_a_word_that_resembles_a_command_is_passed(self, args) -> None:
        assert launch(*args).argv == [*PLAIN, *args]

    def test_a_later_variable_does_not_move_a_store_in_the_home(self) -> None:
        assert "CODEX_HOME" in launch(stores={"HOME": "/h"}).unset
        assert "CODEX_HOME" not in launch(stores={"CODEX_HOME": "/c"}).unset


def test_the_store_has_only_variables_of_the_caller() -> None:
    assert KIND.stores({"HOME": "/h"}) == {"HOME": "/h"}
    assert KIND.stores({"HOME": "/h", "CODEX_HOME": "/c"}) == {"CODEX_HOME": "/c"}
    assert KIND.stores({"HOME": "/h", "CODEX_HOME": ""}) == {"HOME": "/h"}


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("words", "words"),
        ("/quit", " /quit"),
        ("/etc/passwd is a file", " /etc/passwd is a file"),
        ("# heading", "# heading"),
        ("ends in \\", "ends in \\"),
        ("@README", "@README "),
        ("see @README", "see @README "),
        ("use $imagegen", "use $imagegen "),
        ("a@b", "a@b"),
        ("@README first", "@README first"),
        ("zero\u200bwidth", "zero\u200bwidth"),
        ("!ls", None),
        ("  !ls", None),
        ("\u00a0!ls", None),
        ("\n!ls", None),
        ("wow!", "wow!"),
    ],
)
def test_a_text_arrives_as_text_or_is_refused(text, typed) -> None:
    assert KIND.text_to_type(text) == typed


ID = str(uuid.uuid4())


class TestReadHook:
    def test_a_completed_turn_does_not_change_the_activity(self) -> None:
        """The turn may be that of the hidden thread that makes the title."""
        payload = {"type": "agent-turn-complete", "thread-id": ID, "input-messages": ["one", "two"]}
        hook_event = KIND.read_hook(payload)
        assert (hook_event.event, hook_event.state, hook_event.conversation) == (
            "agent-turn-complete",
            None,
            ID,
        )
        assert hook_event.prompt == "two"
        assert KIND.read_hook(payload | {"thread-id": "../../x"}).conversation is None
        assert KIND.read_hook(payload | {"type": "something new"}) is None

    @pytest.mark.parametrize(
        ("event", "state", "waiting_for"),
        [
            ("UserPromptSubmit", "working", None),
            ("PermissionRequest", "waiting", "permission"),
            ("PostToolUse", "working", None),
            ("Stop", "idle", None),
            ("Interrupt", "idle", None),
        ],
    )
    def test_hooks_where_the_operator_trusts_them(self, event, state, waiting_for) -> None:
        hook_event = KIND.read_hook({"hook_event_name": event, "session_id": ID, "prompt": "hello"})
        assert (hook_event.state, hook_event.waiting_for, hook_event.conversation) == (state, waiting_for, ID)
        assert KIND.read_hook({"hook_event_name": "SomethingNew"}) is None
        assert KIND.read_hook({"hook_event_name": event, "session_id": "../x"}).conversation is None

    @given(
        st.dictionaries(
            st.sampled_from(["type", "thread-id", "input-messages", "turn-id"]),
            st.none() | st.integers() | st.text() | st.just("agent-turn-complete") | st.lists(st.text()),
        )
    )
    def test_any_payload_can_be_read(self, payload) -> None:
        hook_event = KIND.read_hook(payload)
        assert hook_event is None or hook_event.prompt is None or isinstance(hook_event.prompt, str)


def test_codex_itself_deletes_a_conversation() -> None:
    assert KIND.purge_command(ID, "/bin/codex") == ["/bin/codex", "delete", "--force", ID]
