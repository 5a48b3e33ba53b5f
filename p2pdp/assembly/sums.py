"""The outcome of a walk that adds up, from its ledgers: how often each value is in the result, and the truth.

Where nobody was gone round, visits stand in the users' own ledgers; otherwise a replay tells whose contributions are in
what was published.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from p2pdp.assembly.linear import values_in
from p2pdp.assembly.outcome import Number, Outcome, counted_in
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import TOKEN
from p2pdp.ledger.records import OWN, RECEIVED, Record, public_message
from p2pdp.mechanisms import gaussian, laplace, randomized_response
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.records import counts_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded


def gather(recorded: Recorded, found: Outcome) -> None:
    """Add to an outcome how often each user's values are in the result."""
    if found.excluded:
        published = recorded.transcript.published
        found.counted = values_in(published[0].expand()) if published else {}
        return
    for peer, contents in recorded.views.items():
        if is_user(peer) and contents.records:
            visits = sum(_is_token(record) for record in contents.records)
            found.counted[peer] = _cyclic(visits, contents.records[0].body.values)


def _cyclic(visits: int, values: int) -> dict[int, int]:
    """Return how often each of a user's values is used in this number of visits."""
    return {number: (visits - number - 1) // values + 1 for number in range(min(visits, values))}


def _is_token(record: Record) -> bool:
    return record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN


def scaled(number: Number, divisor: float) -> Number:
    if number is None:
        return None
    return [part / divisor for part in number] if isinstance(number, list) else number / divisor


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """Return the sum of the same visits without noise and randomization."""
    import numpy as np

    total = np.zeros(run.plan.shape[0] if run.plan.shape else 1)
    for user, values in found.counted.items():
        own = rows(user).rows
        if run.plan.records is not None:
            added = counts_of(own, len(total)) if run.spec.task.kind == "histogram" else own.sum(axis=0)
            total += sum(values.values()) * added
            continue
        for number, times in values.items():
            value = own[number % len(own)]
            if run.spec.task.kind == "histogram":
                total[int(value)] += times
            else:
                total += times * value
    if run.spec.task.kind == "mean":
        total /= max(1, counted_in(run, found))
    return [float(part) for part in total] if run.plan.shape else float(total[0])


def baselines_of(
    run: RunPlan, found: Outcome, estimate: Estimate, sensitivity: float | None, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Return standard errors of the same task under local DP, and with a trusted curator, at the same privacy.

    Privacy is that of the run's unit: a user who contributes k times has k noised values or k in the sum.
    `sensitivity` is that of one contribution, in data units.
    """
    per_user = max((sum(values.values()) for values in found.counted.values()), default=0)
    total = found.contributions
    local: Number = None
    central: Number = None
    if epsilon is not None and 0.0 < epsilon < math.inf and per_user:
        kind = run.plan.noise.name
        if kind == "randomized_response":
            local, central = _histogram(run, total, per_user, estimate, epsilon, delta)
        elif sensitivity is None:
            pass
        elif kind == "laplace":
            scale = laplace.scale_of_epsilon(epsilon, sensitivity * per_user)
            local, central = math.sqrt(2.0 * total) * scale, math.sqrt(2.0) * scale
        else:
            mu = gaussian.mu_of_curve(epsilon, delta)
            local = math.sqrt(total * per_user) * sensitivity / mu
            central = per_user * sensitivity / mu
    shape, divisor = run.plan.shape, counted_in(run, found)
    return {
        "local": {"standard_error": _task_error(run, local, divisor, shape)},
        "central": {"standard_error": _task_error(run, central, divisor, shape)},
    }


def _histogram(
    run: RunPlan, total: int, per_user: int, estimate: Estimate, epsilon: float, delta: float
) -> tuple[Number, Number]:
    assert isinstance(estimate.value, list)
    categories = run.plan.noise.categories
    gamma = randomized_response.gamma_of(epsilon / per_user, categories)
    local = [float(error) for error in randomized_response.standard_error(estimate.value, total, gamma)]
    # The curator takes the better noise for counts, of which a user moves two, and may randomize as the users would.
    by_gaussian = math.sqrt(2.0) * per_user / gaussian.mu_of_curve(epsilon, delta)
    by_laplace = math.sqrt(2.0) * laplace.scale_of_epsilon(epsilon, 2.0 * per_user)
    return local, [min(by_gaussian, by_laplace, error) for error in local]


def _task_error(run: RunPlan, error: Number, divisor: int, shape: tuple[int, ...]) -> Number:
    if error is None or (run.spec.task.kind == "mean" and divisor == 0):
        return None
    if run.spec.task.kind == "mean":
        error = scaled(error, divisor)
    if error is None or isinstance(error, list) or not shape:
        return error
    return [error] * shape[0]
