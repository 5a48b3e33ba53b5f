"""What figures about walks on the complete graph share: parameters, paths, what observers see of them, and averages.

The walks are those of `walk.sum` as its plan says, T = 100 n steps of one token that begins at user 0. Parameters that
the papers' texts leave out are those of their public code: epsilon_0 of 0.1 and 0.4, and a delta of 1e-7 for each
contribution and each composition. Sound curves stand at delta 1e-5, which is less than the recipes add up to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.accounting.hidden_path.gaps import Gap, Visit, gaps_of
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import Setting
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import plan_run
from p2pdp.protocols.walk.analysis.fast import path_of
from p2pdp.protocols.walk.options import WalkPart

SEED: Final = 20_201_116
VISITS: Final = 100  # T / n
EPSILONS: Final = (0.1, 0.4)
DELTA: Final = 1e-7  # of a contribution, and of a composition, as in the papers' recipes
SOUND_DELTA: Final = 1e-5
_NODES: Final = (5, 10, 20, 50, 100, 200, 400)
_NODES_QUICK: Final = (5, 20)
_WALKS: Final = 10
_WALKS_QUICK: Final = 2


def nodes(setting: Setting) -> tuple[int, ...]:
    return _NODES_QUICK if setting.quick else _NODES


def walks(setting: Setting) -> int:
    return _WALKS_QUICK if setting.quick else _WALKS


def ratio(epsilon_0: float) -> float:
    """The mu of a contribution that is (epsilon_0, 1e-7)-DP by itself: sensitivity over deviation of its noise."""
    return 1.0 / gaussian.sigma_of(epsilon_0, DELTA)


def path(n: int, walk: int) -> Ints:
    """Who contributes at steps 1 to T of walk number `walk`."""
    spec = Spec(
        run=RunPart("walk.sum", n),
        graph=GraphPart("complete"),
        noise=NoisePart("gaussian", sigma=1.0),
        data=DataPart("uniform", clip=(0.0, 1.0)),
        task=TaskPart("sum"),
        options=WalkPart("random", hops=VISITS * n),
    )
    run = plan_run(spec, n, 1, None, sampler="seeded")
    generator = np.random.Generator(np.random.Philox(key=SEED + 1000 * n + walk))
    return path_of(run, 0, generator)[0]


def gaps(steps: Ints, n: int) -> list[list[Gap]]:
    """What each user knows of the stretches between its visits."""
    before = [None, *steps[:-1].tolist()]
    after = [*steps[1:].tolist(), None]
    visits: list[list[Visit]] = [[] for _ in range(n)]
    for place, user in enumerate(steps.tolist()):
        visits[user].append((place + 1, before[place], after[place]))
    moves = [0, 0, *np.cumsum(np.diff(steps) != 0).tolist()]
    return [gaps_of([seen], len(steps), [0], moves=[moves]) for seen in visits]


def seen_by(steps: Ints, observer: int) -> tuple[Ints, Ints]:
    """Of all steps of others: the gap of the observer that each is in, and whose it is."""
    others = steps != observer
    return np.cumsum(~others)[others], steps[others]


def spread(losses: Floats) -> dict[str, float]:
    """Mean, least and largest over pairs; NaN marks what is no pair."""
    return {
        "mean": float(np.nanmean(losses)),
        "best": float(np.nanmin(losses)),
        "worst": float(np.nanmax(losses)),
    }


def gathered(answers: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float, float] | None:
    """Mean, best and worst over all walks of one kind of loss; None where no walk has it."""
    found = [answer[name] for answer in answers if name in answer]
    if not found:
        return None
    mean = sum(one["mean"] for one in found) / len(found)
    return mean, min(one["best"] for one in found), max(one["worst"] for one in found)
