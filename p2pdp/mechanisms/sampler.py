"""Three sources of independent draws, each marked by its name; see `core.draws.Sampler`.

`exact` is what live nodes use: operating-system entropy, integer noise from OpenDP's
samplers [CKS20], categories by exact rational arithmetic. `fast`
rounds floating-point noise, seeded once from the operating system; its claims say so.
`seeded` is for the simulator only: the same seed, stream and numpy release give the same draws.

Guarantee: a draw for shape () is an int, for shape (d,) an int64 array of its own kind;
the draws of a batch are independent; a parameter out of range is a `UsageError`, never a
silent replacement. A draw of `randomized_response` is -1 for "keep the true value", with
probability 1 - gamma, and else a uniform category; one of `uniform_counts` is the count
vector, shape (categories,), of that many uniform elements; one of `uniform_bits` is 64 uniform bits,
one of `dither` a seed of such words (`mechanisms/dither.py`).

The caller makes the sampler after a fork. `ExactSampler` holds no random state, so a
mistake there is harmless; `FastSampler` refuses to work in a second process, because two
processes with the same noise could be subtracted from each other.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.draws import DITHER
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import dither
from p2pdp.mechanisms.rounding import positive, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from p2pdp.core.draws import Mechanism, Shape

# An int64 has room for 128 of these: no noise reaches its ends, where OpenDP would saturate.
SCALE_MAX: Final = 2.0**56

_PLAIN_NOISE: Final = ("gaussian", "laplace")
_CATEGORICAL: Final = ("randomized_response", "uniform_counts")
_BITS: Final = ("uniform_bits", DITHER)
_OPTIONS_MAX: Final = 2**63 - 1

Draws64 = Ints


class ExactSampler:
    """Operating-system entropy and integer arithmetic throughout."""

    name = "exact"

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        size = _checked_size(mechanism, shape, count)
        if mechanism.name in _PLAIN_NOISE:
            noise = _opendp_noise(mechanism.name, float(mechanism.scale))
            values: list[int] = noise(np.zeros(size, dtype=np.int64))  # a list would be checked item by item
        elif mechanism.name == "randomized_response":
            # A float is a whole number over a power of two, so this comparison is exact.
            uniform, outcomes = float(mechanism.scale).as_integer_ratio()
            values = [
                secrets.randbelow(mechanism.categories) if secrets.randbelow(outcomes) < uniform else -1
                for _ in range(size)
            ]
        elif mechanism.name in _BITS:
            values = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.int64).tolist()
        else:
            values = []
            for _ in range(count):
                counts = [0] * mechanism.categories
                for _ in range(int(mechanism.scale)):
                    counts[secrets.randbelow(mechanism.categories)] += 1
                values += counts
        return values if shape == () else list(np.array(values, dtype=np.int64).reshape(count, *shape))

    def choice(self, options: int) -> int:
        return secrets.randbelow(_checked_options(options))


class FastSampler:
    """Rounded floating-point noise: quick, but a curve for ideal noise does not cover its last bits."""

    name = "fast"

    def __init__(self) -> None:
        self._process = os.getpid()
        self._generator = np.random.default_rng()

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        return _float_batch(self._own_generator(), mechanism, shape, count)

    def choice(self, options: int) -> int:
        return int(self._own_generator().integers(_checked_options(options)))

    def _own_generator(self) -> np.random.Generator:
        if os.getpid() != self._process:
            raise UsageError("A fast sampler works only in the process that made it; make one after the fork.")
        return self._generator


class SeededSampler:
    """Pseudo-random draws of one stream of a seed, with noise, choices and dither from generators of their own."""

    name = "seeded"

    def __init__(self, seed: int, stream: str) -> None:
        whole("A seed", seed, 0)
        self._noise = _seeded_generator(seed, "noise", stream)
        self._choices = _seeded_generator(seed, "choice", stream)
        self._dither = _seeded_generator(seed, "dither", stream)

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        generator = self._dither if mechanism.name == DITHER else self._noise
        return _float_batch(generator, mechanism, shape, count)

    def choice(self, options: int) -> int:
        return int(self._choices.integers(_checked_options(options)))


def _seeded_generator(seed: int, purpose: str, stream: str) -> np.random.Generator:
    digest = hashlib.blake2b(f"{seed}/{purpose}/{stream}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def _float_batch(generator: np.random.Generator, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
    size = _checked_size(mechanism, shape, count)
    categories = mechanism.categories
    values: Draws64
    if mechanism.name == "gaussian":
        values = np.rint(generator.standard_normal(size) * mechanism.scale).astype(np.int64)
    elif mechanism.name == "laplace":
        values = np.rint(generator.laplace(scale=mechanism.scale, size=size)).astype(np.int64)
    elif mechanism.name == "randomized_response":
        uniform = generator.random(size) < mechanism.scale
        values = np.where(uniform, generator.integers(categories, size=size), -1)
    elif mechanism.name in _BITS:
        values = generator.integers(-(2**63), 2**63 - 1, size=size, endpoint=True)
    else:
        values = generator.multinomial(int(mechanism.scale), np.full(categories, 1 / categories), size=count)
    return values.tolist() if shape == () else list(values.reshape(count, *shape))


def warm(mechanism: Mechanism) -> None:
    """Load what exact draws need and draw nothing: for a process that is going to fork."""
    if mechanism.name in _PLAIN_NOISE:
        _opendp_noise(mechanism.name, float(mechanism.scale))
    elif mechanism.name == DITHER:
        dither.warm()


@lru_cache(maxsize=64)
def _opendp_noise(name: str, scale: float) -> Callable[[Draws64], list[int]]:
    """Return OpenDP's measurement for whole vectors; it holds no random state, so a fork may inherit it."""
    import opendp.prelude as dp  # 25 MiB that a node without noise does not need

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if name == "gaussian":
        return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)


def _checked_size(mechanism: Mechanism, shape: Shape, count: int) -> int:
    """Return how many numbers a batch is made of; whatever cannot be drawn is refused here."""
    name, scale, categories = mechanism.name, mechanism.scale, mechanism.categories
    if name not in (*_PLAIN_NOISE, *_CATEGORICAL, *_BITS):
        raise UsageError(f"No sampler knows a mechanism named {name!r}.")
    positive(f"The scale of {name}", scale)
    if scale > SCALE_MAX:
        raise UsageError(f"The scale of {name} must be at most 2**56 grid steps; choose a coarser grid.")
    if name in _CATEGORICAL:
        whole(f"The number of categories of {name}", categories, 2)
    elif categories != 0:
        raise UsageError(f"The mechanism {name} has no categories.")
    if name == DITHER and (mechanism, shape) != (dither.MECHANISM, dither.SEED_SHAPE):
        raise UsageError("There is one kind of dither, and a draw of it is its seed.")
    if name == "randomized_response" and scale > 1:
        raise UsageError("The scale of randomized_response is a probability and must be at most 1.")
    if name == "uniform_counts" and (scale != int(scale) or shape != (categories,)):
        raise UsageError("uniform_counts takes a whole number of elements and the shape (categories,).")
    for length in shape:
        whole("Each length of a shape", length, 1)
    return whole("The number of draws", count, 1) * math.prod(shape)


def _checked_options(options: int) -> int:
    if whole("The number of options", options, 1) > _OPTIONS_MAX:
        raise UsageError("The number of options must be below 2**63.")
    return options
