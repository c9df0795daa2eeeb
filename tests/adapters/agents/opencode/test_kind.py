"""The kind of opencode: its launch, the reports of its plugin, and the texts that arrive."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.adapters.agents.kind import Request
from mam.adapters.agents.opencode.kind import PLUGIN, Opencode
from mam.core.errors import Usage

KIND = Opencode()
HOOK = "exec /bin/sh /x/hook.sh '/x/the spool'"
PLUGIN_URL = f"file://{PLUGIN}"
ID = "ses_e20b671d5ffeqObm2iHiBGaPq4"


def launch(*args, **facts):
    facts = {"environ": {}, "stores": {"XDG_DATA_HOME": "/d"}} | facts
    return KIND.launch(Request(command=["opencode", *args], program="/bin/opencode", **facts))


def config(launched):
    return json.loads(launched.env["OPENCODE_CONFIG_CONTENT"])


class TestLaunch:
    def test_mam_adds_only_what_the_request_needs(self) -> None:
        assert launch().argv == ["/bin/opencode"]
        assert launch().env == {}
        assert launch(environ={"OPENCODE_CONFIG_CONTENT": "// mine"}).env == {}

    @pytest.mark.parametrize(
        ("facts", "args"),
        [
            ({"conversation": ID, "resume": True}, ["--session", ID]),
            ({"conversation": ID}, []),
            ({"fork_of": ID}, ["--session", ID, "--fork"]),
            ({"permissions": "default"}, []),
            ({"permissions": "ask"}, []),
            ({"permissions": "auto"}, ["--auto"]),
            ({"permissions": "skip"}, ["--auto"]),
            ({"model": "a/b/c"}, ["--model", "a/b/c"]),
        ],
    )
    def test_the_arguments_for_a_request(self, facts, args) -> None:
        assert launch("--agent", "plan", **facts).argv == ["/bin/opencode", *args, "--agent", "plan"]

    def test_the_launch_passes_the_plugin_and_the_spool(self) -> None:
        launched = launch(hook=HOOK)
        assert config(launched) == {"plugin": [PLUGIN_URL]}
        assert launched.env["MAM_SPOOL"] == "/x/the spool"
        assert Path(PLUGIN).is_file()

    def test_the_configuration_of_the_caller_stays_beside_that_of_mam(self) -> None:
        own = {
            "model": "x/y",
            "plugin": ["theirs", PLUGIN_URL],
            "permission": {"read": "deny", "bash": "allow"},
        }
        launched = launch(hook=HOOK, permissions="ask", environ={"OPENCODE_CONFIG_CONTENT": json.dumps(own)})
        merged = config(launched)
        assert merged["model"] == "x/y"
        assert merged["plugin"] == ["theirs", PLUGIN_URL], "once, also for an opencode inside an opencode"
        assert merged["permission"]["read"] == "deny"
        assert {merged["permission"][name] for name in ("bash", "edit", "webfetch", "*_*")} == {"ask"}

    @pytest.mark.parametrize("text", ["// mine\n{}", "[]", "{", "[" * 100_000])
    def test_a_configuration_that_is_no_json_is_refused(self, text) -> None:
        with pytest.raises(Usage, match="OPENCODE_CONFIG_CONTENT"):
            launch(hook=HOOK, environ={"OPENCODE_CONFIG_CONTENT": text})

    @pytest.mark.parametrize("own", [{"plugin": "one"}, {"permission": "allow"}])
    def test_values_of_another_type_are_no_obstacle(self, own) -> None:
        launched = launch(hook=HOOK, permissions="ask", environ={"OPENCODE_CONFIG_CONTENT": json.dumps(own)})
        assert config(launched)["plugin"] == [PLUGIN_URL]
        assert config(launched)["permission"]["bash"] == "ask"

    @pytest.mark.parametrize(
        "args",
        [
            ["--session", ID],
            [f"--session={ID}"],
            ["-s", ID],
            [f"-s{ID}"],
            ["--continue"],
            ["-c"],
            ["--fork"],
        ],
    )
    def test_options_that_choose_a_conversation_are_refused(self, args) -> None:
        with pytest.raises(Usage, match="only mam may pass"):
            launch(*args)

    def test_values_that_resemble_such_an_option_are_passed(self) -> None:
        args = ["--cors", "x", "--prompt", "-s is an option", "--agent=-c"]
        assert launch(*args).argv == ["/bin/opencode", *args]

    @pytest.mark.parametrize(
        "args", [["run", "x"], ["--pure", "/elsewhere"], ["--port", "1", "."], ["--", "x"]]
    )
    def test_a_command_or_a_directory_is_refused(self, args) -> None:
        with pytest.raises(Usage, match="command or a directory"):
            launch(*args)

    @pytest.mark.parametrize("facts", [{"conversation": ID, "resume": True}, {"fork_of": ID}])
    @pytest.mark.parametrize("args", [["--prompt", "do it"], ["--prompt=do it"]])
    def test_a_resume_does_not_repeat_the_prompt(self, facts, args) -> None:
        assert launch("--mdns", *args, "--agent", "x").argv == [
            "/bin/opencode",
            "--mdns",
            *args,
            "--agent",
            "x",
        ]
        assert launch("--mdns", *args, "--agent", "x", **facts).argv[-3:] == ["--mdns", "--agent", "x"]

    @pytest.mark.parametrize("model", ["opus", "/x", "x/", "/"])
    def test_a_model_without_its_provider_is_refused(self, model) -> None:
        with pytest.raises(Usage, match="not the name of a model"):
            launch(model=model)

    def test_a_launch_without_plugins_has_a_note(self) -> None:
        assert launch().notes == ()
        assert "--pure" in launch("--pure").notes[0]
        assert launch(environ={"OPENCODE_PURE": "1"}).notes

    def test_what_an_outer_opencode_set_is_not_inherited(self) -> None:
        assert set(launch().unset) == {"AGENT", "OPENCODE_DB"}
        chosen = launch(stores={"XDG_DATA_HOME": "/d", "OPENCODE_DB": "/d/mine.db"})
        assert "OPENCODE_DB" not in chosen.unset

    def test_a_fork_shows_no_box_before_it_exists(self) -> None:
        assert json.loads(launch(fork_of=ID).env["OPENCODE_ROUTE"])["type"] == "plugin"
        assert "OPENCODE_ROUTE" not in launch(conversation=ID, resume=True).env


class TestReadHook:
    def read(self, **facts):
        return KIND.read_hook({"agent": "opencode", "session": ID} | facts)

    @pytest.mark.parametrize(
        ("facts", "state", "waiting_for"),
        [
            ({"event": "session.created", "title": "New session - 2026"}, "working", None),
            ({"event": "session.created", "title": "A title (fork #12)"}, "idle", None),
            ({"event": "chat.message", "prompt": "x"}, "working", None),
            ({"event": "session.status", "status": "busy"}, "working", None),
            ({"event": "session.status", "status": "retry", "message": "500"}, "working", None),
            ({"event": "session.status", "status": "retry", "reason": "free_tier_limit"}, "waiting", "limit"),
            ({"event": "session.status", "status": "idle"}, "idle", None),
            ({"event": "session.status", "status": "new"}, None, None),
            ({"event": "session.status"}, None, None),
            ({"event": "session.error", "message": "x"}, "idle", None),
            ({"event": "asked", "waiting_for": "permission"}, "waiting", "permission"),
            ({"event": "asked", "waiting_for": "question"}, "waiting", "question"),
            ({"event": "asked", "waiting_for": "money"}, None, None),
            ({"event": "replied"}, "working", None),
            # Another request is still open.
            ({"event": "replied", "waiting_for": "permission"}, "waiting", "permission"),
        ],
    )
    def test_events(self, facts, state, waiting_for) -> None:
        hook_event = self.read(**facts)
        assert (hook_event.event, hook_event.state, hook_event.waiting_for) == (
            facts["event"],
            state,
            waiting_for,
        )
        assert hook_event.conversation == ID

    @pytest.mark.parametrize(
        "payload",
        [
            {},
            {"hook_event_name": "Stop"},
            {"agent": "opencode"},
            {"agent": "opencode", "event": "other"},
            {"agent": "opencode", "event": ["asked"]},
            {"event": "session.status", "status": "idle"},
        ],
    )
    def test_a_payload_of_another_program_is_ignored(self, payload) -> None:
        assert KIND.read_hook(payload) is None

    @pytest.mark.parametrize("session", [None, 7, "", "../x", "ses_", "ses_a/../../b"])
    def test_a_damaged_id_is_ignored(self, session) -> None:
        assert self.read(event="replied", session=session).conversation is None

    def test_only_the_process_of_the_pane_is_the_agent(self) -> None:
        assert KIND.is_agent_process(7, 7)
        assert not KIND.is_agent_process(8, 7)


class TestTextToType:
    @pytest.mark.parametrize(
        ("text", "typed"),
        [
            ("hello", "hello"),
            ("hello  \n", "hello"),
            ("  indented", "  indented"),
            ("/etc/passwd is a file", " /etc/passwd is a file"),
            ("!important", " !important"),
            ("# heading", "# heading"),
            ("@file is here", "@file is here"),
            ("look at @file", "look at @file "),
            ("@", "@ "),
            ("mail a@b", "mail a@b"),
            ("ends in \\", "ends in \\"),
            ("one\ntwo", "one\ntwo"),
            ("\n one\ntwo\nthree \n", "one\ntwo\nthree"),
            ("x" * 151 + " ", "x" * 151),
            ("describe cat.png please", "describe cat.png please"),
        ],
    )
    def test_what_mam_types(self, text, typed) -> None:
        assert KIND.text_to_type(text) == typed

    @pytest.mark.parametrize(
        "text",
        ["exit", " quit ", ":q", "cat.png", "'/a/b.PDF'", "/x\n\ny", "!x\ny\nz", "/" + "x" * 200],
    )
    def test_a_text_that_would_not_arrive_is_refused(self, text) -> None:
        assert KIND.text_to_type(text) is None

    @given(st.text(min_size=1))
    def test_the_report_has_the_text_that_mam_typed(self, text) -> None:
        typed = KIND.text_to_type(text)
        if typed is None or not text.strip():
            return
        assert typed.strip() == text.strip()
        # opencode decides by the text without spaces and line ends around it.
        is_folded = len(typed.strip()) > 150 or typed.strip().count("\n") >= 2
        sent = f"{typed} " if is_folded else typed
        hook_event = KIND.read_hook(
            {"agent": "opencode", "event": "chat.message", "session": ID, "prompt": sent}
        )
        assert hook_event.prompt == typed


def test_nothing_is_typed_while_it_works() -> None:
    """A dialog that is just opening would take the Enter, and allow what it asks for."""
    assert not KIND.queues
