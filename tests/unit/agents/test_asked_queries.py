"""A session may ask for some queries: only those are answered, of the files and rows that they read."""

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cauce.messages import ClientId
from infra.generate.datasets import GENERATORS
from infra.oracle.datasets import ORACLES
from infra.oracle.movies import Label, Scope
from queries.datasets import DATASETS
from queries.model import Options
from tests.harness.world import World

ADA, BRUNO = ClientId("ada"), ClientId("bruno")
QUERIES = [(dataset.name, query.name) for dataset in DATASETS.values() for query in dataset.queries]
ROWS = 600


def label_of(text: str) -> Label:
    return "POSITIVE" if len(text) % 2 else "NEGATIVE"


async def label(rows: pa.Table, _model: str) -> pa.Table:
    labels = [label_of(str(text)) for text in rows.column("overview").to_pylist()]
    return rows.append_column("label", pa.array(labels, pa.string()))


async def no_model(rows: pa.Table, model: str) -> pa.Table:
    raise AssertionError(f"{rows.num_rows} films went to the model {model}, and no query needs it")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for dataset in DATASETS:
        GENERATORS[dataset](folder / dataset, ROWS, 5, lambda file, rows, done: None)
    return folder


@cache
def expected_of(folder: Path, dataset: str, scope: Scope) -> dict[str, bytes]:
    return ORACLES[dataset].answer(folder, scope, label_of).files


def expected(folder: Path, dataset: str, scope: Scope, queries: Sequence[str]) -> dict[str, str]:
    return {name: expected_of(folder, dataset, scope)[f"{name}.csv"].decode() for name in queries}


def check_nothing_is_left(world: World) -> None:
    assert world.states == [{}] * world.partitions
    assert world.merges == {}
    assert {key: count for key, count in world.counted.items() if key in world.sent} == world.sent


@pytest.mark.parametrize(("dataset", "query"), QUERIES)
def test_each_query_alone_needs_its_own_files_only(dataset: str, query: str, folders: Path, tmp_path: Path) -> None:
    whole = DATASETS[dataset]
    part = whole.asked_for(Options(queries=(query,)))
    for file in part.files:
        single = folders / dataset / file.filename
        if single.is_file():
            shutil.copy(single, tmp_path)
        else:
            shutil.copytree(folders / dataset / file.kind, tmp_path / file.kind)
    world = World(whole, 3, random.Random(7), label if query == "movies-q5" else no_model)
    world.upload(ADA, tmp_path, Options(queries=(query,)))
    world.run()
    assert world.files(ADA) == expected(folders / dataset, dataset, "us", [query])
    assert {kind for _, kind in world.counted} == {file.kind for file in part.all_files}
    check_nothing_is_left(world)


@st.composite
def choices(draw: st.DrawFn) -> tuple[str, tuple[str, ...]]:
    dataset = draw(st.sampled_from(sorted(DATASETS)))
    names = [query.name for query in DATASETS[dataset].queries]
    chosen = draw(st.sets(st.sampled_from(names), min_size=1, max_size=len(names) - 1))
    return dataset, tuple(name for name in names if name in chosen)


@given(
    choice=choices(),
    scope=st.sampled_from(("us", "all")),
    partitions=st.sampled_from((1, 3, 8)),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=15)
def test_any_choice_gives_the_oracles_bytes_beside_a_client_that_asks_for_all(
    choice: tuple[str, tuple[str, ...]], scope: Scope, partitions: int, seed: int, folders: Path
) -> None:
    dataset, queries = choice
    world = World(DATASETS[dataset], partitions, random.Random(seed), label)
    world.upload(ADA, folders / dataset, Options(scope=scope, queries=queries))
    world.upload(BRUNO, folders / dataset, Options(scope=scope))
    world.run()
    every = [query.name for query in DATASETS[dataset].queries]
    assert world.files(ADA) == expected(folders / dataset, dataset, scope, queries)
    assert world.files(BRUNO) == expected(folders / dataset, dataset, scope, every)
    check_nothing_is_left(world)
    for file in DATASETS[dataset].asked_for(Options(queries=queries)).files:
        assert world.sent[ADA, file.kind] <= world.sent[BRUNO, file.kind]


@pytest.mark.parametrize(
    ("dataset", "query", "kind", "fewer_than"),
    [
        ("movies", "movies-q1", "movies", 0.1),
        ("movies", "movies-q2", "movies", 0.95),
        ("movies", "movies-q3", "movies", 0.5),
        ("movies", "movies-q5", "movies", 0.9),
        ("flights", "flights-q1", "itineraries", 0.5),
        ("flights", "flights-q3", "itineraries", 0.5),
        ("coffee", "coffee-q1", "transactions", 0.9),
        ("coffee", "coffee-q3", "transactions", 1.0),
        ("coffee", "coffee-q4", "transactions", 0.9),
    ],
)
def test_rows_that_no_query_of_the_session_reads_do_not_travel(
    dataset: str, query: str, kind: str, fewer_than: float, folders: Path
) -> None:
    sent = Counter[ClientId]()
    for client, queries in ((ADA, (query,)), (BRUNO, ())):
        world = World(DATASETS[dataset], 1, random.Random(1), label)
        world.upload(client, folders / dataset, Options(queries=queries))
        sent[client] = world.sent[client, kind]
    assert sent[ADA] < fewer_than * sent[BRUNO]


@pytest.mark.parametrize("steps", [0, 1, 5, 20, 40])
@pytest.mark.parametrize(("dataset", "query"), [("movies", "movies-q5"), ("flights", "flights-q2")])
def test_a_choosy_session_that_is_aborted_leaves_nothing_behind(
    dataset: str, query: str, steps: int, folders: Path
) -> None:
    world = World(DATASETS[dataset], 3, random.Random(steps), label)
    world.upload(ADA, folders / dataset, Options(queries=(query,)))
    world.run(steps)
    world.abort(ADA)
    world.run()
    assert world.states == [{}] * 3
    assert world.merges == {}


def test_a_part_of_a_dataset_holds_what_its_queries_read_and_nothing_else() -> None:
    flights, films = DATASETS["flights"], DATASETS["movies"]
    one = flights.asked_for(Options(queries=("flights-q1",)))
    assert [(file.kind, file.after) for file in one.files] == [("itineraries", ())]
    two = flights.asked_for(Options(queries=("flights-q1", "flights-q2")))
    assert [(file.kind, file.after) for file in two.files] == [("airports", ()), ("itineraries", ("airports",))]
    labelled = films.asked_for(Options(queries=("movies-q5",)))
    assert [file.kind for file in labelled.all_files] == ["movies", "overviews"]
    assert films.asked_for(Options(queries=("movies-q2",))).derived == ()
    assert flights.asked_for(Options()) is flights
