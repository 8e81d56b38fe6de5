"""Settings: one frozen object, and a misspelt variable is an error."""

from pathlib import Path

import pytest

from cauce.errors import ConfigError
from cauce.settings import Settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"CAUCE_{name.upper()}", raising=False)


def test_variables_become_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUCE_BOOTSTRAP", "kafka-1:9092,kafka-2:9092")
    monkeypatch.setenv("CAUCE_PARTITIONS", "3")
    settings = Settings.load()
    assert (settings.bootstrap, settings.partitions) == ("kafka-1:9092,kafka-2:9092", 3)


def test_a_misspelt_variable_is_an_error_that_names_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUCE_BOOTSRAP", "kafka:9092")
    with pytest.raises(ConfigError, match="did you mean CAUCE_BOOTSTRAP"):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "value"), [("PARTITIONS", "0"), ("PARTITIONS", "many"), ("WORKER_ID", "a b"), ("TOPIC_PREFIX", "x/y")]
)
def test_a_bad_value_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"CAUCE_{name}", value)
    with pytest.raises(ConfigError, match=f"CAUCE_{name}.*{value!r}"):
        Settings.load()


@pytest.mark.parametrize("given", ["10.0.0.0/8, ::1", '["10.0.0.0/8", "::1/128"]', "10.0.0.0/8,::1,"])
def test_trusted_proxies_are_networks_as_json_or_with_commas(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("CAUCE_TRUSTED_PROXIES", given)
    assert [str(network) for network in Settings.load().trusted_proxies] == ["10.0.0.0/8", "::1/128"]


@pytest.mark.parametrize("given", ["10.0.0.1/8", "proxy.example", "[10.0.0.0/8]", "[1]", "0.0.0.0/33"])
def test_what_is_no_network_is_no_trusted_proxy(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("CAUCE_TRUSTED_PROXIES", given)
    with pytest.raises(ConfigError, match="CAUCE_TRUSTED_PROXIES"):
        Settings.load()


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "https://app.example/page", "ftp://x", ""])
def test_an_origin_has_a_scheme_and_no_path(monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    """A browser compares it letter by letter: with a slash at the end it would never be the page's."""
    monkeypatch.setenv("CAUCE_CORS_ORIGINS", f'["{origin}"]')
    with pytest.raises(ConfigError, match="CAUCE_CORS_ORIGINS"):
        Settings.load()


def test_origins_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUCE_CORS_ORIGINS", '["https://app.example", "http://127.0.0.1:3000"]')
    assert Settings.load().cors_origins == ("https://app.example", "http://127.0.0.1:3000")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().partitions = 9


def test_the_command_line_wins_and_what_it_leaves_out_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUCE_HOME", "from-variable")
    assert Settings.load(home=Path("given")).home == Path("given")
    assert Settings.load(home=None).home == Path("from-variable")


def test_tls_and_sasl_reach_every_client_and_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUCE_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("CAUCE_KAFKA_SASL_MECHANISM", "SCRAM-SHA-512")
    monkeypatch.setenv("CAUCE_KAFKA_SASL_USERNAME", "cauce")
    monkeypatch.setenv("CAUCE_KAFKA_SASL_PASSWORD", "open sesame")
    monkeypatch.setenv("CAUCE_KAFKA_SSL_CA", "ca.pem")
    settings = Settings.load()
    assert settings.kafka_client() == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "cauce",
        "sasl.password": "open sesame",
        "ssl.ca.location": "ca.pem",
    }
    assert "open sesame" not in repr(settings)


def test_the_data_folder_of_a_worker_follows_home_and_id() -> None:
    assert Settings.load(home=Path("h"), worker_id="w7").worker_folder == Path("h/workers/w7")
    assert Settings.load(worker_data=Path("elsewhere")).worker_folder == Path("elsewhere")
