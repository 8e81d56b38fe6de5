"""Log lines are JSON: a fixed message, and the facts beside it."""

import json
import logging
import sys

from cauce.logs import JsonLines


def line(**record: object) -> dict[str, object]:
    return dict(json.loads(JsonLines().format(logging.makeLogRecord(record))))


def test_facts_stand_beside_the_message() -> None:
    written = line(msg="partitions assigned", levelname="INFO", name="streams", partitions=3)
    assert written["message"] == "partitions assigned"
    assert (written["level"], written["logger"], written["partitions"]) == ("info", "streams", 3)


def test_a_fact_that_json_does_not_know_is_written_as_text() -> None:
    assert line(msg="m", where={1})["where"] == "{1}"


def test_an_exception_is_part_of_its_line() -> None:
    try:
        int("no")
    except ValueError:
        written = line(msg="m", exc_info=sys.exc_info())
    assert "ValueError: invalid literal" in str(written["error"])
