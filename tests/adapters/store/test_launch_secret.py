"""Launch secrets: private, known by digest alone, and gone with their launch."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.waiting import wait_until

from mam.adapters.store import launch_secret
from mam.adapters.store.user_state import UserState
from mam.adapters.system import process

NOW = 1_700_000_000.0


@pytest.fixture
def state(quick_path):
    opened = UserState(str(quick_path / "state"), lambda: NOW)
    yield opened
    opened.close()


def begin(state, root="r1", session="s_1"):
    file = state.new_secret_file()
    state.begin_secret(root, session, file)
    return file


def files(state):
    return {str(path) for path in Path(state.launches_folder).iterdir()}


@pytest.mark.promise("P43")
def test_the_secret_is_private_and_only_its_digest_is_recorded(state) -> None:
    file = begin(state)
    for path, mode in ((file, 0o600), (state.folder, 0o700), (state.launches_folder, 0o700)):
        assert stat.S_IMODE(Path(path).stat().st_mode) == mode
    secret = Path(file).read_bytes()
    assert len(bytes.fromhex(secret.decode())) == 32
    state.close()
    database = b"".join(path.read_bytes() for path in Path(state.folder).glob("user.db*"))
    assert secret not in database
    assert launch_secret.digest_in(file).encode() in database


def test_it_proves_one_session_of_one_root(state) -> None:
    file, other = begin(state), begin(state, session="s_2")
    assert state.session_with_secret("r1", file) == "s_1"
    assert state.session_with_secret("r1", other) == "s_2"
    assert state.session_with_secret("r2", file) is None
    assert state.session_with_secret(None, file) is None


def test_what_is_no_secret_proves_nothing(state, tmp_path) -> None:
    file = begin(state)
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "wrong").write_text("0" * 64, encoding="utf-8")
    (tmp_path / "longer").write_bytes(Path(file).read_bytes() + b"0")
    (tmp_path / "copy").write_bytes(Path(file).read_bytes())
    for name in ("link", "pipe", "wrong", "longer", "absent", "a\0b"):
        assert state.session_with_secret("r1", f"{tmp_path}/{name}") is None, name
    assert state.session_with_secret("r1", str(tmp_path)) is None
    assert state.session_with_secret("r1", str(tmp_path / "copy")) == "s_1", "who has it has proven it"


def test_the_next_launch_and_the_end_of_the_session_end_it(state) -> None:
    first, bystander = begin(state), begin(state, session="s_2")
    second = begin(state)
    assert first not in files(state)
    assert state.secret_files("r1") == {"s_1": second, "s_2": bystander}
    copied = Path(state.folder, "copy")
    copied.write_bytes(Path(second).read_bytes())
    state.release("s_1", "r1")
    assert files(state) == {bystander}
    assert state.session_with_secret("r1", str(copied)) is None
    state.end_secrets([bystander])
    assert (state.secret_files("r1"), files(state)) == ({}, set())


def test_a_session_of_another_root_with_the_same_id_keeps_its_secret(state) -> None:
    _here, there = begin(state), begin(state, root="r2")
    state.release("s_1", "r1")
    assert files(state) == {there}


def test_a_file_that_nobody_recorded_is_removed_later(state) -> None:
    kept = begin(state)
    young, old = (state.new_secret_file() for _ in range(2))
    for file, age in ((young, 10), (old, 7200), (kept, 7200)):
        if file != kept:
            launch_secret.write_new(file)
        os.utime(file, (NOW - age, NOW - age))
    state.remove_stray_secrets()
    assert files(state) == {kept, young}


def test_a_file_that_a_live_process_carries_stays(state) -> None:
    file = state.new_secret_file()
    launch_secret.write_new(file)
    os.utime(file, (NOW - 7200, NOW - 7200))
    carrier = subprocess.Popen(["sleep", "1000"], env={launch_secret.VARIABLE: file})
    try:
        # For a moment after its start the kernel says nothing of its variables.
        wait_until(lambda: process.carriers(launch_secret.VARIABLE, 0), "the variables of the process")
        state.remove_stray_secrets()
        assert files(state) == {file}
    finally:
        carrier.kill()
        carrier.wait()
    state.remove_stray_secrets()
    assert files(state) == set()


def test_reading_makes_no_folder(tmp_path) -> None:
    state = UserState(str(tmp_path / "state"), lambda: NOW)
    assert (state.secret_files("r1"), state.session_with_secret("r1", "/nowhere")) == ({}, None)
    state.remove_stray_secrets()
    assert list(tmp_path.iterdir()) == []
