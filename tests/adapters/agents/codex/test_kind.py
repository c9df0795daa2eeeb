"""Codex as a kind: what it is launched with, which words reach the model, and what its notify says."""

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


class TestLaunch:
    def test_nothing_is_passed_that_was_not_asked_for(self) -> None:
        assert launch().argv == PLAIN
        assert launch().env == {}

    @pytest.mark.parametrize(
        ("facts", "before", "after"),
        [
            ({"conversation": "N", "resume": True}, ["resume", "N"], []),
            ({"fork_of": "O"}, ["fork", "O"], []),
            # An id in which nothing was said yet: Codex makes another.
            ({"conversation": "N"}, [], []),
            ({"permissions": "ask"}, [], ["-a", "on-request", "-s", "read-only"]),
            ({"permissions": "auto"}, [], ["--approve-for-me"]),
            ({"permissions": "skip"}, [], ["--dangerously-bypass-approvals-and-sandbox"]),
            ({"model": "gpt"}, [], ["-m", "gpt"]),
        ],
    )
    def test_words_for_a_wish(self, facts, before, after) -> None:
        assert launch(**facts).argv == ["/bin/codex", *before, "--no-daemon", *after]

    def test_the_callers_own_arguments_come_last(self) -> None:
        own = ["-c", 'model="x"', "--", "resume"]
        assert launch(*own).argv[-4:] == own

    @pytest.mark.parametrize("facts", [{"conversation": "N", "resume": True}, {"fork_of": "N"}])
    @pytest.mark.parametrize("words", [["do it"], ["--", "do", "it"], ["do", "it"]])
    def test_a_prompt_is_given_once(self, facts, words) -> None:
        own = ["-c", 'model="x"', "--search"]
        assert launch(*own, *words).argv[-len(words) :] == words
        assert launch(*own, *words, **facts).argv[-3:] == own

    def test_notify_is_of_this_launch(self) -> None:
        *_, option, value = launch(hook=HOOK).argv
        assert option == "-c"
        key, _, words = value.partition("=")
        assert key == "notify"
        # A list of strings is the same in TOML.
        assert json.loads(words) == ["/bin/sh", hook_command.SCRIPT, "/x y/spool"]

    @pytest.mark.parametrize(
        "own", [["-c", 'notify=["mine"]'], ['--config=notify=["mine"]'], ["-cnotify=[]"]]
    )
    def test_a_notify_of_the_caller_is_left_alone(self, own) -> None:
        assert launch(*own, hook=HOOK).argv == [*PLAIN, *own]

    def test_a_notify_in_the_configuration_is_left_alone(self, tmp_path) -> None:
        stores = {"CODEX_HOME": str(tmp_path)}
        (tmp_path / "config.toml").write_text('model = "x"\n# notify = []\n', encoding="utf-8")
        assert "-c" in launch(hook=HOOK, stores=stores).argv
        (tmp_path / "config.toml").write_text('model = "x"\nnotify = ["mine"]\n', encoding="utf-8")
        assert "-c" not in launch(hook=HOOK, stores=stores).argv

    @pytest.mark.parametrize(
        "words",
        [["resume", "X"], ["fork"], ["exec", "x"], ["--last"], ["-m", "gpt", "resume"], ["-m=x", "e"]],
    )
    def test_the_conversation_is_mams_to_choose(self, words) -> None:
        with pytest.raises(Usage, match="keeps track"):
            launch(*words)

    @pytest.mark.parametrize("words", [["-p", "resume"], ["please", "resume"], ["--search", "-C", "fork"]])
    def test_a_word_that_only_looks_like_a_command_is_passed(self, words) -> None:
        assert launch(*words).argv == [*PLAIN, *words]

    def test_a_store_in_the_home_is_not_moved_by_a_variable_of_another_day(self) -> None:
        assert "CODEX_HOME" in launch(stores={"HOME": "/h"}).without
        assert "CODEX_HOME" not in launch(stores={"CODEX_HOME": "/c"}).without


def test_the_store_is_what_the_caller_has_and_nothing_invented() -> None:
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
def test_words_arrive_as_such_or_not_at_all(text, typed) -> None:
    assert KIND.typed(text) == typed


ID = str(uuid.uuid4())


class TestHear:
    def test_a_completed_turn_says_nothing_about_the_activity(self) -> None:
        """It may be that of the hidden thread that makes the title, while the real one still works."""
        said = {"type": "agent-turn-complete", "thread-id": ID, "input-messages": ["one", "two"]}
        heard = KIND.hear(said)
        assert (heard.event, heard.state, heard.conversation) == ("agent-turn-complete", None, ID)
        assert heard.prompt == "two"
        assert KIND.hear(said | {"thread-id": "../../x"}).conversation is None
        assert KIND.hear(said | {"type": "something new"}) is None

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
        heard = KIND.hear({"hook_event_name": event, "session_id": ID, "prompt": "hello"})
        assert (heard.state, heard.waiting_for, heard.conversation) == (state, waiting_for, ID)
        assert KIND.hear({"hook_event_name": "SomethingNew"}) is None
        assert KIND.hear({"hook_event_name": event, "session_id": "../x"}).conversation is None

    @given(
        st.dictionaries(
            st.sampled_from(["type", "thread-id", "input-messages", "turn-id"]),
            st.none() | st.integers() | st.text() | st.just("agent-turn-complete") | st.lists(st.text()),
        )
    )
    def test_any_payload_can_be_heard(self, payload) -> None:
        heard = KIND.hear(payload)
        assert heard is None or heard.prompt is None or isinstance(heard.prompt, str)


def test_a_conversation_is_deleted_by_the_program_itself() -> None:
    assert KIND.purge_command(ID, "/bin/codex") == ["/bin/codex", "delete", "--force", ID]
