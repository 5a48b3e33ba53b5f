"""Network shuffling by its law (`walks.py`), with the result that the machines' curator would publish.

Guarantee: on the same reports the estimate is that of the curator, to the last bit. `messages` counts what users send
each other, reports and marks, and what they tell the curator; those of the life cycle are not made. Lateness, absence
and edges on which cover leaves no room are unknown here: a report that finds none stays in a real run, which one in a
million runs sees (`protocols/shuffles.slots_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.traffic import Sent, traffic_of
from p2pdp.protocols.shuffle.analysis.walks import shuffled
from p2pdp.protocols.shuffle.network import result_of
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.protocols.shuffle.randomizers import reported_value
from p2pdp.sim.trials import Trials


def fast_shuffles(trials: Trials) -> Iterator[Outcome]:
    for number in range(trials.count):
        trials.started(number)
        run, rows = trials.again(number)
        yield fast_shuffle(run, rows, trials.seed + number)


def fast_shuffle(run: RunPlan, rows: Callable[[Peer], Any], seed: int) -> Outcome:
    """One trial. `rows(user)` gives a user's bounded data."""
    plan: ShufflePlan = run.plan
    assert run.graph is not None
    values = np.array([reported_value(plan.randomizer, rows(user).rows) for user in range(run.n)])
    made = shuffled(
        run.graph,
        plan.randomizer,
        values,
        plan.rounds,
        stay=plan.stay,
        single=plan.single,
        dummies=plan.dummies,
        seed=seed,
    )
    marks = np.array([run.graph.degree(user) for user in range(run.n)]) * plan.rounds
    cover = np.zeros_like(marks) if plan.slots is None else marks * plan.slots - made.moves
    sent = Sent(made.moves, np.bincount(made.holders, minlength=run.n), cover, marks, made.held)
    counted = {int(owner): {0: 1} for owner in np.sort(made.owners) if owner >= 0}
    messages = int((made.moves + marks + cover).sum()) + len(made.reports) + run.n
    return Outcome(result_of(plan, made.reports), counted, messages, traffic=traffic_of(plan, sent))
