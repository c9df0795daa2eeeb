"""Claude Code as a kind: what it is launched with, and what its hooks say."""

import json
import os
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.claude.kind import Claude
from mam.adapters.agents.kind import Request
from mam.core.errors import NotAllowed, Usage

KIND = Claude()
HOOK = "exec /bin/sh /x/hook.sh /x/spool"


def launch(*args, **facts):
    facts = {"environ": {}, "stores": {"HOME": "/h"}} | facts
    return KIND.launch(Request(command=["claude", *args], program="/bin/claude", **facts))


def option(launched, name):
    return launched.argv[launched.argv.index(name) + 1]


class TestLaunch:
    def test_nothing_is_passed_that_was_not_asked_for(self) -> None:
        assert launch().argv == ["/bin/claude"]
        assert launch().env == {}

    @pytest.mark.parametrize(
        ("facts", "words"),
        [
            ({"conversation": "N"}, ["--session-id", "N"]),
            ({"conversation": "N", "resume": True}, ["--resume", "N"]),
            (
                {"conversation": "N", "fork_of": "O"},
                ["--resume", "O", "--fork-session", "--session-id", "N"],
            ),
            ({"permissions": "ask"}, ["--permission-mode", "manual"]),
            ({"permissions": "auto"}, ["--permission-mode", "auto"]),
            ({"model": "opus"}, ["--model", "opus"]),
        ],
    )
    def test_words_for_a_wish(self, facts, words) -> None:
        assert launch(**facts).argv == ["/bin/claude", *words]

    def test_the_callers_own_arguments_come_last(self) -> None:
        assert launch("--add-dir", "/a", "--", "-x", conversation="N").argv[-4:] == [
            "--add-dir",
            "/a",
            "--",
            "-x",
        ]

    def test_hooks_are_settings_of_this_launch(self) -> None:
        hooks = json.loads(option(launch(hook=HOOK), "--settings"))["hooks"]
        assert {"SessionStart", "UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure"} <= set(hooks)
        assert {group["hooks"][0]["command"] for groups in hooks.values() for group in groups} == {HOOK}
        # One process for each tool would be too dear; only the tool that asks a person is of interest.
        assert hooks["PreToolUse"][0]["matcher"] == "AskUserQuestion"

    @pytest.mark.parametrize("form", ["inline", "equals", "file"])
    def test_settings_of_the_caller_are_kept_beside_ours(self, form, tmp_path) -> None:
        own = {"model": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}
        file = tmp_path / "own.json"
        file.write_text(json.dumps(own), encoding="utf-8")
        words = {
            "inline": ["--settings", json.dumps(own)],
            "equals": [f"--settings={json.dumps(own)}"],
            "file": ["--settings", str(file)],
        }[form]
        launched = launch(*words, "--verbose", hook=HOOK)
        assert launched.argv.count("--settings") == 1
        assert launched.argv[-1] == "--verbose"
        settings = json.loads(option(launched, "--settings"))
        assert settings["model"] == "x"
        assert [group["hooks"][0]["command"] for group in settings["hooks"]["Stop"]] == ["mine", HOOK]

    @pytest.mark.parametrize("text", ["{", "[]", "/no/such/file"])
    def test_settings_that_are_none_are_refused(self, text) -> None:
        with pytest.raises(Usage, match="--settings"):
            launch("--settings", text, hook=HOOK)

    def test_settings_in_a_file_that_depends_on_the_directory_are_refused(
        self, tmp_path, monkeypatch
    ) -> None:
        (tmp_path / "own.json").write_text("{}", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(Usage, match="relative"):
            launch("--settings", "own.json", hook=HOOK)

    @pytest.mark.parametrize("facts", [{"conversation": "N", "resume": True}, {"fork_of": "N"}])
    def test_a_prompt_is_given_once(self, facts) -> None:
        own = ["--add-dir", "/a", "/b", "--verbose"]
        assert launch(*own, "do it", "--model", "opus").argv[-3:] == ["do it", "--model", "opus"]
        assert launch(*own, "do it", "--model", "opus", **facts).argv[-6:] == [*own, "--model", "opus"]
        assert launch(*own, "--", "do it", **facts).argv[-4:] == own

    @pytest.mark.parametrize(
        "word",
        [
            "--resume",
            "-r",
            "-r0123",
            "--continue",
            "-c",
            "--session-id=x",
            "--fork-session",
            "-w",
            "--worktree=x",
            "--bg",
            "--background",
            "--teleport",
            "--no-session-persistence",
            "--tmux",
        ],
    )
    def test_the_conversation_is_mams_to_choose(self, word) -> None:
        with pytest.raises(Usage, match="keeps track"):
            launch(word)

    def test_words_that_only_look_like_a_choice_are_passed(self) -> None:
        words = ["--append-system-prompt", "-rude words are not to be used", "--", "--resume"]
        assert launch(*words).argv[-4:] == words

    def test_skipping_permissions_as_root_is_refused_with_a_way_out(self, monkeypatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(NotAllowed) as refused:
            launch(permissions="skip")
        assert "IS_SANDBOX=1" in refused.value.hint

    @pytest.mark.parametrize(("user", "environ"), [(0, {"IS_SANDBOX": "1"}), (1000, {})])
    def test_skipping_permissions_asks_nothing_more(self, monkeypatch, user, environ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        launched = launch(permissions="skip", environ=environ)
        assert "--dangerously-skip-permissions" in launched.argv
        assert json.loads(option(launched, "--settings")) == {"skipDangerousModePermissionPrompt": True}

    def test_a_store_in_the_home_is_not_moved_by_a_variable_of_another_day(self) -> None:
        assert "CLAUDE_CONFIG_DIR" in launch(stores={"HOME": "/h"}).without
        assert "CLAUDE_CONFIG_DIR" not in launch(stores={"CLAUDE_CONFIG_DIR": "/c"}).without


def test_the_store_is_what_the_caller_has_and_nothing_invented() -> None:
    assert KIND.stores({"HOME": "/h"}) == {"HOME": "/h"}
    assert KIND.stores({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}) == {"CLAUDE_CONFIG_DIR": "/c"}
    assert KIND.stores({"HOME": "/h", "CLAUDE_CONFIG_DIR": ""}) == {"HOME": "/h"}


@pytest.mark.parametrize(("user", "kept"), [(0, {"IS_SANDBOX": "1"}), (1000, {})])
def test_that_root_is_in_a_sandbox_holds_for_a_resume_too(monkeypatch, user, kept) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert KIND.stores({"HOME": "/h", "IS_SANDBOX": "1"}) == {"HOME": "/h", **kept}
    assert KIND.stores({"CLAUDE_CONFIG_DIR": "/c", "IS_SANDBOX": "1"}) == {"CLAUDE_CONFIG_DIR": "/c", **kept}
    assert KIND.stores({"HOME": "/h", "IS_SANDBOX": "0"}) == {"HOME": "/h"}


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("words", "words"),
        ("/etc/passwd is a file", " /etc/passwd is a file"),
        ("!ls", " !ls"),
        ("# heading", "# heading"),
        ("ends in \\", "ends in \\ "),
        ("👩‍👩‍👧 family", "👩‍👩‍👧 family"),
        ("/exit", None),
        ("  /exit now", None),
        ("/", None),
        ("/deploy:all now", None),
        ("zero\u200bwidth", None),
        ("\ufeffmark", None),
        ("exit", None),
        (" :wq ", None),
        ("exit the loop", "exit the loop"),
    ],
)
def test_words_arrive_as_such_or_not_at_all(text, typed) -> None:
    assert KIND.typed(text) == typed


ID = str(uuid.uuid4())


class TestHear:
    @pytest.mark.parametrize(
        ("event", "more", "state", "waiting_for"),
        [
            ("SessionStart", {"source": "startup"}, "idle", None),
            ("SessionStart", {"source": "clear"}, "idle", None),
            ("SessionStart", {"source": "compact"}, None, None),
            ("UserPromptSubmit", {"prompt": "hello"}, "working", None),
            ("PreToolUse", {"tool_name": "AskUserQuestion"}, "waiting", "question"),
            ("PreToolUse", {"tool_name": "Bash"}, None, None),
            ("PermissionRequest", {"tool_name": "Bash"}, "waiting", "permission"),
            ("PermissionRequest", {"tool_name": "AskUserQuestion"}, "waiting", "question"),
            ("PostToolUse", {"tool_name": "Bash"}, "working", None),
            ("PostToolUse", {"tool_name": "Bash", "agent_id": "sub"}, None, None),
            ("Notification", {"notification_type": "permission_prompt"}, "waiting", "permission"),
            ("Notification", {"notification_type": "idle_prompt"}, "idle", None),
            ("Notification", {"notification_type": "something new"}, None, None),
            ("Stop", {}, "idle", None),
            ("StopFailure", {"error": "server_error"}, "idle", None),
            ("SessionEnd", {"reason": "clear"}, None, None),
        ],
    )
    def test_an_event(self, event, more, state, waiting_for) -> None:
        heard = KIND.hear({"hook_event_name": event, "session_id": ID, **more})
        assert heard is not None
        assert (heard.state, heard.waiting_for) == (state, waiting_for)
        assert heard.prompt == more.get("prompt")

    def test_the_end_of_a_conversation_is_not_taken_for_the_one_that_is_open(self) -> None:
        assert KIND.hear({"hook_event_name": "Stop", "session_id": ID}).conversation == ID
        assert KIND.hear({"hook_event_name": "SessionEnd", "session_id": ID}).conversation is None
        assert KIND.hear({"hook_event_name": "Stop", "session_id": "../../x"}).conversation is None

    @given(
        st.dictionaries(
            st.sampled_from(["hook_event_name", "session_id", "prompt", "tool_name", "source", "agent_id"]),
            st.none()
            | st.integers()
            | st.text()
            | st.sampled_from(["Stop", "Notification"])
            | st.lists(st.text()),
        )
    )
    def test_any_payload_can_be_heard(self, payload) -> None:
        heard = KIND.hear(payload)
        assert heard is None or heard.conversation is None or isinstance(heard.conversation, str)
