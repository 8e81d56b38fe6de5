"""Conditions of requests (RFC 9110): nothing is sent that is at hand already, and a rest only of the same bytes."""

from starlette.datastructures import Headers


def is_at_hand(if_none_match: str, tag: str) -> bool:
    """Returns whether the client has this very thing already, by the tag that came with it."""
    known = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in known or known == ["*"]


def range_wanted(headers: Headers, tag: str) -> str:
    """Returns `Range`, or nothing where `If-Range` names other bytes than these: then all are wanted."""
    return headers.get("range", "") if headers.get("if-range", tag) == tag else ""
