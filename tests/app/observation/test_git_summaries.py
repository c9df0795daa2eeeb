"""Summaries of many directories: kept for ten seconds, renewed by one thread with one git at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.adapters.git.repository import Repository, environment
from tests.processes import is_running
from tests.waiting import wait_until

from mam.adapters.git.summary import Summary
from mam.app.observation import git_summaries
from mam.app.observation.git_summaries import FRESH_SECONDS, GitSummaries

# Longer than any answer of these tests is kept.
LONG = 10 * FRESH_SECONDS


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class FakeGit:
    """Stands in for git: counts its runs, and can be held up."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.runs: list[str] = []
        self.seconds = 0.0
        self.free = threading.Event()
        self.free.set()
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self, directory, environ, *, seconds, cancel) -> Summary:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.runs.append(Path(directory).name)
        self.free.wait()
        self.clock.time += self.seconds
        self.at_once -= 1
        return Summary("main", False, len(self.runs), False)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def git(clock):
    return FakeGit(clock)


@pytest.fixture
def summaries(git, clock):
    with GitSummaries(now=clock, summarize=git) as made:
        yield made
        git.free.set()


@pytest.fixture
def places(tmp_path) -> list[str]:
    """Three directories."""
    made = [tmp_path / name for name in ("one", "two", "three")]
    for place in made:
        place.mkdir()
    return [str(place) for place in made]


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def wait_for_answers(summaries: GitSummaries, places: list[str]) -> dict[str, Summary | None]:
    wait_until(lambda: all(summaries.get(places).values()), "the answers")
    return summaries.get(places)


class TestGet:
    def test_nothing_is_known_at_first_and_nobody_waits(self, summaries, git, places) -> None:
        git.free.clear()
        assert summaries.get(places) == dict.fromkeys(places)
        wait_until(lambda: git.runs, "the first run")
        assert summaries.get(places) == dict.fromkeys(places)

    def test_what_is_known_is_kept_for_ten_seconds(self, summaries, git, clock, places) -> None:
        found = wait_for_answers(summaries, places)
        assert sorted(git.runs) == ["one", "three", "two"]
        clock.time += FRESH_SECONDS - 0.1
        assert summaries.get(places) == found
        assert not summaries._wanted

    def test_what_is_older_is_renewed_and_shown_until_then(self, summaries, git, clock, places) -> None:
        found = wait_for_answers(summaries, places)
        clock.time += FRESH_SECONDS
        git.free.clear()
        assert summaries.get(places) == found
        wait_until(lambda: len(git.runs) == 4, "the first run")
        assert summaries.get(places) == found
        git.free.set()
        wait_until(lambda: len(git.runs) == 6, "the other runs")
        wait_until(lambda: summaries.get(places)[places[1]] != found[places[1]], "a new answer")

    def test_names_of_one_directory_share_a_run(self, summaries, git, places, tmp_path) -> None:
        (tmp_path / "link").symlink_to("one")
        names = [places[0], str(tmp_path / "link"), f"{places[0]}/../one"]
        found = wait_for_answers(summaries, names)
        assert len(set(found.values())) == 1
        assert git.runs == ["one"]

    def test_one_git_at_a_time(self, summaries, git, places) -> None:
        threads = [threading.Thread(target=summaries.refresh_now, args=([place],)) for place in places]
        for thread in threads:
            thread.start()
        wait_for_answers(summaries, places)
        for thread in threads:
            thread.join()
        assert git.most_at_once == 1

    def test_an_unknown_directory_does_not_wait_for_known_ones(self, summaries, git, clock, places) -> None:
        wait_for_answers(summaries, places[:1])
        clock.time += FRESH_SECONDS
        git.seconds = 1.0
        wait_for_answers(summaries, places[:2])
        # The thread rests now before it renews what is known.
        wait_for_answers(summaries, places[2:])
        assert git.runs == ["one", "two", "three"]
        clock.time += git_summaries._LONGEST_REST
        summaries.get(places)
        wait_until(lambda: len(git.runs) == 4, "the renewal")
        assert git.runs[3] == "one"

    def test_a_slow_answer_is_kept_longer(self, summaries, git, clock, places) -> None:
        git.seconds = 0.4
        wait_for_answers(summaries, places[:1])
        clock.time += 19
        summaries.get(places[:1])
        assert not summaries._wanted
        clock.time += 1
        summaries.get(places[:1])
        wait_until(lambda: len(git.runs) == 2, "the second run")

    def test_what_nobody_asks_for_is_forgotten(self, summaries, clock, places) -> None:
        wait_for_answers(summaries, places[:2])
        clock.time += git_summaries._FORGOTTEN_SECONDS + LONG
        wait_for_answers(summaries, places[2:])
        assert set(summaries._answers) == set(summaries._real) == {places[2]}

    @pytest.mark.parametrize("directory", ["", ".", "/gone", "/a\0b"])
    def test_a_directory_that_is_none(self, env, directory) -> None:
        with GitSummaries(env) as summaries:
            assert summaries.get([directory]) == {directory: None}
            assert summaries.refresh_now([directory]) == {directory: None}

    def test_without_a_descriptor_or_a_thread_it_tries_again_later(
        self, summaries, git, places, monkeypatch
    ) -> None:
        def refuse(*_):
            raise OSError("no descriptor")

        def refuse_thread(*_):
            raise RuntimeError("can't start new thread")

        before = descriptors()
        with monkeypatch.context() as patch:
            patch.setattr(git_summaries.os, "pipe", refuse)
            assert summaries.get(places) == dict.fromkeys(places)
        with monkeypatch.context() as patch:
            patch.setattr(git_summaries.Thread, "start", refuse_thread)
            assert summaries.get(places) == dict.fromkeys(places)
        assert descriptors() == before
        wait_for_answers(summaries, places)


class TestRefreshNow:
    def test_it_answers_at_once_and_starts_no_thread(self, summaries, git, clock, places) -> None:
        assert summaries.refresh_now(places)[places[2]] == Summary("main", False, 3, False)
        assert summaries._thread is None
        clock.time += FRESH_SECONDS - 0.1
        summaries.refresh_now(places)
        assert git.runs == ["one", "two", "three"]
        clock.time += 0.1
        summaries.refresh_now(places)
        assert len(git.runs) == 6

    def test_it_waits_no_longer_than_it_may_for_another_git(self, summaries, git, places) -> None:
        git.free.clear()
        summaries.get(places[:1])
        wait_until(lambda: git.runs, "the run of the thread")
        assert summaries.refresh_now(places, seconds=0.01) == dict.fromkeys(places)
        assert git.runs == ["one"]


class TestClose:
    def test_it_ends_the_thread_and_no_descriptor_is_left(self, git, clock, places) -> None:
        before = descriptors()
        with GitSummaries(now=clock, summarize=git) as summaries:
            wait_for_answers(summaries, places)
            thread = summaries._thread
            assert thread.is_alive()
        assert not thread.is_alive()
        summaries.close()
        assert descriptors() == before

    def test_a_closed_one_answers_and_starts_nothing(self, git, clock, places) -> None:
        with GitSummaries(now=clock, summarize=git) as summaries:
            found = wait_for_answers(summaries, places)
        clock.time += LONG
        assert summaries.get(places) == found
        assert summaries._thread is None

    def test_it_ends_git_and_what_that_started(self, env, tmp_path) -> None:
        repo = Repository(tmp_path / "repo", env)
        folder = tmp_path / "fake"
        folder.mkdir()
        (folder / "git").write_text(
            f"#!/bin/sh\nsleep 600 &\necho $! > {folder}/child\necho $$ > {folder}/pid\nwait\n",
            encoding="utf-8",
        )
        (folder / "git").chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(git_summaries, "SECONDS", 3600.0)
            with GitSummaries({**env, "PATH": f"{folder}:{env['PATH']}"}) as summaries:
                summaries.get([str(repo.top)])
                pid = folder / "pid"
                wait_until(lambda: pid.exists() and pid.read_text("utf-8").endswith("\n"), "the fake git")
                thread = summaries._thread
        assert not thread.is_alive()
        for name in ("pid", "child"):
            number = int((folder / name).read_text(encoding="utf-8"))
            wait_until(lambda number=number: not is_running(number), f"the end of {name}")


@pytest.fixture
def env(tmp_path):
    return environment(tmp_path)


def test_of_a_real_repository(env, tmp_path) -> None:
    repo = Repository(tmp_path / "repo", env)
    repo.commit()
    with GitSummaries(env) as summaries:
        wait_until(lambda: summaries.get([str(repo.top)])[str(repo.top)], "the answer")
        assert summaries.get([str(repo.top)]) == {str(repo.top): Summary("main", False, 0, False)}
