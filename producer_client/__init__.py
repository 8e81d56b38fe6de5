"""The client: sends a folder's files to the gateways, waits, fetches the answers. Speaks HTTP only (docs/http.md).

from producer_client import Client

with Client(["http://127.0.0.1:8080"]) as client, client.open("movies", scope="all") as session:
    session.upload("data/movies")
    for query, frame in session.answers():
        print(query, frame, sep="\\n")
"""

from producer_client.api import Client, Session
from producer_client.errors import BadFile, ClientError, QueryFailed, Refused, SessionGone, Unreachable, WrongUsage

__all__ = [
    "BadFile",
    "Client",
    "ClientError",
    "QueryFailed",
    "Refused",
    "Session",
    "SessionGone",
    "Unreachable",
    "WrongUsage",
]
