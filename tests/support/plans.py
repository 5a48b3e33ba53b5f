"""Plans of runs and the claims in them."""

from __future__ import annotations

from p2pdp.auditor.a_priori import claims_a_priori, epsilon_against
from p2pdp.auditor.context import AccountResult
from p2pdp.core.claims import Claim, Observer
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import RunPlan, plan_run
from tests.support import runs

DELTA = runs.DELTA


def plan(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, load_data(spec, spec.run.nodes).dimensions)


def claims(text: str, colluders: tuple[int, ...] = (), *, one_value: bool = True) -> AccountResult:
    return claims_a_priori(plan(text), DELTA, colluders, one_value=one_value)


def one(found: AccountResult, observer: str, method: str | None = None) -> Claim:
    return next(c for c in found.claims if c.observer == observer and method in (None, c.method))


def node_epsilon(run: RunPlan, delta: float, *, one_value: bool) -> float:
    """Return the best bound of what one other node will learn."""
    return epsilon_against((Observer.NODE,), run, delta, one_value=one_value)
