"""The coffee dataset: folders of monthly files that agree on their transactions, items and users.

Oddities go by a row's place within its month, not by chance, so that 3,000 transactions already have every one of them.
Quotes and empty lines are in one month only: the real files have none.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import numpy as np

from cauce.errors import ConfigError
from infra.generate.draw import Draw, Numbers
from infra.generate.files import Lines, Progress, line, write_all
from infra.generate.ratings import skewed

MONTHS = [date(2023 + month // 12, month % 12 + 1, 1) for month in range(6, 30)]  # 2023-07 to 2025-06, as the real ones
FEWEST_MONTHS, ROWS_PER_MONTH = 4, 5_000  # a small dataset has few files, from the first month to the last
FEWEST_USERS, ROWS_PER_USER = 100, 10
ROWS_AT_ONCE = 50_000  # some 50 MB of Python objects
ODD_EVERY, ODD_AT = 19, 7
ODD_ROWS = 2_000  # of a month: the rest of a large file is as plain as the real ones

HEADERS = {
    "transactions": (
        *("transaction_id", "store_id", "payment_method_id", "voucher_id", "user_id"),
        *("original_amount", "discount_applied", "final_amount", "created_at"),
    ),
    "transaction_items": ("transaction_id", "item_id", "quantity", "unit_price", "subtotal", "created_at"),
    "users": ("user_id", "gender", "birthdate", "registered_at"),
}
STORES = """\
store_id,store_name,street,postal_code,city,state,latitude,longitude
1,Cauce @ Puerto Viejo,Calle del Río 5,1107,Puerto Viejo,Norte,-34.617,-58.362
2,"Cauce @ Barrio ""Sur"", Local 2",Av. Larga 89,1063,Barrio Sur,Norte,-34.63,-58.37
3,Cauce @ Zócalo,Plaza Mayor 1,1002,Zócalo,Centro,-34.6,-58.38
3,Cauce @ Almacén,Plaza Mayor 1,1002,Zócalo,Centro,-34.6,-58.38
 4 ,  Cauce @ Estación\t,Andén 4,1104,Estación,Centro,-34.59,-58.37
5.0,Cauce @ Jardín,Paseo 7,1425,Jardín,Oeste,-34.58,-58.42
6,,Sin Nombre 6,1406,Flores,Oeste,-34.63,-58.46
7,Cauce @ 東京,Calle 7,1407,Tokio,Oeste,-34.64,-58.48
8,Cauce @ Lago
,Cauce @ Ninguna,Calle 0,1000,Ninguna,Norte,0.0,0.0
"""
MENU = """\
item_id,item_name,category,price,is_seasonal,available_from,available_to
1,Espresso,coffee,6.0,False,,
2,Cortado,coffee,7.0,False,,
3,Lágrima,coffee,8.0,False,,
4,Ristretto,coffee,8.0,False,,
4,Café Doble,coffee,8.0,False,,
5,"Té, con limón",non-coffee,9.0,False,,
6, Moca ,coffee,9.5,True,2024-01-01,2024-12-31
7,Submarino,non-coffee,9.0,False,,
"""  # of the eight items that are sold, the last is not listed
PRICES = np.array([6_000, 7_000, 8_000, 8_000, 9_000, 9_500, 9_000, 10_000])
STORES_SOLD = 10  # three of them are not listed: 8 in a broken row
MOST_QUANTITY = 3
SECONDS = range(5 * 3600, 24 * 3600)  # of a day: an hour before opening to an hour after closing
TIMES = [f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}" for second in range(24 * 3600)]
BIRTHDATES = [str(date(1955, 1, 1) + timedelta(days)) for days in range(55 * 365)]

Row = dict[str, str]
Change = Callable[[Row], str]  # the line, or lines, that stand in for a row


def generate(folder: Path, rows: int, seed: int, progress: Progress = lambda file, rows, done: None) -> None:
    """So many transactions, and items and users to match."""
    users = max(FEWEST_USERS, rows // ROWS_PER_USER)
    contents: dict[str, dict[str, tuple[int, Lines]]] = {kind: {} for kind in HEADERS}
    contents["stores"] = {"stores.csv": (STORES.count("\n") - 1, iter([(STORES.count("\n") - 1, STORES)]))}
    contents["menu_items"] = {"menu_items.csv": (MENU.count("\n") - 1, iter([(MENU.count("\n") - 1, MENU)]))}
    months = list(split(rows, users))
    for month in months:
        sold, known = len(month.places), len(month.users)
        contents["transactions"][month.name("transactions")] = (sold, transactions_lines(month, users, seed))
        contents["transaction_items"][month.name("transaction_items")] = (sold, items_lines(month, users, seed))
        contents["users"][month.name("users")] = (known, users_lines(month, seed))
    for kind, files in contents.items():
        check_room(folder, kind, set(files))
    for kind, files in contents.items():
        write_all(folder / kind, files, prefixed(kind, progress))


def prefixed(kind: str, progress: Progress) -> Progress:
    return lambda file, rows, done: progress(f"{kind}/{file}", rows, done)


def check_room(folder: Path, kind: str, names: set[str]) -> None:
    """Files that a run of another size left behind would be read with these."""
    there = [path for path in (folder / kind).glob("*.csv") if path.name not in names]
    if (folder / f"{kind}.csv").exists():
        there.append(folder / f"{kind}.csv")
    if there:
        raise ConfigError(f"{min(there)} is there already and would count, too; give an empty folder")


@dataclass(frozen=True, slots=True)
class Month:
    start: date
    number: int
    has_quotes: bool
    places: range  # of its transactions among all
    users: range  # who registered

    def name(self, kind: str) -> str:
        return f"{kind}_{self.start:%Y%m}.csv"

    @property
    def days(self) -> list[str]:
        following = (self.start + timedelta(31)).replace(day=1)
        return [str(self.start + timedelta(day)) for day in range((following - self.start).days)]


def split(rows: int, users: int) -> Iterator[Month]:
    count = max(FEWEST_MONTHS, min(len(MONTHS), rows // ROWS_PER_MONTH))
    for number in range(count):
        yield Month(
            start=MONTHS[number * (len(MONTHS) - 1) // (count - 1)],
            number=number,
            has_quotes=number == count // 2,
            places=range(rows * number // count, rows * (number + 1) // count),
            users=range(users * number // count + 1, users * (number + 1) // count + 1),
        )


# --- transactions and their items


@dataclass(frozen=True, slots=True)
class Sales:
    """Some transactions of a month; amounts in thousandths. Of an item: whose it is, which, and how many."""

    ids: list[str]
    created_at: list[str]
    stores: Numbers
    payments: Numbers
    percents: Numbers  # of a voucher, or 0
    users: Numbers  # or 0
    owners: Numbers
    items: Numbers
    quantities: Numbers

    @property
    def amounts(self) -> Numbers:
        sums = np.zeros(len(self.ids), dtype=np.int64)
        np.add.at(sums, self.owners, PRICES[self.items] * self.quantities)
        return sums


def draw_sales(month: Month, users: int, seed: int) -> Iterator[tuple[int, Sales]]:
    """Block by block, after the number of transactions before it; the same each time."""
    draw, days = Draw(seed, f"sales of {month.start}"), month.days
    for first in range(0, len(month.places), ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, len(month.places) - first)
        times = SECONDS.start + draw.words(count) % len(SECONDS)
        day_of = np.arange(first, first + count) * len(days) // len(month.places)
        vouchers, guests = draw.words(count), draw.words(count)
        known = 1 + skewed(draw.words(count), users + users // 20)  # a few are not listed
        owners = np.repeat(np.arange(count), 1 + draw.words(count) % 3)
        yield (
            first,
            Sales(
                ids=draw_ids(count, draw),
                created_at=[
                    f"{days[day]} {TIMES[time]}" for day, time in zip(day_of.tolist(), times.tolist(), strict=True)
                ],
                stores=1 + draw.words(count) % STORES_SOLD,
                payments=1 + draw.words(count) % 5,
                percents=np.where(vouchers % 12 == 0, 7 + (vouchers >> 8) % 6, 0),
                users=np.where(guests % 5 < 2, 0, known),
                owners=owners,
                items=draw.words(len(owners)) % len(PRICES),
                quantities=1 + draw.words(len(owners)) % MOST_QUANTITY,
            ),
        )


def draw_ids(count: int, draw: Draw) -> list[str]:
    """UUIDs of version 4."""
    digits = draw.words(4 * count).astype("<u4").tobytes().hex()
    starts = range(0, 32 * count, 32)
    return [
        f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-4{digits[at + 13 : at + 16]}-"
        f"a{digits[at + 17 : at + 20]}-{digits[at + 20 : at + 32]}"
        for at in starts
    ]


def transactions_lines(month: Month, users: int, seed: int) -> Lines:
    yield 0, line(HEADERS["transactions"])
    for first, sales in draw_sales(month, users, seed):
        amounts = sales.amounts
        discounts = amounts * sales.percents // 100
        columns = (
            sales.ids,
            sales.stores.tolist(),
            sales.payments.tolist(),
            ["" if percent == 0 else percent - 6 for percent in sales.percents.tolist()],
            ["" if user == 0 else f"{user}.0" for user in sales.users.tolist()],
            map(amount_text, amounts.tolist()),
            map(amount_text, discounts.tolist()),
            map(amount_text, (amounts - discounts).tolist()),
            sales.created_at,
        )
        lines = [
            f"{id_},{store},{payment},{voucher},{user},{amount},{discount},{final},{at}\n"
            for id_, store, payment, voucher, user, amount, discount, final, at in zip(*columns, strict=True)
        ]
        make_odd(lines, "transactions", first, month)
        yield first + len(lines), "".join(lines)


def items_lines(month: Month, users: int, seed: int) -> Lines:
    yield 0, line(HEADERS["transaction_items"])
    for first, sales in draw_sales(month, users, seed):
        kinds = sales.items * (MOST_QUANTITY + 1) + sales.quantities
        ids, created_at = sales.ids, sales.created_at
        lines = [
            f"{ids[owner]},{SOLD[kind]},{created_at[owner]}\n"
            for owner, kind in zip(sales.owners.tolist(), kinds.tolist(), strict=True)
        ]
        make_odd(lines, "transaction_items", first, month)
        yield first + len(ids), "".join(lines)


@cache
def amount_text(thousandths: int) -> str:
    """As a float is written: one decimal at least."""
    return f"{thousandths // 1000}.{f'{thousandths % 1000:03d}'.rstrip('0') or '0'}"


SOLD = [  # item, quantity, price and subtotal, by item and quantity
    f"{item + 1},{quantity},{amount_text(price)},{amount_text(price * quantity)}"
    for item, price in enumerate(PRICES.tolist())
    for quantity in range(MOST_QUANTITY + 1)
]


# --- users


def users_lines(month: Month, seed: int) -> Lines:
    yield 0, line(HEADERS["users"])
    draw, days = Draw(seed, f"users of {month.start}"), month.days
    for first in range(0, len(month.users), ROWS_AT_ONCE):
        users = month.users[first : first + ROWS_AT_ONCE]
        born = (draw.words(len(users)) % len(BIRTHDATES)).tolist()
        times = (SECONDS.start + draw.words(len(users)) % len(SECONDS)).tolist()
        lines = [
            f"{user},{('female', 'male')[time % 2]},{BIRTHDATES[birth]},{days[time % len(days)]} {TIMES[time]}\n"
            for user, birth, time in zip(users, born, times, strict=True)
        ]
        make_odd(lines, "users", first, month)
        yield first + len(users), "".join(lines)


# --- oddities


def as_line(row: Row, **changed: str) -> str:
    return line({**row, **changed}.values())


def at(time: str, amount: str = "80.0") -> Change:
    """A transaction at this time of its day."""
    return lambda row: as_line(row, created_at=f"{row['created_at'][:10]} {time}", final_amount=amount)


def with_(**changed: str) -> Change:
    return lambda row: as_line(row, **changed)


def without_a_field(row: Row) -> str:
    return line(list(row.values())[1:])


def with_a_field_more(row: Row) -> str:
    return line([*row.values(), "more"])


def with_blanks(row: Row) -> str:
    return line(f" {field}\t" for field in row.values())


def all_quoted(row: Row) -> str:
    return ",".join(f'"{field}"' for field in row.values()) + "\n"


def before_an_empty_line(row: Row) -> str:
    return as_line(row) + "\n"


ANY: tuple[Change, ...] = (without_a_field, with_a_field_more, with_blanks)
STAMPED: tuple[Change, ...] = (
    with_(transaction_id=""),
    with_(transaction_id=" "),
    with_(created_at=""),
    with_(created_at="2024-02-30 10:00:00"),
    with_(created_at="2024-05-01T10:00:00"),
    with_(created_at="2024-05-01 24:00:00"),
    with_(created_at="2024-05-01"),
)
ODD: dict[str, tuple[Change, ...]] = {
    "transactions": (
        *(at("06:00:00"), at("23:00:00"), at("05:59:59"), at("23:00:01"), at("12:00:00", "75")),
        *(at("12:00:00", "74.999"), at("12:00:00", "75.125"), at("12:00:00", "75.1250"), at("12:00:00", "-80.0")),
        *(at("12:00:00", ""), at("12:00:00", "8e1")),
        *(with_(user_id="17"), with_(user_id="0"), with_(user_id="-3.0"), with_(user_id="17.5"), with_(user_id="x")),
        *(with_(store_id=""), with_(store_id="x"), with_(store_id="5.0"), with_(store_id="99")),
        *(*STAMPED, *ANY),
    ),
    "transaction_items": (
        *(with_(item_id=""), with_(item_id="x"), with_(item_id="3.0"), with_(item_id="-7")),
        *(with_(quantity=""), with_(quantity="-2"), with_(quantity="2.0"), with_(quantity="1.5")),
        *(with_(subtotal=""), with_(subtotal="9.125"), with_(subtotal="9.1250"), with_(subtotal="-9.0")),
        *(*STAMPED, *ANY),
    ),
    "users": (
        *(
            with_(user_id=""),
            with_(user_id="x"),
            with_(user_id="0"),
            with_(birthdate=""),
            with_(birthdate="1990-02-30"),
        ),
        lambda row: as_line(row, user_id=f"{row['user_id']}.0"),
        lambda row: as_line(row) + as_line(row, birthdate="1950-01-01"),  # listed twice
        lambda row: as_line(row) + as_line(row, birthdate=""),
        *ANY,
    ),
}
QUOTED: tuple[Change, ...] = (all_quoted, before_an_empty_line)


def make_odd(lines: list[str], kind: str, first: int, month: Month) -> None:
    """In place; `first` is the place of these lines in their month."""
    odd = (*ODD[kind], *QUOTED) if month.has_quotes else ODD[kind]
    if first == 0:
        for number, place in enumerate(range(ODD_AT, min(len(lines), ODD_ROWS), ODD_EVERY)):
            row = dict(zip(HEADERS[kind], lines[place][:-1].split(","), strict=True))
            lines[place] = odd[(number + 4 * month.number) % len(odd)](row)
