"""What random walks will tell each kind of observer, from the law of how often they come to each user."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from p2pdp.audit.claims import Spread, claim_of
from p2pdp.audit.ground import Ground
from p2pdp.audit.local import OWN_NOISE, pure_epsilon_of
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.privacy.hidden_path.a_priori import STEPS_MAX, a_priori
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.visits import Law, gaussian_epsilon, pure_epsilon, sum_of
from p2pdp.protocols.walk.analysis.hidden_path import ONE_VALUE, OWN_VIEW
from p2pdp.protocols.walk.analysis.visits import Visits

_VISITS: Final = "averaged over how often a user is visited, which does not depend on data"
_TOTALS: Final = "the observer sees the total of each token, with the noise of all of its contributions"
_SUM: Final = "the observer sees the sum of all totals, with the noise of all contributions"
_MU_MAX: Final = 64.0

Epsilons = Callable[[Law], float]


class Walks:
    """Makes the claims; each rests on `assumed` too."""

    def __init__(self, ground: Ground, visits: Visits, assumed: str) -> None:
        self._ground = ground
        self._plan = ground.run.plan
        self._visits = visits
        self._assumed = (assumed, *ground.assumptions)
        scale = self._plan.noise.scale if self._plan.noise.name == "gaussian" else 0.0
        self._mu = ground.sensitivity / scale * ROUNDED_UP if scale else math.inf

    def node(self, *, one_value: bool) -> Claim | Refusal:
        """One other user, who sees the walk only when it comes to it."""
        reason = self._path_is_no_help(one_value=one_value)
        if reason is not None:
            return Refusal(Observer.NODE, Method.HIDDEN_PATH, reason)
        run, plan = self._ground.run, self._plan
        found = a_priori(run.n, plan.steps, plan.tokens, self._mu, self._ground.delta)
        assumptions = (self._visits.basis, OWN_VIEW, ONE_VALUE, *self._assumed)
        epsilon = found.largest, found.mean
        return self._claim(Observer.NODE, Method.HIDDEN_PATH, epsilon, found.worst_pair, assumptions)

    def _path_is_no_help(self, *, one_value: bool) -> str | None:
        if self._plan.order != "complete":
            return "what a hidden path adds is computed in advance for the complete graph only"
        if self._plan.steps > STEPS_MAX:
            return f"hidden paths are accounted for in advance up to {STEPS_MAX} hops"
        if not one_value:
            return "some user contributes several values in turn; the law of a path is for one value a user"
        if self._mu > _MU_MAX:
            return f"values may move {_MU_MAX:g} times as far as their noise reaches: a hidden path does not protect"
        return None

    def curator(self) -> Claim:
        """Sees the total of each token, and who sent it."""
        plan = self._plan
        laws = {law: sum_of(law.squared(), plan.tokens) for law in dict.fromkeys(self._visits.one_token)}
        laws_of_users = [laws[law] for law in self._visits.one_token]
        return self._averaged(Observer.CURATOR, Method.HIDDEN_PATH, laws_of_users, self._gaussian(plan.steps), _TOTALS)

    def public(self) -> Claim:
        """Sees the sum of all totals."""
        laws = {law: law.squared() for law in dict.fromkeys(self._visits.all_tokens)}
        noises = self._plan.steps * self._plan.tokens
        laws_of_users = [laws[law] for law in self._visits.all_tokens]
        return self._averaged(Observer.PUBLIC, Method.HIDDEN_PATH, laws_of_users, self._gaussian(noises), _SUM)

    def network(self) -> Claim:
        """Sees all, each contribution under its own noise."""
        delta = self._ground.delta
        if self._plan.noise.name in ("gaussian", "none"):
            one: Epsilons = self._gaussian(1)
        else:
            epsilon_0 = pure_epsilon_of(self._ground.run, (self._plan.noise,))

            def one(law: Law) -> float:
                return pure_epsilon(law, epsilon_0, delta)

        return self._averaged(Observer.NETWORK, Method.LOCAL, self._visits.all_tokens, one, OWN_NOISE)

    def _gaussian(self, noises: int) -> Epsilons:
        mu = self._mu / math.sqrt(noises) * ROUNDED_UP
        return lambda law: gaussian_epsilon(law, mu, self._ground.delta)

    def _averaged(self, observer: Observer, method: str, laws: list[Law], of: Epsilons, sees: str) -> Claim:
        known = {law: of(law) for law in dict.fromkeys(laws)}
        epsilons = [known[law] for law in laws]
        largest = max(epsilons)
        assumptions = (_VISITS, self._visits.basis, sees, *self._assumed)
        epsilon = largest, sum(epsilons) / len(epsilons)
        return self._claim(observer, method, epsilon, (epsilons.index(largest), observer), assumptions)

    def _claim(
        self, observer: Observer, method: str, epsilon: Spread, worst: tuple[int, Name], assumptions: Sequence[str]
    ) -> Claim:
        delta = self._ground.delta
        return claim_of(observer, method, Conditioning.A_PRIORI, delta, worst, assumptions, epsilon=epsilon)
