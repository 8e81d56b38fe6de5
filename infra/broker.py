"""One broker: a Java process with its own folder, ports and logs; started, stopped, killed and started again."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from cauce.errors import CauceError, ConfigError, IllegalMove
from infra.layout import Node
from infra.ports import is_free
from infra.processes import Process, Spawner, State, how_it_ended

STOP_SECONDS = 20  # a clean stop takes about 1 s here; past this it is killed, and recovers its log at the next start
LOG4J = Path(__file__).with_name("broker.log4j2.xml")


class Broker:
    """What `Cluster.brokers` holds. Its state is looked up anew at every question."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.id = node.id
        self.port = node.port
        self.node = node
        self.folder = folder
        self.log_file = folder / "logs" / "server.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._process: Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def process(self) -> Process | None:
        return self._process

    @property
    def state(self) -> State:
        return self._process.state(self.port) if self._process else State.DEAD

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    @property
    def data_closed(self) -> bool:
        """Whether its topics are flushed and closed: Kafka leaves this mark then, and removes it at the next start."""
        return (self.folder / "data" / ".kafka_cleanshutdown").exists()

    @property
    def output_file(self) -> Path:
        return self.folder / "logs" / "stdout.log"

    def start(self, spawner: Spawner, java: list[str]) -> None:
        """Start the process; it is not ready when this returns."""
        if self.alive:
            raise IllegalMove(f"broker {self.id} already runs as pid {self.pid}; stop it first")
        command = self.command(java)
        self.output_file.parent.mkdir(exist_ok=True)
        with self.output_file.open("ab") as output:
            self._child = spawner.spawn(command, cwd=self.folder, output=output)
        self._process = Process.of(self._child.pid)

    def command(self, java: list[str]) -> list[str]:
        """To be run in its folder; refused while somebody else has its ports."""
        for port in (self.node.port, self.node.controller_port):
            if not is_free(port):
                raise ConfigError(
                    f"broker {self.id}: another program has taken its port {port}; end that program first"
                )
        command = [*java, f"-Djava.io.tmpdir={self._fresh_temporary()}", "kafka.Kafka", "server.properties"]
        return [sys.executable, "-m", "infra.comeback", str(self.folder), *command] if self._died else command

    def _fresh_temporary(self) -> Path:
        """Java unpacks native libraries there, and leaves them when it is killed: in /tmp they would pile up."""
        folder = self.folder / "tmp"
        folder.mkdir(exist_ok=True)
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        return folder

    @property
    def _died(self) -> bool:
        """Whether it has been a member of the cluster, and did not take its leave."""
        return (self.folder / "data" / "__cluster_metadata-0").exists() and not self.data_closed

    def ask_to_stop(self) -> None:
        """SIGTERM: hands its partitions over, then ends."""
        self._send(signal.SIGCONT)  # a paused process would not see the other signal
        self._send(signal.SIGTERM)

    def wait_stopped(self, seconds: float = STOP_SECONDS) -> bool:
        """Wait for the end that was asked for; True if it came by itself, else SIGKILL."""
        if self._child is None:
            return True
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """SIGKILL, and wait until nothing of it is left."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def raise_if_dead(self) -> None:
        code = self._child.poll() if self._child is not None else None
        if code is not None:
            reason = self.last_error()
            how = f"{how_it_ended(code)}{f' ({reason})' if reason else ''}"
            raise CauceError(f"broker {self.id} ended by {how}; its log is {self.log_file}")

    def _send(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send(sign)

    def last_error(self) -> str:
        """The line that says most: the first error near the end of the log, or whatever Java itself said last."""
        for file, marks in ((self.log_file, (" ERROR ", " FATAL ")), (self.output_file, ("",))):
            with contextlib.suppress(OSError):
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
                found = [line for line in lines if line.strip() and any(mark in line for mark in marks)]
                if found:
                    return found[0 if marks[0] else -1].partition(" ERROR ")[2][:300] or found[-1][:300]
        return ""
