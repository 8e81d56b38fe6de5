"""A broker behind locks: TLS and SASL on the listener for everybody else, and who may do what."""

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import trustme
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from infra.layout import Node

MECHANISM = "SCRAM-SHA-512"
PASSWORDS = {"gateway": "the gateways' open sesame", "worker": "the workers' open sesame"}
KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


class Certificates:
    """Of one authority, for 127.0.0.1: files as the brokers and the gateways want them."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1", "localhost")
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        self.ca, self.certificate, self.key = (folder / name for name in ("ca.pem", "certificate.pem", "key.pem"))
        self.keystore = folder / "keystore.pem"
        authority.cert_pem.write_to_path(self.ca)
        self.certificate.write_bytes(chain)
        self.key.write_bytes(pkcs8)
        self.keystore.write_bytes(pkcs8 + chain)


def locked(node: Node, secure_port: int, certificates: Certificates) -> dict[str, str]:
    """What makes a broker of ours let in only who has a name. The brokers' own listener stays as it is, and whoever
    comes by it may do everything: it stands for the administrator's."""
    ours = f"127.0.0.1:{node.port}"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "listeners": f"BROKER://{ours},SECURE://127.0.0.1:{secure_port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"BROKER://{ours},SECURE://127.0.0.1:{secure_port}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
        "listener.name.secure.sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.secure.{MECHANISM.lower()}.sasl.jaas.config": scram,
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(certificates.keystore),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def grant_as_written(document: Path, bootstrap: str) -> None:
    """What the lines `cauce kafka configs` and `cauce kafka acls` of a document do. Each of them starts a Java machine,
    which takes many times as long as all of this."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    lines = [line for line in document.read_text(encoding="utf-8").splitlines() if line.startswith("cauce kafka ")]
    told = [shlex.split(line)[2:] for line in lines]
    users = [user(words[1:]) for words in told if words[0] == "configs"]
    rules = [rule for words in told if words[0] == "acls" for rule in acls(words[1:])]
    assert {each.user for each in users} == PASSWORDS.keys()
    for future in admin.alter_user_scram_credentials([*users]).values():
        future.result(30)
    for granted in admin.create_acls(rules).values():
        granted.result(30)


def user(words: list[str]) -> UserScramCredentialUpsertion:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--alter", action="store_true", required=True)
    parser.add_argument("--entity-type", choices=["users"], required=True)
    parser.add_argument("--entity-name", required=True)
    parser.add_argument("--add-config", required=True)
    given = parser.parse_args(words)
    name: str = given.entity_name
    assert given.add_config == f"{MECHANISM}=[password=${name.upper()}_PASSWORD]"
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, iterations=4096)
    return UserScramCredentialUpsertion(name, how, PASSWORDS[name].encode())


def acls(words: list[str]) -> Iterator[AclBinding]:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", action="append", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--resource-pattern-type", choices=["literal", "prefixed"], default="literal")
    for resource in KINDS:
        parser.add_argument(f"--{resource}", action="append", default=[])
    given = vars(parser.parse_args(words))
    pattern = ResourcePatternType[given["resource_pattern_type"].upper()]
    for resource, kind in KINDS.items():
        for name in given[resource.replace("-", "_")]:
            for principal in given["allow_principal"]:
                for operation in given["operation"]:
                    allowed = AclOperation[re.sub("(?<=[a-z])(?=[A-Z])", "_", operation).upper()]
                    yield AclBinding(kind, name, pattern, principal, "*", allowed, AclPermissionType.ALLOW)


def login(user: str, bootstrap: str, certificates: Certificates) -> dict[str, str]:
    return {
        "CAUCE_BOOTSTRAP": bootstrap,
        "CAUCE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "CAUCE_KAFKA_SASL_MECHANISM": MECHANISM,
        "CAUCE_KAFKA_SASL_USERNAME": user,
        "CAUCE_KAFKA_SASL_PASSWORD": PASSWORDS[user],
        "CAUCE_KAFKA_SSL_CA": str(certificates.ca),
    }
