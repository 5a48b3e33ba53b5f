from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.slow_modes import positive_eigenvalues, slow_modes
from p2pdp.topology.walk_matrix import WalkMatrix, all_laws, symmetric_form, walk_matrix

GRAPH = make_graph(GraphPart("geometric", radius=0.12), 400, 3)


def returns(walk: WalkMatrix, rounds: int) -> np.ndarray:
    return np.diag(all_laws(walk, 2 * rounds)).copy()


@pytest.mark.parametrize("stay", [0.0, 0.2])
def test_lengths_are_bounded_for_every_start_and_nearly_reached(stay: float) -> None:
    walk = walk_matrix(GRAPH, stay)
    modes = slow_modes(walk, 10, 2, returns(walk, 2))
    assert modes is not None
    for rounds in (2, 10, 60, 300):
        exact = np.linalg.norm(all_laws(walk, rounds) - walk.stationary, axis=1)
        assert np.all(exact <= modes.lengths(rounds))
    assert np.all(modes.lengths(300) <= 1.001 * exact + 1e-6)


def test_all_modes_beyond_rho_are_there() -> None:
    walk = walk_matrix(GRAPH)
    modes = slow_modes(walk, 8, 2, returns(walk, 2))
    assert modes is not None
    spectrum = np.linalg.eigvalsh(symmetric_form(walk).toarray())
    assert np.count_nonzero(np.abs(spectrum) > modes.rho) == len(modes.values) + 1


@pytest.mark.parametrize("rho", [0.5, 0.93, 0.99])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_signs_of_a_factorization_count_eigenvalues(sign: float, rho: float) -> None:
    form = symmetric_form(walk_matrix(GRAPH))
    counted = positive_eigenvalues(form, sign, rho)
    assert counted is not None
    assert counted[0] == np.count_nonzero(sign * np.linalg.eigvalsh(form.toarray()) > rho)
    assert counted[1] < 1e-9


def test_a_missed_eigenvalue_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanczos is made to miss the second eigenvalue."""
    from scipy.sparse import linalg

    real = linalg.eigsh

    def blind(matrix: object, k: int, **words: object) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = real(matrix, k=k + 1, **words)
        order = np.argsort(-np.abs(values))[1:]
        return values[order], vectors[:, order]

    monkeypatch.setattr(linalg, "eigsh", blind)
    walk = walk_matrix(GRAPH)
    assert slow_modes(walk, 8, 2, returns(walk, 2)) is None
