"""One broker: a Java process with its own folder, ports and logs; started, stopped, killed and started again."""

import contextlib
import signal
import subprocess
from pathlib import Path

from cauce.errors import CauceError, ConfigError, IllegalMove
from infra.layout import Node
from infra.ports import is_free
from infra.processes import Process, Spawner, State

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
        self._expected_end = True

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

    def start(self, spawner: Spawner, java: list[str]) -> None:
        """Start the process; it is not ready when this returns."""
        if self.alive:
            raise IllegalMove(f"broker {self.id} already runs as pid {self.pid}; stop it first")
        for port in (self.node.port, self.node.controller_port):
            if not is_free(port):
                raise ConfigError(
                    f"broker {self.id}: another program has taken its port {port}; end that program first"
                )
        (self.folder / "logs").mkdir(exist_ok=True)
        with (self.folder / "logs" / "stdout.log").open("ab") as output:
            self._child = spawner.spawn([*java, "kafka.Kafka", "server.properties"], cwd=self.folder, output=output)
        self._process = Process.of(self._child.pid)
        self._expected_end = False

    def ask_to_stop(self) -> None:
        """SIGTERM: hands its partitions over, then ends."""
        self._expected_end = True
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
        self._expected_end = True
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def pause(self) -> None:
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def unexpected_end(self) -> str | None:
        """How it ended, once, if it ended by itself or by a stranger's hand."""
        if self._expected_end or self._child is None or self._child.poll() is None:
            return None
        self._expected_end = True
        return self.how_it_ended()

    def how_it_ended(self) -> str:
        code = self._child.poll() if self._child else None
        if code is None:
            return "it still runs"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        reason = self._last_error()
        return f"broker {self.id} ended by {how}{f' ({reason})' if reason else ''}; its log is {self.log_file}"

    def raise_if_dead(self) -> None:
        if self._child is not None and self._child.poll() is not None:
            raise CauceError(self.how_it_ended())

    def _send(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send(sign)

    def _last_error(self) -> str:
        """The line that says most: the first error near the end of the log, or whatever Java itself said last."""
        for file, marks in ((self.log_file, (" ERROR ", " FATAL ")), (self.folder / "logs" / "stdout.log", ("",))):
            with contextlib.suppress(OSError):
                lines = file.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
                found = [line for line in lines if line.strip() and any(mark in line for mark in marks)]
                if found:
                    return found[0 if marks[0] else -1].partition(" ERROR ")[2][:300] or found[-1][:300]
        return ""
