"""The names in a list of Python literals: `[{'id': 16, 'name': 'Animation'}, …]`.

Invariant: the outcome is that of `ast.literal_eval`, for any text up to `LONGEST` that has the usual form, and for
any other with up to `MOST_MARKS`. A pattern is many times as fast on the real rows, and takes only texts for which it
vouches (nearly all); the others go the exact way. Nothing is raised and no warning escapes: what does not parse is an
empty list.

Hostile texts. Python's parser takes about 3 µs for every node of the tree, and no other thread gets its turn
meanwhile: a text of 256 KiB that is all nodes (`[1,1,1,…`) held a process for half a second. A node takes a mark or a
word between it and the next, so these are counted first, wherever they stand: that is quick, cannot be fooled by
quotes, and too many of them are no list. Their nesting Python bounds itself, alike in every process: 200 brackets in
the tokenizer, 6,000 levels in the parser (within 1 MB of stack, measured), and the tree that it makes of them by the
recursion limit. A list of 200 levels takes 200 Python frames, so callers up to 700 frames deep see one outcome.
"""

import ast
import re
import threading
import warnings
from functools import lru_cache
from typing import Final

# Eight times the longest cast of the real rows. The exact way takes up to 550 bytes of memory and 3 µs a character.
LONGEST: Final = 2**18
# Four times those of the longest cast of the real rows: 60 ms of the exact way.
MOST_MARKS: Final = 2**14
MARKS: Final = (*",:;=+-*/%<>&|^~!@.([{", "or", "and", "in", "is", "if", "not", "lambda", "await", "yield")

# A string with the usual escapes only, with nothing in it that Python's tokenizer would stop at. Surrogates cannot be
# compiled.
ESCAPE: Final = r"""\\(?:['"\\abfnrtv]|x[0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})"""
PLAIN: Final = (
    rf"""(?:'[^'\\\n\r\0\ud800-\udfff]*+(?:{ESCAPE}[^'\\\n\r\0\ud800-\udfff]*+)*+'"""
    rf"""|"[^"\\\n\r\0\ud800-\udfff]*+(?:{ESCAPE}[^"\\\n\r\0\ud800-\udfff]*+)*+")"""
)
ESCAPES: Final = re.compile(ESCAPE)
STANDS_FOR: Final = dict(zip("'\"\\abfnrtv", "'\"\\\a\b\f\n\r\t\v", strict=True))
OTHER: Final = rf"'(?!name')[a-z0-9_]++': (?:{PLAIN}|None|0|-?[1-9][0-9]{{0,17}}+)"
ENTRY: Final = rf"\{{(?:{OTHER}, )*+'name': ({PLAIN})(?:, {OTHER})*+\}}"  # one `name`, and it is a string
ENTRIES: Final = re.compile(rf"(, {ENTRY})")
SHORT: Final = 500  # characters; genres, countries and languages are shorter, and most of them are seen again and again

_filters = threading.Lock()  # the filters of warnings belong to the process, not to the thread that changes them


def names(text: str) -> list[str]:
    """The names in the order of the entries, blanks and all."""
    return list(_names_again(text) if len(text) <= SHORT else _names(text))


def _names(text: str) -> list[str]:
    if len(text) > LONGEST:
        return []
    fast = names_fast(text)
    if fast is not None:
        return fast
    return names_exact(text) if marks(text) <= MOST_MARKS else []


_names_again = lru_cache(maxsize=8192)(_names)


def names_fast(text: str) -> list[str] | None:
    """None where the pattern cannot vouch for the outcome: where entries are not all that there is."""
    if text == "[]":
        return []
    entries = ENTRIES.findall(f", {text[1:-1]}")
    if text[:1] != "[" or text[-1:] != "]" or sum(len(entry) for entry, _ in entries) != len(text):
        return None
    return [ESCAPES.sub(_unescaped, name[1:-1]) if "\\" in name else name[1:-1] for _, name in entries]


def _unescaped(escape: re.Match[str]) -> str:
    sign, code = escape[0][1], escape[0][2:]
    return chr(int(code, 16)) if code else STANDS_FOR[sign]


def marks(text: str) -> int:
    """At least as many as the nodes that Python's parser would make of it, but for the first."""
    return sum(text.count(mark) for mark in MARKS)


def names_exact(text: str) -> list[str]:
    entries = _literal(text)
    if not isinstance(entries, list):
        return []
    found = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    return [name for name in found if isinstance(name, str) and _is_writable(name)]


def _literal(text: str) -> object:
    """None, too, where the text is no literal. Of the errors, OverflowError comes of an integer of 400 digits + 1j,
    TypeError of a list as a key; warnings come of escapes such as `\\d`, which stand for themselves."""
    with _filters, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError):
            return None


def _is_writable(name: str) -> bool:
    """False for half a character, as of the escape `\\ud83d`: UTF-8 has no bytes for it, so it is no name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
