"""Orders in, each customer's total out, every order counted exactly once: a whole Faust app on Cauce's engine.

    cauce up --brokers 1 --workers 0 --gateways 0 --detach        # or any Kafka of yours
    cd docs/examples
    ORDERS_KAFKA=127.0.0.1:PORT ORDERS_WORKER=w0 faust -A orders worker --without-web

Start as many as you like, each with a name of its own; kill any of them with `kill -9`, and start it again.
"""

import os
from pathlib import Path

import faust

from streams.exactly_once import ExactlyOnceApp
from streams.options import Options

WORKER = os.environ.get("ORDERS_WORKER", "w0")  # unique, and the same again after a restart
KAFKA = {"bootstrap.servers": os.environ.get("ORDERS_KAFKA", "127.0.0.1:9092")}
DATA = Path(os.environ.get("ORDERS_DATA", "data"))

app = ExactlyOnceApp(
    os.environ.get("ORDERS_APP", "orders"),
    options=Options(worker_id=WORKER, data=DATA / WORKER, kafka=KAFKA),
    topic_partitions=4,
)


class Order(faust.Record, serializer="json"):
    number: int
    customer: str
    cents: int


class Total(faust.Record, serializer="json"):
    customer: str
    cents: int
    orders: int
    last: int  # the number of the order that made it so


orders = app.topic(f"{app.conf.id}-placed", key_type=str, value_type=Order, internal=True)  # made where it is missing
totals = app.topic(f"{app.conf.id}-totals", key_type=str, value_type=Total)
cents = app.Table("cents", default=int, key_type=str, value_type=int)
counts = app.Table("counts", default=int, key_type=str, value_type=int)


@app.agent(orders)
async def add_up(stream: faust.StreamT[Order]) -> None:
    """By customer, whatever key the order came with: the tables' partition is the customer's."""
    await totals.maybe_declare()
    async for order in stream.group_by(Order.customer):
        cents[order.customer] += order.cents
        counts[order.customer] += 1
        total = Total(order.customer, cents[order.customer], counts[order.customer], order.number)
        await totals.send(key=order.customer, value=total)
