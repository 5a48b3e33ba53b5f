"""Protocols as pure machines, one module each, found by name.

A module of this room that ends in a protocol defines `PROTOCOL`. `walk.sum` lives in `walk_sum.py`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from p2pdp.core.errors import UsageError
from p2pdp.protocols.contract import Protocol


def protocol(name: str) -> Protocol:
    """The protocol of that name."""
    if name not in names():
        raise UsageError(f"[run] protocol: {name!r} cannot be run by this version; it can run {', '.join(names())}")
    found: Protocol = import_module(f"{__name__}.{name.replace('.', '_')}").PROTOCOL
    return found


def names() -> list[str]:
    """All protocols that are here; a new one needs no registration."""
    found = []
    for module in iter_modules(__path__):
        family, underscore, rest = module.name.partition("_")
        if underscore and family in ("walk", "gossip", "shuffle"):
            found.append(f"{family}.{rest}")
    return sorted(found)
