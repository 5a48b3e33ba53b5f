"""The outcome of a run of gossip: each user's own result, the users' shares in it, and its noise.

The rows say which weighted sum of the users' noised values each result is. If nobody is gone, nothing was
skipped and messages carry no noise of their own, they follow from the graph and the schedule; otherwise from a
replay over linear forms. Both give standard errors that are exact for what happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.assembly.linear import finals_of
from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.core.arrays import Floats
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.values import PAIR, LinearForm, Source
from p2pdp.ledger.records import MET, SENT, Contents, carries_message, public_message
from p2pdp.protocols.gossip.analysis.pair_noise import ends_of
from p2pdp.protocols.gossip.plan import ACTIVATIONS, SKIPPED, Activations, GossipPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.topology.weights import meeting_weights, sparse_weights

_REPLAYED_MAX: Final = 300  # most users for which standard errors of irregular runs are computed
TABLE_MAX: Final = 4096  # most users of whose values and results there is a table


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Add the users' results, and the users' shares in them, to an outcome."""
    found.finals = finals_of(recorded.views)
    found.counted = {user: {0: 1} for user in range(run.n)}
    users = sorted(found.finals)
    if run.plan.in_rounds and run.n > TABLE_MAX and _is_regular(run, recorded, users):
        from p2pdp.protocols.gossip.analysis.large import of_rounds

        found.shares, found.deviation = of_rounds(run, matrices_of(run, recorded.views))
        return
    found.rows, found.variances = _rows(run, recorded, users)
    published = [at for at, user in enumerate(users) if run.plan.publishes(user)]
    if found.rows is None or found.variances is None or not users:
        return
    if published:
        found.shares = found.rows[published].mean(axis=0)
        found.deviation = math.sqrt(float(found.variances[np.ix_(published, published)].mean()))
    else:
        found.deviation = math.sqrt(float(np.diag(found.variances).mean()))


def per_row(run: RunPlan, found: Outcome) -> float | None:
    """Return by what the mean of the users' sums is multiplied; None where the unit is a user.

    It counts the rows of those who were not excluded. How far the values of others were in states by then is not told.
    """
    return None if run.plan.records is None else run.plan.records.per_row(found.excluded)


def count_rows(run: RunPlan, found: Outcome) -> None:
    """Turn the mean of the users' sums into the mean of their rows, in all that an outcome has."""
    scale = per_row(run, found)
    if scale is None:
        return
    found.finals = {user: value * scale for user, value in found.finals.items()}
    found.rows = None if found.rows is None else found.rows * scale
    found.shares = None if found.shares is None else found.shares * scale
    found.variances = None if found.variances is None else found.variances * scale**2
    found.deviation = None if found.deviation is None else found.deviation * scale


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """Return the same mean of the values themselves: weighted by shares if results are published, else plain."""
    values = np.empty((run.n, *(run.plan.shape or (1,))))
    for user in range(run.n):
        values[user] = _value_of(run, rows(user))
    scale, left = per_row(run, found), set(range(run.n))
    even = np.full(run.n, 1.0 / run.n)
    if scale is not None:
        left -= set(found.excluded)
        even = np.array([scale / len(left) if user in left else 0.0 for user in range(run.n)])
    mean = (even if found.shares is None else found.shares) @ values
    return [float(part) for part in mean] if run.plan.shape else float(mean[0])


def of_those_left(run: RunPlan, found: Outcome) -> Any:
    """Return what was published such that its mean counts the rows of those who were not excluded."""
    whole = None if run.plan.records is None else run.plan.records.per_row()
    scale = per_row(run, found)
    if found.published is None or scale is None or whole is None or not found.excluded:
        return found.published
    return found.published * (scale / whole)


def _value_of(run: RunPlan, rows: Any) -> Floats:
    """Return what a user contributes, before its noise."""
    value = rows.rows.sum(axis=0) if run.by_record else rows.rows[0]
    return np.asarray(value, dtype=np.float64).reshape(-1)


def truth_of_finals(run: RunPlan, finals: Mapping[Peer, Floats]) -> Number:
    """Return the mean of the published models, if results are published, else of all."""
    models = [value for user, value in sorted(finals.items()) if run.plan.publishes(user) or run.plan.publish == "none"]
    return [float(part) for part in np.mean(models, axis=0)] if models else None


def error_of(run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
    """Return estimate minus truth; if nothing is published, its root mean square over the users."""
    if truth is None:
        return None
    if estimate is not None:
        off = np.asarray(estimate) - np.asarray(truth)
    elif found.finals:
        off = _root_mean_square([value for _, value in sorted(found.finals.items())], np.asarray(truth))
    else:
        return None
    return [float(part) for part in off] if run.plan.shape else float(off)


def _root_mean_square(values: Sequence[Any], truth: Floats) -> Any:
    """Return how far values are from the truth; of many numbers no further table is made."""
    if truth.size == 1:
        return np.sqrt(((np.array(values) - truth) ** 2).mean(axis=0))
    squares = np.zeros(truth.shape)
    for value in values:
        squares += (value - truth) ** 2
    return np.sqrt(squares / len(values))


def _rows(run: RunPlan, recorded: Recorded, users: Sequence[Peer]) -> tuple[Floats | None, Floats | None]:
    """Return the weights of all users' values in each result, and the covariance of the noise in data units."""
    unit = (run.plan.noise.scale * run.plan.step * (math.sqrt(2.0) if run.plan.noise.name == "laplace" else 1.0)) ** 2
    if _is_regular(run, recorded, users):
        rows = _synchronous(run, recorded.views) if run.plan.in_rounds else _pairwise(run, recorded.views)
        if run.plan.pair_noise is None:
            return rows, unit * rows @ rows.T
        return rows, unit * rows @ rows.T + _of_pairs(run, rows)
    if run.n > _REPLAYED_MAX:
        return None, None
    transcript = recorded.transcript
    forms = [transcript.finals[user] for user in users]
    return _by_forms(run, forms, unit)


def _is_regular(run: RunPlan, recorded: Recorded, users: Sequence[Peer]) -> bool:
    """Return whether results follow from the graph and the schedule."""
    whole = len(users) == run.n and run.graph is not None and run.plan.message_noise is None
    return whole and not was_skipped(recorded.views)


def _of_pairs(run: RunPlan, rows: Floats) -> Floats:
    """Return the covariance of the noise of pairs in results, in data units."""
    lows, highs = ends_of(run).T
    across = (rows[:, lows] - rows[:, highs]) * (run.plan.pair_noise.scale * run.plan.step)
    return np.asarray(across @ across.T)


def _by_forms(run: RunPlan, forms: Sequence[LinearForm], unit: float) -> tuple[Floats, Floats]:
    rows = np.zeros((len(forms), run.n))
    noises: list[dict[Source, float]] = []
    shared = run.plan.pair_noise.scale * run.plan.step if run.plan.pair_noise is not None else 0.0
    message = run.plan.message_noise.scale * run.plan.step if run.plan.message_noise is not None else 0.0
    for at, form in enumerate(forms):
        noise: dict[Source, float] = {}
        for source, weight in form.expand().items():
            if source.kind == "input":
                rows[at, source.peer] += weight
            elif source.kind == "draw":
                own = source.number == 0 and run.plan.noise.name != "none"
                deviation = math.sqrt(unit) if own else message
                noise[source] = weight / run.plan.step * deviation
            elif source.kind == PAIR:
                noise[source] = weight / run.plan.step * shared
        noises.append(noise)
    names = {name: column for column, name in enumerate(sorted({name for noise in noises for name in noise}))}
    drawn = np.zeros((len(forms), len(names)))
    for at, noise in enumerate(noises):
        for name, amount in noise.items():
            drawn[at, names[name]] = amount
    return rows, drawn @ drawn.T


def was_skipped(views: Mapping[Peer, Contents]) -> bool:
    return any(
        carries_message(record) and public_message(record).type == SKIPPED
        for contents in views.values()
        for record in contents.records
    )


def _synchronous(run: RunPlan, views: Mapping[Peer, Contents]) -> Floats:
    plan: GossipPlan = run.plan
    before = now = np.eye(run.n)
    for number, matrix in enumerate(matrices_of(run, views), start=1):
        gamma, moved = plan.gamma_at(number), matrix @ now
        before, now = now, moved if gamma == 1.0 else gamma * moved + (1.0 - gamma) * before
    return now


def matrices_of(run: RunPlan, views: Mapping[Peer, Contents]) -> list[Any]:
    """Return the weights of each round; on a changing graph from meetings in the lower-numbered user's ledger."""
    plan: GossipPlan = run.plan
    if plan.coin is None:
        assert run.graph is not None
        return [sparse_weights(run.graph, plan.weights)] * plan.rounds
    met: list[list[tuple[Peer, Peer]]] = [[] for _ in range(plan.rounds)]
    for user in range(run.n):
        for record in views[user].records:
            if record.kind == MET:
                number, peers = record.body
                met[number - 1] += [(user, peer) for peer in peers if peer > user]
    return [meeting_weights(run.n, pairs, plan.weights, plan.degree_max) for pairs in met]


def _pairwise(run: RunPlan, views: Mapping[Peer, Contents]) -> Floats:
    """Return the rows of pairs, activation by activation as bootstrap drew them."""
    pairs: dict[int, tuple[Peer, Peer]] = {}
    for record in views[BOOTSTRAP].records if BOOTSTRAP in views else ():
        if record.kind == SENT and public_message(record).type == ACTIVATIONS:
            for number, other in Activations(*public_message(record).fields).pairs:
                pairs[number] = (record.body.receiver, other)
    rows = np.eye(run.n)
    for _, (one, other) in sorted(pairs.items()):
        rows[one] = rows[other] = (rows[one] + rows[other]) * 0.5
    return rows
