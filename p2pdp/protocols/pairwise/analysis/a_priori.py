"""A-priori claims about pairwise sums: what each kind of observer learns, whoever of the users vanishes.

With uniform masks the curator learns the noised sum of each component of the honest users that are left, so a user is
one of as many as its component has, and bootstrap sees to it that without colluders these are enough, whoever
vanishes. With Gaussian masks its leak follows from the Laplacian of that graph (`privacy/pairwise.py`). Who vanishes,
and who colludes where the spec gives a number only, is not known in advance: other claims are about placements at
random. With uniform masks these are bounds under an assumption, which says in how many placements fewer users hide each
other. With Gaussian masks they are forecasts, unless the graph is complete, where placements do not matter. The local
ceiling is a bound whatever happens.

Other users and the public learn the sum of all survivors at most, whatever the graph is. `lasting` has the claims that
rest on no placement.

Where masks are settled, whoever reads all messages has all parts of every user's own mask. A value that was sent before
its user was put out then stands beside the keys of its masks, so there the local ceiling is all that holds in advance.
The same goes for the curator with colluders who hold enough parts of some honest user's own mask.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of
from p2pdp.auditor.context import COMPUTATIONAL, NO_KEYS, NOBODY_OUT, AccountResult, AuditContext
from p2pdp.auditor.local import local_a_priori
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.draws import UNIFORM
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.pairwise import pair_leaks
from p2pdp.protocols.pairwise.plan import PairwisePlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.transcript import Transcript
from p2pdp.topology.components import PLACEMENTS, Placements, is_complete, placements, taken_out
from p2pdp.topology.graphs import Graph

TRIED: Final = 12  # placements of which the leaks of Gaussian masks are computed, at least
_WORK_MAX: Final = 50_000_000  # cubes of users, over all of these placements
_SUM_ONLY: Final = "it learns the sum of at least {} users' noised values, and of single values nothing"
_LEFT: Final = "at least {} users are left, of whom {} are honest"
_HIDDEN: Final = "{} honest users hide each other; fewer do in {:.1%} of {} random placements of {} users who {}"
_ALL_SEEN: Final = "whoever vanishes: it is taken to see all masked values, and nobody reveals what pairs share"
TOGETHER: Final = "bootstrap decides only for survivors each of whom is connected with at least {} by masks"
_AS_SIGNED: Final = "{} honest users hide each other, as bootstrap signed"
_LEAKS: Final = "no user leaks more than in {} random placements of {} users who {}; in {:.1%} of those some user does"
_LATE: Final = "what a user sent before it was put out stays behind its own mask: too few parts of its key are together"
_LATE_BUT: Final = (
    "what a user sent before it was put out stays behind its own mask, unless {} of its neighbours collude: random "
    "placements of the colluders bring that about for some user in {:.1%}"
)
_OPENED: Final = (
    "colluders may hold enough parts to open what a user sent before it was put out, which then has its own noise only"
)
FORECAST: Final = "a forecast, no bound: in placements that were not tried, users may hide each other less"
_UNKNOWN_GRAPH: Final = "what Gaussian masks hide depends on the graph, which is not at hand"
_ALL_PARTS: Final = (
    "who reads all messages has all parts of each user's own mask, so a value that was sent before its user was put "
    "out has its own noise only; if nobody is put out, epsilon is {:.4g}"
)


@dataclass(frozen=True, slots=True)
class Hidden:
    """The mu of the worst user over sensitivity / sigma, the mean of all, and what that rests on."""

    share: float
    mean: float
    stated: tuple[str, ...]
    bound: bool = True


def pairwise_a_priori(run: RunPlan, delta: float, colluders: Sequence[Peer]) -> AccountResult:
    """Return claims for each kind of observer."""
    plan: PairwisePlan = run.plan
    context = AuditContext(run, {}, Transcript(), (), delta, colluders)
    found = local_a_priori(run, delta, 1)
    claims, left = _Claims(context), plan.survivors_min
    outside = next((user for user in range(run.n) if user not in colluders), 0)
    if run.n > 1:
        claims.of_sum(Observer.NODE, (outside, (outside + 1) % run.n), left - 1)
    if 0 < len(colluders) < run.n:
        claims.of_sum(Observer.COALITION, (outside, tuple(colluders)), left - len(colluders))
    claims.of_sum(Observer.PUBLIC, (outside, Observer.PUBLIC), left)
    claims.of_masked(Observer.CURATOR, outside, (), 0)
    if len(colluders) < run.n and (colluders or plan.colluders_max):
        claims.of_masked(Observer.POOLED, outside, colluders, 0 if colluders else plan.colluders_max)
    claims.of_network(outside)
    return AccountResult([*claims.found, *found.claims], [*claims.refusals, *found.refusals])


def lasting(claims: Sequence[Claim], *, graph: bool) -> list[Claim]:
    """Return the claims that hold whoever vanishes: of the sum, the ceiling, and with the graph of the curator."""
    return [
        one
        for one in claims
        if one.method == Method.LOCAL
        or one.observer in (Observer.NODE, Observer.COALITION, Observer.PUBLIC)
        or (graph and one.observer == Observer.CURATOR and any(_is_kept(text) for text in one.assumptions))
    ]


def _is_kept(assumption: str) -> bool:
    return assumption.startswith(TOGETHER.partition("{")[0])


class _Claims:
    def __init__(self, context: AuditContext) -> None:
        self._context = context
        self._run: RunPlan = context.run
        self._plan: PairwisePlan = context.run.plan
        scale = self._plan.noise.scale
        self._mu = context.sensitivity / scale * ROUNDED_UP if scale else math.inf
        self.found: list[Claim] = []
        self.refusals: list[Refusal] = []

    def of_sum(self, observer: Observer, pair: tuple[Peer, Name], others: int) -> None:
        """Claim about an observer of the published sum, in which at least so many honest values are."""
        share = 1.0 / math.sqrt(max(1, others))
        self._add(observer, pair, Hidden(share, share, (_SUM_ONLY.format(max(1, others)),)))

    def of_masked(self, observer: Observer, user: Peer, members: Sequence[Peer], more: int) -> None:
        """Claim about the curator with these colluders, or with so many more at random."""
        try:
            hidden = hidden_of(self._run, tuple(members), more)
        except Refused as refused:
            self.refusals.append(Refusal(observer, Method.EXACT, str(refused)))
            return
        self._add(observer, (user, observer), hidden)

    def of_network(self, user: Peer) -> None:
        """Claim about an observer of all messages if no user's value can be late, that is if nothing is revealed."""
        try:
            hidden = _settled(self._run, ()) if self._plan.settles else hidden_of(self._run, (), 0)
        except Refused as refused:
            self.refusals.append(Refusal(Observer.NETWORK, Method.EXACT, str(refused)))
            return
        if self._plan.settles:
            epsilon = gaussian.epsilon_of(self._context.delta, self._mu * hidden.share)
            self.refusals.append(Refusal(Observer.NETWORK, Method.EXACT, _ALL_PARTS.format(epsilon)))
        else:
            self._add(Observer.NETWORK, (user, Observer.NETWORK), hidden, NO_KEYS)

    def _add(self, observer: Observer, pair: tuple[Peer, Name], hidden: Hidden, *more: str) -> None:
        delta = self._context.delta
        mu, mean = (self._mu * share * ROUNDED_UP for share in (hidden.share, hidden.mean))
        epsilon = gaussian.epsilon_of(delta, mu)
        self.found.append(
            claim_of(
                self._run.protected,
                observer,
                Method.EXACT,
                Conditioning.A_PRIORI,
                delta,
                pair,
                (*hidden.stated, *more, COMPUTATIONAL, *self._context.assumptions),
                epsilon=(epsilon, min(epsilon, gaussian.epsilon_of(delta, mean))),
                mu=(mu, mean),
                bound=hidden.bound,
            )
        )


def hidden_of(run: RunPlan, members: tuple[Peer, ...], more: int) -> Hidden:
    """Return what masks leave of a user against the curator, these colluders, and so many more at random."""
    plan: PairwisePlan = run.plan
    gone = run.n - plan.survivors_min if plan.settles or plan.mask == UNIFORM else 0
    honest = plan.survivors_min - len(members) - more
    stated = [_LEFT.format(plan.survivors_min, max(0, honest)) if gone else NOBODY_OUT]
    if not plan.settles and plan.mask != UNIFORM:
        stated = [_ALL_SEEN]
    if plan.settles and gone:
        late = _late(run, members, more)
        stated.append(late)
        honest = 0 if late == _OPENED else honest
    if honest < 1:
        return Hidden(1.0, 1.0, tuple(stated))
    if plan.mask == UNIFORM and not members and not more:
        share = 1.0 / math.sqrt(plan.together)
        return Hidden(share, share, (*stated, TOGETHER.format(plan.together)))
    if plan.mask != UNIFORM:
        return _gaussian(run, members, gone, more, stated)
    graph = run.graph
    if graph is None:
        count = plan.hidden if len(members) <= plan.colluders_max else 1
        stated.append(_AS_SIGNED.format(count))
    else:
        among = placed(graph, gone + more, run.spec.run.seed or 0, members)
        count = max(1, among.typical)
        fewer = sum(size < count for size in among.smallest) / len(among.smallest)
        stated.append(_HIDDEN.format(count, fewer, len(among.smallest), gone + more, _who(gone, more)))
    share = 1.0 / math.sqrt(count)
    return Hidden(share, share, tuple(stated))


def _settled(run: RunPlan, without: Collection[Peer]) -> Hidden:
    """Return what masks leave of a user if nobody is put out."""
    plan: PairwisePlan = run.plan
    if plan.mask != UNIFORM:
        worst, mean = _leaks(run, tuple(without))
        return Hidden(worst, mean, (NOBODY_OUT,))
    count = run.n if run.graph is None else placed(run.graph, 0, 0, tuple(without)).typical
    return Hidden(1.0 / math.sqrt(count), 1.0 / math.sqrt(count), (NOBODY_OUT,))


def _gaussian(run: RunPlan, members: tuple[Peer, ...], gone: int, more: int, stated: list[str]) -> Hidden:
    """Return the same for Gaussian masks: the worst of those placements that leave most users to hide each other.

    It is a forecast where placements differ.
    """
    if run.graph is None:
        raise Refused(_UNKNOWN_GRAPH)
    honest = [user for user in range(run.n) if user not in members]
    seed = run.spec.run.seed or 0
    chance = gone + more > 0 and not is_complete(run.graph)
    tried = tried_of(run.n) if chance else 1
    found = sorted(_leaks(run, (*members, *taken_out(honest, gone + more, seed, number))) for number in range(tried))
    among = placed(run.graph, gone + more, seed, members)
    last = len(found) - 1 if among.broken <= 0.5 else (len(found) - 1) // 2
    while last > 0 and among.broken <= 0.5 and found[last][0] >= 1.0 > found[0][0]:
        last -= 1  # somebody is left alone, which the share of broken placements tells of
    worst, mean = found[last]
    if chance:
        more_than = max(among.broken, (len(found) - 1 - last) / len(found))
        stated.append(_LEAKS.format(tried, gone + more, _who(gone, more), more_than))
    bound = not chance or worst >= 1.0
    return Hidden(worst, mean, (*stated, *(() if bound else (FORECAST,))), bound)


def tried_of(n: int) -> int:
    """Return of how many placements the leaks are computed: more of them where that is cheap."""
    return max(TRIED, min(PLACEMENTS, _WORK_MAX // n**3))


def _who(gone: int, more: int) -> str:
    return " or ".join(word for word, count in (("vanish", gone), ("collude", more)) if count) or "vanish"


@lru_cache(maxsize=256)
def _leaks_of(graph: Graph, ratio: float, without: tuple[Peer, ...]) -> tuple[float, float]:
    leaks = pair_leaks(graph, 1.0, ratio, without)
    known = leaks[~np.isnan(leaks)]
    return math.sqrt(float(known.max())), math.sqrt(float(known.mean()))


def _leaks(run: RunPlan, without: tuple[Peer, ...]) -> tuple[float, float]:
    """Return the roots of the largest and of the mean leak, over that of own noise alone."""
    plan: PairwisePlan = run.plan
    if run.graph is None:
        raise Refused(_UNKNOWN_GRAPH)
    if plan.noise.scale == 0.0:
        return 1.0, 1.0
    return _leaks_of(run.graph, plan.mask.scale / plan.noise.scale, tuple(sorted(without)))


@lru_cache(maxsize=64)
def placed(graph: Graph, removed: int, seed: int, members: tuple[Peer, ...]) -> Placements:
    """Take out so many of the honest users at random, again and again."""
    return placements(graph, removed, seed, among=sorted(set(range(graph.n)) - set(members)))


def _late(run: RunPlan, members: tuple[Peer, ...], more: int) -> str:
    """Return what holds of the values that come late: colluding neighbours may have enough parts to open them."""
    plan, graph = run.plan, run.graph
    least = 1 if graph is None else min(plan.threshold(graph.degree(user)) for user in range(run.n))
    if len(members) + more < least:
        return _LATE
    opened = 1.0 if graph is None else opened_share(graph, plan, members, more, run)
    if opened == 0.0 and not more:
        return _LATE
    return _OPENED if opened > 0.5 else _LATE_BUT.format(least, opened)


def opened_share(graph: Graph, plan: PairwisePlan, members: Sequence[Peer], more: int, run: RunPlan) -> float:
    """Return in what share of placements some honest user has enough colluding neighbours to open its own mask."""
    thresholds = np.array([plan.threshold(graph.degree(user)) for user in range(graph.n)])
    honest = [user for user in range(graph.n) if user not in set(members)]
    tried = PLACEMENTS if more else 1
    opened = 0
    for number in range(tried):
        collude = np.zeros(graph.n, dtype=np.int64)
        collude[[*members, *taken_out(honest, more, run.spec.run.seed or 0, number)]] = 1
        around = np.array([sum(collude[near] for near in graph.neighbours[user]) for user in range(graph.n)])
        opened += bool(np.any((collude == 0) & (around >= thresholds)))
    return opened / tried
