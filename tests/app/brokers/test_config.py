"""Which broker is configured, in which order, and where its password comes from."""

import pytest

import mam
from mam.app.brokers import config as brokers
from mam.app.brokers.relay_pool import poll_seconds
from mam.core.errors import InvalidSettings


@pytest.fixture
def configure(home, workspace, monkeypatch):
    """Write settings, `.env` and variables; return the world that sees them."""

    def make(settings="", env_file="", **variables):
        (home / ".config" / "mam" / "config.toml").write_text(settings, encoding="utf-8")
        (workspace / ".env").write_text(env_file, encoding="utf-8")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return mam.open(str(workspace))._access.context

    return make


SETTINGS = '[broker]\nurl = "mqtts://me@one.test"\nca_file = "/ca"\npassword_env = "SECRET"\nprefix = "a/b"\n'


def test_nothing_is_configured(configure) -> None:
    assert brokers.find(configure()) is None


def test_the_settings_of_the_user(configure) -> None:
    context = configure(SETTINGS, SECRET="s3cret")
    broker = brokers.find(context)
    assert (broker.address, broker.ca_file, broker.prefix) == ("mqtts://me@one.test:8883", "/ca", "a/b")
    assert brokers.password(context, broker) == "s3cret"


def test_a_repository_names_no_broker_in_its_settings(configure, workspace) -> None:
    (workspace / "mam.toml").write_text('[broker]\nurl = "mqtt://me:s3cret@evil.test"\n', encoding="utf-8")
    with pytest.raises(InvalidSettings, match="repository") as caught:
        brokers.find(configure())
    assert "s3cret" not in str(caught.value)


def test_the_nearer_source_wins(configure) -> None:
    env_file = "# a comment\nexport MAM_BROKER='mqtt://three.test'\n"
    context = configure(SETTINGS, env_file)
    assert brokers.find(context).host == "three.test"
    context = configure(SETTINGS, env_file, MAM_BROKER="mqtt://two.test")
    assert brokers.find(context).host == "two.test"
    assert brokers.find(context, "mqtt://four.test").host == "four.test"


def test_what_the_settings_know_counts_for_the_same_broker_alone(configure) -> None:
    context = configure(SETTINGS)
    assert brokers.find(context, "mqtts://me@one.test:8883").password_env == "SECRET"
    other_broker = brokers.find(context, "mqtts://me@two.test")
    assert (other_broker.password_env, other_broker.ca_file, other_broker.prefix) == (
        None,
        None,
        "python/mqtt/jobs",
    )


def test_what_the_environment_knows_counts_for_the_same_broker_alone(configure) -> None:
    beside = {"MAM_BROKER_PASSWORD_ENV": "SECRET", "MAM_BROKER_PREFIX": "other"}
    context = configure(MAM_BROKER="mqtt://me@localhost", **beside)
    assert brokers.find(context, "mqtt://me@localhost:1883").password_env == "SECRET"
    other_broker = brokers.find(context, "mqtts://me@two.test")
    assert (other_broker.password_env, other_broker.prefix) == (None, "python/mqtt/jobs")
    assert brokers.find(configure(MAM_BROKER="", **beside), "mqtts://me@two.test").password_env == "SECRET"


def test_a_password_file(configure, home) -> None:
    path = home / "password"
    path.touch(0o600)
    path.write_text("with spaces \n", encoding="utf-8")
    context = configure(MAM_BROKER="mqtt://me@localhost", MAM_BROKER_PASSWORD_FILE=str(path))
    assert brokers.password(context, brokers.find(context)) == "with spaces "
    context = configure(MAM_BROKER_PASSWORD_FILE="~/password")
    assert brokers.password(context, brokers.find(context)) == "with spaces "
    for text in (None, "\n"):
        path.unlink() if text is None else path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidSettings, match=str(path)):
            brokers.password(context, brokers.find(context))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_password_file_that_is_open_to_others_is_refused(configure, home, mode) -> None:
    path = home / "password"
    path.write_text("secret\n", encoding="utf-8")
    path.chmod(mode)
    context = configure(MAM_BROKER="mqtt://me@localhost", MAM_BROKER_PASSWORD_FILE=str(path))
    with pytest.raises(InvalidSettings, match="other users can read") as refused:
        brokers.password(context, brokers.find(context))
    assert refused.value.hint == f"chmod 600 {path}, if nobody read it"


def test_a_password_that_is_not_there_is_named(configure) -> None:
    context = configure(MAM_BROKER="mqtt://me@localhost", MAM_BROKER_PASSWORD_ENV="NOT_SET")
    with pytest.raises(InvalidSettings, match="NOT_SET"):
        brokers.password(context, brokers.find(context))


def test_the_env_file_may_hold_the_password_of_a_broker_named_elsewhere(configure) -> None:
    context = configure(
        env_file='MINE="of the file"\n', MAM_BROKER="mqtt://me@localhost", MAM_BROKER_PASSWORD_ENV="MINE"
    )
    assert brokers.password(context, brokers.find(context)) == "of the file"
    context = configure(env_file="MINE=of the file\n", MINE="of the environment")
    assert brokers.password(context, brokers.find(context)) == "of the environment"


def test_an_env_file_sends_no_secret_from_elsewhere(configure) -> None:
    text = "MAM_BROKER=mqtt://me@evil.test\nMAM_BROKER_PASSWORD_ENV=AWS_SECRET\n"
    context = configure(env_file=text, AWS_SECRET="s3cret")
    broker = brokers.find(context)
    for name in (broker, brokers.of_json(broker.as_json())):
        with pytest.raises(InvalidSettings, match="AWS_SECRET"):
            brokers.password(context, name)
    context = configure(env_file=text + "AWS_SECRET=of the file\n")
    assert brokers.password(context, brokers.find(context)) == "of the file"
    with pytest.raises(InvalidSettings, match="password file"):
        brokers.find(
            configure(env_file="MAM_BROKER=mqtt://evil.test\nMAM_BROKER_PASSWORD_FILE=/etc/shadow\n")
        )


def test_a_password_in_the_clear_is_warned_of(configure) -> None:
    warnings = []
    context = configure(MAM_BROKER="mqtt://me@far.test").replace(warn=warnings.append)
    assert brokers.find(context)
    assert "unencrypted" in warnings[0]
    brokers.find(context, "mqtt://me@localhost")
    assert len(warnings) == 1


def test_s001_36_a_pass_every_15_s_while_the_broker_is_away(configure) -> None:
    assert poll_seconds(configure()) == 15.0
    assert poll_seconds(configure(RECONCILE_POLL_INTERVAL="2")) == 2.0
