"""Plans of shuffling runs."""

from __future__ import annotations

from p2pdp.files.spec import parse_spec
from p2pdp.protocols.run_plan import RunPlan, plan_run
from tests.support.shuffle_specs import shuffle

MEAN = (
    shuffle(20, 'kind = "regular"\ndegree = 4')
    .replace('"randomized_response"\nepsilon = 3.0', '"laplace"\nepsilon = 3.0')
    .replace('"categories"', '"uniform"\nclip = [0.0, 2.0]')
    .replace('kind = "histogram"\ncategories = 3', 'kind = "mean"')
)


def run_of(text: str, n: int | None = None, dimensions: int = 1) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, n or spec.run.nodes, dimensions)
