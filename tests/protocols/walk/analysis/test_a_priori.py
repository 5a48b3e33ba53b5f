from __future__ import annotations

from p2pdp.audit.exact_account import exact_account
from p2pdp.audit.ground import NOBODY_OUT
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.walk.analysis.a_priori import SCHEDULE, a_priori_of_ring, a_priori_of_walk
from tests.support.small import COMPLETE, RING, SPARSE

DELTA = 1e-5


def planned(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def test_on_a_ring_the_account_speaks_beforehand() -> None:
    found = a_priori_of_ring(planned(RING), DELTA, (1,), exact_account)
    assert {"node", "coalition", "curator", "public", "network"} == {claim.observer for claim in found.claims}
    for claim in found.claims:
        assert claim.conditioning == "a-priori"
        assert claim.assumptions[:2] == (SCHEDULE, NOBODY_OUT)


def test_a_random_walk_has_claims_by_its_visits_and_says_what_is_not_worked_out() -> None:
    found = a_priori_of_walk(planned(COMPLETE), DELTA, (1,), one_value=True)
    assert [claim.observer for claim in found.claims] == ["node", "curator", "public", "network"]
    assert [refusal.observer for refusal in found.refusals] == ["coalition"]
    several = a_priori_of_walk(planned(COMPLETE), DELTA, (), one_value=False)
    assert "node" in {refusal.observer for refusal in several.refusals}
    laplace = a_priori_of_walk(planned(SPARSE), DELTA, (), one_value=True)
    assert [claim.observer for claim in laplace.claims] == ["network"]
