"""What `cauce status` shows of a session."""

from io import StringIO

from rich.console import Console

from infra.status_view import show


def test_rows_that_no_query_uses_are_between_those_read_and_those_sent() -> None:
    counts = {"rows": 12_015, "rejected": {"no rating": 2, "not UTF-8": 1}, "unused": 12, "sent": 12_000}
    file = {"kind": "ratings", "folded": None, **counts}
    session = {"client_id": "ada", "dataset": "movies", "queries": ["movies-q3"], "state": "uploading", "files": [file]}
    shown = StringIO()
    show({"processes": [], "troubles": [], "sessions": [session]}, Console(file=shown, width=200))
    header, row = shown.getvalue().splitlines()[-2:]
    assert "ROWS READ, REJECTED, USED BY NO QUERY, SENT, FOLDED" in header
    assert "ratings 12,015 3 12 12,000 ?" in row
