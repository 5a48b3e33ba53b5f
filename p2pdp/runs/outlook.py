"""The bounds for each observer before a run has ended: for the participants' edition and for live pages.

Bootstrap must not stand still meanwhile, so for a live page a process of its own does that (`node/helper.py`), which is
run as `python -m p2pdp.runs.outlook`, while a thread waits for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, Final

from p2pdp.auditor.a_priori import NO_SKELETON, claims_a_priori
from p2pdp.auditor.context import AccountResult
from p2pdp.auditor.headline import bounds_of
from p2pdp.core.claims import Claim, Conditioning, Method, Observer, Refusal
from p2pdp.core.errors import P2pdpError, UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.rows import Rows
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.files.tables import edges_of
from p2pdp.node.helper import asking_aside, serve
from p2pdp.node.measuring import with_measures
from p2pdp.protocols.run_plan import Planner, RunPlan, plan_run
from p2pdp.report.documents import bound_document
from p2pdp.report.participants import sayable
from p2pdp.runs.accepting import spec_dimensions
from p2pdp.runs.pages import made_up
from p2pdp.runs.plan import check_accountable
from p2pdp.runs.showing import said_of_skeletons

Known = Callable[..., None]


def planner(spec: Spec) -> Planner:
    """Return what plans a run for a number of users; a graph's file and data are read for their sizes only."""
    edges, spec = edges_of(spec.graph), with_measures(spec)
    dimensions = spec_dimensions(spec)
    if dimensions is None:
        try:
            dimensions = load_data(spec, 1).dimensions
        except UsageError as error:
            raise UsageError(
                f"[data] columns: name them, for bootstrap has no data to count them in ({error})"
            ) from None

    @cache
    def plan(n: int, rows: Rows | None = None, /) -> RunPlan:
        return plan_run(spec, n, dimensions, edges, rows=rows)

    return plan


STEPS_MAX: Final = 5_000
"""Of walks whose hidden path is accounted for in the edition: seconds, where 40,000 steps take a minute."""


def in_advance(run: RunPlan) -> AccountResult:
    """Return claims that hold before a run.

    Users have an unknown number of values, unless data are made up or each contributes the sum of all its rows.

    Of long walks hidden paths are left out: they would keep bootstrap from ending for minutes.
    """
    delta = run.spec.privacy.delta
    assert delta is not None
    single, short = made_up(run.spec) or run.by_record, run.plan.length <= STEPS_MAX
    try:
        result = claims_a_priori(run, delta, run.spec.privacy.colluders, one_value=single and short)
    except P2pdpError as error:  # the run is done all the same
        return AccountResult(refusals=[Refusal(Observer.NETWORK, Conditioning.A_PRIORI, str(error))])
    if single and not short:
        result.refusals = [_left_out(one) if one.method == Method.HIDDEN_PATH else one for one in result.refusals]
    return result


def _left_out(refusal: Refusal) -> Refusal:
    return replace(refusal, reason=f"it takes long to work out for more than {STEPS_MAX} steps; p2pdp plan does")


_ANYBODY: Final[tuple[Peer, ...]] = (0,)


def outlook(run: RunPlan) -> dict[str, Any]:
    """Return the bounds for each observer in advance: if nobody is put out, and if somebody is; and what runs."""
    check_accountable(run.spec, run.plan)
    found = in_advance(run)
    listed = {}
    for name, missing in (("costs", ()), ("costs_if_out", _ANYBODY)):
        claims, refusals = sayable(run, found.claims, found.refusals, missing, readable=False)
        listed[name] = _rows(run, claims, refusals)
    rests = run.spec.audit.key is None and any(NO_SKELETON in claim.assumptions for claim in found.claims)
    return {**listed, "costs_note": said_of_skeletons(rests), "words": run.protocol.analysis().what_ran}


def _rows(run: RunPlan, claims: list[Claim], refusals: list[Refusal]) -> list[dict[str, Any]]:
    delta = run.spec.privacy.delta
    assert delta is not None
    return [bound_document(bound) for bound in bounds_of(claims, refusals, run.n, delta)]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request of `told`."""
    return outlook(planner(parse_spec(request["spec"], None))(request["n"]))


@contextmanager
def told(spec: Spec, known: Known) -> Iterator[Callable[[int], None]]:
    """Yield what begins to work out the bounds for a number of users; `known` gets them later, in another thread.

    What is not there when the context is left is given up.
    """

    def failed(error: P2pdpError) -> None:
        known(costs=None, costs_note=f"No bound is known in advance: {error}.")

    with asking_aside("p2pdp.runs.outlook", "what this run costs") as ask:
        yield lambda n: ask({"spec": spec_to_toml(spec), "n": n}, lambda found: known(**found), failed)


if __name__ == "__main__":
    serve(answer)
