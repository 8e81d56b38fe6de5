"""The four answers on small examples: conditions, order and ties, and no rows at all. Then real rows."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from gateway.parse import Parser
from infra.generate.coffee import generate
from infra.oracle import coffee as oracle
from infra.oracle.rows import as_csv
from queries.coffee import COFFEE_DATASET, MENU_ITEMS, Q1, Q2, Q3, Q4, STORES, TRANSACTION_ITEMS, TRANSACTIONS, USERS
from queries.coffee_answers import money
from queries.datasets import DATASETS
from queries.model import File, Query
from tests.unit.queries.pipeline import answer, batch

LARGEST = 2**63 - 1


def sale(
    transaction_id: str = "t", store: str = "1", user: str = "", amount: str = "80", at: str = "2024-03-01 12:00:00"
) -> Sequence[str]:
    return transaction_id, store, user, amount, at


def sales(*rows: Sequence[str]) -> dict[str, pa.Table]:
    return {"transactions": batch(TRANSACTIONS, rows)}


def item(number: str, quantity: str = "1", subtotal: str = "1", at: str = "2024-03-01 12:00:00") -> Sequence[str]:
    return "t", number, quantity, subtotal, at


def items(*rows: Sequence[str]) -> dict[str, pa.Table]:
    return {"transaction_items": batch(TRANSACTION_ITEMS, rows)}


def users(*rows: tuple[str, str]) -> dict[str, pa.Table]:
    return {"users": batch(USERS, rows)}


def stores(*rows: tuple[str, str]) -> dict[str, pa.Table]:
    return {"stores": batch(STORES, rows)}


def menu(*rows: tuple[str, str]) -> dict[str, pa.Table]:
    return {"menu_items": batch(MENU_ITEMS, rows)}


def test_query_1_lists_large_transactions_of_two_years_during_opening_hours() -> None:
    rows = sales(
        sale("b", amount="75", at="2024-01-01 06:00:00"),
        sale("a", amount="1024.125", at="2025-12-31 23:00:00"),
        sale("c", amount="75.50", store="x"),
        sale("no", amount="74.999"),
        sale("no", amount="75.0000"),
        sale("no", amount=""),
        sale("no", at="2024-01-01 05:59:59"),
        sale("no", at="2024-01-01 23:00:01"),
        sale("no", at="2023-12-31 12:00:00"),
        sale("no", at="2026-01-01 12:00:00"),
    )
    assert answer(Q1, rows) == [("a", "1024.125"), ("b", "75.00"), ("c", "75.50")]


def test_query_1_keeps_duplicates_and_sorts_by_code_point_then_by_value() -> None:
    rows = sales(sale("é"), sale("z", amount="100"), sale("z", amount="99"), sale("Z"), sale("z", amount="99.0"))
    assert answer(Q1, rows) == [("Z", "80.00"), ("z", "99.00"), ("z", "99.00"), ("z", "100.00"), ("é", "80.00")]


def test_query_2_finds_what_sold_most_and_what_earned_most_in_each_month() -> None:
    rows = items(
        item("3", "2", "1.125"),
        item("3.0", "2", "1", "2024-03-31 23:59:59"),
        item("4", "3", "9"),
        item("5", "9", "x"),
        item("x", "9", "9"),
        item("6", "99", "99", "2023-12-31 23:59:59"),
        item("6", "1", "0", "2024-01-01 00:00:00"),
        item("6", "-1", "0", "2025-12-31 23:59:59"),
    )
    assert answer(Q2, rows | menu(("3", "Latte"), ("4", 'Flat, "white"'))) == [
        ("2024-01", "quantity", "6", "", "1"),
        ("2024-01", "revenue", "6", "", "0.00"),
        ("2024-03", "quantity", "3", "Latte", "4"),
        ("2024-03", "revenue", "4", 'Flat, "white"', "9.00"),
        ("2025-12", "quantity", "6", "", "-1"),
        ("2025-12", "revenue", "6", "", "0.00"),
    ]


def test_query_2_gives_a_tie_to_the_lowest_id_by_value_and_the_smallest_name_to_an_item() -> None:
    rows = items(item("10", "2", "3"), item("9", "2", "3"), item("-1", "1", "2"))
    named = menu(("9", "b"), ("9.0", "a"), ("9", "é"), ("x", ""))
    assert [line[2:4] for line in answer(Q2, rows | named)] == [("9", "a")] * 2


def test_query_2_sums_beyond_an_int64() -> None:
    amount = money(LARGEST)
    rows = items(*[item("1", str(LARGEST), amount)] * 3, *[item("2", str(-LARGEST - 1), amount)] * 2)
    assert [line[4] for line in answer(Q2, rows | menu())] == [str(3 * LARGEST), money(3 * LARGEST)]


def test_query_3_sums_half_years_of_stores_during_opening_hours() -> None:
    rows = sales(
        sale(store="10", amount="0.125", at="2024-06-30 23:00:00"),
        sale(store="9", amount="1", at="2024-01-01 06:00:00"),
        sale(store="9.0", amount="2.5", at="2024-01-01 06:00:00"),
        sale(store="9", amount="4", at="2024-07-01 06:00:00"),
        sale(store="9", amount="5", at="2025-06-30 12:00:00"),
        sale(store="9", amount="0", at="2025-12-31 12:00:00"),
        sale(store="9", amount="5", at="2023-12-31 12:00:00"),
        sale(store="9", amount="5", at="2024-01-01 05:59:59"),
        sale(store="9", amount="5", at="2024-01-01 23:00:01"),
        sale(store="9", amount=""),
        sale(store="x"),
    )
    assert answer(Q3, rows | stores(("9", "b"), ("9", "a"))) == [
        ("2024-H1", "9", "a", "3.50"),
        ("2024-H1", "10", "", "0.125"),
        ("2024-H2", "9", "a", "4.00"),
        ("2025-H1", "9", "a", "5.00"),
        ("2025-H2", "9", "a", "0.00"),
    ]


def test_query_3_sums_beyond_an_int64() -> None:
    assert answer(Q3, sales(*[sale(amount=money(LARGEST))] * 3) | stores())[0][3] == money(3 * LARGEST)


def test_query_4_has_the_three_most_frequent_users_of_each_store() -> None:
    rows = sales(
        *[sale(user="10.0")] * 3,
        *[sale(user="9", amount="x", at="2025-12-31 03:00:00")] * 3,  # any time and any amount
        *[sale(user="8")] * 4,
        *[sale(user="7")] * 2,
        *[sale(user="")] * 9,
        *[sale(user="0")] * 9,
        *[sale(user="6", store="x")] * 9,
        *[sale(user="6", at="2023-12-31 12:00:00")] * 9,
        sale(user="7", store="2"),
    )
    known = users(("8", "2001-02-03"), ("8", "1999-12-31"), ("8", "?"), ("9", ""), ("7.0", "0001-01-01"), ("77", "?"))
    assert answer(Q4, rows | known | stores(("2", "Two"))) == [
        ("1", "", "8", "1999-12-31", "4"),
        ("1", "", "9", "", "3"),
        ("1", "", "10", "", "3"),
        ("2", "Two", "7", "0001-01-01", "1"),
    ]


@pytest.mark.parametrize(
    ("thousandths", "text"), [(0, "0.00"), (75_000, "75.00"), (1_024_125, "1024.125"), (10, "0.01"), (1, "0.001")]
)
def test_money_has_a_third_decimal_only_where_it_is_not_zero(thousandths: int, text: str) -> None:
    assert money(thousandths) == text


@pytest.mark.parametrize("query", COFFEE_DATASET.queries, ids=lambda query: query.name)
def test_no_rows_give_an_answer_with_no_rows(query: Query) -> None:
    assert answer(query, sales() | items() | users() | stores() | menu()) == []
    assert answer(query, sales() | items() | users(("1", "2000-01-01")) | stores(("1", "a")) | menu(("1", "a"))) == []


def test_the_dataset_names_its_files_and_queries() -> None:
    assert DATASETS["coffee"] is COFFEE_DATASET
    assert [query.name for query in COFFEE_DATASET.queries] == [f"coffee-q{number}" for number in range(1, 5)]
    assert [(file.kind, file.is_folder, file.is_broadcast) for file in COFFEE_DATASET.files] == [
        ("transactions", True, False),
        ("transaction_items", True, False),
        ("users", True, False),
        ("stores", False, True),
        ("menu_items", False, True),
    ]
    assert all(file.filename == f"{file.kind}.csv" for file in COFFEE_DATASET.files)
    assert all(file.batch_schema.field(file.key).type == pa.int64() for file in COFFEE_DATASET.files)


# --- against the oracle


def read(folder: Path, file: File) -> pa.Table:
    tables = []
    for path in sorted((folder / file.kind).glob("*.csv")):
        parser = Parser(file)
        tables += [parser.feed(path.read_bytes()).table, parser.finish().table]
    return pa.concat_tables(tables)


def answers(folder: Path) -> dict[str, bytes]:
    batches = {file.kind: read(folder, file) for file in COFFEE_DATASET.files}
    return {
        f"{query.name}.csv": as_csv(",".join(query.header), answer(query, batches)) for query in COFFEE_DATASET.queries
    }


def test_generated_rows_give_the_oracles_bytes(tmp_path: Path) -> None:
    generate(tmp_path, rows=4000, seed=11)
    assert answers(tmp_path) == oracle.answer(tmp_path).files


REAL = Path(__file__).parents[4] / "shared" / "data" / "coffee"


@pytest.mark.skipif(not REAL.is_dir(), reason=f"the real rows are not at {REAL}: NOTHING REAL WAS CHECKED")
def test_real_rows_give_the_oracles_bytes() -> None:
    assert answers(REAL) == oracle.answer(REAL).files
