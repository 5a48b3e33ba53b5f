"""What a run of network shuffling came to, read from its ledgers: whose reports arrived, and what they are worth.

Nobody who sees the curator's ledger alone can tell whose report is whose. An auditor who has all ledgers can: inside
its seal a report has the name that its user chose, and that choice is in the user's own ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import OPENED_REPORT, OpenedReport
from p2pdp.ledger.records import CHOSEN, OWN, Contents, public_message
from p2pdp.mechanisms import gaussian, randomized_response
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.traffic import sent_in, traffic_of
from p2pdp.protocols.shuffle.plan import NAMES, ShufflePlan
from p2pdp.replay.evidence import Recorded


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Adds to an outcome whose reports are in the result, and what everybody sent.

    A user chooses its report's name before anything else.
    """
    views = recorded.views
    arrived = names_at(views[CURATOR]) if CURATOR in views else set()
    found.counted = {
        user: {0: 1} for user, contents in sorted(views.items()) if is_user(user) and name_of(contents) in arrived
    }
    if all(user in views for user in range(run.n)):
        found.traffic = traffic_of(run.plan, sent_in(views, run.n))


def names_at(curator: Contents) -> set[int]:
    """The names of all reports that were handed in and opened."""
    messages = (public_message(record) for record in curator.records if record.kind == OWN)
    return {OpenedReport(*message.fields).name for message in messages if message.type == OPENED_REPORT}


def name_of(contents: Contents) -> int | None:
    """Of a user's own report."""
    for record in contents.records:
        if record.kind == CHOSEN and record.body.options == NAMES:
            return int(record.body.picked)
    return None


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """What the same reports would have told without randomization; of `single`, scaled up to all users."""
    plan: ShufflePlan = run.plan
    users = sorted(found.counted)
    if not users:
        return None
    values = np.array([rows(user).rows[0] for user in users])
    if plan.randomizer.counted:
        counts = np.bincount(values.astype(np.int64), minlength=plan.randomizer.outputs).astype(np.float64)
        scale = run.n / len(users) if plan.single else 1.0
        return [float(part) for part in counts * scale]
    mean = values.reshape(len(users), -1).mean(axis=0)
    return float(mean[0]) if len(mean) == 1 else [float(part) for part in mean]


def baselines_of(
    run: RunPlan, found: Outcome, estimate: Number, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Standard errors of the same task at the headline's epsilon, of reports that nobody hides and of one noise.

    Local: a report of the best kind we have for the task. Central: the better of Laplace's noise and Gauss's.
    """
    local: Number = None
    central: Number = None
    count = run.n if run.plan.single else found.contributions  # whose values the result is about
    if epsilon is not None and 0.0 < epsilon < math.inf and count and estimate is not None:
        randomizer = run.plan.randomizer
        local = _local_error(run, randomizer, estimate, count, epsilon, delta)
        l1, l2 = _sensitivities(run, randomizer)
        error = math.sqrt(2.0) * l1 / epsilon
        if delta > 0.0:
            error = min(error, l2 / gaussian.mu_of_curve(epsilon, delta))
        central = _each(randomizer, error if randomizer.counted else error / count)
    return {"local": {"standard_error": local}, "central": {"standard_error": central}}


def _local_error(
    run: RunPlan, randomizer: Randomizer, estimate: Number, count: int, epsilon: float, delta: float
) -> Number:
    if randomizer.counted:
        assert isinstance(estimate, list)
        gamma = randomized_response.gamma_of(epsilon, randomizer.outputs)
        return [float(error) for error in randomized_response.standard_error(estimate, count, gamma)]
    if run.spec.noise.mechanism == "privunit":
        from p2pdp.mechanisms.reporting.privunit import split  # scipy

        square = 1.0 / split(epsilon, randomizer.outputs).length ** 2 - 1.0
        return _each(randomizer, math.sqrt(square / randomizer.outputs / count))
    l1, l2 = _sensitivities(run, randomizer)
    error = math.sqrt(2.0) * l1 / epsilon
    if run.spec.noise.mechanism == "gaussian" and delta > 0.0:
        error = l2 / gaussian.mu_of_curve(epsilon, delta)
    return _each(randomizer, error / math.sqrt(count))


def _each(randomizer: Randomizer, error: float) -> Number:
    return [error] * randomizer.outputs if randomizer.counted or randomizer.outputs > 1 else error


def _sensitivities(run: RunPlan, randomizer: Randomizer) -> tuple[float, float]:
    """How far (L1, L2) a replaced user moves the sum of the values."""
    if randomizer.counted:
        return 2.0, math.sqrt(2.0)
    if run.spec.noise.mechanism == "privunit":
        return 2.0 * math.sqrt(randomizer.outputs), 2.0
    assert run.spec.data.clip is not None
    low, high = run.spec.data.clip
    return (high - low) * randomizer.outputs, (high - low) * math.sqrt(randomizer.outputs)
