"""The curator's attack on network shuffling: a guess of each user's value from all reports, without any route.

It takes the probability that each report is a user's, given the graph and the number of reports per holder, and from
it the mean of the weights of these reports, which is the estimate of least mean squared error. With few rounds
that is nearly the user's own report; once walks are mixed, nearly the mean of all. It assumes that nobody was late
or excluded. The curator is assumed to know the graph, as bootstrap does.

Documents of guesses score each of them against the users' values. A user who relays holds sealed reports that it
cannot read, and guesses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.attacks.owners import owners_of_all, owners_of_single
from p2pdp.core.arrays import Floats
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.core.messages import OPENED_REPORT, OUT, REPORT, OpenedReport
from p2pdp.ledger.records import OWN, RECEIVED, Contents, carries_message, public_message, whole_message
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.outcome import name_of
from p2pdp.protocols.shuffle.network import result_of
from p2pdp.protocols.shuffle.plan import ShufflePlan
from p2pdp.replay.evidence import Evidence
from p2pdp.topology.graphs import Graph
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix

USERS_MAX: Final = 2048  # the laws of this many users are held at once
SEALED: Final = "a user of network shuffling holds sealed reports only, which nobody but the curator can open"


@dataclass(frozen=True)
class Opened:
    """The reports that the curator opened: names and numbers, and one row each with its holder and its weight."""

    names: list[int]
    numbers: Any
    holders: Any
    weights: Floats

    def __repr__(self) -> str:
        return f"Opened({len(self.names)} reports)"


@dataclass(frozen=True)
class Guess:
    """A guess of one user's value; `name` is the report most likely to be its own, with that probability."""

    user: Peer
    estimate: Floats
    name: int
    probability: float

    def __repr__(self) -> str:
        return f"Guess(user={self.user})"


def opened_by(run: RunPlan, contents: Contents) -> Opened:
    """Return the reports opened by the curator, from its own ledger."""
    senders: dict[int, Peer] = {}
    handed_in_by: Peer = 0  # the report that is opened next
    reports: dict[int, bytes] = {}
    for record in contents.records:
        if not carries_message(record):
            continue
        message = public_message(record)
        if record.kind == RECEIVED and message.type == REPORT:
            handed_in_by = record.body.sender
        elif record.kind == RECEIVED and message.type == OUT:
            raise Refused("somebody was put out of this run, and what it held went other ways than those of the walk")
        elif record.kind == OWN and message.type == OPENED_REPORT:
            name = OpenedReport(*message.fields).name
            senders[name] = handed_in_by
            reports[name] = whole_message(record).value
    if not reports:
        raise Refused("the curator got no report in this run")
    randomizer = run.plan.randomizer
    numbers = np.stack([randomizer.decoded(report) for report in reports.values()])
    holders = np.array([senders[name] for name in reports], dtype=np.int64)
    return Opened(list(reports), numbers, holders, randomizer.weights(numbers))


def guesses_of(run: RunPlan, graph: Graph, opened: Opened) -> list[Guess]:
    """Return one guess for each user, in order."""
    plan: ShufflePlan = run.plan
    if run.by_record:
        raise Refused("users send a report for each of their rows, and no single one of them is a user's value")
    if run.n > USERS_MAX:
        raise Refused(f"the laws of {run.n} reports do not fit side by side: this attack is for {USERS_MAX} users")
    laws = all_laws(walk_matrix(graph, plan.stay), plan.rounds)
    loads = np.bincount(opened.holders, minlength=run.n)
    if not plan.single and len(opened.names) != run.n:
        raise Refused("some reports are missing, so the holders do not tell where those went that are here")
    chances = owners_of_single(laws) if plan.single else owners_of_all(laws, loads)
    shares = chances[opened.holders] / loads[opened.holders][:, None]  # [report, user]
    usual, _ = np.split(result_of(plan, opened.numbers)[1:], 2)
    mean = usual / (run.n if plan.randomizer.counted else 1.0)
    estimates = shares.T @ opened.weights + (1.0 - shares.sum(axis=0))[:, None] * mean
    likeliest = shares.argmax(axis=0)
    return [
        Guess(user, estimates[user], opened.names[best], float(shares[best, user]))
        for user, best in enumerate(likeliest.tolist())
    ]


def value_as_weight(plan: ShufflePlan, value: Any) -> Floats:
    """Return a user's value in the form of an estimate: a category becomes counts with a single 1."""
    if plan.randomizer.counted:
        return np.asarray(np.arange(plan.randomizer.outputs) == int(value), dtype=np.float64)
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def guesses_by_curator(
    run: RunPlan, contents: Contents, evidence: Evidence, graph: Callable[[], Graph]
) -> list[dict[str, Any]]:
    """Return one document for each user; the users' ledgers are read afterwards, to score."""
    opened = opened_by(run, contents)
    return [_document(run, guess, opened, evidence) for guess in guesses_of(run, graph(), opened)]


def _document(run: RunPlan, guess: Guess, opened: Opened, evidence: Evidence) -> dict[str, Any]:
    contents, values = evidence.chained(guess.user), evidence.inputs(guess.user)
    name = None if contents is None else name_of(contents)
    error = sigmas = None
    if values is not None:
        error = guess.estimate - value_as_weight(run.plan, values[0])
    randomizer = run.plan.randomizer
    if name in opened.names and isinstance(randomizer, RealReports) and randomizer.noise_variance:
        noised = opened.weights[opened.names.index(name)]
        sigmas = (guess.estimate - noised) / randomizer.noise_variance**0.5
    return {
        "user": guess.user,
        "estimate": _number(run, guess.estimate),
        "error": None if error is None else _number(run, error),
        "noised_value_error_in_sigma": None if sigmas is None else _number(run, sigmas),
        "report_probability": guess.probability,
        "report_found": None if name is None else name == guess.name,
    }


def _number(run: RunPlan, value: Any) -> float | list[float]:
    return [float(part) for part in np.asarray(value)] if run.plan.shape else float(value[0])
