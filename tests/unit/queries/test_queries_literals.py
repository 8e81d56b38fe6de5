"""Names from Python literals: the rules, and that the fast way never differs from the exact one."""

import ast
import sys
import threading
import time
import warnings
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queries.literals import LONGEST, MOST_MARKS, marks, names, names_exact, names_fast

REAL = """[{'id': 16, 'name': 'Animation'}, {'id': 35, 'name': "Int'l"}, {'id': -1, 'a_b': None, 'name': 'Ünï'}]"""


def test_names_come_in_the_order_of_the_entries() -> None:
    assert names(REAL) == names_fast(REAL) == names_exact(REAL) == ["Animation", "Int'l", "Ünï"]


@pytest.mark.parametrize(
    "text", ["", "{}", "{'name': 'a'}", "1", "False", "None", "...", "'[]'", "({'name': 'a'},)", "x"]
)
def test_what_is_not_a_list_is_an_empty_list(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[]", []),
        ("[{'name': ' a '}, {'name': ''}]", [" a ", ""]),
        ("[{'name': 'a'}, {'name': 'a'}]", ["a", "a"]),
        ("[{'id': 1}, 7, None, 'name', ['name'], {'name': 1}, {'name': None}, {'name': b'x'}, {'name': 'a'}]", ["a"]),
        ("[{'name': 'a', 'name': 'b'}]", ["b"]),
        ("[{'name': 'a', 'name': 1}]", []),
        ("""[{'name': 'a', "name": 'b'}]""", ["b"]),
        ("""[{'na' "me": 'a' 'b'}]""", ["ab"]),
        ("""[{'id': "'name': 'x'", 'name': 'a'}]""", ["a"]),
        (r"[{'name': 'O\'Hara \x41 \u00e9 \n'}]", ["O'Hara A é \n"]),
        (r"[{'name': r'\d'}, {'name': '\d'}]", [r"\d", r"\d"]),
        ("[{'name': '''a\nb'''},]  # why not", ["a\nb"]),
        ("[{'name': 'a\nb'}]", []),
        ("[{'name': 'a\0'}]", []),
        ("[{'name': f'a'}]", []),
        ("[{'name': 'a'}, {[]: 1}]", []),
        ("[{'name': 'a', 'id': 01}]", []),
        (r"[{'name': '\ud83d'}, {'name': 'a'}]", ["a"]),
        ("[{'name': 'a', 'id': " + "1" * 400 + " + 1j}]", []),
    ],
)
def test_an_entry_counts_if_it_has_a_string_name(text: str, found: list[str]) -> None:
    assert names(text) == found


def nested(opening: str, middle: str, closing: str) -> Callable[[int], str]:
    return lambda depth: "[{'name': 'a', 'b': " + opening * depth + middle + closing * depth + "}]"


BOMBS = {
    "lists": nested("[", "", "]"),
    "dicts": nested("{1:", "1", "}"),
    "tuples": nested("(", "1", ",)"),
    "open": nested("[{'a':(", "", ""),
    "wrong": nested("{'a': [", "1 1", "]}"),
    "minus": nested("-", "1", ""),
    "not": nested("not ", "1", ""),
    "lambda": nested("lambda: ", "1", ""),
    "plus": nested("1+", "1", ""),
    "power": nested("1**", "1", ""),
    "if": nested("1 if 1 else ", "1", ""),
    "calls": nested("", "a", "()"),
    "f-strings": nested("f'{1}' ", "''", ""),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("depth", [199, 2900, 5900, 30_000])
def test_no_nesting_harms_the_process(bomb: str, depth: int) -> None:
    found: list[list[str]] = []
    thread = threading.Thread(target=lambda: found.append(names(BOMBS[bomb](depth))))
    before = threading.stack_size(2 << 20)  # a quarter of what Linux gives a thread
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [[]]


def test_what_python_takes_is_read_whatever_the_depth_of_the_caller() -> None:
    def called(frames: int) -> list[str]:
        return called(frames - 1) if frames else names(BOMBS["lists"](198))

    assert sys.getrecursionlimit() >= 1000
    assert called(0) == called(500) == ["a"]


def test_a_text_that_is_too_long_is_an_empty_list_both_ways() -> None:
    entries = ["{'name': 'a'}"] * (LONGEST // 15 - 1)
    assert len(names(f"[{', '.join(entries)}]")) == len(entries)
    assert names(f"[{', '.join(entries * 2)}]") == []


def test_no_warning_escapes_and_the_filters_stay() -> None:
    before = list(warnings.filters)
    assert names(r"[{'name': '\d', 'id': 0x1for}]") == []
    assert names(r"[{'name': '\d'}]") == [r"\d"]
    assert list(warnings.filters) == before


plain = st.text(st.characters(exclude_categories=()), max_size=6)
quoted = st.one_of(
    plain.map(repr),
    plain.map(lambda text: f"'{text}'"),
    plain.map(lambda text: f'"{text}"'),
    st.sampled_from(
        ["''", '""', "'''a'''", "'a''b'", "b'x'", "r'\\d'", "f'x'", "u'x'", "'a' \"b\"", "'\\ud800'", "'\\d'"]
    ),
    st.sampled_from(["'name'", '"name"', "'name'", "'id'", "'na' 'me'", "r'name'", "b'name'", "'Name'", "'name '"]),
)
scalars = st.one_of(
    quoted,
    st.integers().map(str),
    st.sampled_from(
        ["None", "True", "0", "-0", "00", "01", "1_0", "1.5", "-1", "--1", "1e400", "9" * 30, "[]", "{}", "x"]
    ),
)
keys = st.one_of(st.just("'name'"), st.just("'id'"), quoted, scalars)
gaps = st.sampled_from([", "] * 6 + [",", " , ", ",\n", ", ,", " ", "; ", ",\t", ", # x\n"])
ends = st.sampled_from([""] * 8 + [",", ", ", " ", "\n", "]", "}", "'", "\\", "\0", "#", "\ufeff"])
colons = st.sampled_from([": "] * 8 + [":", " : ", " ", "="])


@st.composite
def joined(draw: st.DrawFn, items: st.SearchStrategy[str], brackets: str) -> str:
    text = brackets[0] + draw(ends)
    for index, item in enumerate(draw(st.lists(items, max_size=4))):
        text += (draw(gaps) if index else "") + item
    return text + draw(ends) + brackets[1]


pairs = st.builds(lambda key, colon, value: key + colon + value, keys, colons, scalars)
entries = st.one_of(joined(pairs, "{}"), joined(pairs, "{}"), scalars, joined(scalars, "[]"), joined(scalars, "()"))
near_literals = st.builds(lambda text, end: text + end, joined(entries, "[]"), ends)
regular = st.lists(st.fixed_dictionaries({"id": st.integers(), "name": plain}, optional={"x": plain | st.none()})).map(
    repr
)


@settings(deadline=None)  # this machine may be busy
@given(st.one_of(near_literals, regular, st.text(), st.text("[]{}'\":, name\\\n01b")))
@example("[{'name': ''', '''}]")
@example("[{'name': 'a', 'id': 1}, ]")
@example("[{'name': 'a'}] ")
@example("[{'name': 'a\r'}]")
@example("[{'name': 'a\x0c'}]")
@example("[{'name': '\ud800'}]")
@example("[{'nAme': 'a', 'name': 'b'}]")
def test_the_fast_way_vouches_only_for_what_the_exact_way_gives(text: str) -> None:
    fast = names_fast(text)
    assert fast is None or fast == names_exact(text)
    assert names(text) == names_exact(text)


USUAL = "{'cast_id': 14, 'character': 'Woody (voice)', 'gender': 2, 'id': 31, 'name': 'Tom Hanks', 'order': 0}, "
DENSE = {
    "numbers": "1,",
    "minus": "-1,",
    "complex": "1+1j,",
    "dicts": "{},",
    "tuples": "(),",
    "texts": "'',",
    "names": "a,",
    "calls": "a(),",
    "f-strings": "f'{a}',",
    "or": "0or ",
    "compared": "1<",
    "in": "0in ",
    "pairs": "{'name':1},",
    "commented": "#'\n1,",
    "quoted": """'''a'b''',1,""",
}


def filled(piece: str, length: int) -> str:
    return "[" + piece * ((length - 3) // len(piece)) + "1]"


def seconds(text: str) -> float:
    """The best of three: whatever else the machine does takes longer, never shorter."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        names(text)
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.parametrize("dense", DENSE)
def test_no_text_holds_the_parser_many_times_as_long_as_a_usual_one(dense: str) -> None:
    """Without a bound on the marks it was 200 times and more, and half a second; the longest that is parsed, too."""
    usual = seconds(f"[{(USUAL * (LONGEST // len(USUAL)))[:-2]}]")
    longest = next(size for size in range(LONGEST, 0, -4096) if marks(filled(DENSE[dense], size)) <= MOST_MARKS)
    assert seconds(filled(DENSE[dense], LONGEST)) < 60 * usual
    assert seconds(filled(DENSE[dense], longest)) < 60 * usual


def test_a_usual_list_is_read_up_to_the_longest_text_with_escapes_in_it_too() -> None:
    entries = r"{'name': 'T\xe9o \u00f1 \t\\'}, {'id': 1, 'name': " + r'"O\"Hara"}, '
    text = f"[{(entries * (LONGEST // len(entries)))[:-2]}]"
    assert names(text)[:2] == ["Téo ñ \t\\", 'O"Hara']
    assert len(names(text)) == 2 * (LONGEST // len(entries))
    assert marks(text) > MOST_MARKS


def test_marks_are_no_fewer_than_the_nodes_that_they_stand_for() -> None:
    for dense in DENSE.values():
        text = filled(dense, 4096)
        try:
            nodes = sum(isinstance(node, ast.expr) for node in ast.walk(ast.parse(text, mode="eval")))
        except SyntaxError:
            continue
        assert nodes <= 2 * marks(text) + 2


@settings(deadline=None)  # this machine may be busy
@given(st.lists(st.fixed_dictionaries({"id": st.integers(0, 10**9), "name": st.text("abc é'", max_size=5)})))
def test_the_fast_way_takes_the_usual_shape(listed: list[dict[str, object]]) -> None:
    assert names_fast(repr(listed)) == [entry["name"] for entry in listed]
