"""`model.npz`: the model that a run learned, beside `result.json`, for numpy to load.

    model          all numbers, as `estimate` in result.json has them
    weights        those that are multiplied with the features, in the order of the columns
    intercept      the one that is added to the product, 0 where the model has none
    low, high      what features are standardized by (value to 2 (value - low)/(high - low) - 1, with what lies outside
                   moved to the ends), or mean, deviation (value to (value - mean)/deviation); absent if they are not
    clip           the bounds into which features are moved after that; absent if they are not
    unit_norm      whether features are scaled to length 1 after that
    task           what was learned
    users          of models learned by gossip of which none was published: whose they are. `model`, `weights` and
                   `intercept` have a row for each then; the launcher has them, for the users' folders are its own

A row of features that went through all that is told by `features @ weights + intercept`, of logistic regression by the
sign of that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.files.folder import write_arrays
from p2pdp.protocols.learning import has_intercept
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.result import Result

MODEL_FILE: Final = "model.npz"


def save_model(place: Path, run: RunPlan, result: Result) -> None:
    """Does nothing where no model was learned, or there is none at hand."""
    if not run.protocol.name.endswith(".sgd"):
        return
    if isinstance(result.estimate, list):
        model, of_users = np.array(result.estimate), {}
    elif result.outputs:
        model = np.array([output["value"] for output in result.outputs])
        of_users = {"users": np.array([output["user"] for output in result.outputs])}
    else:
        return
    data, split = run.spec.data, model.shape[-1] - has_intercept(run.spec)
    arrays: dict[str, Any] = {
        **of_users,
        "model": model,
        "weights": model[..., :split],
        "intercept": model[..., split] if split < model.shape[-1] else np.zeros(model.shape[:-1])[()],
        "unit_norm": np.bool_(data.unit_norm),
        "task": np.array(run.spec.task.kind),
    }
    if data.standardize is not None:
        arrays |= {name: np.array(value) for name, value in data.standardize.items() if isinstance(value, list)}
    if data.clip is not None:
        arrays["clip"] = np.array(data.clip)
    write_arrays(place / MODEL_FILE, arrays)
