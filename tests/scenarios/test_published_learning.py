"""The experiment of [ABR23, section 5], on the houses table: accuracies at epsilon = 10 by its own accounting.

And what the same noise is worth under sound accounts, so that both are shown. Features are standardized by public
ranges here, where the experiment took means and deviations of all data; and gradients are clipped before noise is
added, where its code clips afterwards, which helps its local variant most.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2pdp.assembly.pools import Pool
from p2pdp.files.spec import parse_spec
from p2pdp.privacy.contract import account
from p2pdp.protocols.walk.analysis.fast import fast_descents
from p2pdp.runs.prepared import Prepared, prepare
from tests.support.plans import node_epsilon
from tests.support.published_data import LONGITUDE, VALUE

TERMS = {"epsilon": 10.0, "delta": 1e-6, "lipschitz": 0.4, "n": 2000, "hops": 20_000}
TRIALS = 8


def houses(data_dir: Path, data: str, sigma: float, rate: float) -> Prepared:
    text = (
        '[run]\nprotocol = "walk.sgd"\nnodes = 2000\nseed = 1\n[graph]\nkind = "complete"\n'
        f'[walk]\norder = "random"\nhops = 20000\n[noise]\nmechanism = "gaussian"\nsigma = {sigma}\n'
        f'[data]\nkind = "csv"\npath = "{data_dir / "cal_housing.csv.gz"}"\n{data}\nunit_norm = true\n'
        f'[task]\nkind = "logistic_regression"\nclip = 0.4\nrate = {rate}\ntest = 0.2\n[privacy]\ndelta = 1e-6\n'
    )
    return prepare(parse_spec(text, None))


def accuracy(prepared: Prepared) -> float:
    pool = Pool(prepared.run, [prepared.rows(user) for user in range(prepared.run.n)])
    found = fast_descents(prepared.run, prepared.rows, range(TRIALS))
    return float(np.mean([pool.scores(one.published)["test_score"] for one in found]))


@pytest.mark.parametrize(
    ("data", "none", "central", "network"),
    [(LONGITUDE, 0.955, 0.95, 0.90), (VALUE, 0.70, 0.66, 0.62)],
    ids=["longitude", "house value"],
)
def test_central_is_best_and_local_worst_at_the_papers_noise(
    data_dir: Path, data: str, none: float, central: float, network: float
) -> None:
    """Rates as in the experiment's code; the least accuracies are some deviations of the mean of 8 below it."""
    sigmas = account("sgd_calibration", TERMS).outputs
    found = {
        "none": accuracy(houses(data_dir, data, 1e-6, 0.0342)),
        "central": accuracy(houses(data_dir, data, sigmas["sigma_central"], 0.0342)),
        "network": accuracy(houses(data_dir, data, sigmas["sigma_network"], 0.0342)),
        "local": accuracy(houses(data_dir, data, sigmas["sigma_local"], 0.0673)),
    }
    assert found["none"] >= found["central"] - 0.005
    assert found["central"] >= found["network"] >= found["local"]
    assert found["none"] > none
    assert found["central"] > central
    assert found["network"] > network


def test_what_the_papers_noise_is_worth_soundly(data_dir: Path) -> None:
    """A better account than the published one, for what is a larger sensitivity: 2 L instead of L."""
    sigmas = account("sgd_calibration", TERMS).outputs
    run = houses(data_dir, LONGITUDE, sigmas["sigma_network"], 0.0342).run
    sound = node_epsilon(run, 1e-6, one_value=False)
    assert sound == pytest.approx(3.12, abs=0.05)
    printed = account(
        "complete_sgd", {k: v for k, v in TERMS.items() if k != "epsilon"} | {"sigma": sigmas["sigma_network"]}
    )
    assert printed.outputs["epsilon_published"] == pytest.approx(7.5, abs=0.1)
    local = account("gaussian", {"mu": 0.8 / sigmas["sigma_local"] * 30**0.5, "delta": 1e-6}).outputs["epsilon"]
    assert local < 10.0


SPAM = "spambase.data.gz", "target = 57\nunit_norm = true", 500
CARDIO = (
    "cardio_train.csv.gz",
    (
        'separator = ";"\ntarget = "cardio"\ncolumns = ["age", "ap_hi", "cholesterol", "weight"]\n'
        "standardize = { low = [10000.0, 80.0, 1.0, 40.0], high = [24000.0, 200.0, 3.0, 130.0] }"
    ),
    2000,
)


@pytest.mark.parametrize(("file", "keys", "users"), [SPAM, CARDIO], ids=["spambase", "cardio"])
def test_other_tables_can_be_learned(data_dir: Path, file: str, keys: str, users: int) -> None:
    text = (
        f'[run]\nprotocol = "walk.sgd"\nnodes = {users}\nseed = 1\n[graph]\nkind = "complete"\n'
        '[walk]\norder = "random"\nhops = 20000\n[noise]\nmechanism = "gaussian"\nsigma = 0.5\n'
        f'[data]\nkind = "csv"\npath = "{data_dir / file}"\n{keys}\n'
        '[task]\nkind = "logistic_regression"\nclip = 0.5\nrate = 0.05\ntest = 0.2\n[privacy]\ndelta = 1e-6\n'
    )
    assert accuracy(prepare(parse_spec(text, None))) > 0.6
