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


def test_d5_a_repository_names_no_broker_in_its_settings(configure, workspace) -> None:
    (workspace / "mam.toml").write_text('[broker]\nurl = "mqtt://me:s3cret@evil.test"\n', encoding="utf-8")
    warnings = []
    context = configure().replace(warn=warnings.append)
    assert brokers.find(context) is None
    assert brokers.find(context) is None
    (warning,) = warnings
    assert str(workspace / "mam.toml") in warning
    assert "ignores broker in it" in warning
    assert "config.toml" in warning
    assert "s3cret" not in warning


def test_d5_a_repository_names_no_broker_in_its_env_file(configure, workspace) -> None:
    env_file = "# a comment\nexport MAM_BROKER='mqtt://me:s3cret@evil.test'\nMAM_BROKER_PREFIX=x\nOTHER=1\n"
    warnings = []
    context = configure(SETTINGS, env_file).replace(warn=warnings.append)
    assert brokers.find(context).host == "one.test"
    (warning,) = warnings
    assert str(workspace / ".env") in warning
    assert "ignores MAM_BROKER, MAM_BROKER_PREFIX in it" in warning
    assert "s3cret" not in warning
    assert brokers.find(configure(env_file=env_file)) is None


def test_d5_an_env_file_that_names_no_broker_is_not_warned_of(configure) -> None:
    warnings = []
    context = configure(SETTINGS, "OTHER=1\nMAM_BROKER_PASSWORD=x\n").replace(warn=warnings.append)
    assert brokers.find(context).host == "one.test"
    assert warnings == []


def test_the_nearer_source_wins(configure) -> None:
    assert brokers.find(configure(SETTINGS)).host == "one.test"
    context = configure(SETTINGS, MAM_BROKER="mqtt://two.test")
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


def test_a_broker_of_an_env_file_gets_no_secret_from_elsewhere(configure) -> None:
    """A job that mam 0.1 submitted has such a broker in its record."""
    broker = brokers.of_json({"url": "mqtt://me@evil.test", "password_dotenv": "AWS_SECRET"})
    with pytest.raises(InvalidSettings, match="AWS_SECRET"):
        brokers.password(configure(AWS_SECRET="s3cret"), broker)
    assert brokers.password(configure(env_file="AWS_SECRET=of the file\n"), broker) == "of the file"


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
