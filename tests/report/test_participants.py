from __future__ import annotations

from dataclasses import replace

from p2pdp.auditor.a_priori import NO_SKELETON
from p2pdp.auditor.claims import READABLE
from p2pdp.auditor.context import NOBODY_OUT
from p2pdp.core.claims import Refusal
from p2pdp.protocols.run_plan import plan_run
from p2pdp.report.participants import Edition, page, sayable
from tests.support.made import claim
from tests.support.runs import quiet, walk

RUN = quiet(walk(3, 9)).plan
PLAN = plan_run(RUN.spec, RUN.n, RUN.dimensions)
HIDDEN = replace(claim(), assumptions=(NOBODY_OUT, "x"), observer="node", worst_pair=(0, 1))
READ = replace(HIDDEN, assumptions=(NO_SKELETON, "x"), observer="curator")
OTHER = Refusal("network", "exact", "why not")


def test_claims_stay_where_what_they_assume_is_known_to_have_held() -> None:
    kept, refused = sayable(PLAN, [HIDDEN, READ], [OTHER], [], readable=False)
    assert [one.assumptions for one in kept] == [("x",), ("x",)]
    assert [one.worst_pair for one in kept] == [(0, 1), (0, 1)]
    assert refused == [OTHER]


def test_the_others_are_refused_with_the_reason() -> None:
    kept, refused = sayable(PLAN, [HIDDEN, READ], [], [2], readable=False)
    assert [one.observer for one in kept] == ["curator"]
    assert [one.observer for one in refused] == ["node"]
    kept, refused = sayable(PLAN, [HIDDEN, READ], [], [], readable=True)
    assert [one.observer for one in kept] == ["node"]
    assert refused == [Refusal("curator", READ.method, READABLE)]


def test_a_graph_that_is_not_public_shows_no_pair() -> None:
    hidden = replace(PLAN, spec=replace(PLAN.spec, graph=replace(PLAN.spec.graph, public=False)))
    kept, _ = sayable(hidden, [HIDDEN], [], [], readable=False)
    assert kept[0].worst_pair is None
    made = Edition("ab", False, None, hidden, 1.0, 0.5, [], kept, [])
    assert made.to_json()["graph"] is None


def test_the_page_escapes_and_shows_numbers_vectors_and_nothing() -> None:
    for estimate, error, shown in ((1.25, 0.5, "1.25"), ([1.5, 2.5], [0.5, 0.5], "2.5"), (None, None, "own result")):
        made = Edition("<b>", False, None, PLAN, estimate, error, [1], [HIDDEN], [OTHER])
        text = page(made)
        assert shown in text
        assert "&lt;b&gt;" in text
        assert "user 1" in text
