"""Small specs of learning by gossip, on the table of the sample."""

from __future__ import annotations

from tests.support.learners import RANGES, TABLE

LOGISTIC = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.5\nrounds = 3'
LINEAR = 'kind = "linear_regression"\nclip = 0.7\nrate = 0.4\nrounds = 4\nregularization = 0.1\naveraging = "linear"'
MEAN = 'kind = "mean"\nclip = 120.0\nrate = 0.2\nrounds = 4'
VECTORS = f'columns = ["age", "dose"]\n{RANGES}\nclip = [-1.0, 1.0]\nunit_norm = true'


def gossip_learning(
    n: int = 5,
    kind: str = "ring",
    terms: str = "rounds = 2",
    *,
    task: str = LOGISTIC,
    sigma: float | None = 0.8,
    seed: bool = True,
    patience_s: float = 3.0,
) -> str:
    """A kind that ends in "changing" is drawn anew in each round."""
    noise = 'mechanism = "none"' if sigma is None else f'mechanism = "gaussian"\nsigma = {sigma}'
    graph = 'kind = "erdos_renyi"\nchanging = true\nprobability = 0.6' if kind == "changing" else f'kind = "{kind}"'
    rows = VECTORS if '"mean"' in task else f'target = "effect"\nrule = "> 0.0"\n{RANGES}\nunit_norm = true'
    if "linear_regression" in task:
        rows = f'target = "effect"\n{RANGES}\nunit_norm = true'
    return (
        f'[run]\nprotocol = "gossip.sgd"\nnodes = {n}\npatience_s = {patience_s}\n{"seed = 3" if seed else ""}\n'
        f"[graph]\n{graph}\n[gossip]\n{terms}\n[noise]\n{noise}\n"
        f'[data]\nkind = "csv"\npath = "{TABLE}"\n{rows}\n[task]\n{task}\n[privacy]\ndelta = 1e-5\n'
    )
