"""What both ways of averaging by gossip have in common: inputs, noise, and what is published.

States are floats in data units. Noise is drawn in whole steps of a grid, by the same exact samplers as for
walks, and multiplied by the step, a power of two. What is noised is brought onto that grid first, or its lowest
bits would be seen beside the noise. The sums of gossip are then floats on a finer grid, and what is sent of them is
dithered (`dithering.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from p2pdp.core.draws import NO_NOISE, Mechanism, Shape
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.spec import Spec
from p2pdp.mechanisms import laplace
from p2pdp.mechanisms.clipping import Bounded, Bounds
from p2pdp.mechanisms.grid import NOISE_TAIL, Grid, choose_grid
from p2pdp.protocols.contract import Estimate, Fact
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.noise import sigma_of
from p2pdp.tasks.inputs import Inputs, RealInputs
from p2pdp.topology.graphs import Graph
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import METROPOLIS, check_convergence, largest_degree, sparse_weights

TASKS: Final = {"mean": ("gaussian", "laplace", "none")}


@dataclass(frozen=True, slots=True)
class Setting:
    """Noise and shape of an averaging run."""

    noise: Mechanism
    message_noise: Mechanism | None
    shape: Shape
    grid_exponent: int
    sigma: float
    message_sigma: float
    span: float
    reach: float  # of values

    def dithering(self, n: int, rounds: int, gamma: float = 1.0) -> dict[str, Any]:
        """The plan's fields that say what dither there is."""
        return Reach(self.reach, self.sigma, self.message_sigma, rounds, n, gamma).dithering(self.noise)


def setting_of(spec: Spec, dimensions: int) -> Setting:
    assert spec.data.clip is not None
    bounds = Bounds(*spec.data.clip)
    sigma = sigma_of(spec.noise, bounds, dimensions)
    message_sigma = spec.options.message_sigma or 0.0
    scales = [scale for scale in (sigma, message_sigma) if scale > 0.0]
    magnitude = max(abs(bounds.low), abs(bounds.high)) + NOISE_TAIL * sum(scales)
    grid = choose_grid(min(scales, default=None), float(bounds.span), magnitude)

    def mechanism(name: str, scale: float) -> Mechanism:
        if scale == 0.0:
            return NO_NOISE
        parameter = laplace.scale_of_sigma(scale) if name == "laplace" else scale
        return Mechanism(name, math.ldexp(parameter, -grid.exponent))

    return Setting(
        noise=mechanism(spec.noise.mechanism, sigma),
        message_noise=mechanism("gaussian", message_sigma) if message_sigma else None,
        shape=() if dimensions == 1 else (dimensions,),
        grid_exponent=grid.exponent,
        sigma=sigma,
        message_sigma=message_sigma,
        span=float(bounds.span),
        reach=max(abs(bounds.low), abs(bounds.high)),
    )


def weights_of(spec: Spec) -> str:
    return spec.graph.weights or METROPOLIS


def facts_of(spec: Spec, graph: Graph) -> dict[str, Fact]:
    """What of the graph is public and signed: its largest degree and the spectral gap of its weights.

    Of a graph that changes nobody knows them: any degree may come, and the spec says which gap is assumed.
    """
    weights = weights_of(spec)
    if spec.graph.changing:
        return {"degree_max": max(1, graph.n - 1), "gap": spec.options.spectral_gap}
    check_convergence(graph, weights)
    gap = spectrum_ends(sparse_weights(graph, weights)).gap
    return {"degree_max": max(1, largest_degree(graph)), "gap": gap}


def fact(facts: Mapping[str, Fact], name: str) -> float:
    """A number that bootstrap signed."""
    found = facts.get(name)
    if not isinstance(found, int | float):
        raise VerificationFailed(f"the roster lacks the fact {name}")
    return float(found)


def inputs_of(shape: Shape, rows: Bounded, grid: Grid) -> tuple[Inputs, list[Any]]:
    """A user averages its first row, brought onto the grid of the noise: what lies between would show through."""
    first = grid.from_grid(grid.to_grid(rows.rows[:1]))
    values: list[Any] = [float(first.reshape(-1)[0])] if shape == () else [first.reshape(shape)]
    return RealInputs(values), values


def publish(values: Sequence[Any]) -> Any:
    """Everything that was sent to be published, one after another in the users' order; None if nothing was."""
    if not values:
        return None
    import numpy as np

    return np.concatenate([np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in values])


def estimate_of(shape: Shape, published: Any) -> Estimate:
    """The mean of the published results; its error is told by the run's forms."""
    if published is None:
        return Estimate(None, None)
    rows = published.reshape(-1, *shape)
    mean = rows.mean(axis=0)
    return Estimate(float(mean) if shape == () else [float(part) for part in mean], None)
