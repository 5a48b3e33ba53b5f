from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import logm

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.privacy.contract import account
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.weights import METROPOLIS, sparse_weights

TERMS = {"graph": "regular", "n": 30, "degree": 4, "hops": 900, "alpha": 2.0, "sigma": 1.5, "seed": 7}


def test_it_is_the_published_formula_by_another_logarithm() -> None:
    """[CBU24]."""
    matrix = sparse_weights(make_graph(GraphPart("regular", degree=4), 30, 7), METROPOLIS).toarray()
    entries = -np.real(logm(np.eye(30) - matrix + 1 / 30))
    losses = 2.0 * 900 * math.log(900) / (1.5**2 * 900) + 2.0 * 900 / (1.5**2 * 30) * entries
    pairs = losses[~np.eye(30, dtype=bool)]
    found = account("walk_any_graph", TERMS)
    assert pairs.min() > 0.0
    assert found.outputs["epsilon"] == pytest.approx(pairs.max(), rel=1e-9)
    assert found.outputs["epsilon_mean"] == pytest.approx(pairs.mean(), rel=1e-9)
    assert found.outputs["epsilon_local"] == pytest.approx(2.0 * 30 / (2 * 1.5**2))
    assert not found.bound


def test_the_complete_graph_is_the_same_for_all_pairs() -> None:
    """Metropolis weights are 1/n, so the logarithm is 0."""
    asked = {key: value for key, value in TERMS.items() if key != "degree"}
    found = account("walk_any_graph", {**asked, "graph": "complete"}).outputs
    assert found["epsilon"] == pytest.approx(2.0 * 900 * math.log(900) / (1.5**2 * 900), rel=1e-9)
    assert found["epsilon_mean"] == pytest.approx(found["epsilon"], rel=1e-9)


def test_negative_entries_count_as_0() -> None:
    found = account("walk_any_graph", {"graph": "path", "n": 40, "hops": 1, "alpha": 2.0, "sigma": 1.0}).outputs
    assert 0.0 < found["epsilon_mean"] < found["epsilon"]


def test_the_degree_is_that_of_the_graph() -> None:
    with pytest.raises(UsageError, match="degree: not every node of this graph has degree 4"):
        account("walk_any_graph", {**TERMS, "graph": "ring"})
    assert account("walk_any_graph", {**TERMS, "graph": "ring", "degree": 2}).outputs["epsilon"] > 0.0
    with pytest.raises(UsageError, match="degree 31"):
        account("walk_any_graph", {**TERMS, "degree": 31})
