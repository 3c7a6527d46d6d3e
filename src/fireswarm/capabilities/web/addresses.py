"""Address rules for an agent's requests. Pure: no name is resolved and no connection is opened.

A page can instruct a model to fetch an address inside the operator's network, or a cloud's metadata service, which
hands out credentials. Therefore only addresses of the public internet are allowed.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"})
"""Names of cloud metadata services, blocked whatever they resolve to."""

METADATA_ADDRESSES = frozenset({ip_address("168.63.129.16")})
"""Azure's metadata address looks public, but exists in every virtual machine; those of other clouds are private."""

_SPECIAL = tuple(
    ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "fec0::/10", "3fff::/20")
)
"""Special-purpose networks that the standard library classifies as public."""

_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


def host_name(host: str) -> str:
    """Return the canonical form of a host: lower case, no brackets, no zone, no final dot."""
    return host.strip().strip("[]").partition("%")[0].rstrip(".").lower()


def as_number(host: str) -> Address | None:
    """Return the address in *host*, also if written as a number, octal or hexadecimal as in C libraries, or None."""
    name = host_name(host)
    try:
        return ip_address(name)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None


def embedded_ipv4(address: Address) -> list[IPv4Address]:
    """Return IPv4 addresses embedded in an IPv6 address: mapped, compatible, 6to4, Teredo, NAT64, ISATAP."""
    if isinstance(address, IPv4Address):
        return []
    number = int(address)
    embedded = [address.sixtofour, *(address.teredo or ())]
    if _is_carrier(address) or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        embedded.append(IPv4Address(number & 0xFFFFFFFF))
    return [each for each in embedded if each is not None]


def why_refused(address: Address) -> str:
    """Return in a word why *address* is blocked, or "" for the public internet."""
    if reason := _reason(address):
        return reason
    return next((f"{reason} ({each})" for each in embedded_ipv4(address) if (reason := _reason(each))), "")


def _reason(address: Address) -> str:
    """Return the reason why one address is blocked, or ""; embedded addresses are not checked."""
    if address.is_unspecified:
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    if _is_carrier(address):  # decided by the embedded IPv4 address
        return ""
    checks = (
        (address in METADATA_ADDRESSES, "metadata"),
        (address.is_link_local, "link-local"),
        (address.is_multicast, "multicast"),
        (address.is_private, "private"),
        (address.is_reserved or not address.is_global, "reserved"),
        (any(address.version == network.version and address in network for network in _SPECIAL), "reserved"),
    )
    return next((reason for holds, reason in checks if holds), "")


def _is_carrier(address: Address) -> bool:
    """Return True for IPv6 addresses that represent an IPv4 address."""
    return isinstance(address, IPv6Address) and (
        address.ipv4_mapped is not None or address in _NAT64 or address in _COMPATIBLE
    )
