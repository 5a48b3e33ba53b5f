"""The cost of a run with its noise as it is and with twice as much, for whoever finds its epsilon too large.

Both are computed a priori, from the plan alone, by the accountants and the costs of `plan`: so nothing of the route
that a run took is in them, and participants may read them. What would take long is refused by its size, and the line
to give to `p2pdp plan` is told all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from p2pdp.auditor.headline import verdict_in_advance
from p2pdp.core.errors import P2pdpError
from p2pdp.core.spec import NoisePart, Spec
from p2pdp.protocols.learning import OWN
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.page.facts import Advice, Prospect
from p2pdp.report.page.words import number
from p2pdp.runs.plan import check_accountable, costs_of

_NO_NOISE: Final = "The run adds no noise, so there is none to double: nobody is protected, whatever is changed."
_NO_GRAPH: Final = "It follows from the graph, which is not known here."
_NO_OBJECTIVE: Final = "It follows from an objective that is no part of the spec, and is not at hand."
_TOO_LARGE: Final = "It takes long to work out for {users} users and {steps} steps."


@dataclass(frozen=True, slots=True)
class Patience:
    """The largest run whose costs are worked out."""

    users: int
    steps: int


IN_PASSING: Final = Patience(40, 120)  # a fraction of a second, at the end of each run
ASKED_FOR: Final = Patience(400, 2_000)  # seconds


def lacks_objective(spec: Spec) -> bool:
    """Return whether a run learned with an objective of its launcher that is not here."""
    return spec.task.kind == OWN and spec.task.own is None


def advice_on(run: RunPlan, *, one_value: bool, patience: Patience) -> Advice:
    """Return the advice on this plan; `one_value` if every user has one value only."""
    noise, delta = run.spec.noise, run.spec.privacy.delta
    assert delta is not None
    if noise.mechanism == "none":
        return Advice("", reason=_NO_NOISE)
    more, key = _doubled(noise)
    line = f"--set noise.{key}={getattr(more, key)!r}"
    if lacks_objective(run.spec):
        return Advice(line, reason=_NO_OBJECTIVE)
    if run.graph is None:
        return Advice(line, reason=_NO_GRAPH)
    if run.n > patience.users or run.plan.length > patience.steps:
        return Advice(line, reason=_TOO_LARGE.format(users=run.n, steps=run.plan.length))
    try:
        prospects = [_prospect(run, each, key, delta, one_value=one_value) for each in (noise, more)]
    except P2pdpError as error:  # the page is made all the same
        return Advice(line, reason=str(error))
    return Advice(line, prospects)


def _doubled(noise: NoisePart) -> tuple[NoisePart, str]:
    """Return noise with twice the deviation, or half the epsilon of one contribution, and the key that says so."""
    if noise.sigma is not None:
        return replace(noise, sigma=2.0 * noise.sigma), "sigma"
    assert noise.epsilon is not None
    return replace(noise, epsilon=noise.epsilon / 2.0), "epsilon"


def _prospect(run: RunPlan, noise: NoisePart, key: str, delta: float, *, one_value: bool) -> Prospect:
    again = _with_noise(run, noise)
    check_accountable(again.spec, again.plan)
    verdict = verdict_in_advance(again, delta, again.spec.privacy.colluders, one_value=one_value)
    error = costs_of(again, None, delta).standard_error
    value = number(float(getattr(noise, key)))
    return Prospect(f"{key} = {value}", verdict.headline.epsilon, verdict.worst.epsilon, error)


def _with_noise(run: RunPlan, noise: NoisePart) -> RunPlan:
    """Plan the same run with other noise, on the same graph."""
    assert run.graph is not None
    spec = replace(run.spec, noise=noise)
    facts = run.graph_facts
    if run.protocol.analysis().facts_follow_noise:
        facts = {**facts, **run.protocol.graph_facts(spec, run.graph)}
    return run.with_spec(spec, facts)
