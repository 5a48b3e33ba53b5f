from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.errors import Refused, UsageError
from p2pdp.privacy.contract import account

TERMS = {"graph": "hypercube", "n": 1024, "alpha": 2.0, "sigma": 1.0}


def test_a_hypercube_has_known_entries() -> None:
    """[CEBM22, Table 1]. Its gap with metropolis weights is 2 / (m + 1), its degree m = 10."""
    found = account("gossip_table1", TERMS)
    rounds = math.ceil(math.log(1024) / math.sqrt(2 / 11))
    activations = math.ceil(math.log(1024) * 1024 * 11 / 4)
    assert found.outputs["spectral_gap"] == pytest.approx(2 / 11)
    assert found.outputs["rounds"] == rounds
    assert found.outputs["epsilon_mean"] == pytest.approx(2 * 10 * rounds / (2 * 1024))
    assert found.outputs["activations"] == activations
    assert found.outputs["epsilon_mean_randomized"] == pytest.approx(2 * activations / 1024**2)
    assert (found.outputs["error"], found.outputs["error_randomized"]) == (3 / 1024, 2 / 1024)
    assert (found.outputs["degree"], found.outputs["epsilon_local"]) == (10, 1.0)
    assert not found.bound


def test_less_noise_than_the_values_differ_by_takes_longer() -> None:
    short, long = (account("gossip_table1", {**TERMS, "sigma": sigma}).outputs["rounds"] for sigma in (0.5, 0.1))
    assert short == math.ceil(math.log(1024) / math.sqrt(2 / 11))
    assert long == math.ceil(math.log(1024 * 25) / math.sqrt(2 / 11))


@pytest.mark.parametrize(("graph", "n"), [("ring", 16), ("hypercube", 16), ("torus", 16)])
def test_weights_as_printed_do_not_converge_on_bipartite_regular_graphs(graph: str, n: int) -> None:
    with pytest.raises(Refused, match="spectral gap is 0"):
        account("gossip_table1", {**TERMS, "graph": graph, "n": n, "weights": "uniform"})
    assert account("gossip_table1", {**TERMS, "graph": graph, "n": n}).outputs["rounds"] > 0


def test_weights_as_printed_converge_on_odd_rings() -> None:
    found = account("gossip_table1", {**TERMS, "graph": "ring", "n": 15, "weights": "uniform"}).outputs
    assert found["spectral_gap"] == pytest.approx(1 - abs(math.cos(math.pi * 14 / 15)))


def test_graphs_that_there_are_none_of_are_refused() -> None:
    with pytest.raises(UsageError, match="no hypercube of 1000 nodes"):
        account("gossip_table1", {**TERMS, "n": 1000})
    with pytest.raises(UsageError, match="degree: missing"):
        account("gossip_table1", {**TERMS, "graph": "regular"})


def test_random_graphs_come_from_their_seed() -> None:
    asked = {**TERMS, "graph": "regular", "n": 100, "degree": 4}
    gaps = [account("gossip_table1", {**asked, "seed": seed}).outputs["spectral_gap"] for seed in (0, 0, 1)]
    assert gaps[0] == gaps[1] != gaps[2]
    assert np.all(np.array(gaps) > 0.05)
