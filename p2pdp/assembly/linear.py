"""The outcome of a run of any linear protocol, from linear forms: estimate without noise, and its standard error.

The forms say with which weights inputs and draws are in what was published, or in users' own results where nothing
was. The estimate of a task is taken to be affine in what is published, and to treat all coordinates of a vector alike
and apart from each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from p2pdp.assembly.outcome import Number, Outcome, counted_in, difference
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import FINAL
from p2pdp.core.values import PAIR, LinearForm, Source
from p2pdp.ledger.records import OWN, Contents, public_message, whole_message
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.transcript import Transcript

Form = dict[Source, float]

_NOISE: Final = ("draw", PAIR)
_PER_SCALE: Final = {"gaussian": 1.0, "laplace": math.sqrt(2.0)}  # standard deviations


def gather(run: RunPlan, recorded: Recorded, found: Outcome) -> None:
    """Add to an outcome what was published is made of, or users' own results where nothing was."""
    add_forms(run, recorded.transcript, found)
    found.finals = finals_of(recorded.views)


def finals_of(views: Mapping[Peer, Contents]) -> dict[Peer, Any]:
    """Return each user's own result, as its own ledger has it; a skeleton has none."""
    found = {}
    for peer, contents in views.items():
        for record in contents.records if is_user(peer) else ():
            if record.kind == OWN and record.value is not None and public_message(record).type == FINAL:
                found[peer] = whole_message(record).value
    return found


def add_forms(run: RunPlan, transcript: Transcript, found: Outcome) -> None:
    """Add the same from a transcript."""
    published: Sequence[LinearForm] = transcript.published or ()
    finals = [form for _, form in sorted(transcript.finals.items())]
    found.forms = [[form.expand() for form in published]] if published else [[form.expand()] for form in finals]
    if run.completes_per_user and run.collector() is None:
        found.counted = {user: {0: 1} for user in range(run.n)}
    else:
        found.counted = values_in(found.forms[0][0]) if published else {}
    found.deviation = _deviation(run, found, transcript)


def truth_of(run: RunPlan, found: Outcome, rows: Callable[[Peer], Any]) -> Number:
    """Return the estimate from the inputs alone; of users' own results the mean. None where it cannot be told."""
    if not found.forms:
        return None
    known: dict[Source, Any] = {}
    for form in (form for group in found.forms for form in group):
        for source in form.keys() - known.keys():
            if source.kind == "input":
                inputs, _ = run.protocol.inputs(run.plan, rows(source.peer))
                known[source] = inputs.contribution(source.number)
            elif source.kind not in _NOISE:
                return None
    told = [
        _estimated(run, [_sum(run, form, known) for form in group], counted_in(run, found)) for group in found.forms
    ]
    return _mean(told)


def error_of(run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
    """Return estimate minus truth; of users' own results the root mean square of that over the users."""
    if truth is None or estimate is not None or not found.finals:
        return difference(estimate, truth)
    import numpy as np

    told = [_estimated(run, [value], counted_in(run, found)) for _, value in sorted(found.finals.items())]
    if any(one is None for one in told):
        return None
    off = np.sqrt(((np.asarray(told) - np.asarray(truth)) ** 2).mean(axis=0))
    return [float(part) for part in off] if off.ndim else float(off)


def _sum(run: RunPlan, form: Form, known: Mapping[Source, Any]) -> Any:
    total = _constant(run, 0.0)
    for source, weight in form.items():
        if source in known:
            total = total + weight * known[source]
    return total


def _constant(run: RunPlan, number: float) -> Any:
    if run.plan.shape == ():
        return number
    import numpy as np

    return np.full(run.plan.shape, number)


def _estimated(run: RunPlan, values: Sequence[Any], contributions: int) -> Number:
    published = run.protocol.publish(run.plan, values) if run.completes_per_user else values[0]
    return run.protocol.estimate(run.plan, published, contributions).value


def _mean(numbers: Sequence[Number]) -> Number:
    import numpy as np

    if any(number is None for number in numbers):
        return None
    mean = np.mean([np.asarray(number, dtype=np.float64) for number in numbers], axis=0)
    return [float(part) for part in mean] if mean.ndim else float(mean)


def _deviation(run: RunPlan, found: Outcome, transcript: Transcript) -> float | None:
    """Return the standard deviation of each coordinate of the estimate; of users' own results the root mean square."""
    assert found.forms is not None
    variances = []
    for group in found.forms:
        none = _first(_estimated(run, [_constant(run, 0.0) for _ in group], counted_in(run, found)))
        variance = 0.0
        for source in {source: None for form in group for source in form}:
            if source.kind not in ("input", *_NOISE):
                return None
            if source.kind == "input":
                continue
            drawn = transcript.mechanism(source)
            values = [_constant(run, form.get(source, 0.0)) for form in group]
            share = _first(_estimated(run, values, counted_in(run, found)))
            if share is None or none is None or drawn.name not in _PER_SCALE:
                return None
            variance += ((share - none) * _PER_SCALE[drawn.name] * drawn.scale) ** 2
        variances.append(variance)
    return math.sqrt(sum(variances) / len(variances)) if variances else None


def _first(number: Number) -> float | None:
    return number[0] if isinstance(number, list) else number


def values_in(form: Form) -> dict[Peer, dict[int, int]]:
    """Return how often each value is in a sum."""
    counted: dict[Peer, dict[int, int]] = {}
    for source, weight in form.items():
        if source.kind in ("input", "report"):
            values = counted.setdefault(source.peer, {})
            values[source.number] = values.get(source.number, 0) + round(weight)
    return counted
