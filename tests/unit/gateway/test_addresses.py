"""Whom a new session is counted to: what a stranger writes into a header changes nothing."""

from ipaddress import ip_network

import pytest

from gateway.addresses import counted_as

PROXIES = (ip_network("10.0.0.0/8"), ip_network("127.0.0.1/32"), ip_network("2001:db8:ff::/48"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("203.0.113.7", ["198.51.100.9"], "203.0.113.7"),  # no proxy of ours: what it says of others is its own
        ("10.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["127.0.0.1, 192.0.2.1, 198.51.100.9"], "198.51.100.9"),  # the first two were made up
        ("10.0.0.1", ["198.51.100.9, 10.9.9.9", "10.0.0.2"], "198.51.100.9"),  # several proxies, several lines
        ("10.0.0.1", ["198.51.100.9:4711"], "198.51.100.9"),
        ("10.0.0.1", ["[2001:db8:1:2:3::4]:4711"], "2001:db8:1:2::/64"),
        ("10.0.0.1", ["198.51.100.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.2"], "10.0.0.2"),  # a proxy's own request
        ("2001:db8:ff::1", ["2001:db8:1:2::9"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:aaaa::1", [], "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", [], "203.0.113.7"),
        ("127.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        (
            "10.0.0.1",
            ["127.0.0.1, 10.9.9.9"],
            "10.9.9.9",
        ),  # a client in a trusted network makes itself no machine of ours
        ("10.0.0.1", ["::1"], "10.0.0.1"),
        ("127.0.0.1", [], ""),
        ("::1", ["198.51.100.9"], ""),  # no proxy of ours, and this machine
        ("", ["198.51.100.9"], ""),
    ],
)
def test_an_address_is_the_last_hop_that_is_no_proxy_of_ours(peer: str, forwarded: list[str], address: str) -> None:
    assert counted_as(peer, forwarded, PROXIES) == address


def test_without_trusted_proxies_the_header_is_nothing() -> None:
    assert counted_as("10.0.0.1", ["198.51.100.9"], ()) == "10.0.0.1"
    assert counted_as("127.0.0.1", ["198.51.100.9"], ()) == ""
