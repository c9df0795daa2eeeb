"""opencode as a kind: what it is launched with, what its plugin says, and which words arrive."""

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
OURS = f"file://{PLUGIN}"
ID = "ses_e20b671d5ffeqObm2iHiBGaPq4"


def launch(*args, **facts):
    facts = {"environ": {}, "stores": {"XDG_DATA_HOME": "/d"}} | facts
    return KIND.launch(Request(command=["opencode", *args], program="/bin/opencode", **facts))


def config(launched):
    return json.loads(launched.env["OPENCODE_CONFIG_CONTENT"])


class TestLaunch:
    def test_nothing_is_passed_that_was_not_asked_for(self) -> None:
        assert launch().argv == ["/bin/opencode"]
        assert launch().env == {}
        assert launch(environ={"OPENCODE_CONFIG_CONTENT": "// mine"}).env == {}

    @pytest.mark.parametrize(
        ("facts", "words"),
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
    def test_words_for_a_wish(self, facts, words) -> None:
        assert launch("--agent", "plan", **facts).argv == ["/bin/opencode", *words, "--agent", "plan"]

    def test_the_plugin_is_of_this_launch_and_knows_the_spool(self) -> None:
        launched = launch(hook=HOOK)
        assert config(launched) == {"plugin": [OURS]}
        assert launched.env["MAM_SPOOL"] == "/x/the spool"
        assert Path(PLUGIN).is_file()

    def test_a_configuration_of_the_caller_is_kept_beside_ours(self) -> None:
        own = {"model": "x/y", "plugin": ["theirs", OURS], "permission": {"read": "deny", "bash": "allow"}}
        launched = launch(hook=HOOK, permissions="ask", environ={"OPENCODE_CONFIG_CONTENT": json.dumps(own)})
        found = config(launched)
        assert found["model"] == "x/y"
        assert found["plugin"] == ["theirs", OURS], "once, also for an opencode inside an opencode"
        assert found["permission"]["read"] == "deny"
        assert {found["permission"][name] for name in ("bash", "edit", "webfetch", "*_*")} == {"ask"}

    @pytest.mark.parametrize("text", ["// mine\n{}", "[]", "{", "[" * 100_000])
    def test_a_configuration_that_is_no_json_is_refused(self, text) -> None:
        with pytest.raises(Usage, match="OPENCODE_CONFIG_CONTENT"):
            launch(hook=HOOK, environ={"OPENCODE_CONFIG_CONTENT": text})

    @pytest.mark.parametrize("mine", [{"plugin": "one"}, {"permission": "allow"}])
    def test_values_of_another_type_are_no_obstacle(self, mine) -> None:
        launched = launch(hook=HOOK, permissions="ask", environ={"OPENCODE_CONFIG_CONTENT": json.dumps(mine)})
        assert config(launched)["plugin"] == [OURS]
        assert config(launched)["permission"]["bash"] == "ask"

    @pytest.mark.parametrize(
        "words",
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
    def test_a_choice_of_conversation_is_refused(self, words) -> None:
        with pytest.raises(Usage, match="for mam to pass"):
            launch(*words)

    def test_what_only_looks_like_a_choice_is_passed_on(self) -> None:
        words = ["--cors", "x", "--prompt", "-s is an option", "--agent=-c"]
        assert launch(*words).argv == ["/bin/opencode", *words]

    @pytest.mark.parametrize(
        "words", [["run", "x"], ["--pure", "/elsewhere"], ["--port", "1", "."], ["--", "x"]]
    )
    def test_a_command_or_a_directory_is_refused(self, words) -> None:
        with pytest.raises(Usage, match="command or a directory"):
            launch(*words)

    @pytest.mark.parametrize("facts", [{"conversation": ID, "resume": True}, {"fork_of": ID}])
    @pytest.mark.parametrize("words", [["--prompt", "do it"], ["--prompt=do it"]])
    def test_a_prompt_is_given_once(self, facts, words) -> None:
        assert launch("--mdns", *words, "--agent", "x").argv == [
            "/bin/opencode",
            "--mdns",
            *words,
            "--agent",
            "x",
        ]
        assert launch("--mdns", *words, "--agent", "x", **facts).argv[-3:] == ["--mdns", "--agent", "x"]

    @pytest.mark.parametrize("model", ["opus", "/x", "x/", "/"])
    def test_a_model_without_its_provider_is_refused(self, model) -> None:
        with pytest.raises(Usage, match="no model of opencode"):
            launch(model=model)

    def test_without_plugins_mam_says_what_it_misses(self) -> None:
        assert launch().notes == ()
        assert "--pure" in launch("--pure").notes[0]
        assert launch(environ={"OPENCODE_PURE": "1"}).notes

    def test_what_an_outer_opencode_set_is_not_inherited(self) -> None:
        assert set(launch().without) == {"AGENT", "OPENCODE_DB"}
        chosen = launch(stores={"XDG_DATA_HOME": "/d", "OPENCODE_DB": "/d/mine.db"})
        assert "OPENCODE_DB" not in chosen.without

    def test_a_fork_shows_no_box_before_it_is_there(self) -> None:
        assert json.loads(launch(fork_of=ID).env["OPENCODE_ROUTE"])["type"] == "plugin"
        assert "OPENCODE_ROUTE" not in launch(conversation=ID, resume=True).env


class TestHear:
    def hear(self, **facts):
        return KIND.hear({"agent": "opencode", "session": ID} | facts)

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
            # Another one is still open.
            ({"event": "replied", "waiting_for": "permission"}, "waiting", "permission"),
        ],
    )
    def test_events(self, facts, state, waiting_for) -> None:
        heard = self.hear(**facts)
        assert (heard.event, heard.state, heard.waiting_for) == (facts["event"], state, waiting_for)
        assert heard.conversation == ID

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
    def test_what_is_not_of_the_plugin(self, payload) -> None:
        assert KIND.hear(payload) is None

    @pytest.mark.parametrize("session", [None, 7, "", "../x", "ses_", "ses_a/../../b"])
    def test_an_id_that_is_none(self, session) -> None:
        assert self.hear(event="replied", session=session).conversation is None

    def test_only_the_process_of_the_pane_is_heard(self) -> None:
        assert KIND.is_voice(7, 7)
        assert not KIND.is_voice(8, 7)


class TestTyped:
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
    def test_words(self, text, typed) -> None:
        assert KIND.typed(text) == typed

    @pytest.mark.parametrize(
        "text",
        ["exit", " quit ", ":q", "cat.png", "'/a/b.PDF'", "/x\n\ny", "!x\ny\nz", "/" + "x" * 200],
    )
    def test_what_would_not_arrive_is_refused(self, text) -> None:
        assert KIND.typed(text) is None

    @given(st.text(min_size=1))
    def test_what_is_typed_is_what_is_heard(self, text) -> None:
        typed = KIND.typed(text)
        if typed is None or not text.strip():
            return
        assert typed.strip() == text.strip()
        is_folded = len(typed) > 150 or typed.count("\n") >= 2
        sent = f"{typed} " if is_folded else typed
        heard = KIND.hear({"agent": "opencode", "event": "chat.message", "session": ID, "prompt": sent})
        assert heard.prompt == typed
