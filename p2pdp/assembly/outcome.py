"""What a finished run computed, read from its ledgers: estimate, truth, baselines, and who is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2pdp.assembly import averages, descents, gossip_descents, relayed
from p2pdp.assembly.found import Number, Outcome
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import GO, TOKEN
from p2pdp.core.values import LinearForm
from p2pdp.ledger.messages import public_message, whole_message
from p2pdp.ledger.records import OWN, PUBLISHED, RECEIVED, SENT, Record, read, whole_length
from p2pdp.mechanisms import gaussian, laplace, randomized_response
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.gossip_sgd import GossipSgdPlan
from p2pdp.protocols.gossiping_plan import AveragingPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.protocols.walk_sgd import SgdPlan
from p2pdp.replay.transcript import replay


def outcome(run: RunPlan, views: Mapping[Peer, bytes], excluded: Sequence[Peer]) -> Outcome:
    """Reads all ledgers of a run. Where somebody was gone round, a replay tells whose contributions count."""
    found = Outcome()
    begun = {peer: read(data) for peer, data in views.items() if whole_length(data)}
    for peer, contents in begun.items():
        found.messages += sum(record.kind == SENT for record in contents.records)
        if is_user(peer) and contents.records:
            visits = sum(_is_token(record) for record in contents.records)
            found.counted[peer] = _cyclic(visits, contents.records[0].body[4])
        elif peer == CURATOR:
            _published(contents.records, found)
    if isinstance(run.plan, ShufflePlan):
        relayed.reports_of(run, begun, found)
        return found
    if run.finishes_one_by_one:
        gather = gossip_descents.descents_of if isinstance(run.plan, GossipSgdPlan) else averages.average_of
        gather(run, begun, found)
        return found
    if isinstance(run.plan, SgdPlan):
        descents.descent_of(run, begun, found, excluded)
    elif excluded:
        published = replay(run, begun).published
        found.counted = _counted(published[0]) if published else {}
    return found


def _cyclic(visits: int, values: int) -> dict[int, int]:
    """How often each of a user's values is used in so many visits."""
    return {number: (visits - number - 1) // values + 1 for number in range(min(visits, values))}


def _counted(form: LinearForm) -> dict[Peer, dict[int, int]]:
    counted: dict[Peer, dict[int, int]] = {}
    for source, weight in form.expand().items():
        if source.kind in ("input", "report"):
            values = counted.setdefault(source.peer, {})
            values[source.number] = values.get(source.number, 0) + round(weight)
    return counted


def _is_token(record: Record) -> bool:
    return record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN


def _published(records: Sequence[Record], found: Outcome) -> None:
    now_s = 0.0
    for record in records:
        if record.kind == RECEIVED:
            now_s = record.body[0]
            if public_message(record).type == GO:
                found.go_s = now_s
        elif record.kind == PUBLISHED:
            found.published = whole_message(record).value
            found.published_s = now_s
            found.over = True


def estimate_of(run: RunPlan, found: Outcome) -> Estimate:
    """The estimate of the spec's task; a mean is the sum divided by the number of contributions."""
    if isinstance(run.plan, GossipSgdPlan):
        return gossip_descents.estimate_of(run, found)
    if isinstance(run.plan, AveragingPlan):
        return averages.estimate_of(run, found)
    total = run.protocol.estimate(run.plan, found.published, found.contributions)
    if run.spec.task.kind != "mean" or isinstance(run.plan, SgdPlan | ShufflePlan):
        return total
    return Estimate(_scaled(total.value, found.contributions), _scaled(total.standard_error, found.contributions))


def _scaled(number: Number, divisor: float) -> Number:
    if number is None:
        return None
    return [part / divisor for part in number] if isinstance(number, list) else number / divisor


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """The estimate that the same visits or exchanges would have given without noise and randomization."""
    if isinstance(run.plan, ShufflePlan):
        return relayed.truth_of(run, found, rows)
    if isinstance(run.plan, GossipSgdPlan):
        return gossip_descents.truth_of(run, found, rows)
    if isinstance(run.plan, AveragingPlan):
        return averages.truth_of(run, found, rows)
    if isinstance(run.plan, SgdPlan):
        return descents.truth_of(run, found, rows)
    import numpy as np

    total = np.zeros(run.plan.shape[0] if run.plan.shape else 1)
    for user, values in found.counted.items():
        own = rows(user).rows
        for number, times in values.items():
            value = own[number % len(own)]
            if run.spec.task.kind == "histogram":
                total[int(value)] += times
            else:
                total += times * value
    if run.spec.task.kind == "mean":
        total /= max(1, found.contributions)
    return [float(part) for part in total] if run.plan.shape else float(total[0])


def error_of(run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
    if isinstance(run.plan, AveragingPlan):
        return averages.error_of(run, found, estimate, truth)
    return difference(estimate, truth)


def difference(estimate: Number, truth: Number) -> Number:
    if estimate is None or truth is None:
        return None
    if isinstance(estimate, list) and isinstance(truth, list):
        return [mine - theirs for mine, theirs in zip(estimate, truth, strict=True)]
    assert not isinstance(estimate, list)
    assert not isinstance(truth, list)
    return estimate - truth


def baselines(
    run: RunPlan, found: Outcome, estimate: Estimate, sensitivity: float | None, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Standard errors of the same task under local DP, and with a trusted curator, at the same privacy.

    Privacy is that of a user's whole input: one who contributes k times has k noised values or k in the sum.
    `sensitivity` is that of one contribution, in data units.
    """
    if isinstance(run.plan, ShufflePlan):
        return relayed.baselines_of(run, found, estimate.value, epsilon, delta)
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
    shape = run.plan.shape
    return {
        "local": {"standard_error": _task_error(run, local, total, shape)},
        "central": {"standard_error": _task_error(run, central, total, shape)},
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


def _task_error(run: RunPlan, error: Number, contributions: int, shape: tuple[int, ...]) -> Number:
    if error is None:
        return None
    if run.spec.task.kind == "mean":
        error = _scaled(error, contributions)
    return [error] * shape[0] if shape and not isinstance(error, list) else error  # type: ignore[list-item]
