"""Every error is application/problem+json, whoever raised it."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from cauce.errors import BadUpload, BrokerUnavailable, CauceError, CommitUncertain, Fenced, IllegalMove
from gateway.problems import TITLES, Problem, from_error, install, later


class Wish(BaseModel):
    number: int


def app() -> FastAPI:
    app = FastAPI()
    install(app)

    @app.get("/fails")
    async def fails() -> None:
        raise ZeroDivisionError("secret of the house")

    @app.get("/refuses")
    async def refuses() -> None:
        raise later(503, "busy", "too much at once", 3, offset=7)

    @app.get("/bad-file")
    async def bad_file() -> None:
        raise BadUpload("ratings.csv", 17, "no column rating")

    @app.post("/wish")
    async def wish(wish: Wish) -> None: ...

    return app


def ask(method: str, path: str, **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            return await client.request(method, path, **options)

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "kind", "says"),
    [
        ("GET", "/nowhere", {}, 404, "not-found", "/nowhere"),
        ("PUT", "/wish", {}, 405, "method", "POST"),
        ("POST", "/wish", {"json": {"number": "x"}}, 422, "bad-value", "number"),
        ("POST", "/wish", {"content": b"{"}, 400, "bad-request", "JSON"),
        ("GET", "/fails", {}, 500, "unexpected", "logged"),
        ("GET", "/refuses", {}, 503, "busy", "too much"),
        ("GET", "/bad-file", {}, 422, "bad-file", "line 17"),
    ],
)
def test_all_have_the_same_form(
    method: str, path: str, options: dict[str, Any], status: int, kind: str, says: str
) -> None:
    if "content" in options:
        options["headers"] = {"Content-Type": "application/json"}
    answer = ask(method, path, **options)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["type"], body["status"], body["title"]) == (f"/docs#{kind}", status, TITLES[kind])
    assert says in body["detail"]
    assert "secret of the house" not in answer.text


def test_where_it_went_wrong_and_when_to_come_again() -> None:
    assert ask("GET", "/bad-file").json()["line"] == 17
    busy = ask("GET", "/refuses")
    assert busy.headers["Retry-After"] == "3"
    assert busy.json()["offset"] == 7


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadUpload("f.csv", 1, "x"), 422),
        (Fenced("x"), 423),
        (BrokerUnavailable("x"), 503),
        (CommitUncertain("x"), 503),
        (IllegalMove("x"), 500),
    ],
)
def test_each_error_of_ours_has_its_status(error: CauceError, status: int) -> None:
    problem: Problem = from_error(error)
    assert problem.status == status
    assert ("Retry-After" in problem.headers) is (status in (423, 503))
