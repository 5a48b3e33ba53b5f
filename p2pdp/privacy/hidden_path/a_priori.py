"""Bounds, before a walk on the complete graph takes place, what it will tell its users about each other.

Conditioning `a-priori`: the curve of `hidden_path`, averaged over the observer's visits, whom it meets there, and how
often the token moves in between, which do not depend on data. The average is over the whole composition, so no tail
bound on the number of visits is spent: after each visit the next one is after M contributions by others with
probability (1 - 1/n)^M / n, and with phi_M the transform of such a gap's loss, that of a whole walk follows from the
renewal equation F(t) = first(t) + sum of F(s) middle(t - s), solved as power series at all frequencies.

Averaged over the moves, a gap's hidden slots are independent and uniform over the n - 1 others. That the observer
knows how many moves there were shows in one place: the share with which hiding protects is taken to be the largest for
any number of them. Gaps of similar length share their losses, those of the shortest one's noise and the longest one's
slots: more than either tells. Gaps longer than any walk will have count as infinite losses. What follows the last
visits of several tokens counts as seen token by token, more than the sum that is published. Upper ends only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Complexes, Floats
from p2pdp.core.errors import UsageError
from p2pdp.privacy.hidden_path.complete import check_terms
from p2pdp.privacy.hidden_path.curves import Part, law_cut
from p2pdp.privacy.hidden_path.losses import upper_losses
from p2pdp.privacy.hidden_path.moves import HIDDEN, OTHER, Slots, most_told
from p2pdp.privacy.pld.losses import Losses
from p2pdp.privacy.pld.sums import Moments, power, spectrum

STEPS_MAX: Final = 50_000
_STEP: Final = 0.1
_ALIKE: Final = 1.0 / 64.0  # how much longer, relatively, gaps of one kind may be
_NEVER: Final = 1e-6  # of delta: the probability that some gap is longer than those looked at
_AT_ONCE: Final = 1 << 21  # numbers in one transform


class Expected(NamedTuple):
    """Upper ends over ordered pairs, and a pair [user, observer] with the largest."""

    largest: float
    mean: float
    worst_pair: tuple[int, int]


class _Kind(NamedTuple):
    """Gaps with the noise of `shortest` contributions and the slots of `longest`; the owners of some are known.

    `owned` of the known ones are the user's. With `origin` there is a slot before them whose holder only sent the token
    on its way; with `own_origin` that was the user.
    """

    shortest: int
    longest: int
    ends: int
    owned: int
    origin: bool
    own_origin: bool


class _Case(NamedTuple):
    """Pairs that are alike; for each known slot the probability that it is the user's."""

    example: tuple[int, int]
    share: float  # of all pairs
    first: Floats  # the probability that the first visit is after 0, 1, ... contributions by others
    ends: tuple[float, ...]  # the known slots before the first visit
    never: float  # the probability of no visit
    start: tuple[float, ...]  # the known slots then
    origin: float | None = None  # whether the user sent the token to a first holder whom the observer does not know


@lru_cache(maxsize=64)  # a run's page, edition and advice ask the same
def a_priori(n: int, steps: int, tokens: int, mu: float, delta: float, *, alike: bool = True) -> Expected:
    """Return the ends for walks of so many steps each; `mu` is a contribution's sensitivity over its noise's scale.

    `alike` says that contributions of any two users are no farther apart than the sensitivity.
    """
    check_terms(mu, mu, delta)
    if n < 2 or steps < 1 or tokens < 1:
        raise UsageError("A walk takes at least two users, one step and one token.")
    if steps > STEPS_MAX:
        raise UsageError(f"Hidden paths are accounted for in advance up to {STEPS_MAX} steps, not {steps}.")
    cases = [case for case in _cases(n, steps, tokens) if case.share > 0.0]
    epsilons = _Walk(n, steps, tokens, mu, delta, alike=alike).epsilons(cases)
    worst = int(np.argmax(epsilons))
    mean = sum(case.share * float(epsilon) for case, epsilon in zip(cases, epsilons, strict=True))
    return Expected(float(epsilons[worst]), min(mean, float(epsilons[worst])), cases[worst].example)


def _cases(n: int, steps: int, tokens: int) -> list[_Case]:
    """List who starts: a single token starts at user 0; of several, user 0 alone knows where it sent each."""
    stays, one = 1.0 - 1.0 / n, 1.0 / (n - 1)
    waits = stays ** np.arange(steps) / n
    if tokens > 1:
        never = stays**steps
        return [
            _Case((0, 1), 1.0 / n, waits, (one,), never, (), 1.0),
            _Case((1, 0), 1.0 / n, waits, (one, one), never, (one,)),
            _Case((2, 1), 1.0 - 2.0 / n, waits, (one,), never, (), 0.0),
        ]
    later = np.append(0.0, waits[:-1])
    at_once = np.append(1.0, np.zeros(steps - 1))
    never = stays ** (steps - 1)
    return [
        _Case((0, 1), 1.0 / n, later, (1.0, one), never, (1.0,)),
        _Case((1, 0), 1.0 / n, at_once, (), 0.0, ()),
        _Case((2, 1), 1.0 - 2.0 / n, later, (0.0, one), never, (0.0,)),
    ]


class _Walk:
    def __init__(self, n: int, steps: int, tokens: int, mu: float, delta: float, *, alike: bool) -> None:
        self._alike = alike
        self._n, self._steps, self._tokens, self._mu, self._delta = n, steps, tokens, mu, delta
        self._gaps = tokens * (steps / n + 2.0)  # at most to be expected, for an observer
        self._cut = law_cut(delta, math.ceil(self._gaps))
        longest = math.log(self._gaps / max(delta * _NEVER, 1e-300)) / -math.log1p(-1.0 / n)
        self._longest = min(steps, math.ceil(longest))
        self._shortest = [1]  # of each kind of gaps
        while self._shortest[-1] < self._longest:
            self._shortest.append(max(self._shortest[-1] + 1, math.ceil(self._shortest[-1] * (1.0 + _ALIKE))))
        self._kind_of = np.searchsorted(self._shortest, np.arange(1, self._longest + 1), side="right") - 1
        self._losses: dict[_Kind, Losses] = {}
        self._step = self._choose_step()

    def _choose_step(self) -> float:
        lengths = np.arange(1, self._longest + 1)
        weights = np.bincount(self._kind_of, weights=(1.0 - 1.0 / self._n) ** lengths, minlength=len(self._shortest))
        ends = [self._part(self._kind(at, 1, 0, None)) for at in range(len(self._shortest))]
        squares = np.array([one.scale**2 for one in ends])
        mean = float(weights @ squares / weights.sum())
        self._spread = max(mean * self._gaps, self._mu**2, 1e-300)
        return min(max(_STEP * math.sqrt(mean), 1e-4 * math.sqrt(self._spread), 1e-9), 16.0)

    def _kind(self, at: int, ends: int, owned: int, origin: float | None) -> _Kind:
        at %= len(self._shortest)
        following = self._shortest[at + 1] if at + 1 < len(self._shortest) else self._longest + 1
        longest = min(following - 1, self._longest)
        return _Kind(self._shortest[at], longest, ends, owned, origin is not None, origin == 1.0)

    def _part(self, kind: _Kind) -> Part:
        """Return the part of a kind; hiding protects as it does with most moves, for then there are most blocks."""
        law = self._counts(kind.owned, kind.longest - min(kind.ends, kind.longest))
        first, last = (OTHER if kind.ends + kind.origin > known else HIDDEN for known in (0, 1))
        slots = Slots(kind.longest + kind.origin, kind.longest + kind.origin, first, last, False, kind.origin)
        share = 1.0 if kind.owned or kind.own_origin or not self._alike else most_told(self._n, [slots])
        mu = self._mu / math.sqrt(kind.shortest)
        return Part(law, mu, mu, share)

    def _counts(self, owned: int, hidden: int) -> Floats:
        """Return the law of the user's contributions in so many slots of its own and so many hidden ones."""
        if self._n == 2:  # nobody else could have had them
            return np.append(np.zeros(owned + hidden), 1.0)
        counts = np.arange(1, hidden + 1)
        logs = np.concatenate(([0.0], np.cumsum(np.log((hidden + 1.0 - counts) / (counts * (self._n - 2.0))))))
        law = np.exp(logs - logs.max())
        law /= law.sum()
        law[law * len(law) < self._cut] = 0.0
        return np.append(np.zeros(owned), np.trim_zeros(law, "b"))

    def _loss(self, kind: _Kind) -> Losses:
        if kind not in self._losses:
            one = self._part(kind)
            self._losses[kind] = upper_losses(one.law, one.mu_upper, self._step, self._cut, one.share)
        return self._losses[kind]

    def _mixed(
        self, ends: tuple[float, ...], origin: float | None, transform: Callable[[Losses], Complexes]
    ) -> Complexes:
        """Return the transforms of each kind of gaps."""
        return np.array([self._mixture(at, ends, origin, transform) for at in range(len(self._shortest))])

    def _mixture(
        self, at: int, ends: tuple[float, ...], origin: float | None, transform: Callable[[Losses], Complexes]
    ) -> Complexes:
        """Return the transform of one kind of gaps, averaged over whose the known slots are."""
        chances = ends[:1] if self._shortest[at] == 1 else ends  # a single slot is first and last
        owned = np.ones(1)
        for chance in chances:
            owned = np.convolve(owned, (1.0 - chance, chance))
        kinds = [
            (self._kind(at, len(chances), count, origin), weight) for count, weight in enumerate(owned) if weight > 0.0
        ]
        found: Complexes = np.sum([weight * transform(self._loss(kind)) for kind, weight in kinds], axis=0)
        return found

    def epsilons(self, cases: Sequence[_Case]) -> Floats:
        moments = Moments(math.sqrt(self._spread) / 4.0, 4.0 * math.sqrt(self._spread))
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self._walked(
                cases, lambda losses: np.exp(losses.log_moments(moments.exponents)).astype(np.complex128)
            )
            logs = self._tokens * np.log(np.where(np.isfinite(sums) & (sums.real > 0.0), sums.real, np.inf))
        size = int(moments.size(logs, self._delta, self._step).max())
        spectra = power(self._walked(cases, lambda losses: spectrum(losses, size)), self._tokens)
        beyond = max((losses.infinite for losses in self._losses.values()), default=0.0) + self._cut
        missed = (1.0 - 1.0 / self._n) ** self._longest if self._longest < self._steps else 0.0
        lost = np.full(len(cases), self._gaps * (beyond + missed))
        return moments.upper(spectra, logs, self._step, self._delta, lost, math.ceil(4 * self._gaps)).epsilons

    def _walked(self, cases: Sequence[_Case], transform: Callable[[Losses], Complexes]) -> Complexes:
        """Return the transform of all that an observer sees of one token, for each case."""
        one = 1.0 / (self._n - 1)
        stays = (1.0 - 1.0 / self._n) ** np.arange(self._steps)
        middle, last = self._mixed((one, one), None, transform), self._mixed((one,), None, transform)
        firsts = [self._mixed(case.ends, case.origin, transform) if case.ends else None for case in cases]
        found = np.zeros((len(cases), middle.shape[1]), dtype=np.complex128)
        if self._longest == self._steps:
            found += [case.never * self._mixture(-1, case.start, case.origin, transform) for case in cases]
        width = max(1, _AT_ONCE // (4 * self._steps))
        for begin in range(0, middle.shape[1], width):
            at = slice(begin, begin + width)
            returns = _renewals(self._series(middle[:, at]) * stays / self._n)
            ending = self._series(last[:, at]) * stays
            for row, (case, first) in enumerate(zip(cases, firsts, strict=True)):
                begun = ending  # where the first visit is at once
                if first is not None:
                    begun = _product(self._series(first[:, at]) * case.first, ending, self._steps)
                found[row, at] += np.einsum("ft,ft->f", begun[:, ::-1], returns)
        return found

    def _series(self, gaps: Complexes) -> Complexes:
        """Return gaps by length from 0 on; one of length 0 tells nothing, one that is too long has no finite loss."""
        series = np.zeros((gaps.shape[1], self._steps), dtype=np.complex128)
        series[:, 0] = 1.0
        count = min(self._longest, self._steps - 1)
        series[:, 1 : count + 1] = gaps.T[:, self._kind_of[:count]]
        return series


def _renewals(waits: Any) -> Complexes:
    """Return 1 / (1 - t waits) to as many coefficients as `waits` has; each round of Newton's iteration doubles them.

    A round needs the second half of the kernel's product with what is known; what wraps round falls into the first.
    """
    kernel = np.concatenate((np.ones((len(waits), 1)), -waits[:, :-1]), axis=1)
    lengths = [kernel.shape[1]]
    while lengths[-1] > 1:
        lengths.append((lengths[-1] + 1) // 2)
    found: Complexes = np.ones((len(waits), 1), dtype=np.complex128)
    for length in lengths[-2::-1]:
        known, size = found.shape[1], _fast(length)
        spectra = np.fft.fft(found, size)
        error = np.fft.ifft(np.fft.fft(kernel[:, :length], size) * spectra)[:, known:length]
        more = np.fft.ifft(np.fft.fft(error, size) * spectra)[:, : length - known]
        found = np.concatenate((found, -more), axis=1)
    return found


def _product(one: Any, two: Any, length: int) -> Complexes:
    size = _fast(one.shape[1] + two.shape[1] - 1)
    product: Complexes = np.fft.ifft(np.fft.fft(one, size) * np.fft.fft(two, size))[:, :length]
    return product


def _fast(length: int) -> int:
    """Return the next size that has small factors only."""
    bits = max(length - 1, 1).bit_length()
    return min(size for size in (1 << bits, 3 << bits >> 2, 5 << bits >> 3) if size >= length)
