"""Finds Java, or says in one sentence how to get it."""

import os
import re
import shutil
import subprocess
import sys

from cauce.errors import ConfigError

OLDEST = 17  # what Kafka 4 brokers need
INSTALL = (
    "brew install openjdk@17 maven" if sys.platform == "darwin" else "apt-get install openjdk-17-jre-headless maven"
)


def find_java() -> str:
    """The java that JAVA_HOME or PATH names, known to be new enough."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")  # noqa: PTH118  (which wants text)
    if java is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on PATH"
        raise ConfigError(f"Kafka needs Java {OLDEST} or newer and {where}; install it: {INSTALL}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    if said.returncode or version is None:
        raise ConfigError(f"{java} does not run; install Java {OLDEST} or newer: {INSTALL}")
    if int(version[1]) < OLDEST:
        raise ConfigError(f"Kafka needs Java {OLDEST} or newer and {java} is {version[1]}; install it: {INSTALL}")
    return java


def find_maven() -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise ConfigError(f"Kafka's jars come through Maven and there is no mvn on PATH; install it: {INSTALL}")
    return maven
