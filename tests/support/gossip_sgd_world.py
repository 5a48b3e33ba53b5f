"""Learners by gossip, in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.sgd import PROTOCOL, GossipLearner
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.tasks.examples import examples_of
from tests.support.gossip_world import PATIENCE_S, GossipWorld

N, D = 6, 3


def run_of(*overrides: str) -> RunPlan:
    text = (
        f'[run]\nprotocol = "gossip.sgd"\nnodes = {N}\npatience_s = {PATIENCE_S}\n[graph]\nkind = "erdos_renyi"\n'
        "changing = true\nprobability = 0.5\n[gossip]\nrounds = 3\n[noise]\n"
        'mechanism = "gaussian"\nsigma = 0.5\n[data]\nkind = "csv"\npath = "rows.csv"\ntarget = "y"\nunit_norm = true\n'
        '[task]\nkind = "logistic_regression"\nintercept = false\nclip = 1.0\nrate = 0.5\nrounds = 4\n'
        "regularization = 0.1\n[privacy]\ndelta = 1e-6\n"
    )
    return plan_run(parse_spec(text, None, overrides), N, D)


def rows_of(user: int) -> Any:
    generator = np.random.default_rng(user)
    features = generator.normal(size=(5, D))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return examples_of(features, np.where(generator.random(5) < 0.5, -1.0, 1.0), 1.0)


class World(GossipWorld):
    """The same world with learners in it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inputs = [PROTOCOL.inputs(self.plan, rows_of(user))[0] for user in range(N)]  # type: ignore[arg-type]
        self.machines = [
            GossipLearner(self.plan, user, self.graph.neighbours[user], self.inputs[user])  # type: ignore[arg-type]
            for user in range(N)
        ]


def world_of(run: RunPlan, seed: int = 0) -> World:
    assert run.graph is not None
    return World(run.plan, run.graph, [0.0] * N, seed=seed)


def run_without(dropped: list[str], *overrides: str) -> RunPlan:
    """A ring has no probability of an edge, nor can it change."""
    run = run_of(*(override for override in overrides if not dropped))
    if not dropped:
        return run
    graph = replace(run.spec.graph, kind="ring", changing=False, probability=None)
    task = replace(run.spec.task, averaging=overrides[-1].split('"')[1])
    return plan_run(replace(run.spec, graph=graph, task=task), N, D)
