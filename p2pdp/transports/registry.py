"""Kinds of transports by name: those of this package, and those that installed packages add.

A package adds one by an entry point of the group `p2pdp.transports`, which names it and refers to the `TransportKind`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.transports.contract import TransportKind

_KIND: Final = "transports"
_OURS: Final = {
    "tcp": "p2pdp.transports.tcp.kind",
    "mqtt": "p2pdp.transports.mqtt.kind",
    "memory": "p2pdp.transports.memory",
}


def transport_kind(name: str) -> TransportKind:
    """Return the kind of that name."""
    place = _OURS.get(name)
    if place is not None:
        found: TransportKind = import_module(place).KIND
        return found
    others = installed(_KIND)
    if name not in others:
        raise UsageError(f"[run] transport: {name!r} is not installed; there are {', '.join(names())}")
    loaded: TransportKind = others[name].load()
    if loaded.name != name:
        raise UsageError(f"[run] transport: {others[name].value} calls itself {loaded.name!r} and not {name!r}")
    return loaded


def kind_of_address(address: str) -> TransportKind:
    """Return the kind whose bootstrap has such an address, as join tokens name it."""
    scheme, marked, _ = address.partition("://")
    wanted = scheme if marked else ""
    for found in (ours, names):  # other packages are looked at only if it is none of ours
        for name in found():
            kind = transport_kind(name)
            if wanted in kind.schemes:
                return kind
    return transport_kind("tcp")  # which says what is wrong with it


def names() -> list[str]:
    """Return the names of all kinds that are installed, those of this package first."""
    return [*_OURS, *(name for name in sorted(installed(_KIND)) if name not in _OURS)]


def ours() -> list[str]:
    """Return the names of the kinds of this package."""
    return list(_OURS)


def is_known(name: str) -> bool:
    """Return whether there is such a kind; other packages are looked at only if it is none of ours."""
    return name in _OURS or name in installed(_KIND)


def machine_names() -> list[str]:
    """Return the names of the kinds that reach other machines."""
    return [name for name in names() if transport_kind(name).crosses_machines]
