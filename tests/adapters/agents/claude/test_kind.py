"""The kind of Claude Code: its launch, the texts that arrive, and its hooks."""

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
    def test_mam_adds_only_what_the_request_needs(self) -> None:
        assert launch().argv == ["/bin/claude"]
        assert launch().env == {}

    @pytest.mark.parametrize(
        ("facts", "arguments"),
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
    def test_the_arguments_for_a_request(self, facts, arguments) -> None:
        assert launch(**facts).argv == ["/bin/claude", *arguments]

    def test_the_arguments_of_the_caller_come_last(self) -> None:
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
        # A process for each use of a tool would cost too much; only the tool that asks a person matters.
        assert hooks["PreToolUse"][0]["matcher"] == "AskUserQuestion"

    @pytest.mark.parametrize("form", ["inline", "equals", "file"])
    def test_settings_of_the_caller_stay_beside_those_of_mam(self, form, tmp_path) -> None:
        own = {"model": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}
        file = tmp_path / "own.json"
        file.write_text(json.dumps(own), encoding="utf-8")
        args = {
            "inline": ["--settings", json.dumps(own)],
            "equals": [f"--settings={json.dumps(own)}"],
            "file": ["--settings", str(file)],
        }[form]
        launched = launch(*args, "--verbose", hook=HOOK)
        assert launched.argv.count("--settings") == 1
        assert launched.argv[-1] == "--verbose"
        settings = json.loads(option(launched, "--settings"))
        assert settings["model"] == "x"
        assert [group["hooks"][0]["command"] for group in settings["hooks"]["Stop"]] == ["mine", HOOK]

    @pytest.mark.parametrize("text", ["{", "[]", "/no/such/file"])
    def test_damaged_settings_are_refused(self, text) -> None:
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
    def test_a_resume_does_not_repeat_the_prompt(self, facts) -> None:
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
    def test_options_that_choose_a_conversation_are_refused(self, word) -> None:
        with pytest.raises(Usage, match="keeps track"):
            launch(word)

    def test_values_that_resemble_such_an_option_are_passed(self) -> None:
        args = ["--append-system-prompt", "-rude words are not to be used", "--", "--resume"]
        assert launch(*args).argv[-4:] == args

    def test_skipping_permissions_as_root_is_refused_with_a_hint(self, monkeypatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(NotAllowed) as refused:
            launch(permissions="skip")
        assert "IS_SANDBOX=1" in refused.value.hint

    @pytest.mark.parametrize(("user", "environ"), [(0, {"IS_SANDBOX": "1"}), (1000, {})])
    def test_skipping_permissions_needs_no_confirmation(self, monkeypatch, user, environ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: user)
        launched = launch(permissions="skip", environ=environ)
        assert "--dangerously-skip-permissions" in launched.argv
        assert json.loads(option(launched, "--settings")) == {"skipDangerousModePermissionPrompt": True}

    def test_a_later_variable_does_not_move_a_store_in_the_home(self) -> None:
        assert "CLAUDE_CONFIG_DIR" in launch(stores={"HOME": "/h"}).unset
        assert "CLAUDE_CONFIG_DIR" not in launch(stores={"CLAUDE_CONFIG_DIR": "/c"}).unset


def test_the_store_has_only_variables_of_the_caller() -> None:
    assert KIND.stores({"HOME": "/h"}) == {"HOME": "/h"}
    assert KIND.stores({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}) == {"CLAUDE_CONFIG_DIR": "/c"}
    assert KIND.stores({"HOME": "/h", "CLAUDE_CONFIG_DIR": ""}) == {"HOME": "/h"}


@pytest.mark.parametrize(("user", "sandbox"), [(0, {"IS_SANDBOX": "1"}), (1000, {})])
def test_the_sandbox_of_root_is_kept_for_a_resume(monkeypatch, user, sandbox) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert KIND.stores({"HOME": "/h", "IS_SANDBOX": "1"}) == {"HOME": "/h", **sandbox}
    assert KIND.stores({"CLAUDE_CONFIG_DIR": "/c", "IS_SANDBOX": "1"}) == {
        "CLAUDE_CONFIG_DIR": "/c",
        **sandbox,
    }
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
def test_a_text_arrives_as_text_or_is_refused(text, typed) -> None:
    assert KIND.text_to_type(text) == typed


ID = str(uuid.uuid4())


class TestReadHook:
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
        hook_event = KIND.read_hook({"hook_event_name": event, "session_id": ID, **more})
        assert hook_event is not None
        assert (hook_event.state, hook_event.waiting_for) == (state, waiting_for)
        assert hook_event.prompt == more.get("prompt")

    def test_the_event_of_an_end_does_not_name_the_open_conversation(self) -> None:
        assert KIND.read_hook({"hook_event_name": "Stop", "session_id": ID}).conversation == ID
        assert KIND.read_hook({"hook_event_name": "SessionEnd", "session_id": ID}).conversation is None
        assert KIND.read_hook({"hook_event_name": "Stop", "session_id": "../../x"}).conversation is None

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
    def test_any_payload_can_be_read(self, payload) -> None:
        hook_event = KIND.read_hook(payload)
        assert (
            hook_event is None or hook_event.conversation is None or isinstance(hook_event.conversation, str)
        )
