"""The four coffee queries in one pass over each kind of file: transactions, their items, then users.

Invariant: each row of each file counts, as often as it is there. Amounts are integers, in thousandths.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cauce.errors import ConfigError
from infra.oracle import fields
from infra.oracle.rows import Answers, Counts, as_csv, files_read, read_rows

KINDS = ("transactions", "transaction_items", "users", "stores", "menu_items")
YEARS = ("2024", "2025")
OPENS, CLOSES = "06:00:00", "23:00:00"
LISTED_FROM = 75_000
PLACES = 3  # of a store, in query 4

Names = dict[int, str]
Line = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Transaction:
    """One that was not rejected; None is a field that does not parse."""

    id: str
    store: int | None
    user: int | None
    amount: int | None
    date: str
    time: str


@dataclass(frozen=True, slots=True)
class Item:
    """As above."""

    id: int | None
    quantity: int | None
    subtotal: int | None
    date: str


@dataclass(slots=True)
class Tally:
    """What three queries want to know of all transactions."""

    listed: list[tuple[str, int]] = field(default_factory=list)
    revenue: Counter[tuple[str, int]] = field(default_factory=Counter)  # by half-year and store
    purchases: defaultdict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))  # by store, user


READS = {
    "coffee-q1.csv": ("transactions.csv",),
    "coffee-q2.csv": ("transaction_items.csv", "menu_items.csv"),
    "coffee-q3.csv": ("transactions.csv", "stores.csv"),
    "coffee-q4.csv": ("transactions.csv", "users.csv", "stores.csv"),
}


def answer(folder: Path, wanted: Collection[str] = tuple(READS)) -> Answers:
    """Answers the wanted queries over those of five kinds of files that they read."""
    counts = {name: Counts() for name in files_read(READS, wanted)}
    stores, tally = dict[int, str](), Tally()
    if "stores.csv" in counts:
        stores = read_names(folder, "stores", ("store_id", "store_name"), counts["stores.csv"])
    if "transactions.csv" in counts:
        tally = tally_up(read_transactions(folder, counts["transactions.csv"]))

    def best() -> list[Line]:
        menu = read_names(folder, "menu_items", ("item_id", "item_name"), counts["menu_items.csv"])
        return best_items(read_items(folder, counts["transaction_items.csv"]), menu)

    def frequent() -> Iterator[Line]:
        found = frequent_users(tally.purchases)
        users = {user for _, user, _ in found}
        birthdates = earliest_birthdates(read_users(folder, counts["users.csv"]), users)
        for store, user, times in found:
            yield store, stores.get(store, ""), user, birthdates.get(user, ""), times

    answers: Mapping[str, Callable[[], bytes]] = {
        "coffee-q1.csv": lambda: as_csv("transaction_id,final_amount", large_transactions(tally.listed)),
        "coffee-q2.csv": lambda: as_csv("month,best,item_id,item_name,value", best()),
        "coffee-q3.csv": lambda: as_csv("half,store_id,store_name,revenue", revenue_of_halves(tally.revenue, stores)),
        "coffee-q4.csv": lambda: as_csv("store_id,store_name,user_id,birthdate,purchases", frequent()),
    }
    return Answers({name: answers[name]() for name in READS if name in wanted}, counts)


def tally_up(transactions: Iterable[Transaction]) -> Tally:
    tally = Tally()
    for each in transactions:
        if each.date[:4] not in YEARS:
            continue
        if each.store is not None and each.user is not None:
            tally.purchases[each.store][each.user] += 1
        if each.amount is None or not OPENS <= each.time <= CLOSES:
            continue
        if each.amount >= LISTED_FROM:
            tally.listed.append((each.id, each.amount))
        if each.store is not None:
            tally.revenue[half_of(each.date), each.store] += each.amount
    return tally


def large_transactions(listed: list[tuple[str, int]]) -> Iterator[Line]:
    return ((transaction, money(amount)) for transaction, amount in sorted(listed))


def best_items(items: Iterable[Item], menu: Names) -> list[Line]:
    quantities: defaultdict[str, Counter[int]] = defaultdict(Counter)  # by month, then item
    subtotals: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for item in items:
        if item.date[:4] in YEARS and item.id is not None and item.quantity is not None and item.subtotal is not None:
            quantities[item.date[:7]][item.id] += item.quantity
            subtotals[item.date[:7]][item.id] += item.subtotal
    lines: list[Line] = []
    for month in sorted(quantities):
        most, sold = largest(quantities[month])
        best, earned = largest(subtotals[month])
        lines.append((month, "quantity", most, menu.get(most, ""), sold))
        lines.append((month, "revenue", best, menu.get(best, ""), money(earned)))
    return lines


def largest(sums: Counter[int]) -> tuple[int, int]:
    """The key with the largest sum, the lowest key of several."""
    return min(sums.items(), key=lambda each: (-each[1], each[0]))


def revenue_of_halves(revenue: Counter[tuple[str, int]], stores: Names) -> list[Line]:
    return [(half, store, stores.get(store, ""), money(amount)) for (half, store), amount in sorted(revenue.items())]


def frequent_users(purchases: dict[int, Counter[int]]) -> list[tuple[int, int, int]]:
    """Store, user, times: three users a store at most."""
    return [
        (store, user, times)
        for store in sorted(purchases)
        for user, times in sorted(purchases[store].items(), key=lambda each: (-each[1], each[0]))[:PLACES]
    ]


def earliest_birthdates(users: Iterable[tuple[int, str]], wanted: set[int]) -> dict[int, str]:
    birthdates: dict[int, str] = {}
    for user, birthdate in users:
        if user in wanted:
            birthdates[user] = min(birthdate, birthdates.get(user, birthdate))
    return birthdates


def half_of(date: str) -> str:
    return f"{date[:4]}-H{1 if date[5:7] <= '06' else 2}"


def money(amount: int) -> str:
    """Two decimals, and a third one if it says something."""
    text = f"{amount // 1000}.{amount % 1000:03d}"
    return text.removesuffix("0")


def read_transactions(folder: Path, counts: Counts) -> Iterator[Transaction]:
    columns = ("transaction_id", "store_id", "created_at", "user_id", "final_amount")
    for transaction, store, created_at, user, amount in read_kind(folder, "transactions", columns, 3, counts):
        moment = fields.moment(created_at)
        if moment is None:
            counts.rejected += 1
            continue
        yield Transaction(transaction, fields.integer(store), fields.user_id(user), fields.thousandths(amount), *moment)


def read_items(folder: Path, counts: Counts) -> Iterator[Item]:
    columns = ("transaction_id", "item_id", "created_at", "quantity", "subtotal")
    for _, item, created_at, quantity, subtotal in read_kind(folder, "transaction_items", columns, 3, counts):
        moment = fields.moment(created_at)
        if moment is None:
            counts.rejected += 1
            continue
        yield Item(fields.integer(item), fields.integer(quantity), fields.thousandths(subtotal), moment[0])


def read_users(folder: Path, counts: Counts) -> Iterator[tuple[int, str]]:
    """Those with a birthdate."""
    for user, birthdate in read_kind(folder, "users", ("user_id", "birthdate"), 1, counts):
        number = fields.user_id(user)
        if number is not None and fields.is_date(birthdate):
            yield number, birthdate


def read_names(folder: Path, kind: str, columns: tuple[str, str], counts: Counts) -> Names:
    """The smallest name of each id."""
    names: Names = {}
    for number, name in read_kind(folder, kind, columns, 0, counts):
        key = fields.integer(number)
        if key is not None:
            names[key] = min(name, names.get(key, name))
    return names


def read_kind(
    folder: Path, kind: str, columns: tuple[str, ...], needed: int, counts: Counts
) -> Iterator[tuple[str, ...]]:
    """The named fields of every row of that kind; a row without one of the first so many is rejected."""
    for path in paths_of(folder, kind):
        yield from read_rows(path, columns, counts, needed)


def paths_of(folder: Path, kind: str) -> list[Path]:
    """DIR/<kind>.csv, or else all CSV files in DIR/<kind>/."""
    single = folder / f"{kind}.csv"
    paths = [single] if single.is_file() else sorted((folder / kind).glob("*.csv"))
    if not paths:
        raise ConfigError(f"{single} is missing, and there is no CSV file in {folder / kind}; give one or the other")
    return paths
