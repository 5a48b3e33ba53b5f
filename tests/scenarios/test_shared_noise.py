"""What noise of pairs buys: a mean and a model nearly as good as a trusted curator's, at the epsilon of local noise.

Own and pair noise are those that `privacy/pairwise.py` finds for whoever sees all messages and colludes with a tenth of
the users. Houses are standardized by the means and deviations of the whole table, as in [AKFJG24].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import p2pdp
from p2pdp.core.claims import Claim
from p2pdp.core.spec import GraphPart, Spec
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import pair_noise
from p2pdp.protocols.gossip.analysis.fast import standard_error_of
from p2pdp.protocols.gossip.analysis.masked import masked_a_priori
from p2pdp.protocols.run_plan import plan_run
from p2pdp.topology.components import taken_out
from p2pdp.topology.graphs import make_graph

DELTA: Final = 1e-5
HOUSES: Final = (
    'target = "median_house_value"\nrule = "> 206855.8"\nstandardize = { low = [-121.57, 33.5, 16.0, 450.0, 116.0, '
    "293.0, 117.0, 1.97], high = [-117.57, 37.77, 41.2, 4818.0, 960.0, 2558.0, 882.0, 5.77] }"
)


def against_colluders(claims: Sequence[Claim]) -> Claim:
    (found,) = [claim for claim in claims if (claim.observer, claim.method) == ("coalition", "exact")]
    return found


@pytest.mark.parametrize("slack", [0.02, 0.1])
def test_a_mean_costs_what_a_trusted_curator_would_pay(slack: float) -> None:
    """256 users, 6-regular, 25 colluders, epsilon 4.377: local noise has a standard error of 0.0625."""
    graph = make_graph(GraphPart(kind="regular", degree=6), 256, 1)
    colluders = taken_out(range(256), 25, 0, 0)
    mu = gaussian.mu_of_curve(4.37717809568122, DELTA)
    assert mu == pytest.approx(1.0)
    noise = pair_noise(graph, mu, slack, colluders)
    text = (
        '[run]\nprotocol = "gossip.average"\nnodes = 256\nseed = 1\n[graph]\nkind = "regular"\ndegree = 6\n[gossip]\n'
        'rounds = "auto"\naccelerated = true\n[noise]\nmechanism = "gaussian"\n'
        f"sigma = {noise.sigma}\npair_sigma = {noise.pair_sigma}\n"
        f'[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[privacy]\ndelta = {DELTA}\n'
    )
    run = plan_run(parse_spec(text, None), 256, 1)
    claim = against_colluders(masked_a_priori(run, DELTA, colluders, 1))
    assert claim.epsilon_max == pytest.approx(4.37717809568122, rel=1e-4)
    error = standard_error_of(run)
    assert error is not None
    assert error <= 0.0045
    assert error == pytest.approx(noise.sigma / 16, rel=1e-4), "rounds have mixed the noise of pairs away"


def houses(folder: Path, seed: int, sigma: float, pair_sigma: float | None, colluders: Sequence[int]) -> Spec:
    shared = "" if pair_sigma is None else f"pair_sigma = {pair_sigma}\n"
    return parse_spec(
        f'[run]\nprotocol = "gossip.sgd"\nnodes = 100\nseed = {seed}\n[graph]\nkind = "regular"\ndegree = 10\n'
        f'[gossip]\nrounds = 10\n[noise]\nmechanism = "gaussian"\nsigma = {sigma}\n{shared}'
        f'[data]\nkind = "csv"\npath = "{folder / "cal_housing.csv.gz"}"\n{HOUSES}\nunit_norm = true\n'
        '[task]\nkind = "logistic_regression"\nclip = 1.0\nrate = 1.0\nrounds = 60\ntest = 0.2\n'
        f"[privacy]\ndelta = {DELTA}\ncolluders = {list(colluders)}\n",
        None,
    )


def test_a_model_is_learned_where_local_noise_drowns_it(data_dir: Path) -> None:
    """100 users, 10-regular, 10 colluders, epsilon 10 a user: a trusted curator's model comes to 0.707."""
    colluders = range(0, 100, 11)
    mu = gaussian.mu_of_curve(10.0, DELTA) / (2.0 * math.sqrt(60))
    scores: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(1, 6):
        graph = make_graph(GraphPart(kind="regular", degree=10), 100, seed)
        noise = pair_noise(graph, mu * (1 - 1e-6), 0.1, colluders)
        shared = houses(data_dir, seed, noise.sigma, noise.pair_sigma, colluders)
        local = houses(data_dir, seed, 1.0 / mu, None, colluders)
        for spec, is_shared in ((shared, True), (local, False)):
            scores[is_shared].append(p2pdp.simulate(spec, fast=True).to_json()["scores"]["test_score"])
        run = plan_run(shared, 100, 9)
        claim = against_colluders(masked_a_priori(run, DELTA, colluders, 60))
        assert claim.epsilon_max is not None
        assert 9.99 < claim.epsilon_max <= 10.0
    assert np.mean(scores[True]) >= 0.74
    assert np.mean(scores[False]) <= 0.65
