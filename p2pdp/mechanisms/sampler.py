"""Four sources of independent draws, each marked by its name; see `core.draws.Sampler`.

`exact` is what live nodes use: entropy of the operating system, integer noise and categories by
exact arithmetic (`discrete.py`). `fast` rounds floating-point noise, seeded once from the operating
system; its claims say so.
`seeded` is for the simulator only: the same seed, stream and numpy release give the same draws.
`stream` unfolds a key of 32 bytes that two parties share, as `exact` does with its entropy.

Guarantee: a draw for shape () is an int, for shape (d,) an int64 array of its own kind;
the draws of a batch are independent; a parameter out of range is a `UsageError`, never a
silent replacement. A draw of `randomized_response` is -1 for "keep the true value", with
probability 1 - gamma, and else a uniform category; one of `uniform_counts` is the count
vector, shape (categories,), of that many uniform elements; one of `uniform_bits` is 64 uniform bits,
one of `dither` a seed of such words (`mechanisms/dither.py`), one of `rows` bits that say which rows enter a
minibatch (`mechanisms/rows.py`).

The caller makes the sampler after a fork. `ExactSampler` holds no random state, so a
mistake there is harmless; `FastSampler` refuses to work in a second process, because two
processes with the same noise could be subtracted from each other.
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.draws import DITHER, ROWS
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import discrete, dither
from p2pdp.mechanisms import rows as batches
from p2pdp.mechanisms.rounding import positive, whole

if TYPE_CHECKING:
    from p2pdp.core.draws import Mechanism, Shape

# An int64 has room for 128 of these, and no noise reaches its ends.
SCALE_MAX: Final = 2.0**56

_PLAIN_NOISE: Final = {"laplace": 1, "gaussian": 2}  # the power of x in the exponent
_CATEGORICAL: Final = ("randomized_response", "uniform_counts")
_BITS: Final = ("uniform_bits", DITHER)
_OPTIONS_MAX: Final = 2**63 - 1
_KEY_BYTES: Final = 32
_WORD_BYTES: Final = 8
_WORDS: Final = 1 << (8 * _WORD_BYTES)

Draws64 = Ints


class ExactSampler:
    """Operating-system entropy and integer arithmetic throughout.

    Bytes are asked for as they are needed, a block for a whole batch. So there is no state that a fork could copy or
    that could be found in memory afterwards.
    """

    name = "exact"

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        return _whole_batch(os.urandom, mechanism, shape, count)

    def choice(self, options: int) -> int:
        """Return a uniform number below `options`: words above the last multiple of it are drawn again."""
        most = _WORDS - _WORDS % _checked_options(options)
        while (word := int.from_bytes(os.urandom(_WORD_BYTES), "little")) >= most:
            pass
        return word % options


class StreamSampler:
    """Draws that follow from a key of 32 bytes, the same on every platform and with every release of numpy.

    The key stream is that of ChaCha20. Draws go on in it, so they are a function of the key and of all calls so far.
    Whoever has the key has the draws; a copy in another process gives the same ones again.
    """

    name = "stream"

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES:
            raise UsageError(f"A key of draws must have {_KEY_BYTES} bytes.")
        self._read = _key_stream(key)

    def __repr__(self) -> str:
        return "StreamSampler()"

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        return _whole_batch(self._read, mechanism, shape, count)

    def choice(self, options: int) -> int:
        return int(discrete.uniform(self._read, _checked_options(options), 1)[0])


def _key_stream(key: bytes) -> discrete.Read:
    """Return what reads on in the key stream, up to 2^38 bytes."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    encrypt = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor().update
    return lambda size: encrypt(bytes(size))


def _whole_batch(read: discrete.Read, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
    """Return a batch made of uniform bytes by arithmetic of whole numbers."""
    size = _checked_size(mechanism, shape, count)
    values: Draws64
    if mechanism.name in _PLAIN_NOISE:
        values = discrete.noise(_PLAIN_NOISE[mechanism.name], float(mechanism.scale)).drawn(size, read)
    elif mechanism.name == "randomized_response":
        values = discrete.randomized(read, float(mechanism.scale), mechanism.categories, size)
    elif mechanism.name in _BITS:
        values = np.frombuffer(read(8 * size), dtype="<i8").astype(np.int64)
    elif mechanism.name == ROWS:
        values = batches.drawn(read, mechanism, count)
    else:
        values = discrete.tallies(read, int(mechanism.scale), mechanism.categories, count)
    return values.tolist() if shape == () else list(values.reshape(count, *shape))


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
        self._seed, self._stream = seed, stream
        self._generators: dict[str, np.random.Generator] = {}  # by purpose, made when first asked for

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        return _float_batch(self._of("dither" if mechanism.name == DITHER else "noise"), mechanism, shape, count)

    def choice(self, options: int) -> int:
        return int(self._of("choice").integers(_checked_options(options)))

    def _of(self, purpose: str) -> np.random.Generator:
        found = self._generators.get(purpose)
        if found is None:
            found = self._generators[purpose] = _seeded_generator(self._seed, purpose, self._stream)
        return found


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
    elif mechanism.name == ROWS:
        values = batches.packed(generator.random((count, categories)) < mechanism.scale)
    else:
        values = generator.multinomial(int(mechanism.scale), np.full(categories, 1 / categories), size=count)
    return values.tolist() if shape == () else list(values.reshape(count, *shape))


def warm(mechanism: Mechanism) -> None:
    """Build the table that exact draws need and draw nothing: for a process that is going to fork."""
    if mechanism.name in _PLAIN_NOISE:
        discrete.noise(_PLAIN_NOISE[mechanism.name], float(mechanism.scale))
    elif mechanism.name == DITHER:
        dither.warm()


def _checked_size(mechanism: Mechanism, shape: Shape, count: int) -> int:
    """Return how many numbers a batch is made of; whatever cannot be drawn is refused here."""
    name, scale, categories = mechanism.name, mechanism.scale, mechanism.categories
    if name not in (*_PLAIN_NOISE, *_CATEGORICAL, *_BITS, ROWS):
        raise UsageError(f"No sampler knows a mechanism named {name!r}.")
    positive(f"The scale of {name}", scale)
    if scale > SCALE_MAX:
        raise UsageError(f"The scale of {name} must be at most 2**56 grid steps; choose a coarser grid.")
    if name in _CATEGORICAL:
        _checked_options(whole(f"The number of categories of {name}", categories, 2))
    elif categories != 0 and name != ROWS:
        raise UsageError(f"The mechanism {name} has no categories.")
    _check_kind(mechanism, shape)
    if name == "randomized_response" and scale > 1:
        raise UsageError("The scale of randomized_response is a probability and must be at most 1.")
    if name == "uniform_counts" and (scale != int(scale) or shape != (categories,)):
        raise UsageError("uniform_counts takes a whole number of elements and the shape (categories,).")
    for length in shape:
        whole("Each length of a shape", length, 1)
    return whole("The number of draws", count, 1) * math.prod(shape)


def _check_kind(mechanism: Mechanism, shape: Shape) -> None:
    """Refuse a mechanism that has one form only, and not this one."""
    if mechanism.name == DITHER and (mechanism, shape) != (dither.MECHANISM, dither.SEED_SHAPE):
        raise UsageError("There is one kind of dither, and a draw of it is its seed.")
    if mechanism.name == ROWS and (mechanism, shape) != batches.mechanism_of(mechanism.scale, mechanism.categories):
        raise UsageError("A draw of rows has a bit for each of them, in words of 64.")


def _checked_options(options: int) -> int:
    if whole("The number of options", options, 1) > _OPTIONS_MAX:
        raise UsageError("The number of options must be below 2**63.")
    return options
