"""The page and the chart of the comparison with other programs, and the parts of it that start nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.peers import chart, page
from bench.peers.comparison import DOCS, RESULTS, as_numbers
from bench.peers.fake_claude import Fake, context_of, hook_commands, read_options
from bench.peers.programs import PINS, PROGRAMS, Hcom, Libtmux, TmuxCli, version_of
from bench.peers.texts import hard_texts, word_of
from bench.peers.works import difference, is_exact, is_heard, verdict

ROOT = Path(__file__).resolve().parent.parent


def measured(**medians: float) -> dict:
    """Return results in which each program took its median for one work."""
    works = {name: {"send": {"median": value, "best": value, "runs": 1}} for name, value in medians.items()}
    return {
        "quick": False,
        "rounds": 1,
        "machine": {"cores": 2, "memory GB": 4, "system": "Linux", "python": "3.11.1", "tmux": "3.3"},
        "programs": [
            {"name": name, "version": "1", "works": work, "failures": {}, "facts": {}}
            for name, work in works.items()
        ],
    }


def prompt(text: str) -> dict:
    return {"event": "text", "text": text}


class TestPage:
    def test_it_is_what_the_last_results_say(self):
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        assert (DOCS / "benchmarks.md").read_text(encoding="utf-8") == page.render(results)
        assert (DOCS / "benchmarks.svg").read_text(encoding="utf-8") == chart.draw(results)

    def test_the_results_are_those_of_a_full_run_of_the_pinned_versions(self):
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        assert not results["quick"]
        assert [one["name"] for one in results["programs"]] == [kind.name for kind in PROGRAMS]
        pinned = [one["version"] for one in results["programs"] if one["name"] in PINS]
        assert pinned == [version_of(name) for name in PINS]

    def test_it_names_neither_a_date_nor_a_path_of_the_machine(self):
        text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
        assert re.findall(r"\b20\d\d-|/home/|/root/|/tmp/mam|https?://", text) == []

    def test_a_work_in_which_another_is_faster_is_marked(self):
        programs = measured(mam=100, CAO=150, hcom=25)["programs"]
        assert [page.time_cell(one, programs[0], "send") for one in programs] == [
            "100",
            "150 (1.5 x)",
            "**25 (0.25 x)**",
        ]
        assert page.place_of_mam(programs, "send") == "2nd of 3"
        assert page.place_of_mam(programs[:2], "send") == "fastest"

    def test_a_work_without_a_number_is_not_left_out(self):
        results = measured(mam=100, CAO=150)
        assert "| list, 10 sessions | n/a | n/a | n/a |" in page.render(results)

    def test_a_program_that_could_not_be_installed_says_why(self):
        results = measured(mam=100, CAO=150)
        results["programs"][1] |= {"works": {}, "failures": {"install": "cannot be installed here: no wheel"}}
        text = page.render(results)
        assert "| CAO | n/a | cannot be installed here: no wheel |" in text
        assert "- CAO, install: cannot be installed here: no wheel" in text

    @pytest.mark.parametrize(("place", "words"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (6, "6th")])
    def test_places(self, place, words):
        assert page.ordinal(place) == words

    def test_texts_with_the_same_fate_are_named_together(self):
        seen = {"one": "Terminal 0a1b2c3d is busy", "two": "cut", "three": "Terminal ffffffff is busy"}
        assert page.others(seen) == "one, three: Terminal ID is busy; two: cut"
        assert page.others({}) == "-"

    def test_a_bar_of_seen_words_does_not_break_a_table(self):
        assert page.cell("a | b\nc") == "a \\| b c"

    def test_times_keep_their_median_and_their_best(self):
        assert as_numbers([3.0, 1.0, 2.0]) == {"median": 2.0, "best": 1.0, "runs": 3}


class TestChart:
    def test_each_program_has_a_bar_as_long_as_its_time(self):
        drawing = ElementTree.fromstring(chart.draw(measured(mam=100, CAO=200, hcom=50)))
        bars = [bar for bar in drawing.iter() if bar.get("class") in ("mam", "bar")]
        widths = [float(bar.get("width", "")) for bar in bars]
        assert widths == [chart.LONGEST / 2, chart.LONGEST, chart.LONGEST / 4]

    def test_a_work_that_was_not_done_has_no_bar_but_a_word(self):
        texts = [one.text for one in ElementTree.fromstring(chart.draw(measured(mam=100, CAO=2000))).iter()]
        assert texts.count("n/a") == 2 * (len(chart.PANELS) - 1)
        assert "2.0 s" in texts


class TestPrograms:
    def test_a_handle_is_found_as_a_whole_word(self):
        assert Libtmux.is_listed(None, "agent-1", "['agent-1', 'agent-22']")  # type: ignore[arg-type]
        assert not Libtmux.is_listed(None, "agent-2", "['agent-1', 'agent-22']")  # type: ignore[arg-type]

    def test_tmux_cli_lists_windows_by_their_number(self):
        shown = "Windows in session 'remote-cli-session':\n  0: bash - pane %0\n  12: python - pane %1\n"
        assert TmuxCli.is_listed(None, "remote-cli-session:12", shown)  # type: ignore[arg-type]
        assert not TmuxCli.is_listed(None, "remote-cli-session:2", shown)  # type: ignore[arg-type]

    def test_hcom_shows_stopped_sessions_too_and_they_do_not_count(self):
        program = object.__new__(Hcom)
        shown = "◉ vida now: listening\n\nRecently stopped (10m): mube\n"
        assert (program.is_listed("vida", shown), program.is_listed("mube", shown)) == (True, False)

    def test_every_program_names_a_command_for_each_work(self):
        assert all(set(kind.commands) == {"create", "list", "send", "stop"} for kind in PROGRAMS)


class TestTexts:
    def test_there_are_twenty_and_each_has_a_word_of_its_own(self):
        texts = hard_texts()
        words = {word_of(text) for text in texts.values()}
        assert len(texts) == len(words) == 20
        assert all(sum(word in text for text in texts.values()) == 1 for word in words)
        assert len(texts["10 KB in one line"].encode()) > 10_000

    @pytest.mark.parametrize(
        ("heard", "words"),
        [
            (" /a text01", "with a space before it"),
            ("/a text01 ", "with a space after it"),
            ("/a", "only the first 2 of 9 characters"),
            ("text01", "only the last 6 of 9 characters"),
            ("/b text01", "changed: '/b text01'"),
        ],
    )
    def test_a_difference_is_said_in_words(self, heard, words):
        assert difference("/a text01", heard) == words

    def test_how_a_text_arrived(self):
        first = "first text91"
        assert verdict([prompt(first)], first) == "arrived"
        assert verdict([prompt(first), prompt(first)], first) == "arrived 2 times"
        assert verdict([prompt("first text91second text92")], first) == "arrived together with another text"
        assert verdict([prompt("text92")], first) == "did not arrive"

    def test_a_context_of_a_hook_counts_except_at_the_start(self):
        event = {"event": "context", "hook": "UserPromptSubmit", "text": "<m>go text01</m>"}
        assert is_heard(event, "text01")
        assert is_exact(event, "go text01")
        assert not is_heard({**event, "hook": "SessionStart"}, "text01")


class TestFake:
    @pytest.fixture
    def fake(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr("bench.peers.fake_claude.HERE", tmp_path)
        monkeypatch.chdir(tmp_path)
        return Fake({})

    def heard(self, folder: Path) -> list[str]:
        record = folder / "heard.jsonl"
        lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
        return [json.loads(line)["text"] for line in lines]

    @pytest.mark.parametrize(
        ("typed", "texts"),
        [
            (b"hello\r", ["hello"]),
            (b"one\ntwo\r", ["one\ntwo"]),
            (b"one\\\rtwo\r", ["one\ntwo"]),
            (b"\x1b[200~one\rtwo\x1b[201~\r", ["one\ntwo"]),
            ("grün 🚀\r".encode(), ["grün 🚀"]),
            (b"draft\x15new\r", ["new"]),
            (b"ab\x7fc\r", ["ac"]),
            (b"a\x1b[Ab\r", ["ab"]),
            (b"one\rtwo\r", ["one", "two"]),
        ],
    )
    @pytest.mark.parametrize("step", [1, 3, 1000])
    def test_what_is_typed_arrives_however_it_is_cut(self, fake, tmp_path, typed, texts, step):
        held = b""
        for at in range(0, len(typed), step):
            held = fake.take(held + typed[at : at + step])
        assert self.heard(tmp_path) == texts

    def test_options_and_hooks(self):
        assert read_options(["--settings", "{}", "--session-id=x", "-p"]) == {
            "--settings": "{}",
            "--session-id": "x",
        }
        hooks = [{"type": "command", "command": "a b"}, {"command": "c", "args": ["d"]}]
        found = hook_commands([{"hooks": {"Stop": [{"hooks": hooks}]}}])
        assert found == {"Stop": [["/bin/sh", "-c", "a b"], ["c", "d"]]}

    @pytest.mark.parametrize(
        ("out", "context"),
        [
            ("plain", "plain"),
            ('{"hookSpecificOutput": {"additionalContext": "more"}}', "more"),
            ('{"decision": "block", "reason": "go on"}', "go on"),
            ("{}", ""),
        ],
    )
    def test_what_a_hook_tells_the_model(self, out, context):
        assert context_of(out) == context
