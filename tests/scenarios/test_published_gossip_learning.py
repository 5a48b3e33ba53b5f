"""The experiment of [CEBM22, section 5 and Table 2]: logistic regression on the houses table by gossip.

2,000 users on graphs of log(n)/n that change, steps of 0.7, and noise such that the mean over users of the divergence
that Theorem 6 prints comes to epsilon = 10. What that noise is worth under a sound account is shown beside it. Features
are standardized by public ranges here, where the experiment took means and deviations of all data.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import pytest

from p2pdp.files.spec import parse_spec
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.protocols.gossip.analysis.fast import fast_gossip_descent
from p2pdp.protocols.gossip.analysis.outcome_descent import gossip_scored
from p2pdp.runs.prepared import Prepared, prepare
from p2pdp.tasks.descending import Population
from tests.support.plans import node_epsilon
from tests.support.published_data import LONGITUDE, VALUE

USERS: Final = 2000
EPSILON: Final = 10.0
DELTA: Final = 1e-6


def houses(data_dir: Path, data: str, gradients: int, sigma: float) -> Prepared:
    text = (
        f'[run]\nprotocol = "gossip.sgd"\nnodes = {USERS}\nseed = 1\n[graph]\nkind = "erdos_renyi"\nchanging = true\n'
        f'probability = {math.log(USERS) / USERS}\n[gossip]\nrounds = "auto"\naccelerated = true\n'
        f'[noise]\nmechanism = "gaussian"\nsigma = {sigma}\n'
        f'[data]\nkind = "csv"\npath = "{data_dir / "cal_housing.csv.gz"}"\n{data}\nunit_norm = true\n'
        f'[task]\nkind = "logistic_regression"\nclip = 1.0\nrate = 0.7\nrounds = {gradients}\ntest = 0.2\n'
        f"[privacy]\ndelta = {DELTA}\n"
    )
    return prepare(parse_spec(text, None))


def sigma_for(doubled: float) -> float:
    """With which alpha times half of `doubled` over its square converts to epsilon."""
    low, high = 1e-3, 1e4
    while high > low * 1.0001:
        middle = math.sqrt(low * high)
        found = best_epsilon(lambda excess, at=middle: (1.0 + excess) * doubled / at**2 / 2.0, DELTA)
        low, high = (low, middle) if found <= EPSILON else (middle, high)
    return high


def accuracies(data_dir: Path, data: str, gradients: int) -> tuple[dict[str, Any], Prepared]:
    """Theorem 6 adds up to K d Delta^2 T / n on average over users (section 3.1)."""
    block = houses(data_dir, data, gradients, 1.0).run.plan.block
    sigma = sigma_for(4.0 * gradients * block * math.log(USERS) / USERS)
    local = sigma_for(4.0 * gradients)
    prepared = houses(data_dir, data, gradients, sigma)
    population = Population(prepared.run.plan.descent, [prepared.rows(user) for user in range(USERS)])
    found = fast_gossip_descent(prepared.run, population, 1)
    sigmas = {"local": local, "central": local / USERS}
    scores, told, _ = gossip_scored(prepared.run, found, prepared.rows, found.truth, sigmas, 1)
    return {name: one["test_score"] for name, one in told.items()} | {"network": scores["test_score"]}, prepared


def test_the_network_is_near_the_curator_at_the_papers_noise(data_dir: Path) -> None:
    found, prepared = accuracies(data_dir, LONGITUDE, 100)
    assert found["none"] > 0.955
    assert found["central"] == pytest.approx(found["none"], abs=0.005)
    assert found["network"] == pytest.approx(found["central"], abs=0.01)
    assert found["network"] > found["local"] + 0.02
    sound = node_epsilon(prepared.run, DELTA, one_value=False)
    assert sound == pytest.approx(76.8, abs=0.5), "of all gradients together, against 10 by the printed mean"


def test_house_values_take_longer(data_dir: Path) -> None:
    found, _ = accuracies(data_dir, VALUE, 300)
    assert found["none"] > 0.76
    assert found["central"] == pytest.approx(found["none"], abs=0.01)
    assert found["network"] == pytest.approx(found["central"], abs=0.04)
    assert found["network"] > found["local"] + 0.02
