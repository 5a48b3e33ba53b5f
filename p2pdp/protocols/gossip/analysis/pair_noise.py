"""Noise that neighbours share, in all users' values at once: its draws and what is left of it in results.

In units of a user's own noise, the noise of all contributions has the covariance 1 + ratio L, L being the Laplacian of
the graph of those who share noise, and `ratio` that of the variances.
"""

from __future__ import annotations

import math

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.gossip.plan import AveragingPlan
from p2pdp.protocols.run_plan import RunPlan


def laplacian_of(n: int, ends: Ints) -> Floats:
    """Return the Laplacian of a graph of n users with these edges."""
    found = np.zeros((n, n))
    np.add.at(found, (ends[:, 0], ends[:, 1]), -1.0)
    found += found.T
    np.fill_diagonal(found, -found.sum(axis=1))
    return found


def ratio_of(plan: AveragingPlan) -> float:
    """Return the variance of the noise of one pair in units of a user's own; 0 without any."""
    return 0.0 if plan.pair_noise is None else (plan.pair_noise.scale / plan.noise.scale) ** 2


def drawn_together(run: RunPlan, seed: int, count: int) -> Floats:
    """Return the noise of pairs in each of so many contributions of each user, in data units: [user, count, number]."""
    plan, edges = run.plan, ends_of(run)
    sampler, size = SeededSampler(seed, "fast/pairs"), math.prod(plan.shape)
    found = np.zeros((run.n, count, size))
    if len(edges):
        drawn = np.array(sampler.batch(plan.pair_noise, plan.shape, len(edges) * count)) * plan.step
        drawn = drawn.reshape(len(edges), count, size)
        np.add.at(found, edges[:, 0], drawn)
        np.add.at(found, edges[:, 1], -drawn)
    return found


def ends_of(run: RunPlan) -> Ints:
    """Return the users who share noise, the lower-numbered one first."""
    if run.plan.pair_noise is None:
        return np.zeros((0, 2), dtype=np.int64)
    assert run.graph is not None
    return np.array(list(run.graph.edges()), dtype=np.int64).reshape(-1, 2)


class Contributed:
    """The variance of the noise of contributions in weighted sums of them, in units of a user's own noise."""

    def __init__(self, run: RunPlan) -> None:
        self._edges = ends_of(run)
        self._ratio = ratio_of(run.plan)

    def of_shares(self, shares: Floats) -> float:
        own = float(np.sum(shares**2))
        if not len(self._edges):
            return own
        return own + self._ratio * float(np.sum(self.across(shares)))

    def across(self, vectors: Floats) -> Floats:
        """Return the sum of squared differences along edges, for each column."""
        one, other = vectors[self._edges.T]
        return np.asarray(((one - other) ** 2).sum(axis=0))

    def of_spectrum(self, values: Floats, vectors: Floats) -> float:
        """Return the mean over all users, whose results are symmetric combinations with these values."""
        more = self._ratio * self.across(vectors) if len(self._edges) else 0.0
        return float(np.mean(values**2 * (1.0 + more)))

    @property
    def is_own(self) -> bool:
        return not len(self._edges)
