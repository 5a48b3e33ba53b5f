"""The common part of protocols that learn by descent: objective, noise, steps, and the facts that bootstrap signs.

`descent_of` and `noise_of` follow from the spec, the model's length and the signed facts, so every peer and every
auditor has the same. A caller's own objective exists in the caller's process only, and one that the spec names
(`tasks/named.py`) is loaded where users learn; its guarantees and its start are signed, and that is all an auditor
needs. `with_objective` gives a spec the objective that its task names, for whoever measures it.

Sigma is the standard deviation of the noise of each number of one contribution, before the rate is applied: of a user's
clipped gradient, or where single records are protected of the sum of its rows' clipped gradients, divided by their
number or by `[task] batch`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Unit
from p2pdp.core.draws import NO_NOISE, Draws, Mechanism, Shape
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.rows import rows_in
from p2pdp.core.spec import DataPart, Spec
from p2pdp.mechanisms.grid import EXACT_BITS, NOISE_TAIL, Grid, choose_grid
from p2pdp.protocols.contract import Fact
from p2pdp.protocols.noise import gaussian_sigma
from p2pdp.protocols.run_plan import at_most
from p2pdp.tasks.descent import Descent, GradientInputs, RowCounts
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.named import TORCH, Measure, NamedObjective
from p2pdp.tasks.objectives import Guarantees, Objective, start_digest, start_of
from p2pdp.tasks.regression import LinearRegression, LogisticRegression, MeanEstimation

OWN: Final = "own"
TASKS: Final = dict.fromkeys(("mean", "linear_regression", "logistic_regression", TORCH, OWN), ("gaussian", "none"))
KEYS: Final = frozenset({"task.clip", "task.rate", "task.regularization", "task.batch", "task.test", "task.schedule"})
SCORES: Final = ("loss", "score", "test_loss", "test_score")
PUBLIC_SCORES: Final = ("public_loss", "public_score")
# Models stay within this, so that no product with features within it overflows.
MODEL_MAX: Final = 2.0**40
FEATURE_MAX: Final = 2.0**40
ROWS_MAX: Final = 1 << 24
"""Of one gradient: what accounts take into the float errors of its sum."""
ROWS_OF_RECORDS_MAX: Final = 1 << 20
_BATCH_BEYOND: Final = 1e-18  # the chance that more rows enter a minibatch than is counted with

_OBJECTIVES: Final[dict[str, Objective]] = {
    "mean": MeanEstimation(),
    "linear_regression": LinearRegression(),
    "logistic_regression": LogisticRegression(),
}
_SUMS: Final = ("sum", "histogram")
_MARGINS: Final = ("linear_regression", "logistic_regression")


class Learned(NamedTuple):
    """A user's own model after so many steps of all those planned, where these follow a schedule that all know."""

    steps: int
    of: int
    unit: str
    model: Any


def has_intercept(spec: Spec) -> bool:
    """Return whether features get a 1 as their last number."""
    return spec.task.intercept and spec.task.kind in _MARGINS


def is_built_in(spec: Spec) -> bool:
    """Return whether a spec says all about what is computed: it is a task of this package."""
    return spec.task.kind in _OBJECTIVES or spec.task.kind in _SUMS


def is_named(spec: Spec) -> bool:
    """Return whether the task names an objective that is loaded where users learn."""
    return spec.task.kind != OWN and not is_built_in(spec)


def objective_of(spec: Spec) -> Objective:
    """Return the objective; for a custom one whose code is not in this process, only its name."""
    if is_built_in(spec):
        return _OBJECTIVES[spec.task.kind]
    if spec.task.own is not None:
        own: Objective = spec.task.own
        return own
    return NamedObjective(spec.task) if is_named(spec) else Objective()


def with_objective(spec: Spec, measure: Measure | None = None, code: str | None = None) -> Spec:
    """Return the spec with the objective that it names, if any; `measure` and `code` are those of `NamedObjective`."""
    if spec.task.own is not None or not is_named(spec):
        return spec
    return replace(spec, task=replace(spec.task, own=NamedObjective(spec.task, measure, code)))


def dimension_of(spec: Spec, columns: int) -> int:
    """Return the length of a model over so many features, the intercept's included."""
    if is_built_in(spec) or spec.task.own is None:
        return columns
    own = spec.task.own
    if isinstance(own, NamedObjective):
        return own.measures(columns, norm_bound(spec.data, columns, intercept=False)).dimension
    return int(own.dimension(columns))


def norm_bound(data: DataPart, columns: int | None, *, intercept: bool) -> float | None:
    """Return the public bound on the norm of a row of features; None if there is none."""
    bound: float | None = None
    if data.unit_norm:
        bound = 1.0
    elif columns is not None:
        reach = math.inf
        if data.clip is not None:
            reach = max(abs(data.clip[0]), abs(data.clip[1]))
        if data.standardize is not None and "low" in data.standardize:
            reach = min(reach, 1.0)
        bound = float(np.nextafter(math.sqrt(columns) * reach, math.inf)) if reach < math.inf else None
    if bound is None:
        return None
    return math.nextafter(math.hypot(bound, 1.0), math.inf) if intercept else bound


def apart_bound(data: DataPart, columns: int) -> float | None:
    """Return the public bound on the distance between two rows of features; None if there is none."""
    reach = norm_bound(data, columns, intercept=False)
    if reach is None:
        return None
    if data.unit_norm:
        one_sign = data.clip is not None and (data.clip[0] >= 0.0 or data.clip[1] <= 0.0)
        return math.nextafter(math.sqrt(2.0) if one_sign else 2.0, math.inf)
    widths = [] if data.clip is None else [data.clip[1] - data.clip[0]]
    if data.standardize is not None and "low" in data.standardize:
        widths.append(2.0)
    return min(2.0 * reach, float(np.nextafter(math.sqrt(columns) * min(widths), math.inf)))


def _columns(spec: Spec, dimension: int) -> int | None:
    if is_built_in(spec):
        return dimension - has_intercept(spec)
    if spec.data.standardize is not None:
        return len(next(value for value in spec.data.standardize.values() if isinstance(value, list)))
    return None if spec.data.columns is None else len(spec.data.columns)


def facts_of(spec: Spec) -> dict[str, Fact]:
    """Return the facts that bootstrap signs of a caller's objective; for all others see `model_facts`."""
    if spec.task.kind != OWN:
        return {}
    if spec.task.own is None:
        raise UsageError('[task] kind: "own" needs the objective itself: p2pdp.run(spec, task=...) from Python')
    guarantees = spec.task.own.guarantees(norm_bound(spec.data, _columns(spec, 0), intercept=False))
    return _promised(spec.task.own, guarantees)


def _promised(own: Objective, guarantees: Guarantees) -> dict[str, Fact]:
    return {
        "objective": str(own.name),
        "convex": int(guarantees.convex),
        "lipschitz": -1.0 if guarantees.lipschitz is None else float(guarantees.lipschitz),
        "smoothness": -1.0 if guarantees.smoothness is None else float(guarantees.smoothness),
        "clipping": guarantees.clipping,
        "convex_projection": int(guarantees.convex_projection or type(own).project is Objective.project),
    }


def model_facts(spec: Spec, dimension: int) -> dict[str, Fact]:
    """Return the facts about models that bootstrap signs: where they start, and what a named objective is.

    Nothing is said of a start at zeros, and nothing where the objective is not at hand: who only reads facts has them.
    """
    own = spec.task.own
    if isinstance(own, NamedObjective) and own.known is not None:
        code: dict[str, Fact] = {} if own.code is None else {"model": own.code}
        start: dict[str, Fact] = {"start": own.known.start, "start_max": own.known.start_max}
        return {**_promised(own, own.known.guarantees), **start, **code}
    if spec.task.kind != OWN or own is None:
        return {}
    start_vector, constants = start_of(own, dimension), own.constants()
    if not start_vector.any() and not constants:
        return {}
    return {"start": start_digest(start_vector, constants), "start_max": float(np.abs(start_vector).max())}


def guarantees_of(spec: Spec, dimension: int, facts: Mapping[str, Fact]) -> Guarantees:
    if is_built_in(spec):
        bound = norm_bound(spec.data, _columns(spec, dimension), intercept=has_intercept(spec))
        return objective_of(spec).guarantees(bound)
    if is_named(spec) and "convex" not in facts:
        return Guarantees()  # nothing is signed yet
    signed = facts if "convex" in facts else (facts_of(spec) if spec.task.own is not None else {})
    try:
        lipschitz, smoothness = float(signed["lipschitz"]), float(signed["smoothness"])
        return Guarantees(
            convex=bool(signed["convex"]),
            lipschitz=None if lipschitz < 0.0 else lipschitz,
            smoothness=None if smoothness < 0.0 else smoothness,
            clipping=str(signed["clipping"]),
            convex_projection=bool(signed["convex_projection"]),
        )
    except (KeyError, ValueError):
        raise VerificationFailed("the roster lacks the facts of the run's own objective") from None


def sigma_of(spec: Spec) -> float:
    """Return the standard deviation of one contribution's noise, in data units; 0 for `none`."""
    return gaussian_sigma(spec.noise, lambda: sensitivity_of(spec))


def sensitivity_of(spec: Spec) -> float:
    """Return how far what is protected can move one contribution: twice the clip, divided as contributions are."""
    assert spec.task.clip is not None
    if spec.privacy.unit != Unit.RECORD:
        return 2.0 * spec.task.clip
    if spec.task.batch is None:
        raise UsageError("[noise] epsilon: of gradients over all rows it would depend on their number; set sigma.")
    return 2.0 * spec.task.clip / spec.task.batch


def row_counts(spec: Spec, facts: Mapping[str, Fact]) -> RowCounts | None:
    """Return what is public of the users' rows; None where whole users are protected."""
    if spec.privacy.unit != Unit.RECORD:
        return None
    stated, batch = rows_in(facts), spec.task.batch
    fewest, most = (1, ROWS_OF_RECORDS_MAX) if stated is None else (min(stated), max(stated))
    if most > ROWS_OF_RECORDS_MAX:
        raise UsageError(f"[privacy] unit: gradients that protect records are of {ROWS_OF_RECORDS_MAX:,} rows at most.")
    if batch is None:
        return RowCounts(fewest, most, fewest)
    return RowCounts(batch, min(most, at_most(float(batch), _BATCH_BEYOND)), fewest)


def descent_of(
    spec: Spec, dimension: int, facts: Mapping[str, Fact], others: Sequence[float] = (), shared: float = 0.0
) -> Descent:
    """Return the descent on a grid that suits the noise of contributions, and other noise of these deviations.

    `shared` is the deviation of all noise that a user shares with others.
    """
    task, sigma = spec.task, sigma_of(spec)
    assert task.clip is not None
    scales = [scale for scale in (sigma, *others) if scale > 0.0]
    records = row_counts(spec, facts)
    reach = task.clip if records is None or task.batch is None else task.clip * records.most / task.batch
    magnitude = (reach + NOISE_TAIL * (sum(scales) + shared)) * 2.0**EXACT_BITS
    grid = choose_grid(min(scales, default=None), 2.0 * task.clip, magnitude)
    return Descent(
        objective=objective_of(spec),
        guarantees=guarantees_of(spec, dimension, facts),
        dimension=dimension,
        clip=task.clip,
        grid_exponent=grid.exponent,
        regularization=task.regularization or 0.0,
        radius=task.radius,
        batch=task.batch,
        records=records,
        start_digest=str(facts["start"]) if "start" in facts else "" if is_named(spec) else None,
        start_max=float(facts.get("start_max", 0.0)),
    )


def noise_of(sigma: float, descent: Descent) -> Mechanism:
    """Return Gaussian noise of this deviation in data units, in steps of the descent's grid."""
    return NO_NOISE if sigma == 0.0 else Mechanism("gaussian", math.ldexp(sigma, -descent.grid_exponent))


def rate_of(spec: Spec, descent: Descent, steps: int) -> float:
    """Return the first step's rate: the given one, or one that provably contracts.

    A rate that must diverge is refused.
    """
    rate = spec.task.rate
    if rate is None:
        if descent.guarantees.smoothness is None:
            raise UsageError("[task] rate: missing, and features without a bound give no default; set it.")
        rate = 1.0 / (descent.guarantees.smoothness + descent.regularization)
    if rate * descent.regularization >= 2.0:
        raise UsageError(
            f"[task] rate: diverges, since rate x regularization is {rate * descent.regularization:g}; keep it below 2."
        )
    reach = math.sqrt(descent.dimension) * (descent.reach + NOISE_TAIL * sigma_of(spec)) * rate * steps
    if not reach < MODEL_MAX:
        raise UsageError(f"[task] rate: {steps} steps of it could carry the model beyond {MODEL_MAX:g}; lower it.")
    return rate


def rate_at(rate: float, schedule: str, step: int) -> float:
    """Return the rate of a step, counted from 1."""
    if schedule == "constant":
        return rate
    return rate / math.sqrt(step) if schedule == "inverse_sqrt" else rate / step


def rate_sums(rate: float, schedule: str, steps: int) -> tuple[float, float]:
    """Return the sum of all rates, and the root of the sum of their squares."""
    if schedule == "constant":
        return rate * steps, rate * math.sqrt(steps)
    rates = [rate_at(rate, schedule, step) for step in range(1, steps + 1)]
    return math.fsum(rates), math.hypot(*rates)


def check_model(shape: tuple[int, ...], value: Any, most: float = MODEL_MAX) -> str | None:
    """Return the kind of fault of a received model, or None if it is valid."""
    if getattr(value, "shape", None) != shape or value.dtype != np.float64:
        return "bad_value"
    return None if abs(value).max() <= most else "bad_value"


def inputs_of(descent: Descent, rows: Examples) -> tuple[GradientInputs, list[Any]]:
    """Return a user's inputs, and the rows that its private ledger keeps, each with its target last."""
    if min(len(rows), descent.batch or len(rows)) > ROWS_MAX:
        raise UsageError(f"[task] batch: a gradient is over {ROWS_MAX} rows at most; choose a smaller batch.")
    kept = list(np.column_stack([rows.features, rows.targets]))
    return GradientInputs(descent, rows), kept


def inputs_again(descent: Descent, values: list[Any]) -> GradientInputs:
    table = np.array(values, dtype=np.float64)
    return GradientInputs(descent, examples_of(table[:, :-1], table[:, -1], None))


def protection_of(noise: Mechanism, descent: Descent) -> tuple[Mechanism, ...]:
    """Return what protects a contribution of the user whose rows enter it most often."""
    drawn = None if descent.records is None else descent.drawn(descent.records.fewest)
    own = () if noise.name == "none" else (noise,)
    return own if drawn is None else (*own, drawn[0])


class Batches:
    """The minibatches of one user, drawn by its machine."""

    def __init__(self, descent: Descent, inputs: Any) -> None:
        self._drawn: tuple[Mechanism, Shape] | None = descent.drawn(inputs.count) if descent.samples else None

    def draw(self, draws: Draws) -> Any:
        """Return which rows the next gradient is over; None for all of them."""
        return None if self._drawn is None else draws.noise(*self._drawn)


def noise_bound(descent: Descent, noise: Mechanism, rates: list[float]) -> float | None:
    """Return an upper bound on the root mean square effect of noise on the model's numbers; None if steps may expand.

    A step that contracts by r reduces the squared distance to the model without noise to at most r^2 of it, and noise
    that does not depend on it adds (rate sigma)^2 for each number.
    """
    if descent.samples or descent.why_not_contracting(max(rates)) is not None:
        return None
    sigma = 0.0 if noise.name == "none" else Grid(descent.grid_exponent).step * noise.scale
    low, high = descent.regularization, (descent.guarantees.smoothness or 0.0) + descent.regularization
    variance = 0.0
    for rate in rates:
        shrunk = max(abs(1.0 - rate * low), abs(1.0 - rate * high))
        variance = shrunk**2 * variance + (rate * sigma) ** 2
    reach = math.inf if descent.radius is None else 2.0 * descent.radius / math.sqrt(descent.dimension)
    return min(math.sqrt(variance), reach)


def warnings_of(descent: Descent, rate: float) -> list[str]:
    """Return warnings about a rate that may be too high; a rate that certainly is was refused before."""
    if descent.guarantees.smoothness is None:
        return []
    most = 2.0 / (descent.guarantees.smoothness + descent.regularization)
    if rate <= most:
        return []
    return [f"[task] rate: {rate:g} is above 2/smoothness = {most:.6g}: descent may diverge instead of settling down"]


def loss_and_score(objective: Objective, examples: Examples | None, model: Floats) -> tuple[float | None, float | None]:
    """Return loss and score of a model on these examples; None where there are none, or no finite model."""
    if examples is None or not np.isfinite(model).all():
        return None, None
    return objective.loss(model, examples), objective.score(model, examples)


def public_scores(objective: Objective, public: Examples, model: Floats) -> dict[str, float | None]:
    """Return the scores of a model on public rows."""
    return dict(zip(PUBLIC_SCORES, loss_and_score(objective, public, model), strict=True))


def scores_of(
    objective: Objective, learned: Examples | None, tested: Examples | None, model: Floats
) -> dict[str, float | None]:
    """Return the scores of a model on the examples that it learned from, and on those that were kept out."""
    found: list[float | None] = []
    for part in (learned, tested):
        found += loss_and_score(objective, part, model)
    return dict(zip(SCORES, found, strict=True))
