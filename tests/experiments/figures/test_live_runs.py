from __future__ import annotations

from typing import Any

from p2pdp.experiments.contract import Setting
from p2pdp.experiments.figures.live_runs import LIVE
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(LIVE)
    claims = line(made, "ring of 8, 3 laps: epsilon claimed")
    assert claims.ours.split()[0] == claims.paper.split()[0]
    assert {one.verdict for one in made.lines} == {"agrees"}
    assert answers["complete-live"]["errors"] != answers["complete-simulated"]["errors"]


def _answers(scale: float, claim: float) -> dict[str, Any]:
    def one(claims: float, factor: float) -> dict[str, Any]:
        return {
            "errors": [factor * (-1.0) ** place for place in range(40)],
            "claims": [claims] * 40,
            "means": [claims] * 40,
        }

    return {
        f"{case}-{how}": one(claim if how == "live" else 3.7, scale if how == "live" else 1.0)
        for case in ("ring", "complete")
        for how in ("live", "simulated")
    }


def test_other_errors_and_other_claims_are_seen() -> None:
    made = LIVE.make(Setting(), _answers(scale=2.0, claim=3.7001))
    assert [one.verdict for one in made.lines] == ["differs", "agrees", "differs"] * 2
    made = LIVE.make(Setting(), _answers(scale=1.1, claim=3.7))
    assert {one.verdict for one in made.lines} == {"agrees"}
