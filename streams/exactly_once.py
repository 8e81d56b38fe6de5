"""An ordinary Faust app whose every record counts exactly once, whatever is killed.

    kafka = {"bootstrap.servers": "localhost:9092"}
    app = ExactlyOnceApp("orders", options=Options(worker_id="w0", data=Path("data/w0"), kafka=kafka))

Agents, `topic.send`, `group_by` and tables work as in Faust; what cannot be exactly-once is refused at start.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import faust
from faust.types import TP, Message
from faust.types.transports import TransportT
from mode import ServiceT
from mode.utils.queues import ThrowableQueue

from cauce.errors import CauceError, Unsupported
from cauce.process import exit_code
from streams.engine import Engine, Phase
from streams.gate import GatedQueue
from streams.guards import CrashOnlyAgent, GuardedStream, StrictTopic, check_interpreter
from streams.options import Options
from streams.process import PlainWorker, end_soon
from streams.table_manager import StagedTableManager
from streams.transport import Transport
from tables.table import StagedTable

log = logging.getLogger(__name__)


class ExactlyOnceApp(faust.App):
    """Faust's App on one engine: its transport, queues, tables and the way down are ours."""

    def __init__(self, id: str, *, options: Options, **settings: Any) -> None:  # noqa: A002 Faust's word
        check_interpreter()
        self.is_asked_to_stop = False
        self.options = options
        self._engine: Engine | None = None
        super().__init__(
            id,
            Table=StagedTable,
            TableManager=StagedTableManager,
            Agent=CrashOnlyAgent,
            Stream=GuardedStream,
            Topic=StrictTopic,
            Worker=PlainWorker,
            broker=[f"kafka://{address}" for address in options.kafka["bootstrap.servers"].split(",")],
            store="rocksdb://",
            worker_redirect_stdouts=False,
            datadir=options.data,
            topic_disable_leader=True,  # the group coordinator elects; a leader topic would only slow the start
            stream_wait_empty=False,  # the engine drains, with a deadline
            stream_buffer_maxsize=1_000_000,  # the engine's budget bounds what is outstanding, by bytes
            **settings,
        )

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self.options, self.conf.id, self.tables, self)  # type: ignore[arg-type]
        return self._engine

    def on_init_dependencies(self) -> Iterable[ServiceT]:
        """Without Faust's Monitor: it keeps statistics of every event and send, and our metrics tell what counts."""
        services = super().on_init_dependencies()
        self.sensors.remove(self.monitor)
        return services

    # ---- what the engine asks of Faust

    async def on_assigned(self, tps: frozenset[TP], generation: int) -> None:
        revoked, newly_assigned = self._update_assignment(set(tps))
        self.consumer_generation_id = generation
        self.unassigned = not tps
        await self.agents.on_rebalance(revoked, newly_assigned)
        await self.topics.on_partitions_assigned(set(tps))
        self.flow_control.resume()

    async def on_ready(self, tps: frozenset[TP]) -> None:
        await self._signal(self.on_partitions_assigned, set(tps))
        await self._signal(self.on_rebalance_complete)

    async def on_released(self, tps: frozenset[TP]) -> None:
        self.flow_control.clear()
        await self._signal(self.on_partitions_revoked, set(tps))

    async def _signal(self, signal: Any, *arguments: Any) -> None:
        """The group waits for its receivers. One that sends would wait for ever where no partition is ours."""
        limit = self.options.transaction_timeout_ms / 1000
        try:
            async with asyncio.timeout(limit) as patience:
                await signal.send(*arguments)
        except TimeoutError:
            if not patience.expired():
                raise  # its own
            raise CauceError(
                f"{signal.name}: a receiver took over {limit:.0f} s, and the group waits for it; "
                "if it sends, let an agent do that"
            ) from None

    async def on_message(self, message: Message) -> None:
        await self.topics.on_message(message)

    # ---- where Faust's own machinery is replaced

    def _new_transport(self) -> TransportT:
        return Transport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> TransportT:
        return Transport(self.conf.broker_producer, self)

    def FlowControlQueue(self, maxsize: int | None = None, *, clear_on_resume: bool = False) -> ThrowableQueue[Any]:  # noqa: N802
        return GatedQueue(
            gate=self.engine.gate, maxsize=maxsize or 0, flow_control=self.flow_control, clear_on_resume=clear_on_resume
        )

    def _create_directories(self) -> None:
        self.options.data.mkdir(parents=True, exist_ok=True)

    async def on_start(self) -> None:
        if self.conf.stream_publish_on_commit:
            raise Unsupported("stream_publish_on_commit is of no use: a commit shows all that was sent; leave it out")
        await super().on_start()

    async def _stop_consumer(self) -> None:
        await self.engine.stop()
        if self.in_worker and self.all_is_committed:
            crash = None if self.is_asked_to_stop else self.crash_reason
            end_soon(exit_code(crash) if crash else 0)

    @property
    def all_is_committed(self) -> bool:
        return self.engine.phase is Phase.STOPPED

    # ---- refused at start

    def GlobalTable(self, name: str, **options: Any) -> Any:  # noqa: N802
        raise Unsupported(f"table {name}: a global table is not exactly-once; send the records to every partition")

    def SetTable(self, name: str, **options: Any) -> Any:  # noqa: N802
        raise Unsupported(f"table {name}: a SetTable writes around the checkpoint; keep a list as the value of a Table")

    def SetGlobalTable(self, name: str, **options: Any) -> Any:  # noqa: N802
        raise Unsupported(f"table {name}: a SetGlobalTable is not exactly-once; send the records to every partition")
