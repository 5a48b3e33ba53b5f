"""Differential privacy among peers that trust nobody with their data.

This module only re-exports, and it imports what it re-exports when it is first asked for, so
that `import p2pdp` and a light node process load nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from p2pdp.api import (
        account,
        attack,
        audit,
        audit_async,
        export,
        keygen,
        load_spec,
        plan,
        plan_async,
        resume,
        run,
        simulate,
        simulate_async,
        verify,
        views,
    )
    from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed
    from p2pdp.core.spec import Spec
    from p2pdp.tasks.examples import Examples
    from p2pdp.tasks.objectives import Guarantees, Objective

__version__: Final = "0.1.0"

__all__ = [
    "Examples",
    "Guarantees",
    "NotReady",
    "Objective",
    "P2pdpError",
    "Refused",
    "RunFailed",
    "Spec",
    "UsageError",
    "VerificationFailed",
    "__version__",
    "account",
    "attack",
    "audit",
    "audit_async",
    "export",
    "keygen",
    "load_spec",
    "plan",
    "plan_async",
    "resume",
    "run",
    "simulate",
    "simulate_async",
    "verify",
    "views",
]

_HOMES: Final = {
    "p2pdp.api": (
        *("account", "attack", "audit", "audit_async", "export", "keygen", "load_spec", "plan"),
        *("plan_async", "resume", "run"),
        *("simulate", "simulate_async", "verify", "views"),
    ),
    "p2pdp.core.errors": ("NotReady", "P2pdpError", "Refused", "RunFailed", "UsageError", "VerificationFailed"),
    "p2pdp.core.spec": ("Spec",),
    "p2pdp.tasks.examples": ("Examples",),
    "p2pdp.tasks.objectives": ("Guarantees", "Objective"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
