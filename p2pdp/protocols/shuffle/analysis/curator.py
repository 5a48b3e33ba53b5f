"""What the curator of network shuffling guesses of each user, and how near that comes (`guesses.py`).

The curator is taken to know the graph, as bootstrap does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from p2pdp.ledger.records import Contents
from p2pdp.mechanisms.reporting.reals import RealReports
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis.guesses import Guess, Opened, guesses_of, opened_by, value_as_weight
from p2pdp.protocols.shuffle.analysis.outcome import name_of
from p2pdp.replay.evidence import Evidence
from p2pdp.topology.graphs import Graph


def guesses_by_curator(
    run: RunPlan, contents: Contents, evidence: Evidence, graph: Callable[[], Graph]
) -> list[dict[str, Any]]:
    """One document for each user; the users' ledgers are read afterwards, to score."""
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
