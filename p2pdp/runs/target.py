"""The least noise with which a planned run meets a target.

`plan --target-epsilon` searches for the least noise at which one other user learns no more than this epsilon. The bound
is the best sound a-priori claim that covers one other node. In network shuffling, which mainly hides users from the
curator, it is the larger one of that and of the best claim that covers the curator. It falls as noise grows, and for
Gaussian noise its mu is nearly proportional to 1/sigma, so each guess follows from the one before, inside an interval
of which one end is known to be enough and the other not. The answer is the least amount known to be enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Final

from p2pdp.auditor.a_priori import epsilon_against
from p2pdp.auditor.claims import Cost, cost_of, left_of
from p2pdp.core.claims import Observer
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.spec import Spec
from p2pdp.core.words import OBSERVERS
from p2pdp.mechanisms import gaussian, laplace
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.topology.graphs import EdgeList

_EPSILON_MAX: Final = 1e4
_FINE: Final = 1.0 + 1e-3
_TRIES_MAX: Final = 60
_SIGMAS: Final = (1e-6, 1e9)  # the range of the search, in sensitivities
_LEFT_MIN: Final = 1e-9
_REPORTS: Final = (1.0 / 700.0, 1e9)  # 1/epsilon of a report


@dataclass(frozen=True)
class Planned:
    """A run before it takes place; `one_value` if every user has one value only.

    `assumed` says what is taken for granted of data that are not here, and `warnings` what is odd about those that are.
    """

    run: RunPlan
    edges: EdgeList | None
    one_value: bool
    assumed: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Target:
    """The noise that meets a target: `parameter` of `[noise]` has to be `value`, which gives the bound `reached`.

    Local differential privacy would need `local_value`. The bound is about `observers`.
    """

    epsilon: float
    delta: float
    parameter: str
    value: float
    reached: float
    local_value: float
    observers: tuple[Observer, ...]

    @property
    def against(self) -> str:
        return _words(self.observers)

    @property
    def rounded(self) -> float:
        """Return the value with six digits, rounded to the safe side: up for a sigma, down for a report's epsilon."""
        return rounded(self.value, up=self.parameter == "sigma")

    def applied_to(self, planned: Planned) -> Planned:
        """Return the same run with the noise that was found, rounded."""
        run = planned.run
        value: dict[str, Any] = {"sigma": None, "epsilon": None, "delta": None, self.parameter: self.rounded}
        spec = replace(run.spec, noise=replace(run.spec.noise, **value))
        return replace(planned, run=plan_run(spec, run.n, run.dimensions, planned.edges, rows=run.rows))

    def override(self, spec: Spec) -> str | None:
        """Return the `--set` argument that applies it; None where other keys of the spec have to go first."""
        if self.parameter == "sigma" and spec.noise.epsilon is not None:
            return None
        return f"noise.{self.parameter}={self.rounded:.6g}"


def rounded(value: float, *, up: bool) -> float:
    """Return the nearest number of six digits that is not below the value, or else not above it."""
    scale = 10.0 ** (math.floor(math.log10(value)) - 5)
    steps = math.ceil(value / scale) if up else math.floor(value / scale)
    return float(f"{steps * scale:.6g}")


def target_of(planned: Planned, epsilon: float) -> Target:
    given: Any = epsilon  # callers of Python may hand in anything
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 < epsilon <= _EPSILON_MAX:
        raise UsageError(f"--target-epsilon: must be a number above 0, and at most {_EPSILON_MAX:g}")
    spec = planned.run.spec
    delta, mechanism = spec.privacy.delta, spec.noise.mechanism
    assert delta is not None
    if mechanism == "none":
        raise Refused('--target-epsilon: [noise] mechanism = "none" protects nobody, however little is asked for')
    search = _Search(planned, epsilon, delta)
    strength, reached = search.least()
    return Target(
        epsilon, delta, search.parameter, search.value(strength), reached, _local_value(search, planned.run, epsilon),
        observers_of(planned.run),
    )  # fmt: skip


def _local_value(search: _Search, run: RunPlan, epsilon: float) -> float:
    """Return the noise that local differential privacy needs; of what learns by record as its baseline has it."""
    analysis = run.protocol.analysis()
    if run.by_record and analysis.learning is not None:
        assert run.spec.privacy.delta is not None
        told = analysis.learning.sigmas(run, None, epsilon, run.spec.privacy.delta)["local"]
        if told is not None:
            return float(told)
    return search.value(search.local(analysis.contributions_each(run)))


_AGAINST: Final = {Observer.NODE: "one other user", Observer.POOLED: "the curator and its colluders"}


def _words(observers: tuple[Observer, ...]) -> str:
    return " or ".join(_AGAINST.get(one, OBSERVERS[one][0]) for one in observers)


def observers_of(run: RunPlan) -> tuple[Observer, ...]:
    return run.protocol.analysis().target_observers(run)


class _Search:
    """A search over `strength`, which grows with noise: sigma over the sensitivity, or 1 over a report's epsilon."""

    def __init__(self, planned: Planned, epsilon: float, delta: float) -> None:
        self._planned, self._epsilon, self._delta = planned, epsilon, delta
        spec = planned.run.spec
        self._floor = cost_of(spec) or Cost(0.0, 0.0)  # what no noise of the run takes away
        self._left = max(epsilon - self._floor.epsilon, _LEFT_MIN)
        self._best = math.inf
        self._reports = spec.noise.mechanism in ("randomized_response", "privunit")
        self._ends = _REPORTS if self._reports else _SIGMAS
        self._unit = planned.run.protocol.analysis().reach(planned.run)
        self.parameter = "epsilon" if self._reports else "sigma"

    def value(self, strength: float) -> float:
        return 1.0 / strength if self._reports else strength * self._unit

    def local(self, each: int) -> float:
        """Return the noise needed if every contribution is seen with its own noise, and users make `each` of them."""
        spec = self._planned.run.spec
        if self._reports:
            return each / self._left
        if spec.noise.mechanism == "gaussian":
            return math.sqrt(each) / gaussian.mu_of_curve(self._left, left_of(self._delta, self._floor))
        assert spec.data.clip is not None
        span = self._planned.run.dimensions * float(Bounds(*spec.data.clip).span)
        return math.sqrt(2.0) * laplace.scale_of_epsilon(self._left, each * span) / self._unit

    def _bound(self, strength: float) -> float:
        """Return the best bound of one other node with so much noise; infinite where that cannot be run."""
        planned, run = self._planned, self._planned.run
        value = self.value(strength)
        sigma, epsilon = (None, value) if self._reports else (value, None)
        noise = replace(run.spec.noise, sigma=sigma, epsilon=epsilon, delta=None)
        try:
            again = self._again(replace(run.spec, noise=noise))
            bound = epsilon_against(observers_of(run), again, self._delta, one_value=planned.one_value)
        except UsageError as error:
            smallest = f"; the smallest bound that was found is {self._best:.6g}" if self._best < math.inf else ""
            raise Refused(
                f"--target-epsilon {self._epsilon:g}: cannot be met, for [noise] {self.parameter} = "
                f"{self.value(strength):.6g} cannot be run: {error}{smallest}"
            ) from None
        self._best = min(self._best, bound)
        return bound

    def _again(self, spec: Spec) -> RunPlan:
        """Plan the same run with other noise. How reports walk does not depend on it, and is worked out once."""
        run = self._planned.run
        if run.protocol.analysis().facts_follow_noise:
            return plan_run(spec, run.n, run.dimensions, self._planned.edges, rows=run.rows)
        return run.with_spec(spec, run.graph_facts)

    def least(self) -> tuple[float, float]:
        least, most = self._ends
        if self._epsilon < self._floor.epsilon:
            raise Refused(
                f"--target-epsilon {self._epsilon:g}: cannot be met; the smallest that can be reached is "
                f"{self._floor.epsilon:g}, which the estimates cost by which columns are standardized"
            )
        strength = min(max(self.local(1), least), most)
        low, high, reached = 0.0, math.inf, math.inf
        for _ in range(_TRIES_MAX):
            bound = self._bound(strength)
            if bound <= self._epsilon:
                high, reached = strength, bound
            else:
                low = strength
                if strength >= most:
                    raise Refused(self._why_not(bound))
            if high <= max(low * _FINE, least) or (high < math.inf and reached >= self._epsilon / _FINE):
                break
            strength = min(max(self._guess(strength, bound, low, high), least), most)
        if high == math.inf:
            raise Refused(self._why_not(self._bound(most)))
        return high, reached

    def _guess(self, strength: float, bound: float, low: float, high: float) -> float:
        """Guess in proportion, a little beyond; halfway (of the logarithm) where that leaves the interval."""
        if bound < math.inf:
            guess = strength * self._size(bound) / self._size(self._epsilon) * (1.0 + (_FINE - 1.0) / 2.0)
            if low < guess < high:
                return guess
        if high == math.inf:
            return 2.0 * low if bound < math.inf else self._ends[1]
        return math.sqrt(low * high) if low > 0.0 else high / 2.0

    def _size(self, epsilon: float) -> float:
        """Return a number that is about proportional to 1 / strength."""
        left = epsilon - self._floor.epsilon
        if self._reports or left <= 0.0:
            return max(left, self._left / 8.0)
        return gaussian.mu_of_curve(left, left_of(self._delta, self._floor))

    def _why_not(self, bound: float) -> str:
        shown = "infinite" if bound == math.inf else f"{bound:.6g}"
        why = ": some contribution reaches another user without any noise" if bound == math.inf else ""
        return (
            f"--target-epsilon {self._epsilon:g}: cannot be met; with [noise] {self.parameter} = "
            f"{self.value(self._ends[1]):.6g} the bound for {_words(observers_of(self._planned.run))} is still {shown} "
            f"at delta {self._delta:g}, the smallest that can be reached{why}"
        )
