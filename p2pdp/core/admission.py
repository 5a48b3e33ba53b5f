"""Admission of those who have proved nothing yet: where there are too many, who has the most of them goes first.

Guarantee: whoever comes from one address displaces nobody from another that has as few places or fewer. So a flood
from few addresses is a trouble for these, and everybody else comes in as ever. An address of IPv6 counts by its
network of 64 bits, all of which one customer has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

Member = TypeVar("Member")


class Admission(Generic[Member]):
    """Members in the order in which they came, each with its address."""

    def __init__(self) -> None:
        self._address: dict[Member, str] = {}
        self._at: dict[str, dict[Member, int]] = {}  # the members at each address, with their numbers
        self._came = 0

    def __len__(self) -> int:
        return len(self._address)

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._address))

    def __contains__(self, member: object) -> bool:
        return member in self._address

    def add(self, member: Member, address: str) -> None:
        self._came += 1
        self._address[member] = address
        self._at.setdefault(address, {})[member] = self._came

    def discard(self, member: Member) -> None:
        address = self._address.pop(member, None)
        if address is not None:
            del self._at[address][member]
            if not self._at[address]:
                del self._at[address]

    def first_to_go(self, may: Callable[[Member], bool] | None = None) -> Member | None:
        """Return who came first of the address that has most of those who may go; None if nobody may."""
        there: Iterable[dict[Member, int]] = self._at.values()
        if may is not None:
            some = ({member: number for member, number in members.items() if may(member)} for members in there)
            there = [members for members in some if members]
        most = max(there, key=lambda members: (len(members), -next(iter(members.values()))), default=None)
        return None if most is None else next(iter(most))


def counted_address(name: object) -> str:
    """Return what an address of a socket counts as; empty where it has none, as a socket of this machine."""
    host = name[0] if isinstance(name, tuple) and name else ""
    try:
        address = ip_address(str(host).partition("%")[0])
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped is not None else str(IPv6Address(int(address) >> 64 << 64))
    return str(address)
