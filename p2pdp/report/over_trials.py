"""Trials of learning together: the means of losses and scores, with their standard errors.

A standard error here is that of the mean over trials: how far the mean itself may be off, and not how much one trial
varies. With one trial there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from p2pdp.report.result import Result, Sigmas

OVER_TRIALS: Final = "over_trials"
_SCORES: Final = ("loss", "score")


def sigmas_in(result: Result) -> Sigmas | None:
    """Return the noise of a result's baselines, which further trials are compared with; None where nothing learned."""
    if result.scores is None:
        return None
    return {name: one["sigma"] for name, one in result.baselines.items() if one["sigma"] != 0.0}


def with_trials(first: Result, results: Sequence[Result]) -> Result:
    """Return the first result with the means over these, of which it is one, in scores, baselines and curves."""
    if first.scores is None:
        return first
    scores = {**first.scores, OVER_TRIALS: _summary([one.scores or {} for one in results])}
    baselines = {
        name: {**own, OVER_TRIALS: _summary([one.baselines.get(name, {}) for one in results])}
        for name, own in first.baselines.items()
    }
    curves = first.curves
    if curves is not None:
        others = [one.curves["of"] for one in results if one.curves is not None]
        lines = {
            name: {**own, OVER_TRIALS: _summary([one[name] for one in others if name in one])}
            for name, own in curves["of"].items()
        }
        curves = {**curves, "of": lines}
    return replace(first, scores=scores, baselines=baselines, curves=curves)


def _summary(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean and standard error of each loss and score, or of each place of a curve."""
    found: dict[str, Any] = {"trials": len(told)}
    for name in told[0] if told else ():
        if name.endswith(_SCORES):
            found[name] = _together([one.get(name) for one in told])
    return found


def _together(values: Sequence[Any]) -> dict[str, Any]:
    if any(isinstance(value, list) for value in values):
        parts = [_together(place) for place in zip(*values, strict=True)]
        return {name: [part[name] for part in parts] for name in ("mean", "standard_error")}
    if any(value is None for value in values):
        return {"mean": None, "standard_error": None}
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return {"mean": mean, "standard_error": None}
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return {"mean": mean, "standard_error": math.sqrt(variance / count)}
