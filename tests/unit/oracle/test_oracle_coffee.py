"""The coffee oracle on rows that are counted by hand, and the files that are generated for it."""

import csv
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from cauce.errors import ConfigError
from infra.generate.coffee import HEADERS, generate
from infra.oracle import coffee, fields
from infra.oracle.coffee import Item, Transaction
from infra.oracle.rows import Counts


def sale(
    id_: str = "t",
    store: int | None = 1,
    user: int | None = None,
    amount: int | None = 80_000,
    date: str = "2024-03-01",
    time: str = "12:00:00",
) -> Transaction:
    return Transaction(id_, store, user, amount, date, time)


def test_q1_lists_large_transactions_of_two_years_during_opening_hours() -> None:
    tally = coffee.tally_up(
        [
            sale("b", amount=75_000, time="06:00:00"),
            sale("a", amount=75_125, time="23:00:00", date="2025-12-31", store=None),
            sale("a", amount=75_010),
            sale("no", amount=74_999),
            sale("no", amount=None),
            sale("no", time="05:59:59"),
            sale("no", time="23:00:01"),
            sale("no", date="2023-12-31"),
            sale("no", date="2026-01-01"),
        ]
    )
    assert list(coffee.large_transactions(tally.listed)) == [("a", "75.01"), ("a", "75.125"), ("b", "75.00")]


def test_q2_finds_the_best_of_each_month_and_the_lowest_id_of_equals() -> None:
    items = [
        Item(10, 5, 1000, "2024-03-01"),
        Item(9, 5, 1500, "2024-03-31"),
        Item(9, 0, 0, "2024-03-31"),
        Item(8, 4, 1500, "2024-03-15"),
        Item(7, 99, None, "2024-03-15"),
        Item(7, None, 99_000, "2024-03-15"),
        Item(None, 99, 99_000, "2024-03-15"),
        Item(7, 99, 99_000, "2023-12-31"),
        Item(-1, -2, 5, "2025-01-01"),
    ]
    assert coffee.best_items(items, {9: "Latte"}) == [
        ("2024-03", "quantity", 9, "Latte", 5),
        ("2024-03", "revenue", 8, "", "1.50"),
        ("2025-01", "quantity", -1, "", -2),
        ("2025-01", "revenue", -1, "", "0.005"),
    ]


def test_q3_sums_half_years_of_stores_during_opening_hours() -> None:
    tally = coffee.tally_up(
        [
            sale(store=10, amount=125, date="2024-06-30", time="23:00:00"),
            sale(store=9, amount=2**63, time="06:00:00"),
            sale(store=9, amount=2**63, time="06:00:00"),
            sale(store=9, amount=0, date="2024-07-01"),
            sale(store=9, amount=None),
            sale(store=9, time="05:59:59"),
            sale(store=9, date="2023-07-01"),
            sale(store=None),
        ]
    )
    assert coffee.revenue_of_halves(tally.revenue, {9: "Nine"}) == [
        ("2024-H1", 9, "Nine", "18446744073709551.616"),
        ("2024-H1", 10, "", "0.125"),
        ("2024-H2", 9, "Nine", "0.00"),
    ]


def test_q4_ranks_users_at_any_time_of_two_years() -> None:
    rows = [
        *[sale(user=10)] * 3,
        *[sale(user=9, amount=None, time="03:00:00")] * 3,
        *[sale(user=8)] * 4,
        *[sale(user=7)] * 2,
        *[sale(user=None)] * 9,
        *[sale(user=6, store=None)] * 9,
        *[sale(user=6, date="2023-01-01")] * 9,
        sale(user=7, store=-2),
    ]
    frequent = coffee.frequent_users(coffee.tally_up(rows).purchases)
    assert frequent == [(-2, 7, 1), (1, 8, 4), (1, 9, 3), (1, 10, 3)]


def test_q4_takes_the_earliest_birthdate_of_wanted_users() -> None:
    users = [(1, "2000-01-01"), (2, "1990-01-01"), (1, "1999-12-31"), (1, "2001-01-01")]
    assert coffee.earliest_birthdates(users, {1, 3}) == {1: "1999-12-31"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("75", 75_000), ("01.5", 1_500), ("0.125", 125), ("0" * 5000 + "1.000", 1000)]
    + [("9223372036854775.807", 2**63 - 1), ("9223372036854775.808", None), ("9" * 5000, None)]
    + [(text, None) for text in ("", "-1", "-0", "-0.0", "+1", "1.", ".5", "1.2500", "1e3", "٥")],
)
def test_an_amount_is_exact_in_thousandths(text: str, value: int | None) -> None:
    assert fields.thousandths(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("2024-02-29 23:59:59", ("2024-02-29", "23:59:59")), ("0001-01-01 00:00:00", ("0001-01-01", "00:00:00"))]
    + [(f"2024-01-01{rest}", None) for rest in ("", " ", "T10:00:00", " 24:00:00", " 10:60:00", " 10:00:60", " 10:00")]
    + [(text, None) for text in ("", "2023-02-29 10:00:00", "0000-01-01 10:00:00", "2024-01-01 1٠:00:00")],
)
def test_a_time_stamp_is_real(text: str, value: tuple[str, str] | None) -> None:
    assert fields.moment(text) == value


def test_a_user_id_is_an_integer_above_zero() -> None:
    assert [fields.user_id(text) for text in ("17272.0", "1", "0", "-1", "1.5", "")] == [
        17272,
        1,
        None,
        None,
        None,
        None,
    ]


# --- a folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    header = "created_at,final_amount,user_id,store_id,transaction_id,more\n"
    good = "2024-05-05 10:00:00,76.5, 17.0 ,1.0, t1 ,\n"
    bad = ["2024-05-05 10:00:00,76.5,17,,t,\n", "2024-05-05 10:00:00,76.5,17,1, ,\n", "2024-05-05,76.5,17,1,t,\n"]
    bad += [",76.5,17,1,t,\n", "one\n", good.rstrip("\n") + ",\n"]
    (tmp_path / "transactions").mkdir()
    (tmp_path / "transactions" / "a.csv").write_text(header + good + "".join(bad))
    (tmp_path / "transactions" / "b.csv").write_text(header + good + "\n" + good.replace(",1.0,", ",x,"))
    (tmp_path / "transactions" / "notes.txt").write_text("not a CSV file")
    (tmp_path / "transaction_items.csv").write_text(
        "transaction_id,item_id,quantity,subtotal,created_at\nt1,3,2.0,16.125,2024-05-05 10:00:00\n"
        "t1,3,,16,2024-05-05 10:00:00\nt1,x,1,16,2024-05-05 10:00:00\nt1,,1,16,2024-05-05 10:00:00\n"
        ",3,1,16,2024-05-05 10:00:00\nt1,3,1,16,2024-05-05 10:00\n"
    )
    (tmp_path / "users.csv").write_text(
        "user_id,birthdate\n17,2000-02-30\n17.0,2000-02-29\n,2000-01-01\nx,\n0,2000-01-01\n"
    )
    (tmp_path / "stores.csv").write_text('store_id,store_name\n1,Zeta\n01,"Alpha, 1"\n,None\nx,None\n1\n')
    (tmp_path / "menu_items").mkdir()
    (tmp_path / "menu_items" / "menu.csv").write_bytes(b"item_id,item_name\n3, Latte \n3,\xff\n")
    return tmp_path


def test_the_whole_of_a_small_folder(folder: Path) -> None:
    answers = coffee.answer(folder)
    assert answers.files == {
        "coffee-q1.csv": b"transaction_id,final_amount\nt1,76.50\nt1,76.50\nt1,76.50\n",
        "coffee-q2.csv": b"month,best,item_id,item_name,value\n"
        b"2024-05,quantity,3,Latte,2\n2024-05,revenue,3,Latte,16.125\n",
        "coffee-q3.csv": b'half,store_id,store_name,revenue\n2024-H1,1,"Alpha, 1",153.00\n',
        "coffee-q4.csv": b'store_id,store_name,user_id,birthdate,purchases\n1,"Alpha, 1",17,2000-02-29,2\n',
    }
    assert answers.counts == {
        "transactions.csv": Counts(rows=9, rejected=6),
        "transaction_items.csv": Counts(rows=6, rejected=3),
        "users.csv": Counts(rows=5, rejected=1),
        "stores.csv": Counts(rows=5, rejected=1),
        "menu_items.csv": Counts(rows=2, rejected=1),
    }


def test_a_file_goes_before_a_folder_and_what_is_missing_is_named(folder: Path) -> None:
    (folder / "menu_items.csv").write_text("item_id,item_name\n")
    assert b",3,,2\n" in coffee.answer(folder).files["coffee-q2.csv"]
    (folder / "users.csv").unlink()
    with pytest.raises(ConfigError, match=r"users\.csv is missing"):
        coffee.answer(folder)
    (folder / "stores.csv").write_text("store_id\n")
    with pytest.raises(ConfigError, match="no column store_name"):
        coffee.answer(folder)


# --- generated files


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*/*.csv"))}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder, rows=3000, seed=7)
    return folder


def test_a_seed_means_the_same_bytes_for_ever(generated: Path) -> None:
    """If this fails, files that others generated before can no longer be made again: change the hash knowingly."""
    digest = hashlib.sha256(b"".join(content(generated).values())).hexdigest()
    assert digest == "7af9ee90c3d63f793de89048af7063e36de7beb2fb19b59c301c78d9385b76e4"


def test_same_seed_same_bytes_other_seed_other_bytes(generated: Path, tmp_path: Path) -> None:
    generate(tmp_path / "same", rows=3000, seed=7)
    generate(tmp_path / "other", rows=3000, seed=8)
    expected, other = content(generated), content(tmp_path / "other")
    assert content(tmp_path / "same") == expected
    assert expected.keys() == other.keys()
    assert {name.partition("/")[0] for name in expected if expected[name] != other[name]} == set(HEADERS)


def test_there_are_as_many_transactions_as_asked_for_in_monthly_files(generated: Path) -> None:
    paths = sorted((generated / "transactions").iterdir())
    assert [path.name for path in paths] == [f"transactions_{month}.csv" for month in (202307, 202402, 202410, 202506)]
    rows = [row for path in paths for row in list(csv.reader(path.read_text().splitlines()))[1:] if row]
    assert len(rows) == 3000
    right = sum(len(row) == len(HEADERS["transactions"]) for row in rows)
    assert 0.97 * len(rows) < right < len(rows)
    assert any(b'"' in path.read_bytes() for path in paths)


@pytest.mark.parametrize("seed", range(3))
def test_every_query_has_rows_and_every_folder_rejected_ones(tmp_path: Path, seed: int) -> None:
    generate(tmp_path, rows=3000, seed=seed)
    answers = coffee.answer(tmp_path)
    lines = {name: data.count(b"\n") - 1 for name, data in answers.files.items()}
    assert lines["coffee-q1.csv"] >= 20
    assert lines["coffee-q2.csv"] == 6
    assert lines["coffee-q3.csv"] >= 30
    assert lines["coffee-q4.csv"] >= 30
    for kind in HEADERS:
        count = answers.counts[f"{kind}.csv"]
        assert 0 < count.rejected < count.rows / 20
    purchases = Counter(row.rsplit(b",", 1)[1] for row in answers.files["coffee-q4.csv"].splitlines()[1:])
    assert len(purchases) > 2, "users who buy more often than others"


def test_progress_names_each_file_and_ends_at_its_rows(tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    generate(tmp_path, 10, 1, lambda file, rows, done: seen.update({file: (rows, done)}))
    assert set(seen) == set(content(tmp_path))
    assert all(rows == done for rows, done in seen.values())
    assert sum(rows for name, (rows, _) in seen.items() if name.startswith("transactions/")) == 10


def test_files_of_a_run_of_another_size_are_not_mixed_in(generated: Path, tmp_path: Path) -> None:
    generate(tmp_path, 10, 1)
    generate(tmp_path, 20, 2)  # the same files, written anew
    (tmp_path / "transactions" / "transactions_202401.csv").write_text("old")
    with pytest.raises(ConfigError, match=r"transactions_202401\.csv is there already"):
        generate(tmp_path, 10, 1)
    (tmp_path / "transactions" / "transactions_202401.csv").unlink()
    (tmp_path / "users.csv").write_text("old")
    with pytest.raises(ConfigError, match=r"users\.csv is there already"):
        generate(tmp_path, 10, 1)
