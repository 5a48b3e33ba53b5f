"""Claims about gossip: exact leaks of all pairs and coalitions, and what the paper prints, set against them.

The exact leak of a pair is a number between 0 and 1 in units of what a user's own noised value tells; times the local
mu^2 it is that of one Gaussian, to which claims add what rounding may (`gossip_rounding.py`). Printed formulas are
shown with the pairs in which they say less than is told. They are claims that prove nothing, but for Theorem 4 where
its conditions hold (`gossip_hidden_graph.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from p2pdp.accounting.gaussian_curve import epsilon_of_each, epsilons_of
from p2pdp.accounting.gossip_layers import View
from p2pdp.audit.ground import NOT_AT_HAND, PASSED_THROUGH, PUBLIC_ROUTE, Finding, Floats, Ground
from p2pdp.audit.recorded import unlike_plan
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import CURATOR
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.gossip.analysis.formulas import Printed, printed_claims
from p2pdp.protocols.gossip.analysis.rounding import rounding_of
from p2pdp.protocols.gossip.analysis.views import GossipViews, Spans
from p2pdp.protocols.gossip.pairing import PairPlan
from p2pdp.protocols.gossip.plan import GossipPlan
from p2pdp.protocols.gossip.sgd import GossipSgdPlan

_ROUNDED_UP: Final = 1.0 + 1e-12
_SLACK_TOLD: Final = 1e-9
_ALL_PUBLISHED: Final = "these results tell every user's noised value, so everybody learns all that local noise allows"
_ALL_SEEN: Final = "whoever sees all messages sees each user's noised value: the local ceiling stands"
_NO_NOISE: Final = "without noise of a user's own whatever reaches an observer is taken to be told"


def is_gossip(ground: Ground) -> bool:
    """Whether each user's one value was averaged; learning has an account of its own (`gossip_descent_account.py`)."""
    return isinstance(ground.run.plan, GossipPlan | PairPlan) and not isinstance(ground.run.plan, GossipSgdPlan)


def gossip_account(ground: Ground) -> Finding:
    if not is_gossip(ground):
        return Finding()
    run, who = ground.run, (Observer.NODE, Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK)
    if run.plan.noise.name not in ("gaussian", "none"):
        reason = f"{run.plan.noise.name} noise has no exact Gaussian leak"
        return Finding(refusals=[Refusal(one, Method.EXACT, reason) for one in who])
    if ground.transcript.published is None:
        return Finding(refusals=[Refusal(one, Method.EXACT, PASSED_THROUGH) for one in who])
    if unlike_plan(ground) is not None:
        return Finding()  # the linear account speaks
    return _Account(ground).finding()


class _Account:
    """Gathers the views that are at hand, and turns their spans into claims."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._run = ground.run
        self._views = GossipViews(ground)
        self._refusals = [Refusal(Observer.NETWORK, Method.EXACT, _ALL_SEEN)]
        self._claims: list[Claim] = []
        noise = self._run.plan.noise
        self._mu_local = math.inf if noise.name == "none" else ground.sensitivity / noise.scale
        self._rounding = rounding_of(ground, self._views.graph)

    def finding(self) -> Finding:
        n = self._run.n
        observers = [(user, view) for user in range(n) if (view := self._node(user)) is not None]
        leak, mu = np.full((n, n), np.nan), np.full((n, n), np.nan)
        found = Finding(self._claims, self._refusals)
        if observers and n > 1:
            spans = self._views.spans([view for _, view in observers])
            for (user, _), span in zip(observers, spans.spans, strict=True):
                leak[:, user] = span.leaks
                leak[user, user] = np.nan
            mu = self._mu(leak)
            columns = [user for user, _ in observers]
            self._add(Observer.NODE, mu[:, columns], columns, self._of(spans))
            found.epsilon = epsilons_of(self._ground.delta, self._in_all(mu))
            printed = Printed(columns, leak[:, columns], [view for _, view in observers])
            claims, found.published = printed_claims(self._ground, self._views, printed, self._mu_local)
            self._claims += claims
        found.mu, found.leak = mu, leak
        self._coalition(found)
        self._roles()
        return found

    def _node(self, user: int) -> View | None:
        at_hand = self._ground.is_at_hand(user)
        view = self._views.view([user]) if at_hand else None
        if view is None:
            reason = PASSED_THROUGH if at_hand else NOT_AT_HAND
            self._refusals.append(Refusal(Observer.NODE, Method.EXACT, f"user {user}: {reason}"))
        return view

    def _coalition(self, found: Finding) -> None:
        members = list(self._ground.colluders)
        absent = [user for user in members if not self._ground.is_at_hand(user)]
        view = None if absent or not members else self._views.view(members)
        if view is not None:
            spans = self._views.spans([view])
            leak = np.array(spans.spans[0].leaks)
            leak[members] = np.nan
            found.leak_coalition, found.mu_coalition = leak, self._mu(leak)
            found.epsilon_coalition = epsilon_of_each(self._ground.delta, self._in_all(found.mu_coalition))
            self._add(Observer.COALITION, found.mu_coalition[:, None], [tuple(members)], self._of(spans))
            printed = Printed([tuple(members)], leak[:, None], [view])
            self._claims += printed_claims(self._ground, self._views, printed, self._mu_local)[0]
        elif members:
            reason = f"user {absent[0]}: {NOT_AT_HAND}" if absent else PASSED_THROUGH
            self._refusals.append(Refusal(Observer.COALITION, Method.EXACT, reason))

    def _roles(self) -> None:
        for name, view in ((Observer.CURATOR, self._views.curator()), (Observer.PUBLIC, self._views.public())):
            if view is None or (name == Observer.CURATOR and CURATOR in self._ground.incomplete):
                self._refusals.append(Refusal(name, Method.EXACT, PASSED_THROUGH if view is None else NOT_AT_HAND))
                continue
            spans = self._views.spans([view])
            self._add(name, self._mu(spans.spans[0].leaks)[:, None], [name], self._of(spans))

    def _mu(self, leak: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.where(leak == 0.0, 0.0, self._mu_local * np.sqrt(leak)) * _ROUNDED_UP

    def _in_all(self, mu: Floats) -> Floats:
        """With what rounding adds, which `leak` and `mu` of pairs leave out."""
        return self._rounding.added_to(mu, self._mu_local * _ROUNDED_UP)

    def _of(self, spans: Spans) -> tuple[str, ...]:
        """What the numbers rest on, beside what all claims of the run do."""
        said = [*self._rounding.said]
        if self._mu_local == math.inf:
            said.append(_NO_NOISE)
        published = len(self._ground.transcript.published or ())
        if published:
            said.append(f"the results that {published} users published are in every view")
        if self._views.all_is_published:
            said.append(_ALL_PUBLISHED)
        elif spans.deflated:
            said.append(
                f"ranks are proved for {spans.proved} views; for {spans.deflated} of less than full rank they are "
                f"probabilistic: three primes agree (least pivot kept {spans.kept:.1e}, "
                f"largest dropped {spans.dropped:.1e})"
            )
        else:
            said.append(f"ranks are proved for all {spans.proved} views (least pivot {spans.kept:.1e})")
        if spans.slack > _SLACK_TOLD:
            said.append(f"leaks are raised by up to {spans.slack:.1e} for what rounding may have hidden")
        if spans.raised:
            said.append(f"in {spans.raised} views rounding hides what was told: all is taken to be")
        return tuple(said)

    def _add(self, observer: Observer, mu: Floats, names: Sequence[Name], said: tuple[str, ...]) -> None:
        """`mu` has a column per observer, named by `names`."""
        mu = self._in_all(mu)
        pairs, delta = ~np.isnan(mu), self._ground.delta
        worst = np.unravel_index(int(np.argmax(np.where(pairs, mu, -1.0))), mu.shape)
        mu_max = float(mu[worst])
        epsilon_max = gaussian.epsilon_of(delta, mu_max)
        epsilons = epsilons_of(delta, mu[pairs])
        self._claims.append(
            Claim(
                observer=observer,
                unit="user",
                relation="replace",
                delta=delta,
                method=Method.EXACT,
                conditioning=Conditioning.PUBLIC,
                epsilon_max=epsilon_max,
                epsilon_mean=min(epsilon_max, float(np.mean(epsilons))),
                mu_max=mu_max,
                mu_mean=min(mu_max, float(np.mean(mu[pairs]))),
                worst_pair=(int(worst[0]), names[int(worst[1])]),
                bound=True,
                violated_pairs=None,
                assumptions=(PUBLIC_ROUTE, *said, *self._ground.assumptions),
            )
        )
