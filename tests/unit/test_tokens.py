"""Tokens: bound to a client and a time, and not to be made without the secret."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cauce.messages import ClientId
from cauce.tokens import BadToken, Tokens, new_client_id

TOKENS = Tokens(b"a secret of the operators")
ADA = ClientId("ada0")
NOW = 1_000.0


def test_a_token_speaks_for_its_client() -> None:
    token = TOKENS.issue(ADA, NOW + 60)
    assert TOKENS.check(f"Bearer {token}", NOW) == ADA
    assert TOKENS.check(f"bearer  {token} ", NOW) == ADA


def test_a_token_ends() -> None:
    token = TOKENS.issue(ADA, NOW + 60)
    with pytest.raises(BadToken, match="expired"):
        TOKENS.check(f"Bearer {token}", NOW + 60)


def test_another_secret_makes_other_tokens() -> None:
    token = Tokens(b"another secret").issue(ADA, NOW + 60)
    with pytest.raises(BadToken, match="not made here"):
        TOKENS.check(f"Bearer {token}", NOW)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer x", "Bearer ..", "Bearer é.ü.ß"])
def test_anything_else_is_refused(header: str) -> None:
    with pytest.raises(BadToken):
        TOKENS.check(header, NOW)


@given(at=st.integers(min_value=0), sign=st.characters(min_codepoint=33, max_codepoint=126))
def test_no_character_of_a_token_can_be_changed(at: int, sign: str) -> None:
    token = TOKENS.issue(ADA, NOW + 60)
    at %= len(token)
    changed = token[:at] + sign + token[at + 1 :]
    if changed != token:
        with pytest.raises(BadToken):
            TOKENS.check(f"Bearer {changed}", NOW)


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def noting(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return left == right

    monkeypatch.setattr("cauce.tokens.hmac.compare_digest", noting)
    right = TOKENS.issue(ADA, NOW + 60)
    for token in (right, right[:-1] + "0", f"{ADA}.{int(NOW + 60)}.", "x.y"):
        with contextlib.suppress(BadToken):
            TOKENS.check(f"Bearer {token}", NOW)
    assert [given.decode() for given, _ in compared] == [right[-64:], right[-64:-1] + "0", "", "y"]
    assert {len(ours) for _, ours in compared} == {64}


def test_a_fingerprint_tells_addresses_apart_and_is_none_without_the_secret() -> None:
    addresses = [f"192.0.2.{each}" for each in range(256)]
    made = [TOKENS.fingerprint(address) for address in addresses]
    assert len(set(made)) == 256
    assert made == [TOKENS.fingerprint(address) for address in addresses]
    assert not set(made) & {Tokens(b"another secret").fingerprint(address) for address in addresses}


def test_client_ids_are_hexadecimal_and_never_the_same() -> None:
    made = {new_client_id() for _ in range(100)}
    assert len(made) == 100
    assert all(int(client_id, 16) >= 0 and len(client_id) == 32 for client_id in made)
