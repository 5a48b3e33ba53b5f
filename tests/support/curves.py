"""Curves of well-known mechanisms, as functions of epsilon of at least 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.mechanisms import gaussian

Curve = Callable[[Floats], Floats]


def each(delta_of: Callable[[float], float]) -> Curve:
    return lambda epsilons: np.array([delta_of(float(epsilon)) for epsilon in epsilons])


def of_gaussian(mu: float) -> Curve:
    return each(lambda epsilon: gaussian.delta_of(epsilon, mu))


def of_laplace(epsilon_0: float) -> Curve:
    return lambda epsilons: np.maximum(0.0, -np.expm1((epsilons - epsilon_0) / 2.0))


def of_response(epsilon_0: float) -> Curve:
    truth = math.exp(epsilon_0) / (1.0 + math.exp(epsilon_0))
    return lambda epsilons: np.maximum(0.0, truth - np.exp(epsilons) * (1.0 - truth))


def of_sampled(share: float, mu: float) -> tuple[Curve, Curve]:
    """A Gaussian on a Poisson sample: with the user against without, and without against with."""

    def without(epsilon: float) -> float:
        left = 1.0 - math.exp(epsilon) * (1.0 - share)
        if left <= 0.0:
            return 0.0
        return left * gaussian.delta_of(epsilon + math.log(share / left), mu)

    def present(epsilon: float) -> float:
        return share * gaussian.delta_of(math.log1p(math.expm1(epsilon) / share), mu)

    return each(present), each(without)
