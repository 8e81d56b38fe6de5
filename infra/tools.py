"""Apache Kafka's own command line tools, with the class path, the address and the credentials filled in.

Invariant: what runs is Kafka's tool itself. We exec into Java, so output, signals and exit code are the tool's own.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cauce.errors import ConfigError
from cauce.settings import Settings
from infra.jars import class_path, ensure_jars
from infra.java import find_java
from infra.state import Running

LOG4J: Final = Path(__file__).with_name("tools.log4j2.xml")
PACKAGE: Final = "org.apache.kafka.tools."


@dataclass(frozen=True, slots=True)
class Tool:
    """`connects`: takes --bootstrap-server and --command-config before anything else."""

    main: str
    about: str
    connects: bool = True


TOOLS: Final = {
    "topics": Tool(PACKAGE + "TopicCommand", "list, describe, create, alter and delete topics"),
    "console-consumer": Tool(PACKAGE + "consumer.ConsoleConsumer", "print the records of a topic"),
    "console-producer": Tool(PACKAGE + "ConsoleProducer", "send the lines of standard input to a topic"),
    "consumer-groups": Tool(PACKAGE + "consumer.group.ConsumerGroupCommand", "members, offsets and lag of groups"),
    "groups": Tool(PACKAGE + "GroupsCommand", "every group, of whatever kind"),
    "get-offsets": Tool(PACKAGE + "GetOffsetShell", "first or last offset of every partition"),
    "transactions": Tool(PACKAGE + "TransactionsCommand", "list, describe, find hanging, abort transactions"),
    "configs": Tool("kafka.admin.ConfigCommand", "read and change settings of topics and brokers"),
    "metadata-quorum": Tool(PACKAGE + "MetadataQuorumCommand", "controllers: who leads, who lags"),
    "features": Tool(PACKAGE + "FeatureCommand", "feature levels of the cluster"),
    "broker-api-versions": Tool(PACKAGE + "BrokerApiVersionsCommand", "what each broker understands"),
    "log-dirs": Tool(PACKAGE + "LogDirsCommand", "size of every replica on disk, as JSON"),
    "delete-records": Tool(PACKAGE + "DeleteRecordsCommand", "delete records up to an offset"),
    "leader-election": Tool(PACKAGE + "LeaderElectionCommand", "give leadership back to the preferred broker"),
    "reassign-partitions": Tool(PACKAGE + "reassign.ReassignPartitionsCommand", "move replicas between brokers"),
    "acls": Tool(PACKAGE + "AclCommand", "access rules"),
    "producer-performance": Tool(PACKAGE + "ProducerPerformance", "measure writing"),
    "consumer-performance": Tool(PACKAGE + "ConsumerPerformance", "measure reading"),
    "verifiable-producer": Tool(PACKAGE + "VerifiableProducer", "send numbers, print every acknowledgement as JSON"),
    "verifiable-consumer": Tool(PACKAGE + "VerifiableConsumer", "read and commit, print every step as JSON"),
    "dump-log": Tool(
        PACKAGE + "DumpLogSegments", "decode segment files: HOME/brokers/0/data/TOPIC-0/*.log", connects=False
    ),
}


def run_tool(name: str, arguments: Sequence[str], home: Path | None) -> None:
    """Become this tool; returns only by raising."""
    if name not in TOOLS:
        raise ConfigError(f"there is no tool {name!r}; `cauce kafka` lists them")
    settings = Settings.load(home=home)
    java, jars = find_java(), class_path(ensure_jars(settings.cache))
    command = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]  # quick to start: tools are short-lived
    command += [f"-Dlog4j2.configurationFile={LOG4J.as_uri()}", "-cp", jars, TOOLS[name].main]
    os.execv(java, [*command, *complete(TOOLS[name], arguments, settings)])  # noqa: S606  (no shell is what we want)


def complete(tool: Tool, arguments: Sequence[str], settings: Settings) -> list[str]:
    """What was typed, with the address and the credentials before it where they were left out."""
    names = {argument.partition("=")[0] for argument in arguments}
    if not tool.connects or {"--help", "-h", "--version"} & names:
        return list(arguments)
    added = []
    if not {"--bootstrap-server", "--bootstrap-controller"} & names:
        added += ["--bootstrap-server", bootstrap(settings)]
    if settings.kafka_security_protocol != "PLAINTEXT" and "--command-config" not in names:
        added += ["--command-config", str(_credentials_file(settings))]
    return [*added, *arguments]


def bootstrap(settings: Settings) -> str:
    """The cluster of this home if one runs, else the one that CAUCE_BOOTSTRAP names."""
    if "bootstrap" in settings.model_fields_set:
        return settings.bootstrap
    running = Running.read(settings.home)
    if running and running.bootstrap and any(member.slot.is_held for member in running.of_role("broker")):
        return running.bootstrap
    raise ConfigError(
        f"no cluster runs in {settings.home}; start one with `cauce up --detach`, "
        "name another with --home DIR, or set CAUCE_BOOTSTRAP"
    )


def java_properties(settings: Settings) -> dict[str, str]:
    """The credentials as Java clients spell them."""
    given: dict[str, str | None] = {"security.protocol": settings.kafka_security_protocol}
    if settings.kafka_sasl_mechanism:
        login = "plain.Plain" if settings.kafka_sasl_mechanism == "PLAIN" else "scram.Scram"
        password = settings.kafka_sasl_password.get_secret_value() if settings.kafka_sasl_password else ""
        user = settings.kafka_sasl_username or ""
        given["sasl.mechanism"] = settings.kafka_sasl_mechanism
        given["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{login}LoginModule required "
            f"username={_jaas(user)} password={_jaas(password)};"
        )
    if settings.kafka_ssl_ca:
        given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(settings.kafka_ssl_ca.absolute())}
    if settings.kafka_ssl_certificate and settings.kafka_ssl_key:
        given |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": settings.kafka_ssl_certificate.read_text(encoding="utf-8"),
            "ssl.keystore.key": settings.kafka_ssl_key.read_text(encoding="utf-8"),
        }
        secret = settings.kafka_ssl_key_password
        given["ssl.key.password"] = secret.get_secret_value() if secret else None
    return {name: value for name, value in given.items() if value is not None}


def _jaas(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def escape(value: str) -> str:
    """A value of a .properties file: Java reads Latin-1 and takes backslashes and line ends for its own."""
    plain = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    units = plain.encode("utf-16-be")
    return "".join(
        chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04x}"
        for code in (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    )


def _credentials_file(settings: Settings) -> Path:
    """A file without a name: the tool replaces this process, so nobody would be left to remove it."""
    handle, name = tempfile.mkstemp(prefix="cauce-kafka-", suffix=".properties")
    os.write(handle, "".join(f"{key}={escape(value)}\n" for key, value in java_properties(settings).items()).encode())
    os.lseek(handle, 0, os.SEEK_SET)
    os.unlink(name)  # noqa: PTH108  (beside the descriptor calls)
    os.set_inheritable(handle, True)
    return Path(f"/dev/fd/{handle}")
