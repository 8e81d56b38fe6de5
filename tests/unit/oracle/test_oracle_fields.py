"""What parses, rule by rule."""

from fractions import Fraction

import pytest

from infra.oracle import fields


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("862", 862),
        ("862.0", 862),
        ("00862", 862),
        ("-3", -3),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "7", 7),
        ("9223372036854775808", None),
        ("9" * 5000, None),
        ("862.5", None),
        ("+862", None),
        ("8_62", None),
        ("1e3", None),
        ("862.", None),
        (".0", None),
        ("٨٦٢", None),
        ("8 62", None),
        ("1,000", None),
        ("tt0113002", None),
        ("", None),
    ],
)
def test_an_integer(text: str, value: int | None) -> None:
    assert fields.integer(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("30000000.0", 30_000_000),
        ("-0", None),
        ("-5", None),
        ("1.5", None),
        ("/ff9q.jpg", None),
        ("inf", None),
    ],
)
def test_a_budget_is_an_integer_from_zero(text: str, value: int | None) -> None:
    assert fields.budget(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("373554033", Fraction(373554033)),
        ("0.1", Fraction(1, 10)),
        ("99999999999999999999", Fraction(10**20 - 1)),
        ("0." + "0" * 400 + "1", Fraction(1, 10**401)),  # not zero, though its double is
        ("9" * 400, None),  # its double is infinite
        ("-0", None),
        ("-0.5", None),
        ("nan", None),
        ("1e6", None),
    ],
)
def test_a_revenue_is_a_finite_decimal_from_zero(text: str, value: Fraction | None) -> None:
    assert fields.revenue(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 1),
        ("4", 8),
        ("4.0", 8),
        ("04.500", 9),
        ("5.0", 10),
        ("0", None),
        ("0.0", None),
        ("5.5", None),
        ("4.25", None),
        ("4.50000000000000000000000000000000000001", None),
        ("-4", None),
        ("4.", None),
        (".5", None),
    ],
)
def test_a_rating_goes_by_value(text: str, value: int | None) -> None:
    assert fields.half_stars(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2000-02-29", 2000),
        ("1999-12-31", 1999),
        ("2001-02-29", None),
        ("2001-13-01", None),
        ("0000-01-01", None),
        ("2001-1-1", None),
        ("20010101", None),
        ("2001-01-01 00:00:00", None),
        ("1", None),
    ],
)
def test_a_date_is_real(text: str, value: int | None) -> None:
    assert fields.year(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[]", []),
        ("[{'id': 16, 'name': 'Animation'}, {'id': 35, 'name': 'Comedy'}]", ["Animation", "Comedy"]),
        ("""[{'name': "Côte d'Ivoire"}, {'name': 'a "b"'}]""", ["Côte d'Ivoire", 'a "b"']),
        ("[{'name': ' padded '}, {'name': ''}]", [" padded ", ""]),
        ("[{'name': 'twice'}, {'name': 'twice'}]", ["twice", "twice"]),
        ("[{'id': 1}, {'name': None}, {'name': 7}, 'x', {'name': 'kept'}]", ["kept"]),
        (r"[{'name': 'a\d'}]", [r"a\d"]),  # an escape that Python does not know, and warns of
        (r"[{'name': '\u00e9'}]", ["é"]),
        (r"[{'name': '\ud800'}, {'name': 'kept'}]", ["kept"]),
        ("[{'name':\n'between tokens'}]", ["between tokens"]),
        ("[{'name': 'bro\nken'}]", []),
        ("[{'name': 'Argen", []),
        ("{'name': 'a dict'}", []),
        ("({'name': 'a tuple'},)", []),
        ("False", []),
        ("17", []),
        ('[{"name": null}]', []),
        ("[{[]: 1}]", []),
        ("[" * 10_000, []),
        ("[{'name': open('x')}]", []),
    ],
)
def test_names_of_a_literal(text: str, value: list[str]) -> None:
    assert fields.names(text) == value
