"""Specs of runs across machines."""

from __future__ import annotations

from p2pdp.core.spec import Spec
from p2pdp.files.spec import parse_spec

TEXT = """[run]
protocol = "walk.sum"
nodes = 4
seed = 5
min_nodes = 3
[graph]
kind = "complete"
[walk]
order = "random"
hops = 30
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def spec_of(text: str = TEXT) -> Spec:
    return parse_spec(text, None)
