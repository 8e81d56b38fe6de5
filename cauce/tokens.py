"""Bearer tokens that any replica can check: whose session, until when, and an HMAC over both.

Invariant: a token opens one session only, and nobody without the secret can make one. The operator's is made by whoever
has the secret, and is for no session: it shows all of them, and changes none.
"""

import hashlib
import hmac
import uuid
from dataclasses import dataclass
from typing import Final

SCHEME: Final = "bearer"
OPERATOR: Final = "operator"  # no client id is made like that
OPERATOR_SECONDS: Final = 60.0
FINGERPRINT: Final = 16  # hexadecimal digits: a thousand addresses are told apart, and no signature is given away


class BadToken(Exception):
    """The token says nothing that we can trust; the message says why."""


@dataclass(frozen=True, slots=True)
class Tokens:
    secret: bytes

    def issue(self, client_id: str, expires_at: float) -> str:
        body = f"{client_id}.{int(expires_at)}"
        return f"{body}.{self._sign(body)}"

    def check(self, authorization: str, now: float) -> str:
        """The client that the header `Authorization` speaks for."""
        scheme, _, token = authorization.strip().partition(" ")
        if scheme.lower() != SCHEME or not token:
            raise BadToken("send the header Authorization: Bearer TOKEN, with the token that POST /sessions gave")
        body, _, signature = token.strip().rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(body).encode()):
            raise BadToken("this token was not made here: use the one that POST /sessions gave, unchanged")
        client_id, _, expires_at = body.partition(".")
        if int(expires_at) <= now:
            raise BadToken("this token has expired: open a new session with POST /sessions")
        return client_id

    def fingerprint(self, address: str) -> str:
        """Returns what gateways count an address by: the same at each of them, and no address for anybody else."""
        return self._sign(f"address {address}")[:FINGERPRINT]

    def _sign(self, body: str) -> str:
        return hmac.new(self.secret, body.encode(), hashlib.sha256).hexdigest()


def new_client_id() -> str:
    return uuid.uuid4().hex
