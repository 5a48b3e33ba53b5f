"""Network shuffling sampled from its distribution: no peers, frames, channels or ledgers [LTT22, Algorithms 1, 2].

All reports are moved at once, round by round. Guarantee: places, loads, dummies and estimates have the distribution
that they have in the simulated world when nobody is late or gone and nothing is lost; on the same reports the estimate
is that of the curator, to the last bit. The draws are others, so a single result differs from that of the world on the
same seed. `away` says who is away in a round, counted from 0: the reports that such a user holds stay, and so do the
reports for it. Edges without room for a report are unknown here: such a report stays in a real run, which one in a
million runs sees (`network.slots_for`).

`messages` counts what users send each other: reports, cover and marks. The order of the reports that the curator gets
is uniform within each user's batch, as holders permute theirs; only the holder of each report is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.core.arrays import Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.mechanisms.reporting.contract import Randomizer, drawn_of
from p2pdp.mechanisms.reporting.estimates import Estimated, of_all, of_single
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.outcome import Sent, traffic_of
from p2pdp.protocols.shuffle.network import reported_values, result_of
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.sim.trials import Trials
from p2pdp.topology.components import is_complete
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import check_stay, checked_rounds, ends_of, expected_empty


def fast_shuffles(trials: Trials) -> Iterator[Outcome]:
    for number in range(trials.count):
        trials.started(number)
        run, rows = trials.again(number)
        yield fast_shuffle(run, rows, trials.seed + number)


def fast_shuffle(run: RunPlan, rows: Callable[[Peer], Any], seed: int) -> Outcome:
    """Run one trial. `rows(user)` gives a user's bounded data."""
    plan: ShufflePlan = run.plan
    assert run.graph is not None
    sent_by = np.repeat(np.arange(run.n), [plan.reports_of(user) for user in range(run.n)])
    values = np.array([value for user in range(run.n) for value in _reported(plan, user, rows(user).rows)])
    made = shuffled(
        run.graph,
        plan.randomizer,
        values,
        plan.rounds,
        stay=plan.stay,
        single=plan.single,
        dummies=plan.dummies,
        seed=seed,
        sent_by=sent_by,
    )
    marks = np.array([run.graph.degree(user) for user in range(run.n)]) * plan.rounds
    cover = np.zeros_like(marks) if plan.slots is None else marks * plan.slots - made.moves
    sent = Sent(made.moves, np.bincount(made.holders, minlength=run.n), cover, marks, made.held)
    counted: dict[Peer, dict[int, int]] = {}
    for report in np.sort(made.owners[made.owners >= 0]).tolist():
        places = counted.setdefault(int(sent_by[report]), {})
        places[len(places)] = 1
    messages = int((made.moves + marks + cover).sum())
    return Outcome(result_of(plan, made.reports), counted, messages, traffic=traffic_of(plan, sent))


def _reported(plan: ShufflePlan, user: Peer, rows: Any) -> list[Any]:
    return reported_values(plan, plan.reports_of(user), rows)


NOBODY_AWAY: Final[Mapping[int, Collection[int]]] = {}


@dataclass(frozen=True, eq=False, repr=False)
class Shuffled:
    """The result of one run: `holders` and `reports` have a row per handed-in report; `owners` is -1 for a dummy.

    `loads` is the number of reports that each user holds in the end, `moves` how often each passed one on, and `held`
    the most reports held by one user at once.
    """

    holders: Ints
    owners: Ints
    reports: Ints
    loads: Ints
    moves: Ints
    held: int
    estimate: Estimated

    @property
    def dummies(self) -> int:
        return int(np.count_nonzero(self.owners < 0))

    def __repr__(self) -> str:
        return f"Shuffled({len(self.reports)} reports)"


def walked(
    graph: Graph,
    rounds: int,
    stay: float,
    generator: np.random.Generator,
    away: Mapping[int, Collection[int]] = NOBODY_AWAY,
    sent_by: Ints | None = None,
) -> tuple[Ints, Ints, int]:
    """Return where each report ends, how often each user passed one on, and the largest load at any time.

    `sent_by` tells whose each report is; by default each user has one.
    """
    check_stay(stay)
    degrees, neighbour_of = _moving_on(graph)
    stuck = np.nonzero(degrees == 0)[0]
    places = np.arange(graph.n) if sent_by is None else sent_by
    moves, held = np.zeros(graph.n, dtype=np.int64), int(np.bincount(places).max())
    for t in range(checked_rounds(rounds)):
        drawn = generator.random((1 if stay == 0.0 else 2, len(places)))
        chosen = np.minimum((drawn[0] * degrees[places]).astype(np.int64), degrees[places] - 1)
        following = neighbour_of(places, np.maximum(chosen, 0))
        kept = drawn[1] < stay if stay > 0.0 else np.zeros(len(places), dtype=bool)
        if len(stuck):
            kept |= degrees[places] == 0
        if t in away:
            gone = np.zeros(graph.n, dtype=bool)
            gone[list(away[t])] = True
            kept |= gone[places] | gone[following]
        moves += np.bincount(places[~kept], minlength=graph.n)
        places = np.where(kept, places, following)
        held = max(held, int(np.bincount(places).max()))
    return places, moves, held


def _moving_on(graph: Graph) -> tuple[Ints, Callable[[Ints, Ints], Ints]]:
    """Return all degrees, and a function of places and numbers to the neighbours there that have these numbers.

    Where there is no neighbour, it returns any place. Neighbours on a complete graph are not listed.
    """
    if graph.edge_count == 0:
        return np.zeros(graph.n, dtype=np.int64), lambda places, _: places
    if is_complete(graph):
        return np.full(graph.n, graph.n - 1), lambda places, numbers: numbers + (numbers >= places)
    degrees, _, neighbours = ends_of(graph)
    begins, last = np.concatenate(([0], np.cumsum(degrees)[:-1])), len(neighbours) - 1
    return degrees, lambda places, numbers: neighbours[np.minimum(begins[places] + numbers, last)]


def shuffled(
    graph: Graph,
    randomizer: Randomizer,
    values: Any,
    rounds: int,
    *,
    stay: float = 0.0,
    single: bool = False,
    seed: int = 0,
    away: Mapping[int, Collection[int]] = NOBODY_AWAY,
    dummies: tuple[float, float] | None = None,
    sent_by: Ints | None = None,
) -> Shuffled:
    """Run once: `values` has one value per report, `sent_by` whose each is; by default each user has one.

    `dummies` is the expected number of dummies if it is known already.
    """
    reporting = graph.n if sent_by is None else len(sent_by)
    if len(values) != reporting:
        raise UsageError(f"There are {reporting} reports, of one value each, and not {len(values)}.")
    key = int.from_bytes(SeededEntropy(seed, "shuffling").salt(), "big")
    generator = np.random.Generator(np.random.Philox(key=key))
    sampler = SeededSampler(seed, "shuffling")
    reports = randomizer.applied(np.asarray(values), drawn_of(randomizer.needs, reporting, sampler))
    places, moves, held = walked(graph, rounds, stay, generator, away, sent_by)
    loads = np.bincount(places, minlength=graph.n)
    mixed = generator.permutation(reporting)
    if not single:
        owners = mixed[np.argsort(places[mixed], kind="stable")]
        estimate = of_all(randomizer, reports[owners])
        return Shuffled(places[owners], owners, reports[owners], loads, moves, held, estimate)
    owners = np.full(graph.n, -1)
    owners[places[mixed]] = mixed  # the last one of a uniform order is a uniform one
    empty = np.nonzero(owners < 0)[0]
    handed = reports[owners]
    handed[empty] = randomizer.dummies(len(empty), drawn_of(randomizer.needs, len(empty), sampler))
    expected = expected_empty(graph, stay, rounds) if dummies is None else dummies
    estimate = of_single(randomizer, handed, *expected)
    return Shuffled(np.arange(graph.n), owners, handed, loads, moves, held, estimate)
