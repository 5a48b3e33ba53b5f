"""Protocols as pure machines, a folder for each family, found by name.

The package of a family lists its protocols in `PROTOCOLS`, each as `module:NAME` within the family. An
installed package may add protocols by entry points of the group `p2pdp.protocols`, each of which names a protocol and
refers to the object.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.protocols.contract import Protocol

_KIND: Final = "protocols"


def protocol(name: str) -> Protocol:
    """Return the protocol of that name."""
    place = _ours().get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        found: Protocol = getattr(import_module(module), attribute)
        return found
    others = installed(_KIND)
    if name not in others:
        raise UsageError(f"[run] protocol: {name!r} cannot be run by this version; it can run {', '.join(names())}")
    loaded: Protocol = others[name].load()
    if loaded.name != name:
        raise UsageError(f"[run] protocol: {others[name].value} calls itself {loaded.name!r} and not {name!r}")
    return loaded


def names() -> list[str]:
    """Return the names of all protocols that are installed."""
    return sorted(_ours().keys() | installed(_KIND).keys())


def ours() -> list[str]:
    """Return the names of the protocols of this package, family by family."""
    return list(_ours())


def is_known(name: str) -> bool:
    """Return whether there is a protocol of that name; other packages are looked at only if it is none of ours."""
    return name in _ours() or name in installed(_KIND)


@cache
def _ours() -> dict[str, str]:
    """Return the place of each protocol of this package, as `module:NAME`."""
    found: dict[str, str] = {}
    for module in iter_modules(__path__):
        if module.ispkg:
            family = f"{__name__}.{module.name}"
            found |= {name: f"{family}.{place}" for name, place in import_module(family).PROTOCOLS.items()}
    return found
