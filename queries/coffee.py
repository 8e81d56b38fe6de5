"""The coffee shops: five kinds of files, four queries. What they mean is in the functions that are named here.

Transactions and users are keyed by the user, so that the counts of query 4 are final within a partition. Stores and
menu are small: every partition has them whole, and names are joined to what it knows at the end.
"""

from typing import Final

from queries import coffee_answers as shops
from queries import coffee_cleaning as cleaning
from queries.coffee_blocks import items_block, transactions_block, users_block
from queries.columns import having, in_order
from queries.model import Dataset, File, Input, Listing, Summary

TRANSACTIONS: Final = File(
    kind="transactions",
    filename="transactions.csv",
    columns=cleaning.TRANSACTION_COLUMNS,
    schema=cleaning.TRANSACTIONS_SCHEMA,
    key="key",
    clean_row=cleaning.clean_transaction,
    clean_block=transactions_block,
    is_folder=True,
)
TRANSACTION_ITEMS: Final = File(
    kind="transaction_items",
    filename="transaction_items.csv",
    columns=cleaning.ITEM_COLUMNS,
    schema=cleaning.ITEMS_SCHEMA,
    key="month",  # any partition will do for a row; and what a transaction holds goes to few of them
    clean_row=cleaning.clean_item,
    clean_block=items_block,
    pack=shops.pack_items,
    is_folder=True,
)
USERS: Final = File(
    kind="users",
    filename="users.csv",
    columns=cleaning.USER_COLUMNS,
    schema=cleaning.USERS_SCHEMA,
    key="user_id",
    clean_row=cleaning.clean_user,
    clean_block=users_block,
    is_folder=True,
)
STORES: Final = File(
    kind="stores",
    filename="stores.csv",
    columns=cleaning.STORE_COLUMNS,
    schema=cleaning.STORES_SCHEMA,
    key="store_id",
    clean_row=cleaning.clean_name,
    is_broadcast=True,
)
MENU_ITEMS: Final = File(
    kind="menu_items",
    filename="menu_items.csv",
    columns=cleaning.MENU_COLUMNS,
    schema=cleaning.MENU_SCHEMA,
    key="item_id",
    clean_row=cleaning.clean_name,
    is_broadcast=True,
)

STORE_NAMES: Final = Input(STORES, shops.store_names, shops.smallest_store_names)

Q1: Final = Listing(
    name="coffee-q1",
    header=("transaction_id", "final_amount"),
    inputs=(Input(TRANSACTIONS, shops.listed, in_order, reads=having("transaction_id")),),
    write=shops.transaction_line,
)
Q2: Final = Summary(
    name="coffee-q2",
    header=("month", "best", "item_id", "item_name", "value"),
    inputs=(
        Input(TRANSACTION_ITEMS, shops.sold, shops.sum_sold),
        Input(MENU_ITEMS, shops.item_names, shops.smallest_item_names),
    ),
    partial=shops.sold_by_name,
    answer=shops.best_items,
)
Q3: Final = Summary(
    name="coffee-q3",
    header=("half", "store_id", "store_name", "revenue"),
    inputs=(
        Input(TRANSACTIONS, shops.earned, shops.sum_earned, reads=shops.are_earned),
        STORE_NAMES,
    ),
    partial=shops.earned_by_name,
    answer=shops.halves_of_stores,
)
Q4: Final = Summary(
    name="coffee-q4",
    header=("store_id", "store_name", "user_id", "birthdate", "purchases"),
    inputs=(
        Input(TRANSACTIONS, shops.purchases, shops.sum_purchases, reads=shops.are_of_users),
        Input(USERS, shops.birthdates, shops.earliest_birthdates),
        STORE_NAMES,
    ),
    partial=shops.frequent_users,
    answer=shops.most_frequent_users,
)

COFFEE_DATASET: Final = Dataset(
    name="coffee",
    files=(TRANSACTIONS, TRANSACTION_ITEMS, USERS, STORES, MENU_ITEMS),
    queries=(Q1, Q2, Q3, Q4),
)
