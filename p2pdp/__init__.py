"""Compute together on private data, peer to peer, and learn what each peer could have learned.

Describe a run, see what it would cost, run it, and audit it:

>>> import p2pdp
>>> spec = p2pdp.spec(
...     run={"protocol": "walk.sum", "nodes": 12, "seed": 1},
...     graph={"kind": "ring"},
...     walk={"order": "ring", "laps": 1},
...     noise={"mechanism": "gaussian", "sigma": 2.0},
...     data={"kind": "own", "clip": [0, 1]},  # handed in below
... )
>>> hours = [0.25, 0.5, 0.75, 1.0] * 3  # one number for each of the twelve users
>>> p2pdp.plan(spec, data=hours)
Plan(walk.sum, 12 users, standard error 3.464)
  epsilon 2.254 at delta 1e-6 against another user: moderate protection
>>> result = p2pdp.simulate(spec, "my-run", data=hours)
>>> claims = p2pdp.audit("my-run").claims

`simulate` takes its noise from the seed and protects nobody. `run` does the same with a process for each user, which
draw theirs from the operating system, so leave the seed out. Next: `p2pdp.run`, `p2pdp.verify`, `p2pdp.sweep`; the
names that end in `_async` are for where a loop is running. All results have a short text, `to_json()` and `to_frame()`,
and most have `plot()`. `p2pdp guide python` in a terminal shows the whole way, from data to a decision.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.version import VERSION

if TYPE_CHECKING:
    from p2pdp.api import (
        account,
        attack,
        attack_async,
        audit,
        audit_async,
        export,
        export_async,
        keygen,
        load_spec,
        load_state_dict,
        plan,
        plan_async,
        resume,
        resume_async,
        run,
        run_async,
        simulate,
        simulate_async,
        spec,
        sweep,
        sweep_async,
        verify,
        verify_async,
        views,
    )
    from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed
    from p2pdp.core.spec import Spec
    from p2pdp.tasks.examples import Examples
    from p2pdp.tasks.objectives import Guarantees, Objective
    from p2pdp.tasks.torch_objective import torch_objective

__version__: Final = VERSION

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
    "attack_async",
    "audit",
    "audit_async",
    "export",
    "export_async",
    "keygen",
    "load_spec",
    "load_state_dict",
    "plan",
    "plan_async",
    "resume",
    "resume_async",
    "run",
    "run_async",
    "simulate",
    "simulate_async",
    "spec",
    "sweep",
    "sweep_async",
    "torch_objective",
    "verify",
    "verify_async",
    "views",
]

# What is exported is imported when it is first asked for: `import p2pdp` and a node load nothing heavy.
_HOMES: Final = {
    "p2pdp.api": (
        *("account", "attack", "attack_async", "audit", "audit_async", "export", "export_async", "keygen", "load_spec"),
        *("plan", "plan_async", "resume", "resume_async", "run", "run_async", "simulate", "simulate_async", "spec"),
        *("sweep", "sweep_async", "load_state_dict", "verify", "verify_async", "views"),
    ),
    "p2pdp.core.errors": ("NotReady", "P2pdpError", "Refused", "RunFailed", "UsageError", "VerificationFailed"),
    "p2pdp.core.spec": ("Spec",),
    "p2pdp.tasks.examples": ("Examples",),
    "p2pdp.tasks.objectives": ("Guarantees", "Objective"),
    "p2pdp.tasks.torch_objective": ("torch_objective",),
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
