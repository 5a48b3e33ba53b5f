"""The outcome of a run of network shuffling, read from its ledgers: the reports that arrived, their values, traffic.

The curator's ledger alone does not reveal the owner of a report. An auditor with all ledgers can tell: inside its seal
a report has the name that its user chose, and that choice is in the user's own ledger.

The traffic is compared with [LTT22, Table 3], which counts the reports that a user sends: one a round on the average,
hence as many as there are rounds, which grow as log n over the spectral gap if walks are to mix; and the reports that a
user holds at once, whose number does not grow with n. Marks and cover are not in the table, whose rounds are told by a
clock. Bytes are those of padded frames, without acknowledgements that are sent alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.core.arrays import Ints
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import OPENED_REPORT, REPORT, OpenedReport
from p2pdp.ledger.records import CHOSEN, OWN, SENT, Contents, public_message
from p2pdp.mechanisms import gaussian, randomized_response
from p2pdp.mechanisms.reporting.contract import Randomizer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.plan import COVER, MARK, MESSAGES, NAMES, RELAY, ShufflePlan
from p2pdp.replay.evidence import Recorded
from p2pdp.wire.padding import frame_size


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Add the users whose reports are in the result, and what everybody sent, to an outcome.

    A user chooses its reports' names before anything else.
    """
    views = recorded.views
    arrived = names_at(views[CURATOR]) if CURATOR in views else set()
    for user, contents in sorted(views.items()):
        if is_user(user):
            names = names_of(contents, run.plan.reports_of(user))
            counted = {place: 1 for place, name in enumerate(names) if name in arrived}
            if counted:
                found.counted[user] = counted
    if all(user in views for user in range(run.n)):
        found.traffic = traffic_of(run.plan, sent_in(views, run.n))


def names_at(curator: Contents) -> set[int]:
    """Return the names of all reports that were handed in and opened."""
    messages = (public_message(record) for record in curator.records if record.kind == OWN)
    return {OpenedReport(*message.fields).name for message in messages if message.type == OPENED_REPORT}


def names_of(contents: Contents, reports: int) -> list[int]:
    """Return the names of so many reports of a user, in the order of its rows."""
    chosen = (record.body for record in contents.records if record.kind == CHOSEN)
    return [int(body.picked) for body in islice((body for body in chosen if body.options == NAMES), reports)]


def name_of(contents: Contents) -> int | None:
    """Return the name of a user's first report."""
    return next(iter(names_of(contents, 1)), None)


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """Return the value of the same reports without randomization; for `single`, scaled up to all users."""
    plan: ShufflePlan = run.plan
    users = sorted(found.counted)
    if not users:
        return None
    values = np.array([rows(user).rows[place] for user in users for place in sorted(found.counted[user])])
    if plan.randomizer.counted:
        counts = np.bincount(values.astype(np.int64), minlength=plan.randomizer.outputs).astype(np.float64)
        scale = run.n / len(users) if plan.single else 1.0
        return [float(part) for part in counts * scale]
    mean = values.reshape(len(values), -1).mean(axis=0)
    return float(mean[0]) if len(mean) == 1 else [float(part) for part in mean]


def baselines_of(
    run: RunPlan, found: Outcome, estimate: Number, epsilon: float | None, delta: float
) -> dict[str, dict[str, Number]]:
    """Return the standard errors of local and of central privacy for the same task, at the headline's epsilon.

    Local: a report of the best kind available for the task. Central: the better of Laplace and Gaussian noise.
    """
    local: Number = None
    central: Number = None
    count = run.n if run.plan.single else found.contributions  # the users whose values are in the result
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
    """Return how far (L1, L2) a replaced user moves the sum of the values."""
    if randomizer.counted:
        return 2.0, math.sqrt(2.0)
    if run.spec.noise.mechanism == "privunit":
        return 2.0 * math.sqrt(randomizer.outputs), 2.0
    assert run.spec.data.clip is not None
    low, high = run.spec.data.clip
    return (high - low) * randomizer.outputs, (high - low) * math.sqrt(randomizer.outputs)


MARK_BYTES: Final = frame_size(0)
_ENVELOPE_BYTES: Final = 192  # bytes of a frame around a sealed report


@dataclass(frozen=True)
class Sent:
    """The traffic of each user; `held` is the most reports held by one user at once, as far as they were passed on."""

    relayed: Ints
    handed_in: Ints
    cover: Ints
    marks: Ints
    held: int


def report_frame_bytes(plan: ShufflePlan) -> int:
    """Return the frame size of a report, or of cover, in transit."""
    return frame_size(_ENVELOPE_BYTES + plan.sealed_bytes)


def sent_in(views: Mapping[Peer, Contents], n: int) -> Sent:
    """Read the traffic from the users' own ledgers."""
    kinds = (RELAY, REPORT, COVER, MARK)
    counts = np.zeros((len(kinds), n), dtype=np.int64)
    held = 0
    for user, contents in views.items():
        if not is_user(user):
            continue
        batches: dict[int, int] = {}
        for record in contents.records:
            if record.kind != SENT:
                continue
            message = public_message(record)
            if message.type in kinds:
                counts[kinds.index(message.type), user] += 1
            if message.type in (RELAY, REPORT):
                number = MESSAGES.step_of(message)
                batches[number] = batches.get(number, 0) + 1
        held = max(held, *batches.values(), 0)
    relayed, handed_in, cover, marks = counts
    return Sent(relayed, handed_in, cover, marks, held)


def traffic_of(plan: ShufflePlan, sent: Sent) -> dict[str, Any]:
    """Return the numbers of `result.json` by name; a user's part ends with one message that says so."""
    reports = sent.relayed + sent.handed_in
    messages = reports + sent.cover + sent.marks + 1
    frames = (reports + sent.cover) * report_frame_bytes(plan) + (sent.marks + 1) * MARK_BYTES
    found: dict[str, Any] = {}
    for name, counts in (("reports", reports), ("messages", messages), ("bytes", frames)):
        found[f"{name}_per_user_mean"] = float(counts.mean())
        found[f"{name}_per_user_max"] = int(counts.max())
    return found | {"reports_per_user_expected": plan.rounds * (1.0 - plan.stay) + 1.0, "reports_held_max": sent.held}
