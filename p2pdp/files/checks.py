"""Which keys of a spec go together: three tables and the loop over them.

`ONLY` says where a key has a meaning: given anywhere else it is refused, and the writer of effective
specs leaves it out. `NEEDED` says where a key without a default must be given. `POSSIBLE` (`combinations.py`)
holds what must be true of the values together. Each entry names the key to change and says why. Sizes for
which a graph kind has no graph are found when the graph is made for the real number of nodes,
except sides of a grid that are given.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.combinations import (
    POSSIBLE,
    Test,
    exact_pair,
    family,
    from_file,
    graph_kind,
    has_target,
    histogram,
    learns,
    mechanism,
    numbers,
    numeric_target,
    random_walk,
    randomized,
    regression,
    ring,
    ring_sum,
    unit_vectors,
)
from p2pdp.files.schema import SECTIONS

ONLY: Final[dict[str, tuple[Test, str]]] = {
    "graph.degree": (graph_kind("regular"), 'only kind "regular" has a degree.'),
    "graph.probability": (graph_kind("erdos_renyi"), 'only kind "erdos_renyi" has an edge probability.'),
    "graph.radius": (graph_kind("geometric"), 'only kind "geometric" has a radius.'),
    "graph.rows": (graph_kind("grid", "torus"), 'only kinds "grid" and "torus" have rows.'),
    "graph.columns": (graph_kind("grid", "torus"), 'only kinds "grid" and "torus" have columns.'),
    "graph.path": (graph_kind("file"), 'only kind "file" is read from an edge list.'),
    "graph.changing": (lambda s: family(s) == "gossip", "only gossip runs on changing graphs."),
    "walk.laps": (ring, 'a random walk has hops; only order "ring" has laps.'),
    "walk.hops": (random_walk, 'a ring has laps; only order "random" has hops.'),
    "gossip.rounds": (lambda s: not randomized(s), "randomized gossip counts activations, not rounds."),
    "gossip.accelerated": (lambda s: not randomized(s), "only synchronous gossip can be accelerated."),
    "gossip.activations": (randomized, "only gossip.randomized counts activations."),
    "gossip.lambda": (lambda s: s.graph.changing, "it is assumed only where [graph] changing = true."),
    "noise.sigma": (mechanism("gaussian", "laplace"), "only gaussian and laplace noise have a standard deviation."),
    "noise.epsilon": (lambda s: s.noise.mechanism != "none", 'mechanism "none" protects nothing and has no epsilon.'),
    "noise.delta": (exact_pair, "only gaussian noise that is set by epsilon takes a delta."),
    "noise.closing": (ring_sum, "only walk.sum on a ring has a closing draw."),
    "noise.share": (
        lambda s: ring_sum(s) and s.noise.mechanism == "gaussian",
        "only walk.sum on a ring with gaussian noise can share a draw among users.",
    ),
    "noise.encoding": (mechanism("randomized_response"), "only randomized_response encodes categories."),
    "data.clip": (
        lambda s: not histogram(s) and not unit_vectors(s),
        "only numbers are clipped, neither categories nor the directions that privunit reports.",
    ),
    "data.path": (from_file, 'only kinds "csv" and "npy" are read from a file.'),
    "data.columns": (from_file, 'only kinds "csv" and "npy" have columns.'),
    "data.header": (lambda s: s.data.kind == "csv", 'only kind "csv" has a header line.'),
    "data.separator": (lambda s: s.data.kind == "csv", 'only kind "csv" has a separator.'),
    "data.target": (has_target, "only learning has a target, and not that of a mean."),
    "data.rule": (has_target, "only learning has a target that a rule could make."),
    "data.target_range": (numeric_target, "only a numeric target has a range."),
    "data.standardize": (lambda s: from_file(s) and learns(s), "only learning standardizes the columns of a file."),
    "data.unit_norm": (
        lambda s: from_file(s) and (learns(s) or unit_vectors(s)),
        "only rows of files are scaled to unit length, for learning and for privunit.",
    ),
    "data.split_by": (lambda s: from_file(s) and learns(s), "only learning splits the rows of a file by a column."),
    "task.categories": (histogram, "only a histogram has categories."),
    "task.clip": (learns, "gradients are clipped only in learning; values by [data] clip."),
    "task.rate": (learns, "only learning has a rate."),
    "task.rounds": (lambda s: s.run.protocol == "gossip.sgd", "only gossip.sgd counts gradients in rounds."),
    "task.regularization": (learns, "only learning is regularized."),
    "task.batch": (learns, "only learning takes batches."),
    "task.test": (learns, "only learning sets rows aside for a test."),
    "task.radius": (lambda s: s.run.protocol == "walk.sgd", "only walk.sgd keeps models within a radius."),
    "task.schedule": (learns, "only learning has rates that follow a schedule."),
    "task.averaging": (lambda s: s.run.protocol == "gossip.sgd", "only gossip.sgd averages models over time."),
    "task.intercept": (regression, "only regressions have an intercept."),
}

NEEDED: Final[dict[str, tuple[Test, str]]] = {
    "graph.degree": (graph_kind("regular"), 'kind "regular" needs it.'),
    "graph.path": (graph_kind("file"), 'kind "file" needs it.'),
    "walk.laps": (ring, 'order "ring" needs it.'),
    "walk.hops": (random_walk, 'order "random" needs it.'),
    "gossip.rounds": (lambda s: family(s) == "gossip" and not randomized(s), 'give a number or "auto".'),
    "gossip.activations": (randomized, "gossip.randomized needs it."),
    "shuffle.rounds": (lambda s: family(s) == "shuffle", 'give a number, "auto" or "mixing".'),
    "noise.epsilon": (
        lambda s: s.noise.mechanism != "none" and s.noise.sigma is None,
        "noise needs it, or a sigma where the mechanism is gaussian or laplace.",
    ),
    "noise.delta": (exact_pair, "gaussian noise set by epsilon needs it; or give sigma instead of both."),
    "data.path": (from_file, 'kinds "csv" and "npy" need it.'),
    "data.clip": (
        lambda s: numbers(s) and not unit_vectors(s),
        "sums and means need bounds [low, high] that hold for every number.",
    ),
    "data.target": (regression, "a regression needs it."),
    "task.categories": (histogram, "a histogram needs their number."),
    "task.clip": (learns, "learning needs the bound of a gradient's norm."),
    "task.rounds": (lambda s: s.run.protocol == "gossip.sgd", "gossip.sgd needs the number of gradients."),
}


def applies(spec: Spec, name: str) -> bool:
    """Whether the key, named `section.key`, has a meaning in this spec."""
    return name not in ONLY or ONLY[name][0](spec)


def check(spec: Spec, given: AbstractSet[str]) -> None:
    """Refuses the first impossible combination; `given` holds what the file itself said, as `section.key`."""
    for section in ("walk", "gossip", "shuffle"):
        if section == family(spec) and getattr(spec, section) is None:
            raise UsageError(f"[{section}] is missing; {spec.run.protocol} needs it.")
        if section != family(spec) and getattr(spec, section) is not None:
            raise UsageError(f"[{section}] has no meaning for {spec.run.protocol}; leave it out.")
    for name, possible, why in POSSIBLE:
        if not possible(spec):
            raise _refusal(name, why(spec))
    for name in sorted(given & ONLY.keys()):
        if not applies(spec, name):
            raise _refusal(name, ONLY[name][1])
    for name, (when, reason) in NEEDED.items():
        if when(spec) and value_of(spec, name) is None:
            raise _refusal(name, f"missing; {reason}")


def value_of(spec: Spec, name: str) -> object:
    """The value of `section.key`; None where it was not given and has no default."""
    section, _, key = name.partition(".")
    own = section not in SECTIONS
    part = spec.options if own else getattr(spec, section)
    return None if part is None else getattr(part, key if own else SECTIONS[section].field_of(key))


def _refusal(name: str, why: str) -> UsageError:
    section, _, key = name.partition(".")
    return UsageError(f"[{section}] {key}: {why}")
