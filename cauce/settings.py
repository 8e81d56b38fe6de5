"""One frozen object with every setting, read from CAUCE_ variables where a process starts, and handed down.

Invariant: a variable that starts with CAUCE_ and is not a field here is an error, never ignored.
"""

import difflib
import json
import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from cauce.errors import ConfigError

PREFIX = "CAUCE_"

Origin = Annotated[str, Field(pattern=r"^(\*|https?://[^/\s]+)$")]


class Settings(BaseSettings):
    """What an operator may change. Each field is the variable CAUCE_<FIELD>."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    bootstrap: str = Field("127.0.0.1:9092", description="Kafka to talk to, host:port,host:port")
    home: Path = Field(Path(".cauce"), description="where a cluster started by `cauce up` lives")
    cache: Path = Field(
        default_factory=lambda: Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cauce",
        description="Kafka's jars, shared by every clone on the machine",
    )

    topic_prefix: str = Field("", pattern=r"^[a-zA-Z0-9._-]*$", description="put before every topic and group name")
    partitions: int = Field(8, ge=1, le=1000, description="of every input topic and table")
    replication: int | None = Field(None, ge=1, description="copies of each topic; unset: three, or one per broker")

    worker_id: str = Field(
        "worker-0",
        pattern=r"^[a-zA-Z0-9._-]+$",
        description="transactional.id, group.instance.id and data folder: unique, and the same after a restart",
    )
    worker_data: Path | None = Field(None, description="folder of this worker's tables; unset: HOME/workers/ID")
    worker_host: str = Field("127.0.0.1", description="where /livez, /readyz and /metrics listen")
    worker_port: int = Field(6066, ge=1, le=65535, description="the same; every worker of a machine needs its own")
    models: Path = Field(
        Path(__file__).parents[1] / "models",
        description="folder of sentiment models; others come from Hugging Face",
    )
    store_cache_mib: int = Field(64, ge=1, description="memory of RocksDB, shared by all tables of a worker")
    checkpoint_ms: int = Field(300, ge=10, description="how long an output waits to become visible at most")
    session_timeout_ms: int = Field(6000, ge=1000, description="silence after which a worker's partitions move")
    transaction_timeout_ms: int = Field(20_000, ge=1000, description="no batch may take a worker longer than this")
    stuck_seconds: float = Field(30.0, gt=0, description="no commit for so long while records wait: /readyz says no")

    gateway_host: str = Field("127.0.0.1", description="where a gateway listens")
    gateway_port: int = Field(8080, ge=1, le=65535, description="the same; every gateway of a machine needs its own")
    gateway_health_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="/livez, /readyz and /metrics here, too, by HTTP; unset: only on the port above",
    )
    gateway_connections: int = Field(4000, ge=1, description="at once, per gateway; more wait until others have gone")
    secret: SecretStr | None = Field(
        None, min_length=16, description="signs the tokens of sessions; the same for every gateway, and kept"
    )
    gateways: tuple[str, ...] = Field(
        (), description="as JSON: the URLs of all gateways, for the page to go on at another one"
    )
    cors_origins: tuple[Origin, ...] = Field(
        (),
        description='as JSON: origins of other sites whose pages may ask us, as ["https://app.example"], or ["*"]',
    )
    supervisors: tuple[str, ...] = Field((), description="as JSON: their URLs, for the page's view of the cluster")
    trusted_proxies: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = Field(
        (),
        description="networks of the proxies before the gateways, as JSON or with commas; their X-Forwarded-For is "
        "believed, nobody else's",
    )
    session_ttl_seconds: float = Field(7200, gt=0, description="a session ends when nothing happened for so long")
    empty_session_seconds: float = Field(300, gt=0, description="the same, while no upload of it was created")
    young_session_seconds: float = Field(
        30, gt=0, description="so long no empty session gives way to another one when there are too many"
    )
    gateway_tls_certificate: Path | None = Field(None, description="PEM file; with it and its key, HTTPS only")
    gateway_tls_key: Path | None = Field(None, description="PEM file of that certificate's key (PKCS#8)")
    gateway_tls_key_password: SecretStr | None = None
    allowed_models: str = Field(
        "tiny-sentiment,distilbert/distilbert-base-uncased-finetuned-sst-2-english",
        description="sentiment models that a client may ask for, with commas between; workers may fetch and run them",
    )
    max_sessions: int = Field(1000, ge=1, description="at once, of all gateways together; more are told to wait")
    live_uploads: int = Field(32, ge=1, le=500, description="at once, per gateway; a few MiB and a producer each")
    max_upload_bytes: int = Field(64 << 30, ge=1, description="the largest file that is taken")
    max_files: int = Field(2000, ge=1, description="of one session, in all of its folders together")
    session_requests_per_second: float = Field(100, gt=0, description="of each session, per gateway; more: 429")
    new_sessions_per_second: float = Field(100, gt=0, description="of all clients together, per gateway; more: 429")
    address_sessions_per_second: float = Field(
        10, gt=0, description="new sessions of each address, per gateway; more: 429. This machine is not counted"
    )
    upload_idle_seconds: float = Field(30, gt=0, description="after which a silent upload gives its producer back")
    upload_floor_bytes: int = Field(1024, ge=1, description="per second: a request that is slower over 30 s is ended")
    trace: str | None = Field(None, description="where spans go: http://collector:4318, file:PATH; needs cauce[trace]")
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    kafka_sasl_username: str | None = None
    kafka_sasl_password: SecretStr | None = None
    kafka_ssl_ca: Path | None = Field(None, description="PEM file of the authorities to trust")
    kafka_ssl_certificate: Path | None = Field(None, description="PEM file of this client's certificate")
    kafka_ssl_key: Path | None = Field(None, description="PEM file of this client's key")
    kafka_ssl_key_password: SecretStr | None = None

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _networks(cls, given: Any) -> Any:
        """`10.0.0.0/8,::1` and `["10.0.0.0/8", "::1"]` are the same."""
        if isinstance(given, str):
            is_json = given.lstrip().startswith("[")
            given = json.loads(given) if is_json else [part for part in given.split(",") if part.strip()]
        return tuple(ip_network(str(part).strip()) for part in given)

    @classmethod
    def load(cls, **given: Any) -> "Settings":
        """Read the environment; what the caller gives (from the command line) wins over it."""
        _refuse_misspelt(os.environ)
        try:
            return cls(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            name = PREFIX + str(first["loc"][0]).upper()
            raise ConfigError(f"{name}: {first['msg']}, got {first['input']!r}; set it right or unset it") from None

    @property
    def worker_folder(self) -> Path:
        return self.worker_data or self.home / "workers" / self.worker_id

    @property
    def gateway_folder(self) -> Path:
        """Hints only: a gateway that finds it empty, or cannot write there, does the same."""
        return self.home / "gateways" / str(self.gateway_port)

    def kafka_client(self) -> dict[str, str]:
        """What every librdkafka client of every process starts from: where Kafka is and how to be let in."""
        secrets = {
            "sasl.password": self.kafka_sasl_password,
            "ssl.key.password": self.kafka_ssl_key_password,
        }
        given = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.kafka_security_protocol,
            "sasl.mechanism": self.kafka_sasl_mechanism,
            "sasl.username": self.kafka_sasl_username,
            "ssl.ca.location": self.kafka_ssl_ca,
            "ssl.certificate.location": self.kafka_ssl_certificate,
            "ssl.key.location": self.kafka_ssl_key,
            **{name: secret.get_secret_value() if secret else None for name, secret in secrets.items()},
        }
        return {name: str(value) for name, value in given.items() if value is not None}


def _refuse_misspelt(environment: Mapping[str, str]) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(environment):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise ConfigError(f"{name} is no setting of Cauce; {hint}")
