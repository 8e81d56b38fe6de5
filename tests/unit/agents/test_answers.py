"""The agents over dictionaries: whatever the cuts, partitions and order, the answers are the oracle's bytes."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from cauce.errors import ConfigError
from cauce.messages import ClientId
from infra.generate.datasets import GENERATORS
from infra.oracle import movies as oracle
from infra.oracle.datasets import ORACLES
from queries.datasets import DATASETS
from queries.model import Given, Options
from tests.harness.world import World

ADA, BRUNO = ClientId("ada"), ClientId("bruno")
MOVIES = DATASETS["movies"]


def label_of(text: str) -> oracle.Label:
    """Stands in for a model: any function of the text will do here."""
    return "POSITIVE" if len(text) % 2 else "NEGATIVE"


async def label(rows: pa.Table, _model: str) -> pa.Table:
    labels = [label_of(str(text)) for text in rows.column("overview").to_pylist()]
    return rows.append_column("label", pa.array(labels, pa.string()))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated("movies", tmp_path_factory)


def generated(dataset: str, folders: pytest.TempPathFactory) -> Path:
    folder = folders.mktemp(dataset)
    GENERATORS[dataset](folder, 3000, 5, lambda file, rows, done: None)
    return folder


CASES = [("movies", "us"), ("movies", "all"), ("flights", "us"), ("coffee", "us")]


@pytest.mark.parametrize("partitions", [1, 3, 8])
@pytest.mark.parametrize(("dataset", "scope"), CASES)
def test_answers_are_the_oracles_bytes(
    dataset: str, scope: oracle.Scope, partitions: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = generated(dataset, tmp_path_factory)
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    world = World(DATASETS[dataset], partitions, random.Random(seed), label)
    world.upload(ADA, folder, Options(scope=scope))
    world.upload(BRUNO, folder, Options(scope="us"))
    world.run()
    expected = ORACLES[dataset].answer(folder, scope, label_of).files
    assert {f"{name}.csv": text.encode() for name, text in world.files(ADA).items()} == expected
    assert len(world.files(BRUNO)) == len(expected)
    assert world.states == [{}] * partitions, "nothing of a session is left behind"
    assert world.merges == {}
    assert {key: count for key, count in world.counted.items() if key in world.sent} == world.sent


@pytest.mark.parametrize("dataset", ["flights", "coffee"])
def test_long_listings_go_in_runs_and_come_in_steps(
    dataset: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits so low that a small file has to take every turn that a large one takes."""
    for module, name, value in (
        ("agents.fold", "RUN_BYTES", 2000),
        ("agents.fold", "RUN_PART_BYTES", 500),
        ("agents.merge", "STEP_ROWS", 7),
        ("agents.merge", "PIECE_CHARACTERS", 300),
        ("agents.blocks", "SMALL_BYTES", 200),
    ):
        monkeypatch.setattr(f"{module}.{name}", value)
    folder = generated(dataset, tmp_path_factory)
    world = World(DATASETS[dataset], 3, random.Random(4), label)
    world.upload(ADA, folder, Options())
    world.run()
    expected = ORACLES[dataset].answer(folder, "us", label_of).files
    assert {f"{name}.csv": text.encode() for name, text in world.files(ADA).items()} == expected
    assert max(len(parts) for parts in world.answers.values()) >= 5
    assert world.states == [{}] * 3
    assert world.merges == {}


REAL = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.skipif(not REAL.is_dir(), reason=f"the real rows are not at {REAL}: NOTHING REAL WAS CHECKED")
@pytest.mark.parametrize(("dataset", "scope"), CASES)
def test_real_rows_give_the_oracles_bytes(dataset: str, scope: oracle.Scope) -> None:
    world = World(DATASETS[dataset], 4, random.Random(1), label)
    world.upload(ADA, REAL / dataset, Options(scope=scope))
    world.run()
    expected = ORACLES[dataset].answer(REAL / dataset, scope, label_of).files
    assert {f"{name}.csv": text.encode() for name, text in world.files(ADA).items()} == expected


def test_a_declaration_that_raises_fails_that_query_of_that_client_only(folder: Path) -> None:
    def broken(rows: pa.Table, given: Given) -> pa.Table:
        if given.options.scope == "all":
            raise ZeroDivisionError("as the test says")
        return q2.inputs[0].fold(rows, given)

    (q2,) = (query for query in MOVIES.queries if query.name == "movies-q2")
    worse = replace(q2, inputs=(replace(q2.inputs[0], fold=broken),))
    dataset = replace(MOVIES, queries=tuple(worse if query is q2 else query for query in MOVIES.queries))
    world = World(dataset, 3, random.Random(2), label)
    world.upload(ADA, folder, Options(scope="all"))
    world.upload(BRUNO, folder, Options())
    world.run()
    (told,) = world.answers[ADA, "movies-q2"]
    assert (told.state, told.reason) == ("failed", "movies-q2: ZeroDivisionError: as the test says")
    expected = oracle.answer(folder, "us", label_of).files
    assert {f"{name}.csv": text.encode() for name, text in world.files(BRUNO).items()} == expected
    assert all(answer.state == "done" for answer in world.answers[ADA, "movies-q3"])
    assert world.states == [{}] * 3
    assert world.merges == {}


def test_a_model_that_cannot_be_loaded_fails_the_query_that_needs_it(folder: Path) -> None:
    async def no_model(rows: pa.Table, model: str) -> pa.Table:
        raise ConfigError(f"model {model} has no ONNX export")

    world = World(MOVIES, 3, random.Random(3), no_model)
    world.upload(ADA, folder, Options(model="nowhere"))
    world.run()
    (told,) = world.answers[ADA, "movies-q5"]
    assert (told.state, told.reason) == ("failed", "movies-q5: ConfigError: model nowhere has no ONNX export")
    assert len(world.files(ADA)) == len(MOVIES.queries)
    assert world.states == [{}] * 3


POISON = [
    ("movies", "movies", "batch", {1, 2, 3, 4, 5}),  # all that read films, or the overviews taken from them
    ("movies", "ratings", "batch", {3}),
    ("movies", "overviews", "batch", {5}),
    ("movies", "credits", "end", {4}),
    ("movies", "movies", "end", {1, 2, 3, 4, 5}),
    ("movies", "partials", "partial", {1, 2, 3, 4, 5}),
    ("flights", "airports", "batch", {2}),
    ("flights", "partials", "more", {1, 2}),
]


@pytest.mark.parametrize(("dataset", "topic", "kind", "fail"), POISON)
def test_a_record_that_was_set_aside_fails_the_queries_that_needed_it_and_nothing_else(
    dataset: str,
    topic: str,
    kind: str,
    fail: set[int],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agents.merge.STEP_ROWS", 50)  # so that there are steps
    folder = generated(dataset, tmp_path_factory)
    world = World(DATASETS[dataset], 3, random.Random(6), label)
    world.poison = lambda where, about: (where, about.kind, about.client_id) == (topic, kind, ADA)
    world.upload(ADA, folder, Options())
    world.upload(BRUNO, folder, Options())
    world.run()
    expected = ORACLES[dataset].answer(folder, "us", label_of).files
    for query in DATASETS[dataset].queries:
        told = world.answers[ADA, query.name][-1]
        if int(query.name[-1]) in fail:
            assert (told.state, "it bit" in told.reason) == ("failed", True)
        else:
            assert world.files(ADA)[query.name].encode() == expected[f"{query.name}.csv"]
    assert {f"{name}.csv": text.encode() for name, text in world.files(BRUNO).items()} == expected
    assert world.states == [{}] * 3
    assert world.merges == {}


@pytest.mark.parametrize("times", [0, 2], ids=["lost", "twice"])
@pytest.mark.parametrize(
    ("dataset", "kind"), [("movies", "ratings"), ("flights", "airports"), ("coffee", "transactions")]
)
def test_rows_that_do_not_add_up_are_no_answer(
    dataset: str, kind: str, times: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Should a fault of ours lose a batch, or fold it twice, its queries fail and say so; no other notices."""
    folder = generated(dataset, tmp_path_factory)
    world = World(DATASETS[dataset], 3, random.Random(8), label)
    world.upload(ADA, folder, Options())
    log = world.logs[kind, 0]
    batch = log.popleft()
    log.extendleft([batch] * times)
    world.upload(BRUNO, folder, Options())
    world.run()
    expected = ORACLES[dataset].answer(folder, "us", label_of).files
    for query in DATASETS[dataset].queries:
        if kind in {each.file.kind for each in query.inputs}:
            (told,) = world.answers[ADA, query.name]
            assert (told.state, f"rows of {kind} were counted where" in told.reason) == ("failed", True)
        else:
            assert world.files(ADA)[query.name].encode() == expected[f"{query.name}.csv"]
    assert {f"{name}.csv": text.encode() for name, text in world.files(BRUNO).items()} == expected
    assert world.states == [{}] * 3
    assert world.merges == {}


def test_what_ends_while_a_model_is_at_work_stays_ended(folder: Path) -> None:
    """Two agents share the ledger of a client. The model takes its time, and fails, while another file ends."""
    expected = oracle.answer(folder, "us", label_of).files

    async def slow_and_bad(rows: pa.Table, model: str) -> pa.Table:
        await world.take("ratings", 0, len(world.logs["ratings", 0]))
        raise ConfigError("no such model")

    async def meanwhile() -> None:
        await world.take("movies", 0, len(world.logs["movies", 0]) - 1)  # all but its end
        await world.take("overviews", 0, 1)

    world = World(MOVIES, 1, random.Random(4), slow_and_bad)
    world.upload(ADA, folder, Options())
    asyncio.run(meanwhile())
    world.run()
    assert world.files(ADA)["movies-q3"].encode() == expected["movies-q3.csv"]
    assert world.answers[ADA, "movies-q5"][0].state == "failed"
    assert world.states == [{}]


@pytest.mark.parametrize("steps", [0, 1, 5, 20, 40, 80])
@pytest.mark.parametrize("dataset", DATASETS)
def test_an_aborted_session_leaves_nothing_behind_wherever_it_was(
    dataset: str, steps: int, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.merge.STEP_ROWS", 50)  # so that it may be in the middle of a listing
    folder = generated(dataset, tmp_path_factory)
    world = World(DATASETS[dataset], 3, random.Random(steps), label)
    world.upload(ADA, folder, Options())
    world.run(steps)
    world.abort(ADA)
    world.upload(BRUNO, folder, Options())
    world.run()
    expected = ORACLES[dataset].answer(folder, "us", label_of).files
    assert {f"{name}.csv": text.encode() for name, text in world.files(BRUNO).items()} == expected
    assert world.states == [{}] * 3
    assert world.merges == {}
