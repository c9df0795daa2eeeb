"""Jobs over a broker: the other machine has only the broker and the job's token."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.over_broker import SECONDS, submit
from tests.mosquitto import PASSWORDS, Mosquitto, make_certificates
from tests.surfaces.cli.test_startup import modules_after

import mam
from mam.adapters.store.files import job_files


@pytest.fixture
def job(home, workspace, mosquitto):
    """Return the id and the token of a job whose events go to the broker."""
    with mam.open(str(workspace)) as fleet:
        fleet.init()
        job_id = submit(fleet)
        return job_id, job_files.read_token(fleet._access.context.paths.jobs, job_id)


@pytest.fixture
def elsewhere(tmp_path, mosquitto):
    """Start a command as if on another machine: with another home, another folder and no state."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    started = []

    def start(*arguments, user="watcher", **environ):
        variables = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        password = {"MAM_BROKER_PASSWORD_FILE": str(mosquitto.password_file(user))} if user else {}
        process = subprocess.Popen(
            [sys.executable, "-m", "mam", *arguments],
            cwd=place,
            env={**variables, "HOME": str(place), **password, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    start.place = place
    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def bring(elsewhere, token: str) -> Path:
    path = elsewhere.place / "token"
    path.write_text(token, encoding="ascii")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(("name", "code"), [("completed", 0), ("error", 1)])
def test_waiting_elsewhere(run, job, elsewhere, mosquitto, name, code) -> None:
    job_id, token = job
    bring(elsewhere, token)
    url = mosquitto.url("watcher")
    waiting = elsewhere("job", "wait", job_id, "--broker", url, "--token-file", "token", "--json")
    assert run("job", "event", job_id, "--event", "started").code == 0
    output = run("job", "event", job_id, "--event", name, "--detail", "über").out
    assert "recorded and published" in output
    out, err = waiting.communicate(timeout=SECONDS)
    objects = [json.loads(line) for line in out.splitlines()]
    assert (waiting.returncode, err) == (code, "")
    assert objects[-2]["event"] == name
    assert (objects[-1]["job"]["status"], objects[-1]["job"]["terminal_detail"]) == (name, "über")
    assert not (elsewhere.place / ".mam").exists()


def test_a_submitted_job_is_followed_elsewhere(run, home, elsewhere, mosquitto, workspace, until) -> None:
    """The agent reports, the resident checks and publishes, and a client elsewhere gets all events."""
    (home / ".config" / "mam" / "config.toml").write_text('resident = "auto"\n', encoding="utf-8")
    arguments = ("--agent", "practice", "--prompt", "create proof.txt", "--expect", "proof.txt")
    job = run("job", "submit", *arguments, "--detach", "--json", "--", "--speed", "0").json["job"]
    assert job["broker"]["url"] == mosquitto.url()
    token = (workspace / ".mam" / "jobs" / f"{job['job_id']}.token").read_text(encoding="ascii")
    bring(elsewhere, token)
    url = mosquitto.url("watcher")
    waiting = elsewhere("job", "wait", job["job_id"], "--broker", url, "--token-file", "token", "--json")
    out, err = waiting.communicate(timeout=SECONDS * 2)
    assert (waiting.returncode, err) == (0, "")
    objects = [json.loads(line) for line in out.splitlines()]
    # A client that connects after the end gets the last event first, and then the earlier ones.
    events = sorted(objects[:-1], key=lambda event: event["seq"])
    assert [event["seq"] for event in events] == list(range(1, len(objects)))
    assert events[-1]["event"] == "completed"
    assert any(event["data"].get("checking") for event in objects[:-1])
    # One connection carries all events, except one that came before the resident was connected.
    assert "as mam-relay-" in mosquitto.log()
    run("stop", "--all", "--force")


@pytest.mark.parametrize("resident", ["auto", "off"])
def test_the_end_of_a_command_is_followed_elsewhere(
    run, home, elsewhere, mosquitto, workspace, resident
) -> None:
    (home / ".config" / "mam" / "config.toml").write_text(f'resident = "{resident}"\n', encoding="utf-8")
    command = ("sh", "-c", "cat; exit 3")
    submitted = run("job", "submit", "--exec", "--prompt", "words", "--json", "--", *command)
    job = json.loads(submitted.out.splitlines()[-1])["job"]
    assert (submitted.code, job["status"]) == (1, "error")
    bring(elsewhere, (workspace / ".mam" / "jobs" / f"{job['job_id']}.token").read_text(encoding="ascii"))
    url = mosquitto.url("watcher")
    waiting = elsewhere("job", "wait", job["job_id"], "--broker", url, "--token-file", "token", "--json")
    out, err = waiting.communicate(timeout=SECONDS * 2)
    assert (waiting.returncode, err) == (1, "")
    end = json.loads(out.splitlines()[-1])["job"]
    assert (end["status"], end["terminal_detail"]) == ("error", "exit 3: words")
    run("stop", "--all", "--force")


def test_without_a_resident_the_verbs_publish(run, home, elsewhere, mosquitto, workspace) -> None:
    """Checks, cancels and stops publish their events themselves if no resident runs."""
    arguments = ("job", "submit", "--agent", "practice")
    work, silence = (
        ("--prompt", "create proof.txt", "--expect", "proof.txt"),
        ("--prompt", "forget to report"),
    )
    assert run(*arguments, *work, "--", "--speed", "0").code == 0
    cancelled = run(*arguments, *silence, "--detach", "--json", "--", "--speed", "0").json["job"]
    run("job", "cancel", cancelled["job_id"])
    stopped = run(*arguments, *silence, "--detach", "--json", "--", "--speed", "0").json["job"]
    run("stop", stopped["agent_session"].removeprefix("tmux:"), "--force")
    jobs = run("job", "list", "--json").json["jobs"]
    assert [job["status"] for job in jobs] == ["completed", "cancelled", "cancelled"]
    for job in jobs:
        name = f"{job['job_id']}.token"
        token = (workspace / ".mam" / "jobs" / name).read_text(encoding="ascii")
        bring(elsewhere, token).rename(elsewhere.place / name)
    url = mosquitto.url("watcher")
    ids = [job["job_id"] for job in jobs]
    waiting = elsewhere("job", "wait", *ids, "--broker", url, "--registry-dir", ".", "--json")
    out, err = waiting.communicate(timeout=SECONDS)
    assert (waiting.returncode, err) == (1, "")
    objects = [json.loads(line) for line in out.splitlines()]
    assert [item["job"]["status"] for item in objects if "job" in item] == [
        "completed",
        "cancelled",
        "cancelled",
    ]


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
def test_with_tls(run, home, workspace, elsewhere, tmp_path, monkeypatch, protocol) -> None:
    certificates = make_certificates(tmp_path / "certificates")
    broker = Mosquitto(tmp_path / "tls", certificates=certificates).start()
    variables = {
        "MAM_BROKER_PROTOCOL": protocol,
        "MAM_BROKER_CA_FILE": str(certificates / "ca.crt"),
        "MAM_BROKER_PASSWORD_FILE": str(broker.password_file("mam")),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MAM_BROKER", broker.url(tls=True))
    try:
        with mam.open(str(workspace)) as fleet:
            fleet.init()
            job_id = submit(fleet)
            bring(elsewhere, job_files.read_token(fleet._access.context.paths.jobs, job_id))
        assert run("job", "event", job_id, "--event", "completed").code == 0
        arguments = ("job", "wait", job_id, "--token-file", "token", "--broker", broker.url(tls=True))
        waiting = elsewhere(*arguments, user=None, **variables)
        out, err = waiting.communicate(timeout=SECONDS)
        assert (waiting.returncode, err) == (0, "")
        assert f"{job_id} completed" in out
        refused = elsewhere(*arguments, "--json", user="mam", MAM_BROKER_PROTOCOL=protocol)
        assert json.loads(refused.communicate(timeout=SECONDS)[0])["error"]["code"] == "broker_untrusted"
        assert refused.returncode == 2
    finally:
        broker.stop()


def test_a_resident_publishes_for_everybody(run, job, mosquitto, workspace, until) -> None:
    job_id, _ = job
    resident = subprocess.Popen(
        [sys.executable, "-m", "mam", "monitor", "--idle-timeout", "0"],
        cwd=workspace,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: "as mam-relay-" in mosquitto.log(), SECONDS)
        for _ in range(3):
            assert "published" in run("job", "event", job_id, "--event", "progress").out
        assert "as mam-event-" not in mosquitto.log()
        loaded = modules_after(workspace, "job", "event", job_id, "--event", "progress")
        assert not {name for name in loaded if name.split(".")[0] == "paho"}
        resident.terminate()
        assert resident.wait(SECONDS) == 0
    finally:
        resident.kill()
        resident.wait()
    run("job", "event", job_id, "--event", "completed")
    assert "as mam-event-" in mosquitto.log()


def test_what_waiting_elsewhere_cannot_do(job, elsewhere, mosquitto) -> None:
    job_id, token = job
    bring(elsewhere, token)
    url = mosquitto.url("watcher")

    def failure(*arguments, **options):
        process = elsewhere("job", "wait", *arguments, "--json", **options)
        out, err = process.communicate(timeout=SECONDS)
        assert "Traceback" not in err
        return process.returncode, json.loads(out)["error"]["code"]

    brought = ("--token-file", "token")
    assert failure(job_id, "--broker", url, *brought, "--timeout", "0.3") == (2, "timeout")
    assert failure(job_id, "--broker", url, *brought, user="mam") == (2, "broker_refused")
    assert failure(job_id, "--broker", url) == (1, "not_allowed")
    assert failure("--broker", url) == (64, "usage")
    assert failure(job_id, "0badcafe", "--broker", url, *brought) == (64, "usage")
    assert failure("../../etc", "--broker", url, *brought) == (1, "job_not_found")
    assert failure(job_id, *brought) == (64, "usage")
    assert failure(job_id, "--broker", "mqtt://me:s3cret@127.0.0.1", *brought) == (64, "invalid_settings")


def test_a_password_in_an_address_is_nowhere_repeated(run, job) -> None:
    for arguments in (("job", "wait", job[0]), ("monitor", "--subscribe")):
        answer = run(*arguments, "--broker", "mqtt://me:s3cret@127.0.0.1")
        assert answer.code == 64
        assert "s3cret" not in repr(answer)


def test_an_event_that_cannot_be_published(run, job, mosquitto) -> None:
    job_id, _ = job
    mosquitto.kill()
    answer = run("job", "event", job_id, "--event", "completed", "--timeout", "5", "--json")
    assert (answer.code, answer.error["code"]) == (2, "not_published")
    assert "do not repeat" in answer.error["hint"]
    assert run("job", "status", job_id, "--json").json["job"]["status"] == "completed"


def test_no_secret_is_left_anywhere(run, job, mosquitto, workspace, home) -> None:
    job_id, token = job
    run("job", "event", job_id, "--event", "completed", "--detail", f"the token is {token}")
    run("monitor", "--subscribe", "--timeout", "0.5")
    assert run("job", "status", job_id, "--json").json["job"]["broker"]["password_file"]
    for path in (entry for folder in (workspace, home) for entry in folder.rglob("*") if entry.is_file()):
        text = path.read_bytes()
        assert PASSWORDS["mam"].encode() not in text
        if token.encode() in text:
            # A copy of the state has the tokens of jobs, and is as private as they are.
            assert path.suffix == ".token" or "backups" in path.parts, path
            assert path.stat().st_mode & 0o077 == 0
