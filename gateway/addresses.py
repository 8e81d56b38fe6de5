"""Who asks: the network address that new sessions are counted by.

Invariant: nobody can choose it. A word of `X-Forwarded-For` counts only where a trusted proxy wrote it, so the header
is read from its end, one trusted hop after the other; and no word of it makes anybody this machine itself, which is not
counted. IPv6 is cut to /64, which is what one customer has at least.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

ONE_CUSTOMER: Final = 64  # bits of an IPv6 address; whoever has one network has 2**64 addresses in it


def counted_as(peer: str, forwarded: Iterable[str], trusted: Sequence[Network]) -> str:
    """Returns the address to count by. It is empty for this machine itself, which is not counted: behind it are
    operators, tests, or a proxy that was not named."""
    address = _sender(peer, forwarded, trusted)
    if address is None or address.is_loopback:
        return ""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), ONE_CUSTOMER), strict=False))


def _sender(peer: str, forwarded: Iterable[str], trusted: Sequence[Network]) -> Address | None:
    """The last hop that is no trusted proxy; the peer where no proxy tells of another."""
    sender = _parsed(peer)
    hops = [hop for line in forwarded for hop in line.split(",")]
    while sender is not None and hops and _is_in(sender, trusted):
        before = _parsed(hops.pop())
        # "unknown", our own machine, or what nobody should write: the proxy that wrote it is all we know.
        if before is None or before.is_loopback:
            break
        sender = before
    return sender


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _parsed(text: str) -> Address | None:
    """An address as proxies write it: also `192.0.2.1:443`, `[2001:db8::1]:443` and `::ffff:192.0.2.1`."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
