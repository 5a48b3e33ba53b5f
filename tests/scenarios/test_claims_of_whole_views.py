"""Claims against the truth of whole views: everything that an observer received, over all routes that agree with it.

Routes are enumerated by running them. Those whose frames, control content and times are what the observer received are
the ones that it cannot tell apart; they are equally likely. What it knows of the values is Gaussian or counted, so the
law of the whole view is a mixture that is computed here, without anything of the accountants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import accumulate, pairwise, product
from typing import Any, Final

import numpy as np
import pytest

from p2pdp.auditor.audit import Audit, audit_run
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import read
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Faults, Partition
from tests.support.fault_worlds import walk
from tests.support.seen import CALM, ROLES, Run, outcomes, own_visits, remembered_crypto
from tests.support.shuffle_specs import shuffle

DELTA: Final = 0.01
POINTS: Final = {1: 4001, 2: 401, 3: 91}  # of the grid for an integral in so many dimensions
CLOSE: Final = 4e-3  # what these leave


def audit_of(run: Run, delta: float) -> Audit:
    views = {peer: read(bytes(process.disk.view)) for peer, process in run.world.processes.items()}
    return audit_run(run.world.run, Recorded(run.world.run, views), (), delta, ())


# Walks

Routes = Sequence[tuple[Sequence[Sequence[Peer]], Any]]  # of each token who held it, from who began it on; how likely


def groups(paths: Sequence[Sequence[Peer]], observer: Peer) -> list[list[Peer]]:
    """Who contributed to each sum that the observer sees: between its visits, and in all the rest together."""
    found, rest = [], []
    for path in paths:
        gap: list[Peer] = []
        for holder in path[1:]:
            if holder == observer:
                found.append(gap)
                gap = []
            else:
                gap.append(holder)
        rest += gap
    return [group for group in (*found, rest) if group]


class Truth:
    """What one user's view tells about the values of others, at a standard deviation of 1 for values from 0 to 1."""

    def __init__(self, routes: Routes, observer: Peer, sigma: float) -> None:
        self._routes = [groups(paths, observer) for paths, _ in routes]
        self._weights = np.array([float(weight) for _, weight in routes])
        self._weights /= self._weights.sum()
        self._deviations = [sigma * np.sqrt(len(group)) for group in self._routes[0]]
        assert all(
            [len(group) for group in route] == [len(group) for group in self._routes[0]] for route in self._routes
        )

    def epsilon(self, user: Peer, delta: float, others: dict[Peer, float]) -> float:
        """If user's value is 0 or 1, and the others' are known to be these, or 0."""
        sides = [self._means(others | {user: value}) for value in (0.0, 1.0)]
        axes = self._axes(np.concatenate(sides))
        volume = float(np.prod([axis[1] - axis[0] for axis in axes]))
        one, other = (self._density(means, axes) * volume for means in sides)
        return _epsilon(one, other, delta)

    def _means(self, values: dict[Peer, float]) -> np.ndarray:
        return np.array([
            [sum(values.get(peer, 0.0) for peer in group) / deviation
             for group, deviation in zip(route, self._deviations, strict=True)]
            for route in self._routes
        ])  # fmt: skip

    def _axes(self, means: np.ndarray) -> list[np.ndarray]:
        ends = zip(means.min(axis=0) - 7.0, means.max(axis=0) + 7.0, strict=True)
        return [np.linspace(*end, POINTS[means.shape[1]]) for end in ends]

    def _density(self, means: np.ndarray, axes: list[np.ndarray]) -> np.ndarray:
        found: Any = 0.0
        different, which = np.unique(means.round(12), axis=0, return_inverse=True)
        for mean, weight in zip(different, np.bincount(which.ravel(), self._weights), strict=True):
            parts = [
                np.exp(-((axis - part) ** 2) / 2) / np.sqrt(2 * np.pi) for axis, part in zip(axes, mean, strict=True)
            ]
            found = found + weight * reduce(np.multiply, np.ix_(*parts))
        return np.asarray(found).ravel()


def _epsilon(one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """The least epsilon at which two laws are that close, either way."""
    found = 0.0
    for first, second in ((one, other), (other, one)):
        ratio = np.log(np.maximum(first, 1e-300)) - np.log(np.maximum(second, 1e-300))
        order = np.argsort(-ratio)
        above, below, ratio = np.cumsum(first[order]), np.cumsum(second[order]), ratio[order]
        # Each threshold on the ratio is a test, and the best one where epsilon is that ratio.
        place = int(np.searchsorted(above - np.exp(np.minimum(ratio, 600.0)) * below, delta))
        if place < len(ratio) and above[place] > delta:
            found = max(found, float(np.log((above[place] - delta) / below[place])))
    return found


@cache
def run_of(text: str, script: tuple[int, ...]) -> Run:
    with remembered_crypto():
        return Run(text, CALM, script)


def alike(text: str, script: tuple[int, ...], observer: Peer) -> Routes:
    """The routes of one token on the complete graph with which the observer would have received the same."""
    real = run_of(text, script)
    visited = own_visits(real, (observer,))
    found = []
    for other in product(range(real.n), repeat=len(script)):
        path = [real.paths[0][0], real.paths[0][1], *other]
        if _visits(path, observer) == _visits(real.paths[0], observer):
            run = run_of(text, other)
            if run.view((observer,)) == real.view((observer,)):
                assert own_visits(run, (observer,)) == visited
                found.append((run.paths, run.probability))
    return found


def _visits(path: Sequence[Peer], observer: Peer) -> tuple[Hashable, ...]:
    """When it had the token, whom from and whom it gave it to: what it surely knows, of steps that it kept it too."""
    around = (None, *path, None)
    return tuple((at, *around[at : at + 3]) for at in range(len(path)) if path[at] == observer)


ONE: Final = walk(4, 6).replace("sigma = 2.0", "sigma = 1.0")
SCRIPTS: Final = ((2, 0, 2, 3, 1), (1, 2, 2, 1, 3), (0, 3, 0, 0, 2), (1, 1, 1, 3, 1))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: "".join(map(str, script)))
def test_hidden_paths_are_not_better_hidden_than_claimed(script: tuple[int, ...]) -> None:
    audit = audit_of(run_of(ONE, script), DELTA)
    (claim,) = (claim for claim in audit.claims if claim.method == "hidden-path")
    assert audit.epsilon is not None
    truths = {}
    for observer in range(4):
        truth = Truth(alike(ONE, script, observer), observer, 1.0)
        for user in {*range(4)} - {observer}:
            claimed = float(audit.epsilon[user, observer])
            truths[user, observer] = truth.epsilon(user, DELTA, {})
            assert truths[user, observer] <= claimed + CLOSE
            third = next(iter({*range(4)} - {observer, user}))
            assert truth.epsilon(user, DELTA, {third: 1.0}) <= claimed + CLOSE
    worst = truths[claim.worst_pair]  # type: ignore[index]
    lowest = float(claim.assumptions[-1].rsplit(" ", 1)[1])
    assert lowest <= worst + CLOSE, "it is said how low the truth may be"
    assert claim.epsilon_max is not None
    assert claim.epsilon_max <= 1.5 * worst + CLOSE


def test_what_reports_of_custody_told() -> None:
    """A path of which user 2 claimed 0.519 about user 1 and learned 1.459: with reports, and with times not counted."""
    real, observer, user = (0, 2, 0, 2, 3, 1), 2, 1
    paths = [(0, *rest) for rest in product(range(4), repeat=5)]
    unseen = [path for path in paths if _visits(path, observer) == _visits(real, observer)]
    told = [path for path in unseen if _came_back(path, observer) == _came_back(real, observer)]

    def epsilon(found: Iterable[Sequence[Peer]]) -> float:
        return Truth([([[path[0], *path]], 1) for path in found], observer, 1.0).epsilon(user, DELTA, {})

    assert epsilon(unseen) == pytest.approx(0.5133, abs=CLOSE)
    assert epsilon(told) == pytest.approx(1.459, abs=CLOSE)
    seen = alike(ONE, real[1:], observer)
    assert {tuple(paths[0][1:]) for paths, _ in seen} == {
        path for path in unseen if own_moves(path, observer) == own_moves(real, observer)
    }
    truth = epsilon([paths[0][1:] for paths, _ in seen])
    audit = audit_of(run_of(ONE, real[1:]), DELTA)
    assert audit.epsilon is not None
    assert truth <= float(audit.epsilon[user, observer]) + CLOSE
    assert truth < 1.0, "reports would tell 1.459"


def own_moves(path: Sequence[Peer], observer: Peer) -> list[int]:
    """How often the token moved until each visit, and in all."""
    moves = [0, *accumulate(one != two for one, two in pairwise(path))]
    return [*(moves[at] for at in range(len(path)) if path[at] == observer), moves[-1]]


def _came_back(path: Sequence[Peer], observer: Peer) -> set[tuple[Peer, bool]]:
    """Of those to whom the observer passed the token last: whether they had it again, or were the last."""
    last = {path[at + 1]: at + 1 for at in range(len(path) - 1) if path[at] == observer != path[at + 1]}
    return {(peer, peer in path[at + 1 :] or path[-1] == peer) for peer, at in last.items()}


EVERY_ROUTE: Final = {
    "several tokens": walk(3, 2, tokens=2),
    "path": walk(4, 7, "path"),
    "star": walk(4, 6, "star"),
}


@pytest.mark.parametrize("text", EVERY_ROUTE.values(), ids=EVERY_ROUTE)
def test_nor_with_several_tokens_or_on_any_graph(text: str) -> None:
    with remembered_crypto():
        runs = list(outcomes(text))
    audits = {}
    for observer in range(runs[0].n):
        views: dict[Hashable, list[Run]] = defaultdict(list)
        for run in runs:
            kept = tuple(_visits(path, observer) for path in run.paths)
            views[kept, run.view((observer,))].append(run)
        hiding = [same for same in views.values() if len(same) > 1]
        for same in hiding[:6]:
            truth = Truth([(run.paths, run.probability) for run in same], observer, 2.0)
            audit = audits.setdefault(id(same[0]), audit_of(same[0], DELTA))
            assert audit.epsilon is not None
            for user in {*range(same[0].n)} - {observer}:
                claimed = float(audit.epsilon[user, observer])
                for others in ({}, dict.fromkeys({*range(same[0].n)} - {user, observer}, 1.0)):
                    assert truth.epsilon(user, DELTA, others) <= claimed + CLOSE
    assert len(audits) >= 3


# Network shuffling


Laws = dict[Hashable, dict[tuple[Any, ...], Fraction]]


def curator_laws(runs: Iterable[Run], *, counted: bool = False) -> Laws:
    """For everything that bootstrap and curator receive but for what is in reports, how likely whose reports these are.

    With counts of records they learn these too, as they once did.
    """
    laws: Laws = defaultdict(lambda: defaultdict(Fraction))
    for run in runs:
        handed_in = [(where, dict(said)) for *where, said in run.view(ROLES, owners=True)]
        owners = tuple(said.pop("owner") for _, said in handed_in if "owner" in said)
        rest = tuple((*where, *sorted(said.items())) for where, said in handed_in)
        records = tuple(process.disk.records for process in run.world.processes.values()) if counted else ()
        laws[rest, records][owners] += run.probability
    return laws


def report_epsilon(laws: Laws, n: int, delta: float) -> float:
    """What they learn of user 0's value, one of two with an epsilon of 1, whatever the values of the others are."""
    truthful, worst = float(np.exp(1.0) / (np.exp(1.0) + 1.0)), 0.0
    for ones in range(n):  # on the complete graph it does not matter who of the others has them
        sides: list[dict[Hashable, float]] = [defaultdict(float), defaultdict(float)]
        for value, side in enumerate(sides):
            true = (value, *(int(other <= ones) for other in range(1, n)))
            for reports in product((0, 1), repeat=n):
                same = sum(one == two for one, two in zip(reports, true, strict=True))
                chance = truthful**same * (1 - truthful) ** (n - same)
                for rest, law in laws.items():
                    for owners, probability in law.items():
                        side[rest, tuple(reports[owner] for owner in owners)] += chance * float(probability)
        views = list(sides[0])
        worst = max(worst, _epsilon(*(np.array([side[view] for view in views]) for side in sides), delta))
    return worst


def two_values(n: int) -> str:
    text = shuffle(n, terms="rounds = 1\nstay = 0.25")
    return text.replace("epsilon = 3.0", "epsilon = 1.0").replace("categories = 3", "categories = 2")


def claimed_of_curator(run: Run, delta: float) -> float:
    claims = audit_of(run, delta).claims
    (claim,) = (one for one in claims if (one.observer, one.method) == ("curator", "shuffle"))
    assert claim.epsilon_max is not None
    return claim.epsilon_max


LATE: Final = Faults(jitter_s=0.0, partitions=(Partition(0.0065, 5.0, frozenset({2})),))


@cache
def three_shuffled(faults: Faults) -> list[Run]:
    with remembered_crypto():
        return list(outcomes(two_values(3), faults))


@pytest.mark.parametrize("faults", [CALM, LATE], ids=["calm", "late"])
def test_the_curator_learns_no_more_than_is_claimed(faults: Faults) -> None:
    runs = three_shuffled(faults)
    for delta in (0.01, 0.1):
        truth = report_epsilon(curator_laws(runs), 3, delta)
        assert 0.0 < truth <= min(claimed_of_curator(run, delta) for run in runs[::40]) + 1e-9


def test_what_counts_in_heads_told() -> None:
    """How many reports a user relayed shows whether it kept its own: more than is claimed."""
    runs = three_shuffled(CALM)
    claimed = claimed_of_curator(runs[0], 0.1)
    truth, counted = (report_epsilon(curator_laws(runs, counted=told), 3, 0.1) for told in (False, True))
    assert claimed == pytest.approx(0.773, abs=1e-3)
    assert truth <= claimed
    assert counted == pytest.approx(0.797, abs=1e-3)
