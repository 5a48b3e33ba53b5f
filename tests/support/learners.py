"""Small specs of learning by a walk, on the table of the sample, and what their runs are made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from p2pdp.files.data import DataSet, load_data
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import RunPlan, plan_run
from tests.support.sources import TOP

TABLE = TOP / "deploy" / "samples" / "walk_sgd.csv"
RANGES = "standardize = { low = [20.0, 0.0], high = [60.0, 10.0] }"
LOGISTIC = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.2'
LINEAR = 'kind = "linear_regression"\nclip = 0.7\nrate = 0.3'


def learning(
    n: int = 5,
    hops: int = 12,
    *,
    task: str = LOGISTIC,
    kind: str = "complete",
    tokens: int = 1,
    sigma: float | None = 0.8,
    data: str = RANGES,
    target: str = 'target = "effect"\nrule = "> 0.0"',
    order: str | None = None,
) -> str:
    noise = 'mechanism = "none"' if sigma is None else f'mechanism = "gaussian"\nsigma = {sigma}'
    walk = order or f'order = "random"\nhops = {hops}'
    return (
        f'[run]\nprotocol = "walk.sgd"\nnodes = {n}\nseed = 3\n'
        f'[graph]\nkind = "{kind}"\n[walk]\n{walk}\ntokens = {tokens}\n[noise]\n{noise}\n'
        f'[data]\nkind = "csv"\npath = "{TABLE}"\n{target}\n{data}\n'
        f"[task]\n{task}\n[privacy]\ndelta = 1e-5\n"
    )


def prepared(text: str, *overrides: str, own: Any = None) -> tuple[RunPlan, DataSet]:
    spec = parse_spec(text, None, overrides)
    spec = replace(spec, task=replace(spec.task, own=own))
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data
