from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.audit.ground import Ground
from p2pdp.files.spec import parse_spec
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.privacy.shuffle.published import epsilon_all, load
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.shuffle.analysis.claims import (
    among,
    categories_of,
    claim_of_reports,
    enclosed,
    not_hidden,
    printed,
)
from p2pdp.replay.transcript import Transcript
from tests.support.shuffle_specs import shuffle

DELTA = 1e-5
REALS = (
    shuffle(12).replace('"categories"', '"uniform"\nclip = [0.0, 1.0]').replace('"histogram"\ncategories = 3', '"mean"')
)


def run_of(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def ground_of(run: RunPlan) -> Ground:
    return Ground(run, {}, Transcript(), (), DELTA, ())


def with_noise(noise: str) -> RunPlan:
    return run_of(REALS.replace('"randomized_response"\nepsilon = 3.0', noise))


def test_hidden_reports_need_a_pure_epsilon() -> None:
    assert not_hidden(run_of(shuffle(5)).plan) == []
    assert not_hidden(with_noise('"laplace"\nepsilon = 1.0').plan) == []
    for noise, word in (('"gaussian"\nsigma = 1.0', "no pure epsilon"), ('"none"', "not randomized")):
        found = not_hidden(with_noise(noise).plan)
        assert [refusal.observer for refusal in found] == ["curator", "public", "node"]
        assert all(word in refusal.reason for refusal in found)


def test_randomized_response_has_bounds_of_its_own() -> None:
    response, laplace = run_of(shuffle(12)).plan, with_noise('"laplace"\nepsilon = 3.0').plan
    assert (categories_of(response), categories_of(laplace)) == (3, None)
    kappas = np.full(11, 0.9)
    assert enclosed(response, kappas, DELTA) == overlapped(response.randomizer.epsilon, kappas, DELTA, 3)
    assert enclosed(laplace, kappas, DELTA) == overlapped(laplace.randomizer.epsilon, kappas, DELTA, None)


def test_whoever_is_among_nobody_has_its_own_epsilon() -> None:
    plan = run_of(shuffle(12)).plan
    assert among(plan, 0, DELTA) == among(plan, -3, DELTA) == plan.randomizer.epsilon
    assert among(plan, 5, DELTA) <= among(plan, 0, DELTA)
    assert among(plan, 500, DELTA) < 1.1


def test_the_printed_theorem_takes_the_law_at_rest() -> None:
    run = run_of(shuffle(12, 'kind = "star"'))
    assert run.graph is not None
    claim = printed(ground_of(run), run.plan, run.graph, "view")
    sum_p2 = 0.25 + 11 * (1 / 22) ** 2
    e1 = load(12, sum_p2, DELTA / 2, 1.0, corrected=False)
    assert claim.epsilon_max == pytest.approx(epsilon_all(run.plan.randomizer.epsilon, e1, DELTA / 2))
    assert (claim.bound, claim.method, claim.conditioning) == (False, "published:theorem-5.3", "view")
    single = run_of(shuffle(12, 'kind = "star"', protocol="single"))
    assert printed(ground_of(single), single.plan, run.graph, "a-priori").method == "published:theorem-5.5"


def test_a_claim_has_the_largest_and_the_mean() -> None:
    run = run_of(shuffle(12))
    claim = claim_of_reports(
        ground_of(run), "curator", "shuffle", "view", np.array([0.5, 1.5]), (1, "curator"), ["said"]
    )
    assert (claim.epsilon_max, claim.epsilon_mean, claim.worst_pair) == (1.5, 1.0, (1, "curator"))
    assert claim.assumptions == ("said",)
    assert math.isclose(claim.delta, DELTA)
